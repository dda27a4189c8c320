"""Bugs of insertions and deletions: what a step is charged, which updates are valid, which items live, what is drawn.

Bugs inside of trees, partitions and nodes are planted beside them: tests/dynamic/mutants.py and prefix_mutants.py.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced, scaled
from evertally.counting.processes import Gram
from evertally.counting.tree import TreeProcess
from evertally.dynamic import anew, living, planning, presence, tolls
from evertally.dynamic.anew import Anew
from evertally.dynamic.charges import Encoder, Relation
from evertally.dynamic.choosing import Question
from evertally.dynamic.ledgers import Allocation
from evertally.dynamic.lifetimes import Lifetimes, Minted, Named
from evertally.dynamic.parts import Place, Updates
from evertally.dynamic.sides import Side
from evertally.dynamic.static.weights_update import MultiplicativeWeights
from evertally.dynamic.tolls import Purse, Toll
from evertally.privacy import Change, PureDP
from evertally.statistics import dynamic_options

_NAMES = "items with names, all short streams"
_TOKENS = "items with tokens, all short streams"
_EXPIRE = "items that expire"


def charging(way: str, change: Change) -> Bug:
    """A relation with another charge for one way to find items."""
    return replaced(Relation, **{way: lambda self, *facts: change})


def taking(**facts: Any) -> Bug:
    """Names from outside, charged as if other facts had been declared."""
    original = Relation._id
    return replaced(Relation, _id=lambda self, *rest: original(replace(self, **facts), *rest))


# -- charges -----------------------------------------------------------------------------------------------------------


@plant(_TOKENS)
def item_charged_once() -> Bug:
    """an item charged like one update (dynamic-data 13.1: it comes and it goes, (2, 2, 1))"""
    return charging("_token", Change(1, 1, 1))


@plant("lifetimes under Gaussian noise")
def squares_of_one_update() -> Bug:
    """an item charged with the square of one update (13.1: (2, 1, 1) in place of (2, 2, 1))"""
    return charging("_id", Change(2, 1, 1))


@plant("records of names from outside, one by one")
def names_charged_once() -> Bug:
    """names from outside charged once in the event unit (6.3: without its insertion a name may begin another life)"""
    return taking(protects="item")


@plant(_NAMES)
def one_life_of_two() -> Bug:
    """two lives of a name charged as one (13.1: k lives are (2k, 2k, 1))"""
    return taking(lifetimes=1)


@plant("updates without names")
def floor_at_the_raw_price() -> Bug:
    """a floor at zero for the price of a plain sum (13.1: where it bites, an update acts twice)"""
    return charging("_value", Change(1, 1, 1))


@plant("items in each other's place")
def replaced_for_one() -> Bug:
    """an item in another one's place for the price of one (13.1: (4, 6, 2))"""
    return charging("_token", Change(2, 2, 1))


@plant("items without names whose deletions may come twice")
def repeats_admitted() -> Bug:
    """items without names protected although deletions may come twice (13.1: m deliveries cost m + 1)"""
    return replaced(Relation, __post_init__=lambda self: None)


@plant("several records of one user")
def users_like_events() -> Bug:
    """the records of a user charged as one (1.3: a group of them)"""

    def change(self: Relation, encoder: Encoder, gram: Gram = Gram.ORDERED) -> Change:
        return self._rows(encoder.positive, gram)

    return replaced(Relation, change=change)


@plant("items in several rows of a hierarchy")
def one_row_for_an_item() -> Bug:
    """an item charged for one of its rows (13.1: times the norms of the encoder)"""
    question = planning._question

    def forgetful(wanted: Any, static: Any) -> Question:
        asked = question(wanted, static)
        return Question(
            asked.guarantee, asked.relation, Encoder(), asked.horizon, asked.columns, asked.memory_limit, asked.radix
        )

    return replaced(planning, _question=forgetful)


@plant("lifetimes under the noise of a tree")
def signs_in_the_factor() -> Bug:
    """noise of a factor with entries of both signs, at the price of the others (13.1: (2, 4, 2) without G >= 0)"""

    def advance(self: Any, count: int = 1) -> Any:
        # R = 1 - shift: an update costs 2, one that comes and goes in the next tick 6, where 4 are charged.
        law = scaled(self.law, Fraction(2, self.levels))
        draws = self._source.draws("signed", law, range(1, self.tick + count + 1), self.columns)
        path = np.cumsum(np.cumsum(draws, axis=0), axis=0)[self.tick :]
        self.tick += count
        return path

    return replaced(TreeProcess, advance=advance)


@plant(_EXPIRE)
def runs_one_tick_short() -> Bug:
    """presence hidden for one tick less than it lasts (13.2: c(W), not c(W - 1))"""
    runs = Question.runs

    def shorter(self: Question) -> Any:
        made = runs(self)
        return None if made is None else type(made)(made.squared, made.longest - 1)

    return replaced(Question, runs=shorter)


@plant("inputs of releases anew")
def anew_for_one() -> Bug:
    """releases anew charged for one lifetime where two change (13.3, 6.3)"""
    return replaced(anew, anew_toll=lambda setting: Toll(1, 1))


@plant("inputs of two trees, for users")
def users_like_events_in_trees() -> Bug:
    """the records of a user charged as one by constructions (1.3: a group of them)"""
    steps = Relation.steps.fget  # type: ignore[attr-defined]
    return replaced(Relation, steps=property(lambda self: steps(replace(self, max_events_per_user=None))))


