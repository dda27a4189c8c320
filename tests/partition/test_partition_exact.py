"""E4, E5 and exact transcripts: the real engine on tiny instances, all probabilities worked out, nothing sampled.

What the engine decides is found by planting noise: a mu of a million closes an interval, one of minus a million does
not. The level of every test is taken from the engine itself, and that it is the level is checked on the side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from partition_reference import LARGEST, MEAN, RANKS, Planted, Queries, columns

from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.tree import TreeProcess
from evertally.noise import DiscreteLaplace, Law
from evertally.partition import PartitionedRelease, Split, Terms, TwoLevelRelease, bounded, doubling
from evertally.partition.budget import Noise, noise_of
from evertally.partition.rules import Intervals, Ladder, NoisyLadders, Rebased, Rule
from evertally.privacy import Change, PureDP

BIG = 10**6
TWO = PureDP(2)  # the promise of the small instances
BOX = np.arange(-400, 401)  # values of tau: at scale 4 the rest weighs e^-100


@cache
def cdf(law: DiscreteLaplace) -> np.ndarray:
    """P(Z <= k) for k = -2000..2000, from the tails of the law."""
    k = np.arange(1, 2001)
    above = np.array([float(law.tail(int(i))) / 2 for i in k])  # P(Z >= k) = P(Z <= -k)
    return np.concatenate([above[::-1], [1 - above[0]], 1 - np.append(above[1:], 0.0)])


@cache
def pmf(law: DiscreteLaplace) -> np.ndarray:
    """P(Z = z) for z in the box."""
    return np.diff(cdf(law))[2000 - 401 : 2000 + 400]


def close_law(levels: tuple[int, ...], tau: DiscreteLaplace | None, mu: DiscreteLaplace) -> np.ndarray:
    """P[an interval closes at its first, second, ... tick], and P[never], where a tick closes iff mu - tau > level.

    E5: sum_z f_tau(z) (1 - F_mu(K + z - G^t)) prod_{t' < t} F_mu(K + z - G^t').
    """
    z = BOX if tau is not None else np.zeros(1, dtype=np.int64)
    weight = pmf(tau) if tau is not None else np.ones(1)
    found = []
    for level in levels:
        quiet = cdf(mu)[2000 + z + level]
        found.append(float(np.sum(weight * (1 - quiet))))
        weight = weight * quiet
    return np.array([*found, float(np.sum(weight))])


TAU, MU = DiscreteLaplace(4), DiscreteLaplace(8)  # eps = 1


class TauAndMu:
    """A source with this tau in every interval and these mu."""

    def __init__(self, tau: int, mu: Any) -> None:
        self.tau, self.mu = tau, np.asarray(mu)

    def draws(self, lane: str, law: Law, nodes: Any, coordinates: int = 1, first: int = 0) -> np.ndarray:
        index = np.array(list(nodes), dtype=np.int64)
        if lane == "mu":
            return self.mu[index - 1][:, None]
        return np.full((len(index), coordinates), self.tau if lane == "tau" else 0)

    def order(self, message: bytes) -> bytes:
        return message


def ladder(source: Any, d: int, step: int, base: np.ndarray | None = None) -> PartitionedRelease:
    process = TreeProcess(PureDP(1), Change(d, d, 1), horizon=1, columns=d, source=source, radix=2)
    return PartitionedRelease(TAU, MU, process, Ladder(LARGEST, lambda j, ticks: step), source, base=base)


def levels_of_the_engine(
    rows: np.ndarray, step: int, base: np.ndarray | None = None, box: Any = BOX
) -> tuple[int, ...]:
    """The level of every test, confirmed by the engine for every tau in the box: with every mu at tau + level it stays
    open, in one block; with one mu one higher it closes at that tick."""
    d = rows.shape[1]
    start = np.zeros(d, dtype=np.int64) if base is None else base
    G = (np.cumsum(rows, axis=0) + start).max(axis=1)
    levels = start.max() + step - G
    for tau in box:
        at = tau + levels
        assert ladder(TauAndMu(tau, at), d, step, base).play(rows, 1) == []
        for t in range(len(rows)):
            mu = at + (np.arange(len(rows)) == t)
            assert [p for p, _ in ladder(TauAndMu(tau, mu), d, step, base).play(rows, 1)] == [t + 1]
    return tuple(levels.tolist())


def test_golden_close_times() -> None:
    """E5, scales 4 and 8, K = 3."""
    rising = levels_of_the_engine(np.array([[0], [0], [1], [0], [0]]), 3, box=range(-60, 61))
    flat = levels_of_the_engine(np.zeros((5, 1), dtype=np.int64), 3, box=range(-60, 61))
    assert (rising, flat) == ((3, 3, 2, 2, 2), (3, 3, 3, 3, 3))
    golden = [0.360456, 0.193716, 0.134683, 0.084309, 0.055828, 0.171008]
    assert close_law(rising, TAU, MU) == pytest.approx(golden, abs=5e-7)
    golden = [0.360456, 0.193716, 0.119617, 0.079428, 0.055207, 0.191576]
    assert close_law(flat, TAU, MU) == pytest.approx(golden, abs=5e-7)


def test_all_paths_around_constants() -> None:
    """The largest log ratio over bases -10..10 and all perturbations in {-1, 0, 1}^5: 0.4512, at most 1/2."""
    worst = 0.0
    for base in range(-10, 11):
        here = np.log(close_law((3 - base,) * 5, TAU, MU))
        for u in itertools.product((-1, 0, 1), repeat=5):
            there = np.log(close_law(tuple(3 - base - v for v in u), TAU, MU))
            worst = max(worst, float(np.abs(here - there).max()))
    assert worst == pytest.approx(0.4512, abs=5e-5)
    assert worst <= 0.5


def swap(r: int, side: str) -> np.ndarray:
    """A1: the rows after s = (2, 3)."""
    return np.array([[1, 0] if side == "x" else [0, 1], *([[0, 0]] * r), [1, 0], [1, 0]])


PREFIX = np.array([[0, 1], [1, 1], [1, 1]])


def log_ratio(
    x: tuple[int, ...], y: tuple[int, ...], tau: DiscreteLaplace | None = TAU, mu: DiscreteLaplace = MU
) -> float:
    """Of the event "closes at the last row"."""
    return math.log(close_law(x, tau, mu)[-2] / close_law(y, tau, mu)[-2])


def test_swap_pair() -> None:
    """9.3 A1: tight for the partition; the engine's own levels at r = 4 and r = 20, the formula beyond."""

    def levels(r: int, side: str, prefix: bool) -> tuple[int, ...]:
        rows = np.concatenate([PREFIX, swap(r, side)]) if prefix else swap(r, side)
        return tuple((3 - (np.cumsum(rows, axis=0) + (0 if prefix else np.array([2, 3]))).max(axis=1)).tolist())

    for r, box in ((4, range(-60, 61)), (20, range(-12, 13, 4))):
        for side in "xy":
            found = levels_of_the_engine(np.concatenate([PREFIX, swap(r, side)]), 3, box=box)
            assert found == levels(r, side, True)
            found = levels_of_the_engine(swap(r, side), 0, np.array([2, 3]), box=box)
            assert found == levels(r, side, False)
    x, y = levels(20, "x", True), levels(20, "y", True)
    assert close_law(x, TAU, MU)[-2] == pytest.approx(6.058e-4, rel=2e-4)
    assert close_law(y, TAU, MU)[-2] == pytest.approx(3.877e-4, rel=2e-4)
    four = DiscreteLaplace(4)
    golden = {20: (0.4462, 0.684, 0.4817), 100: (0.4873, 0.734, 0.4961), 500: (0.4974, 0.747, 0.4992)}
    for r, (full, mutant, direct) in golden.items():
        x, y = levels(r, "x", True), levels(r, "y", True)
        assert log_ratio(x, y) == pytest.approx(full, abs=6e-5)
        assert log_ratio(x, y) < 0.5
        assert log_ratio(x, y, mu=four) == pytest.approx(mutant, abs=6e-4), "half of mu's scale is flagged"
        assert log_ratio(levels(r, "x", False), levels(r, "y", False)) == pytest.approx(direct, abs=6e-5)
    for r, loss in ((20, 2.72), (100, 12.72)):  # no tau at all
        assert log_ratio(levels(r, "x", False), levels(r, "y", False), tau=None) == pytest.approx(loss, abs=6e-3)


