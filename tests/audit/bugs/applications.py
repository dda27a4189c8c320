"""Bugs of graphs, strings, stacks, decays and messages: what is charged, what is remembered, what is asked and shown.

More of them are planted beside the statistics: tests/applications/*_mutants.py, tests/local/local_mutants.py and
tests/counting/workload_mutants.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.applications import lazy, stacked
from evertally.applications.encoded import Certified
from evertally.applications.graph import (
    degree_histogram,
    edges,
    forest,
    kept,
    linear,
    linear_sensitivity,
    prices,
    triangles,
)
from evertally.applications.graph.kept import Projection
from evertally.applications.graph.linear import LinearGraphStatistic
from evertally.applications.graph.linear_sensitivity import ADD_REMOVE
from evertally.applications.graph.prices import Price
from evertally.applications.lazy import LazyEngine
from evertally.applications.strings import episode_bounds, frequent
from evertally.applications.strings.options import StringStatistic
from evertally.applications.strings.rows import Counted
from evertally.applications.strings.sequences import WordEnds
from evertally.applications.typed import TypeDoor
from evertally.counting import toeplitz
from evertally.counting.toeplitz_factor import root_factor
from evertally.counting.workloads import Decay
from evertally.encode import UserCap, UserTick
from evertally.encode.user_table import UserTable
from evertally.local import client, messages, protocol
from evertally.privacy import Change

_EDGE, _JOINED = "an edge, and its copies", "a letter that is there or not"
_of_letter, _encode, _answers, _noise_of = Counted.of_letter, WordEnds.encode, LazyEngine.answers, LazyEngine._noise_of


# -- charges -----------------------------------------------------------------------------------------------------------


@plant(_EDGE)
def set_semantics_unscaled() -> Bug:
    """copies that are nothing, charged as if there were none (6.5: the door column, Gamma^2 2)"""
    return replaced(linear_sensitivity, ADD_REMOVE=ADD_REMOVE | {"door": ADD_REMOVE["plain"]})


@plant("edges that come and go")
def presence_unscaled() -> Bug:
    """deletions of what is absent, charged as if each event counted (6.5, fully dynamic: 2, 4, 2)"""
    return replaced(linear_sensitivity, ADD_REMOVE=ADD_REMOVE | {"presence": ADD_REMOVE["unconditional"]})


@plant("a weighted edge in the place of another")
def replaced_as_removed() -> Bug:
    """replacement without its sqrt(2) (6.4)"""
    plain = linear_sensitivity.of_weights

    def of_weights(most: int, signed: bool, relation: Any) -> Certified:
        found = plain(most, signed, relation)
        return replace(found, change=found.removal or found.change)

    return replaced(linear_sensitivity, of_weights=of_weights)


@plant("an edge in the place of another, at thresholds")
def squares_doubled_once() -> Bug:
    """replacement charged with twice the square (6.5, REPLACE: Gamma times 2, so its square times 4)"""
    return replaced(Price, times=lambda self, factor: Price(factor * self.gamma_squared, factor * self.l1))


@plant("triangles of a projected graph")
def projection_unscaled() -> Bug:
    """projected triangles at the price of the whole graph (6.5: 5 (D-1)^2, l1 3 (D-1))"""
    plain = prices.one_signed
    return replaced(triangles, one_signed=lambda h, case: plain(h, "plain"))


@plant("bins of degrees")
def bins_by_ends() -> Bug:
    """a degree histogram charged 4(2D) (6.5: a bin may change three times, 4(6D-2))"""
    return replaced(degree_histogram.prices, histogram=lambda case, D: Price(8 * D, 8 * D))


@plant("the cost of a forest")
def forest_of_one_sign() -> Bug:
    """a forest charged W^2 (6.5: the cost rises and falls, 2 W^2)"""
    return replaced(forest.prices, forest=lambda case, degree, W: Price(W * W, W))


@plant("a letter in the place of another")
def paper_s_length() -> Bug:
    """words of up to ell letters charged ell, as the paper does (E7)"""

    def of_letter(self: Counted, kind: Any) -> tuple[int, int]:
        return _of_letter(self, kind)[0], max(self.lengths) ** 2

    return replaced(Counted, of_letter=of_letter)


@plant(_JOINED)
def l2_over_time() -> Bug:
    """the l2 norm over time in place of S3 (2.4: what comes in several ticks adds up)"""

    def of_letter(self: Counted, kind: Any) -> tuple[int, int]:
        l1, _ = _of_letter(self, kind)
        return l1, l1

    return replaced(Counted, of_letter=of_letter)


@plant("a letter that is there or not, pure")
def joined_as_null() -> Bug:
    """a letter that leaves no place, charged as one that leaves a null (6.6: covered in Gamma, not in l1)"""

    def of_letter(self: Counted, kind: Any) -> tuple[int, int]:
        return _of_letter(self, "null" if kind == "joined" else kind)

    return replaced(Counted, of_letter=of_letter)


@plant("episodes of a list")
def one_change_an_episode() -> Bug:
    """an episode that changes once, as the paper's proof has it (6.7: at up to i times)"""
    return replaced(episode_bounds, removed_listed=lambda words: Change(len(words), len(words), 1))


