"""streaming-selection 7.5 by exact enumeration: three ticks, two labels, all levels, all neighbours of small streams.

The limit is so small that the program would refuse it (its noise alone reaches it): levels rise in most runs, which
says more about privacy. Half of rho goes to the looks here, so that they weigh as much as the counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.noise import ZeroNoise, item_addresses
from evertally.noise.source import ZeroSource
from evertally.selection import label_limit
from formulas.label_law import Law, Pairs, Path, Pmf, World, gaussian, told_apart
from long import LONG

_RHO, _DELTA = 2.0, 0.05
_OPEN, _SHUT = "g", "d"  # hashes 0000.. and 1010..: one is followed at all levels below 5, the other at none
_LABELS = (_OPEN, _SHUT)
Events = tuple[str, ...]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_limit, "_ROOM", 0)
    monkeypatch.setattr(label_limit, "_SAFE", 0)
    monkeypatch.setattr(label_limit, "_PART", Fraction(1, 2))


def _made(kind: Any = et.UnknownHistogram, **options: Any) -> Any:
    promise = et.ApproxZCDP(_RHO, _DELTA, force=True)
    most = options.pop("max_labels", 2)
    return kind(guarantee=promise, horizon=3, radix=2, max_labels=most, key=ZeroNoise(), **options)


def _law(mechanism: Any, cell: Pmf | None = None, look: Pmf | None = None) -> Law:
    worker = mechanism._worker()
    at = tuple(mechanism.threshold_at(tick) for tick in (1, 2, 3))
    limit = worker.followed._limit
    cells = gaussian(float(worker.tree.law.sigma_squared)) if cell is None else cell
    looks = gaussian(float(limit.law.sigma_squared)) if look is None else look
    return Law(_LABELS, at, cells, looks, limit)


def _events(ticks: list[Events]) -> World:
    running = [Counter[str]()]
    for tick in ticks:
        running.append(running[-1] + Counter(tick))
    return lambda tick, path: running[tick]


def _users(law: Law, ticks: list[list[tuple[str, int]]], most: int) -> World:
    """The first `most` labels of each user that are followed when they come; a rule hears of a level one tick late."""

    @cache
    def counts(tick: int, state: Any) -> Mapping[str, int]:
        held: dict[int, list[str]] = defaultdict(list)
        for number, visits in enumerate(ticks[:tick], 1):
            still = law._open(None, state) if number == 3 else set(_LABELS)
            for label, user in visits:
                if label in still and label not in held[user] and len(held[user]) < most:
                    held[user].append(label)
        return Counter(label for labels in held.values() for label in labels)

    def world(tick: int, path: Path) -> Mapping[str, int]:
        return counts(tick, path[0] if tick == 3 else None)

    return world


def _converted(rho: float, epsilon: float) -> float:
    """The delta at which rho-zCDP gives epsilon, by the best of many orders."""
    a = 1 + np.logspace(-2, 3, 400)
    return float(np.exp(((a - 1) * (a * rho - epsilon) + a * np.log1p(-1 / a) - np.log(a - 1)).min()))


def _used(law: Law, worlds: tuple[World, World]) -> tuple[float, float, float]:
    """What is used of the promise: of rho by the two processes of the proof, of delta by what one world alone can
    show, and of both together by what is released. 1 is all of it."""
    real, proof = law.transcripts(worlds), law.transcripts(worlds, padded=True)
    for one in (*real, *proof):
        assert abs(one.sum() - 1) < 1e-9
    used, bad, both = 0.0, 0.0, 0.0
    for (p, q), (a, b) in ((real, proof), (real[::-1], proof[::-1])):
        assert a[b == 0].sum() < 1e-9, "whatever one of the processes shows, the other one can show (but for cut tails)"
        shown = (a > 0) & (b > 0)
        log_a, log_b = np.log(a[shown]), np.log(b[shown])
        for order in (1.25, 2.0, 4.0, 8.0):
            renyi = np.log(np.exp(order * log_a + (1 - order) * log_b).sum()) / (order - 1)
            used = max(used, renyi / (order * _RHO))
        bad = max(bad, p[q == 0].sum() / _DELTA)
        for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0):
            both = max(both, np.maximum(p - np.exp(epsilon) * q, 0).sum() / (_DELTA + _converted(_RHO, epsilon)))
    return used, bad, both


def _bases(height: int, wide: bool = LONG) -> Iterator[list[Events]]:
    """What everybody else does: each label comes often enough to be shown, or once, or not at all, at ticks 1 and 2."""
    some = [(), (_SHUT,), (_SHUT,) * height, (_OPEN,), (_OPEN,) * height, (_OPEN, _SHUT) * height]
    for first, second in product(some, some if wide else some[::2]):
        yield [first, second, ()]


def _with(base: list[Events], *more: tuple[int, Events]) -> World:
    ticks = list(base)
    for at, events in more:
        ticks[at] = ticks[at] + events
    return _events(ticks)


def _one(base: list[Events]) -> Iterator[tuple[World, World]]:
    for at, label in product(range(3), _LABELS):
        yield _events(base), _with(base, (at, (label,)))


def _several(base: list[Events]) -> Iterator[tuple[World, World]]:
    for at in range(3):
        yield _events(base), _with(base, (at, _LABELS))


def _replaced(base: list[Events]) -> Iterator[tuple[World, World]]:
    for at in range(3):
        yield _with(base, (at, (_OPEN,))), _with(base, (at, (_SHUT,)))


def _two_of_a_user(base: list[Events]) -> Iterator[tuple[World, World]]:
    for one, other in combinations_with_replacement(product(range(3), _LABELS), 2):
        yield _events(base), _with(base, (one[0], (one[1],)), (other[0], (other[1],)))


def _adaptive(base: list[Events]) -> Iterator[tuple[World, World]]:
    """Both worlds go on as it pleases somebody who has seen the level and what stayed; so does the one event."""

    def world(more: int) -> World:
        def counts(tick: int, path: Path) -> Mapping[str, int]:
            found = Counter(base[0])
            if tick > 1:
                level, stay = path[0]
                found += Counter(base[1] if level else base[1][:1])
                found[_SHUT if stay == () or _SHUT in (stay or ()) else _OPEN] += more
            return found + Counter(base[2] if tick > 2 and path[1][0] > 1 else ())

        return counts

    yield world(0), world(1)


# Neighbours, options, and of how many pairs one is looked at (LONG: ten times as many).
_CASES: dict[str, tuple[Any, dict[str, Any], int]] = {
    "an event of one label": (_one, {}, 2),
    "room for one label": (_one, {"max_labels": 1}, 5),
    "an event of two labels": (_several, {"max_per_event": 2}, 7),
    "an event replaced": (_replaced, {"neighbours": "replace"}, 7),
    "a user of two events": (_two_of_a_user, {"unit": "user", "max_events_per_user": 2}, 41),
    "an adaptive stream": (_adaptive, {}, 1),
}


@pytest.mark.parametrize("case", _CASES)
def test_no_neighbours_are_told_apart_by_more_than_the_promise(case: str) -> None:
    neighbours, options, stride = _CASES[case]
    law = _law(_made(**options))
    pairs = [worlds for base in _bases(law.at[1] + 1) for worlds in neighbours(base)]
    used = np.max([_used(law, worlds) for worlds in pairs[:: max(1, stride // 10) if LONG else stride]], axis=0)
    assert (used <= 1).all()
    assert used[0] > 0.1, "the enumeration sees something"


# The rows of the table of 7.5: neighbours, options, the looks' part of rho, whether bases are wide, how many pairs;
# what is used at most, and for which pairs that is: those are played here, all of them under LONG.
_HALF, _SHARE = Fraction(1, 2), Fraction(1, 16)
_TABLE: dict[str, tuple[Any, dict[str, Any], Fraction, bool, int, tuple[float, float, float], tuple[int, ...]]] = {
    "one label, M = 2": (_one, {}, _HALF, True, 216, (0.814, 0.117, 0.533), (133, 6, 174)),
    "one label, M = 1": (_one, {"max_labels": 1}, _HALF, True, 216, (0.814, 0.117, 0.533), (0, 6, 168)),
    "the library's share, M = 2": (_one, {}, _SHARE, False, 108, (0.970, 0.108, 0.669), (0, 4, 84)),
    "the library's share, M = 1": (_one, {"max_labels": 1}, _SHARE, False, 108, (0.969, 0.107, 0.669), (0, 4, 84)),
    "two labels": (_several, {"max_per_event": 2}, _HALF, True, 108, (0.766, 0.082, 0.532), (0, 2, 105)),
    "replaced": (_replaced, {"neighbours": "replace"}, _HALF, True, 108, (0.493, 0.053, 0.531), (84, 2, 105)),
    "a user": (
        _two_of_a_user,
        _CASES["a user of two events"][1],
        _HALF,
        False,
        378,
        (0.574, 0.074, 0.545),
        (0, 18, 273),
    ),
    "adaptive": (_adaptive, {}, _HALF, True, 36, (0.406, 0.104, 0.398), (1, 34)),
}


@pytest.mark.parametrize("row", _TABLE)
def test_the_table_of_what_is_used(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    neighbours, options, part, wide, number, figures, largest = _TABLE[row]
    monkeypatch.setattr(label_limit, "_PART", part)
    law = _law(_made(**options))
    pairs = [worlds for base in _bases(law.at[1] + 1, wide) for worlds in neighbours(base)]
    assert len(pairs) == number
    used = np.max([_used(law, worlds) for worlds in (pairs if LONG else [pairs[i] for i in largest])], axis=0)
    np.testing.assert_allclose(used, figures, rtol=0, atol=6e-4)


def _visits(base: list[list[tuple[str, int]]], mine: tuple[str | None, ...]) -> list[list[tuple[str, int]]]:
    return [visits + ([(label, 0)] if label else []) for visits, label in zip(base, mine, strict=True)]


def _others(height: int) -> list[list[list[tuple[str, int]]]]:
    """Users who come to one page, each to the other one later; and nobody."""
    crowd = range(1, height + 1)
    ways = [((_SHUT, _OPEN, _OPEN), crowd), ((_OPEN, _SHUT, _OPEN), crowd), ((_SHUT, _SHUT, _OPEN), range(1, 2))]
    return [[[(page, user) for user in users] for page in pages] for pages, users in ways] + [[[], [], []]]


@pytest.mark.parametrize("most", [1, 2])
def test_nobody_is_told_apart_who_visits_pages(most: int) -> None:
    law = _law(_made(et.UnknownDistinctUsers, max_categories=most))
    pairs = []
    for base, mine in product(_others(law.at[1] + 1), product((None, *_LABELS), repeat=3)):
        worlds = [_users(law, visits, most) for visits in (_visits(base, (None,) * 3), _visits(base, mine))]
        pairs.append((worlds[0], worlds[1]))
    used = np.max([_used(law, worlds) for worlds in pairs[:: 1 if LONG else 5 if most == 1 else 19]], axis=0)
    assert (used <= 1).all()
    assert used[0] > 0.1


def test_the_enumeration_finds_a_look_without_noise() -> None:
    law = _law(_made(), look=((0, 1.0),))
    told = [law.transcripts(worlds) for worlds in _one([(_SHUT,), (), ()])]
    assert max(p[q == 0].sum() for p, q in told) > 0.9, "what only one of two streams can show is almost sure"


# -- the law is that of the program ----------------------------------------------------------------------------------


class _Played(ZeroSource):
    """Noise that was written down before: of the looks by tick, of the cells by block and label."""

    def __init__(self, looks: tuple[int, ...], cells: dict[tuple[int, int], int]) -> None:
        self._looks, self._cells = looks, cells

    def draws(self, lane: str, law: Any, nodes: Any, coordinates: int = 1, first: int = 0) -> Any:
        assert (lane, coordinates) == ("labels", 1)
        return np.array([[self._looks[tick - 1]] for tick in nodes])

    def item_draws(self, lane: str, law: Any, node: int, items: Any) -> Any:
        return np.array([self._cells[node, int(address)] for address in items[:, 0]], dtype=np.int64)


_CELL: Pmf = ((-1, 0.6), (3, 0.4))
_LOOK: Pmf = ((-1, 0.6), (2, 0.4))


def _by_playing(mechanism: Any, streams: list[list[Any]]) -> Pairs:
    """Both streams through the program's own engine, under all noise that there is."""
    found: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    plan = mechanism._blueprint()
    places = [(block, int(item_addresses(ZeroSource(), [u])[0, 0])) for block in (1, 2, 3) for u in _LABELS]
    for looks, cells in product(product(_LOOK, repeat=2), product(_CELL, repeat=len(places))):
        source = _Played(tuple(k for k, _ in looks), dict(zip(places, (k for k, _ in cells), strict=True)))
        chance = float(np.prod([p for _, p in (*looks, *cells)]))
        for b, stream in enumerate(streams):
            engine, transcript = plan.engine(source), []
            for totals in stream:
                row = engine.play([totals], None).rows[0]
                worker = getattr(engine, "inner", engine).worker
                transcript.append((tuple(row.counts.items()), worker.followed.level))
            found[tuple(transcript)][b] += chance
    assert len({tuple(level for _, level in transcript) for transcript in found}) > 2
    both = np.array(list(found.values()))
    return told_apart(both[:, 0], both[:, 1])