# -- runs with a prescribed transcript ---------------------------------------------------------------------------------

Row = tuple[int, ...]
Stream = tuple[Row, ...]
Event = tuple[str, Row] | None  # what happens at a tick: nothing, or a close of a level with this raw output of H
Transcript = tuple[Event, ...]


@dataclass
class Notes:
    """What the engine did on the way to a transcript."""

    tests: dict[str, list[list[int]]] = field(default_factory=dict)  # levels of the tests of each interval
    nodes: list[tuple[Law, Row]] = field(default_factory=list)  # H's noise: law and values of each node
    looks: list[tuple[Law, list[tuple[int, bool]]]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)

    def log_probability(self, tau: DiscreteLaplace, mu: DiscreteLaplace) -> float:
        total = 0.0
        for intervals in self.tests.values():
            for j, levels in enumerate(intervals):
                if levels:
                    law = _close_law(tuple(levels), tau, mu)
                    total += math.log(law[-1] if j == len(intervals) - 1 else law[-2])  # only the last one is open
        for law, values in self.nodes:
            assert isinstance(law, DiscreteLaplace)
            q = math.exp(-1 / float(law.scale))
            total += sum(math.log((1 - q) / (1 + q)) - abs(z) / float(law.scale) for z in values)
        for law, looks in self.looks:
            assert isinstance(law, DiscreteLaplace)
            for look, climbs in looks:
                quiet = float(cdf(law)[2000 - look])  # P(look + noise <= 0)
                total += math.log(1 - quiet if climbs else quiet)
        return total