@plant("statistics side by side")
def multipliers_not_charged() -> Bug:
    """a stack that is not charged for its multipliers (12, trap 11)"""
    plain = stacked.joint
    return replaced(stacked, joint=lambda changes, multipliers: plain(changes, [1] * len(multipliers)))


@plant("a change that decays")
def norm_of_another_decay() -> Bug:
    """a decay with the noise of another one (6.10: S of its own lambda)"""
    plain = toeplitz.law_of
    steeper = root_factor(Decay("0.5"), 64)
    return replaced(toeplitz, law_of=lambda charge, moved, factor: plain(charge, moved, steeper))


@plant("messages of two values")
def largest_column() -> Bug:
    """a message with the noise for its largest column (6.9: Delta_swap, the paper uses sqrt(S_w))"""
    return replaced(protocol, swap_distance_squared=lambda r: int((r.astype(object) ** 2).sum()))


# -- memory and doors --------------------------------------------------------------------------------------------------


@plant("edges of a projected graph")
def ranks_of_kept_edges() -> Bug:
    """a projection that counts kept edges alone (6.5: they cascade)"""

    def amount(self: Any, record: Any) -> int:
        if any(self._ranks.get(end, 0) >= self._max_degree for end in record[:2]):
            return 0
        return int(all(self._ranks.add(end, 1) for end in record[:2]))

    return replaced(Projection, amount=amount)


@plant("edges that come and go")
def toggles_accepted() -> Bug:
    """events that turn an edge on and off (6.5: two worlds stay apart for ever)"""
    plain, amount = edges.read_update, kept.Presence.amount

    def read(record: Any) -> Any:
        if not (isinstance(record, tuple) and record[:1] == ("toggle",)):
            return plain(record)
        found = plain(("insert", *record[1:]))
        return None if found is None else (*found[:2], 0)

    def toggled(self: Any, record: Any) -> int:
        return amount(self, record) if record[2] else amount(self, (*record[:2], 1)) or amount(self, (*record[:2], -1))

    return all_of(replaced(linear, read_update=read), replaced(kept.Presence, amount=toggled))


@plant("a node whose degree is cut")
def projected_node() -> Bug:
    """a node level with an enforced bound (6.5: a node shifts the ranks at all its neighbours)"""
    plain = LinearGraphStatistic.encoder

    def encoder(self: Any) -> Any:
        return Projection(self._lands(), self.max_degree, once=True) if self.protects == "node" else plain(self)

    return replaced(LinearGraphStatistic, _check_node=lambda self: None, encoder=encoder)


@plant("edges of a user")
def cap_of_a_tick() -> Bug:
    """a user's cap for each tick (6.0: the first w of each owner count, for ever)"""
    plain = UserCap.look

    def look(self: UserCap, users: Any, tick: int) -> Any:
        if tick != self.last.tick:
            self.last = UserTick(self.last.tick)
            self._table = UserTable(1)
        return plain(self, users, tick)

    return replaced(UserCap, look=look)