def _same(played: Pairs, law: Pairs) -> None:
    for one, other in zip(played, law, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_program_has_this_law() -> None:
    mechanism = _made()
    law, height = _law(mechanism, _CELL, _LOOK), mechanism.threshold_at(1)
    base: list[Events] = [(_SHUT,) * height, (_OPEN,) * 2, (_OPEN, _SHUT) * height]
    more = [base[0] + (_OPEN,), *base[1:]]
    streams = [[mechanism._door.events(list(events), i + 1) for i, events in enumerate(s)] for s in (base, more)]
    _same(_by_playing(mechanism, streams), law.transcripts((_events(base), _events(more))))


def test_the_program_has_this_law_for_users() -> None:
    mechanism = _made(et.UnknownDistinctUsers)
    law, height = _law(mechanism, _CELL, _LOOK), mechanism.threshold_at(1)
    # User 50 counts for the second page where the first is not followed any more; user 0 has used up the only place.
    base = [[(_SHUT, user) for user in range(1, height + 1)], [], [(_SHUT, 50), (_OPEN, 50)]]
    worlds = [_visits(base, mine) for mine in ((None,) * 3, (None, _SHUT, _OPEN))]
    streams = [
        [mechanism._door.owned([p for p, _ in v], [u for _, u in v], i + 1) for i, v in enumerate(world)]
        for world in worlds
    ]
    _same(_by_playing(mechanism, streams), law.transcripts((_users(law, worlds[0], 1), _users(law, worlds[1], 1))))