@cache
def _close_law(levels: tuple[int, ...], tau: DiscreteLaplace, mu: DiscreteLaplace) -> np.ndarray:
    return close_law(levels, tau, mu)


def prescribe(
    engine: PartitionedRelease,
    draws: dict[tuple[str, int], Any],
    prefix: str,
    t: int,
    row: Row,
    close: Row | None,
    notes: Notes,
) -> None:
    """Notes the level of the test that tick t is going to make, and plants noise by which it closes with raw output
    `close`, or stays open."""
    rule, c = engine._rule, engine._c + np.array(row)
    level = rule.slack(c if rule.on_interval else engine.released + c) + rule.rise(engine.closes + 1, np.array([t]))
    tests = notes.tests.setdefault(prefix, [[]])
    tests[-1].append(int(level))
    draws[f"{prefix}mu", t] = -BIG
    if close is None:
        return
    draws[f"{prefix}mu", t] = BIG
    tests.append([])
    j, process = engine.closes + 1, engine._process
    assert isinstance(process, TreeProcess | AccumulatingProcess)
    lane, parent = ("tree", j & (j - 1)) if isinstance(process, TreeProcess) else ("pile", j - 1)
    noise = np.array(close) - engine._base - engine._inserted - c  # of all nodes together
    node = noise - draws.get((f"{prefix}in force", parent), 0)
    draws[f"{prefix}in force", j] = noise
    draws[f"{prefix}{lane}", j] = node
    notes.nodes.append((process.law, tuple(node.tolist())))


@dataclass(frozen=True)
class Small:
    """A single engine of n closes with thresholds of a few units."""

    make_rule: Callable[[], Rule]
    d: int
    n: int
    split: Split
    forgotten: int = 1  # a mutant: H spends so many times its part

    @cached_property
    def noise(self) -> Noise:
        return noise_of(TWO, self.split, queries=self.make_rule().queries.count)

    def engine(self, source: Any) -> PartitionedRelease:
        noise, change = self.noise, Change(self.d, self.d, 1)
        charge = PureDP(self.forgotten * noise.histogram.exact_epsilon)
        process = TreeProcess(charge, change, horizon=self.n, columns=self.d, source=source, radix=2)
        return PartitionedRelease(noise.tau, noise.mu, process, self.make_rule(), source)

    def run(self, stream: Stream, transcript: Transcript, climbs: Any = None) -> Notes:
        draws: dict[tuple[str, int], Any] = {}
        engine, notes = self.engine(Planted(draws)), Notes()
        rule: Any = engine._rule
        for t, (row, event) in enumerate(zip(stream, transcript, strict=True), start=1):
            if event is not None and rule.update_law is not None:
                chosen = climbs[engine.closes]
                s = engine.released + engine._c + np.array(row)
                looks = rule.queries.values(s) - (rule.floors + rule._step) + rule._margin
                notes.looks.append((rule.update_law, list(zip(looks.tolist(), chosen, strict=True))))
                draws["update", engine.closes + 1] = [BIG if climb else -BIG for climb in chosen]
            if not engine.exhausted:
                prescribe(engine, draws, "", t, row, event[1] if event else None, notes)
            assert len(engine.play(np.array([row]), t)) == (event is not None)
            s = (engine.released + engine._c).tolist()
            notes.states.append((s, engine._c.tolist(), engine._inserted.tolist(), engine._rule.floors.tolist()))
        return notes