@plant("inputs of an interval tree")
def rounds_for_nothing() -> Bug:
    """nodes that pay for their first round only (6.10: restarts release everything anew)"""
    shares = Allocation.shares
    return replaced(Allocation, shares=lambda self, level, round_: shares(self, level, 1))


@plant("boundaries together with the releases at them")
def partition_for_nothing() -> Bug:
    """a partition that nobody pays for (1.2: its epsilon and that of the releases add up)"""

    def pure(charge: Any, epsilon: Any, toll: Toll, part: Any) -> Purse:
        return Purse(charge, epsilon * part / toll.epsilon if part else None, PureDP(epsilon / toll.epsilon))

    return replaced(tolls, _pure=pure)


# -- which updates count -----------------------------------------------------------------------------------------------


@plant(_NAMES)
def deletions_repeat() -> Bug:
    """the second deletion of a name takes away one more (14.2: it names nothing that lives)"""
    return replaced(Named, _end=lambda self, name, life: None)


@plant(_NAMES)
def dead_names_forgotten() -> Bug:
    """names that are forgotten when they die (6.3: then they live again and again)"""
    return replaced(Named, _end=lambda self, name, life: self._set(name, None))


@plant("a dead name comes back after a restore")
def dead_names_not_saved() -> Bug:
    """snapshots without the names that lived (6.3: after a restore they live again)"""
    packed = living.packed

    def lossy(kind: bytes, numbers: Any, lives: Any) -> bytes:
        return packed(kind, numbers, {name: life for name, life in lives.items() if life[0] >= 0})

    return replaced(living, packed=lossy)


@plant(_TOKENS)
def tokens_used_again() -> Bug:
    """tokens that begin anew when nobody is there (6.3: a deletion that comes late takes away somebody else)"""

    begin = Lifetimes.begin

    def counting_anew(self: Any, tick: int) -> None:
        if not self._lives:
            self._next = 1
        begin(self, tick)

    return replaced(Minted, begin=counting_anew)


@plant(_EXPIRE)
def expired_by_value() -> Bug:
    """expiry by value (13.2: what was deleted before takes another copy along)"""
    changes = Lifetimes._changes

    def by_value(self: Any, arrivals: Any, tick: int) -> Any:
        longest, self._longest = self._longest, None
        found = changes(self, arrivals, tick)
        self._longest = longest
        if longest is not None:
            came = vars(self).setdefault("_came", {})
            came[tick] = [cell for cell, sign, _ in found if sign > 0]
            found = [*((cell, -1, -1) for cell in came.get(tick - longest, ())), *found]
        return found

    return replaced(Lifetimes, _changes=by_value)


@plant(_EXPIRE)
def expired_late() -> Bug:
    """items that expire one tick after their time (13.2: then the run is longer than what is hidden)"""
    made = presence.presence_of

    def late(identity: Any, source: Any, *, longest: int | None = None, **options: Any) -> Any:
        return made(identity, source, longest=None if longest is None else longest + 1, **options)

    return replaced(dynamic_options, presence_of=late)


@plant("boundaries together with the releases at them")
def repeats_counted() -> Bug:
    """a partition that counts what the door has dropped, in the item unit (14.2: an item is two updates there)"""
    made = presence.presence_of

    def counting(identity: Any, source: Any, *, protects: str, **options: Any) -> Any:
        return made(identity, source, protects="event", **options)

    def advance(self: Any, updates: Updates) -> bool:
        cells, amounts = self._mine(updates)
        np.add.at(self._open, cells, amounts)
        if not self.partition.boundary(updates.arrived):
            return False
        self.structure.feed(self._open)
        self._open = np.zeros_like(self._open)
        return True

    return all_of(replaced(dynamic_options, presence_of=counting), replaced(Side, advance=advance))


# -- what is drawn -----------------------------------------------------------------------------------------------------


@plant("inputs of releases anew")
def one_noise_for_all() -> Bug:
    """releases anew that all have the same noise (14.4: an address never meets other data)"""

    def release(self: Any, number: int) -> Any:
        place = Place(self._source, self._allowance.lane(number), 1)
        return self._static.fit(np.maximum(self._present, 0), self._allowance.share(number), place)

    return replaced(Anew, _release=release)


@plant("rounds of multiplicative weights, for data of which the same size was told")
def rounds_of_the_true_size() -> Bug:
    """rounds of multiplicative weights by the true size (3.3: K may follow from the noisy size only)"""
    fit = MultiplicativeWeights.fit

    def knowing(self: Any, data: Any, budget: Any, place: Any, size_hint: int | None = None) -> Any:
        return fit(self, data, budget, place, int(data.sum()))

    return replaced(MultiplicativeWeights, fit=knowing)


@plant("insertions and deletions: asked again, restored, after the end, garbage")
def released_row_lost() -> Bug:
    """releases anew that are made again after a restore (10.1.12: and with other noise)"""
    load, release = Anew.load, Anew._release

    def loading(self: Any, tick: int, parts: Any) -> None:
        load(self, tick, parts)
        self._restored = tick
        if tick:
            self._row = again(self, self._schedule.by(tick))

    def again(self: Any, number: int) -> Any:
        place = Place(self._source, f"restored-{getattr(self, '_restored', 0)}", number)
        if not getattr(self, "_restored", 0):
            return release(self, number)
        return self._static.fit(np.maximum(self._present, 0), self._allowance.share(number), place)

    return replaced(Anew, load=loading, _release=again)