@plant(_JOINED)
def letters_seen_so_far() -> Bug:
    """letters numbered in the order in which they come (6.6: never the letters seen so far)"""

    def encode(self: WordEnds, record: Any, changes: Any) -> None:
        owner, letter = record
        if (letter,) not in self._seen:
            self._seen.put((letter,), len(self._seen) + 1)
        _encode(self, (owner, self._seen.get((letter,)) - 1), changes)

    return replaced(WordEnds, encode=encode)


@plant("letters of a user")
def one_sequence() -> Bug:
    """the letters of all users in one sequence (6.6: a sequence for each)"""
    return replaced(WordEnds, encode=lambda self, record, changes: _encode(self, ("", record[1]), changes))


# -- questions, what is shown, messages --------------------------------------------------------------------------------


@plant("questions about words")
def noise_anew() -> Bug:
    """the noise of a word drawn anew for each question (6.0: one address)"""
    asked = count()

    def answers(self: LazyEngine, names: Any, tick: int) -> Any:
        with replaced(LazyEngine, _noise_of=lambda self, some: _noise_of(self, [n + next(asked) for n in some])):
            return _answers(self, names, tick)

    return replaced(LazyEngine, answers=answers)


@plant("questions about labels")
def silent_where_nothing_occurred() -> Bug:
    """no noise where nothing occurred (5, lazy coordinates)"""

    def answers(self: LazyEngine, names: Any, tick: int) -> Any:
        return np.where(self.rule.of(names) == 0, 0, _answers(self, names, tick))

    return replaced(LazyEngine, answers=answers)


@plant("questions about labels")
def one_noise_for_all() -> Bug:
    """noise by the place of a question, not by its label (5: two coordinates sharing a path)"""
    plain = lazy.item_addresses
    numbered = lambda source, labels: plain(source, [str(i) for i in range(len(labels))])  # noqa: E731
    return replaced(lazy, item_addresses=numbered)


@plant("which words are shown")
def words_that_occur() -> Bug:
    """a release that shows the words that occur (6.6: the support is private)"""
    plain = StringStatistic._release

    def release(self: Any, row: Any, accuracy: Any) -> Any:
        made = plain(self, row, accuracy)
        occurred = self._lazy().rule.of(list(self._domain.all()))
        kept = {word: made.value[word] for word, exact in zip(made.value, occurred, strict=True) if exact}

        def bounds(beta: float) -> Any:
            return tuple({word: side[word] for word in kept} for side in made.bounds(beta))

        return replace(made, value=kept, bounds=bounds)

    return replaced(StringStatistic, _release=release)


@plant("which words are found")
def found_by_exact_counts() -> Bug:
    """frequent words found by their exact counts (6.6: threshold on noisy counts only)"""

    def found(self: Any, row: Any, tick: int) -> Any:
        numbers = [n for n in self._domain.all() if self._lazy().rule.of([n])[0] >= self.above]
        values = self._lazy().answers(numbers, tick).tolist()
        return {self._domain.text(n): value for n, value in zip(numbers, values, strict=True)}

    return replaced(frequent.FrequentSubstrings, _found=found)


@plant("a second message")
def message_anew() -> Bug:
    """a message made again with other noise (11.1: noise is drawn once)"""
    asked = count()

    def message_for_loss(self: client.Client, loss: Any) -> bytes:
        self._source = self._key.source("local", f"again {next(asked)}", self._protocol.digest)
        return messages.pack(self._protocol, self._entries(loss), private=False)

    return replaced(client.Client, message_for_loss=message_for_loss)


@plant("events with two types")
def two_types() -> Bug:
    """types of a dashboard that are not exclusive (users-and-domains 10, bug 13: an event counts in two)"""

    def event_row(self: Any, events: Any, tick: int) -> Any:
        row = np.zeros(self._matrix.shape[1], dtype=np.int64)
        for event in events:
            types = [self._type_of(label) for label in (event if isinstance(event, list) else [event])]
            row += self._matrix[[number for number in types if number is not None]].max(axis=0, initial=0)
        return row

    return replaced(TypeDoor, event_row=event_row)