def streams(d: int, T: int) -> list[Stream]:
    rows = list(itertools.product((0, 1), repeat=d))
    return list(itertools.product(rows, repeat=T))


def neighbours(all_: list[Stream]) -> Iterator[tuple[int, int]]:
    for i, x in enumerate(all_):
        for k, y in enumerate(all_[:i]):
            if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
                yield i, k


def transcripts(T: int, n: int, outputs: list[Row]) -> list[Transcript]:
    events: list[Event] = [None, *(("", o) for o in outputs)]
    found = itertools.product(events, repeat=T)
    return [path for path in found if sum(event is not None for event in path) <= n]


def largest_loss(log_p: np.ndarray, all_: list[Stream]) -> float:
    """Over all neighbours and transcripts; log_p has one row for each stream."""
    return max(float(np.abs(log_p[i] - log_p[k]).max()) for i, k in neighbours(all_))


OUTPUTS_1 = [(-4,), (0,), (1,), (2,), (6,)]
OUTPUTS_2 = [(1, 0), (6, -4), (-4, 6), (6, 6)]


def fixed(step: int) -> Any:
    return lambda j, ticks: step


SINGLES = {
    "rebased, largest of two": Small(lambda: Rebased(LARGEST, fixed(1)), 2, 2, Split.halves()),
    "rebased, both columns": Small(lambda: Rebased(columns(2), fixed(0)), 2, 2, Split.halves()),
    "rebased, mean": Small(lambda: Rebased(MEAN, fixed(0)), 2, 2, Split.halves()),
    "rebased, one column": Small(lambda: Rebased(columns(1), fixed(1)), 1, 3, Split.of("1/8", "5/8", "1/4")),
    "ladder": Small(lambda: Ladder(LARGEST, fixed(1)), 2, 2, Split.halves()),
    "doubling ladder": Small(lambda: Ladder(RANKS, lambda j, ticks: 2 ** (j - 1)), 2, 2, Split.halves()),
    "intervals": Small(lambda: Intervals(columns(2), fixed(1)), 2, 2, Split.halves()),
}


@pytest.mark.parametrize("name", SINGLES)
def test_transcripts_lose_at_most_epsilon(name: str) -> None:
    """2.2 with thresholds that follow the transcript: every (p_1, s_1, p_2, s_2, ...) of three rows, raw histograms."""
    small = SINGLES[name]
    assert 0.45 * 2 <= loss_of(small) <= 2 * (1 + 1e-9)


def loss_of(small: Small) -> float:
    noise, all_ = small.noise, streams(small.d, 3)
    paths = transcripts(3, small.n, OUTPUTS_1 if small.d == 1 else OUTPUTS_2)
    log_p = np.array([[small.run(x, path).log_probability(noise.tau, noise.mu) for path in paths] for x in all_])
    return largest_loss(log_p, all_)


def test_a_histogram_that_spends_too_much_is_noticed() -> None:
    """The check itself."""
    assert loss_of(replace(SINGLES["rebased, largest of two"], forgotten=2)) > 2.2


@pytest.mark.parametrize(("queries", "d"), [(columns(1), 1), (RANKS, 2)], ids=["one query", "two queries"])
def test_transcripts_with_noisy_updates(queries: Queries, d: int) -> None:
    """2.3: which thresholds climbed is part of the transcript."""
    law = DiscreteLaplace(Fraction(3 * queries.count, 2))
    small = Small(lambda: NoisyLadders(queries, 1, 1, law), d, 2, Split.thirds())
    noise = small.noise
    assert noise.update == law
    patterns = list(itertools.product((False, True), repeat=queries.count))
    all_ = streams(d, 3 if d == 1 else 2)
    paths = transcripts(len(all_[0]), 2, OUTPUTS_1 if d == 1 else OUTPUTS_2)
    cases = [(path, climbs) for path in paths for climbs in itertools.product(patterns, repeat=sum(map(bool, path)))]
    log_p = np.array([[small.run(x, *case).log_probability(noise.tau, noise.mu) for case in cases] for x in all_])
    loss = largest_loss(log_p, all_)
    assert 1.2 <= loss <= 2 * (1 + 1e-9)


class SmallTwoLevels:
    """Two levels at epsilon = 2 in total, with thresholds of a few units."""

    def __init__(self) -> None:
        half = PureDP(1)
        terms = Terms(half, Change(1, 1, 1), 3, 1, LARGEST, largest=3)
        self.outer = replace(doubling(terms), intervals=2, make_rule=lambda: Ladder(LARGEST, fixed(1)))
        self._inner = replace(bounded(terms), intervals=2, make_rule=lambda: Ladder(LARGEST, fixed(0)))
        self.noise = self.outer.noise
        assert self._inner.noise == self.noise == noise_of(half, Split.halves())

    def inner(self, segment: int) -> Any:
        return self._inner

    def run(self, stream: Stream, transcript: Transcript) -> Notes:
        """The real TwoLevelRelease, its levels spied upon tick by tick."""
        draws: dict[tuple[str, int], Any] = {}
        plan: Any = self
        release, notes = TwoLevelRelease(plan, Planted(draws)), Notes()
        for t, (row, event) in enumerate(zip(stream, transcript, strict=True), start=1):
            level, raw = event or ("none", None)
            segment, outer, inner = release.closes + 1, release._outer, release._inner
            if not outer.exhausted:
                prescribe(outer, draws, "outer/", t, row, raw if level == "outer" else None, notes)
            if level != "outer" and not inner.exhausted:  # the row that closes a segment goes to no inner engine
                prescribe(inner, draws, f"segment-{segment}/", t, row, raw, notes)
            found = release.play(np.array([row]), t)
            assert [s.tolist() for _, s in found] == ([[max(0, o) for o in raw]] if raw is not None else [])
            assert release.closes == segment - 1 + (level == "outer")
        return notes


def test_transcripts_of_two_levels() -> None:
    """2.5 and 5.4, d = 1, T = 3: both levels together lose at most their sum."""
    small, all_ = SmallTwoLevels(), streams(1, 3)
    events: list[Event] = [None, *((level, (o,)) for level in ("outer", "inner") for o in (-3, 1, 4))]
    paths = list(itertools.product(events, repeat=3))
    paths = [path for path in paths if sum(event is not None and event[0] == "outer" for event in path) <= 2]
    paths = [path for path in paths if most_inner(path) <= 2]
    tau, mu = small.noise.tau, small.noise.mu
    log_p = np.array([[small.run(x, path).log_probability(tau, mu) for path in paths] for x in all_])
    loss = largest_loss(log_p, all_)
    assert 1.0 <= loss <= 2 * (1 + 1e-9)  # 2.5 found 1.04 of 2


def most_inner(path: Transcript) -> int:
    """The most inner closes in one segment."""
    segments, most = [0], 0
    for event in path:
        if event is not None and event[0] == "outer":
            segments.append(0)
        segments[-1] += event is not None and event[0] == "inner"
        most = max(most, segments[-1])
    return most


# -- E4 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "T"), [(1, 4), (2, 3)])
@pytest.mark.parametrize("kind", ["ladder", "rebased", "intervals", "noisy"])
def test_coupling(kind: str, d: int, T: int) -> None:
    """E4: same transcript, neighbouring streams: the sums differ from t* to the end of that interval only, exactly one
    insert differs, thresholds never do."""
    law = DiscreteLaplace(3)
    rules: dict[str, Callable[[], Rule]] = {
        "ladder": lambda: Ladder(LARGEST, fixed(1)),
        "rebased": lambda: Rebased(columns(d), fixed(1)),
        "intervals": lambda: Intervals(columns(d), fixed(1)),
        "noisy": lambda: NoisyLadders(columns(d), 1, 1, law),
    }
    small = Small(rules[kind], d, 3, Split.halves())
    all_ = streams(d, T)
    for pattern in itertools.product((False, True), repeat=T):
        if sum(pattern) > 3:
            continue
        path = tuple(("", tuple(range(t, t + d))) if close else None for t, close in enumerate(pattern))
        runs = [small.run(x, path, [(True,) * d] * 3).states for x in all_]
        for i, k in neighbours(all_):
            x, y = all_[i], all_[k]
            star = next(t for t in range(T) if x[t] != y[t])
            end = next((t for t in range(star, T) if pattern[t]), T)  # the tick that closes the interval of t*
            u = np.array(x[star]) - np.array(y[star])
            inserts = 0
            for t, (here, there) in enumerate(zip(runs[i], runs[k], strict=True)):
                inside = star <= t < end
                s, c, inserted = (np.array(here[n]) - np.array(there[n]) for n in range(3))
                assert np.array_equal(s, u * inside)
                assert np.array_equal(c, u * inside)
                assert np.array_equal(inserted, u * (t >= end)), "one insert differs, for ever"
                assert here[3] == there[3], "thresholds follow from the transcript"
                inserts += t == end
            assert inserts == (end < T)
