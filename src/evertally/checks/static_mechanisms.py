"""What every static mechanism must do (dynamic-data 3.1): checks for ours, and for one of your own.

A passed check is no proof of privacy. The exact ones look at what an item moves and at the laws that were drawn; the
sampled ones look for an event that tells neighbours apart, and raise a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.dynamic.families import Family
from evertally.dynamic.parts import Budget, Place, StaticMechanism
from evertally.noise import DiscreteGaussian, DiscreteLaplace, NoiseKey, Recording, ZeroNoise, simulation
from evertally.noise.source import Recorder
from evertally.privacy import PureDP
from evertally.privacy.conversions import epsilon_of_rho

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

FALSE_ALARM = 1e-6
_DELTA = Fraction(1, 100)  # at which the curve of a zCDP budget is looked at
_LANE = "check-static"


@dataclass(frozen=True)
class StaticSubject:
    """A static mechanism to be checked, the family that it answers, and budgets to run it with.

    >>> from evertally.dynamic.families import Points
    >>> from evertally.dynamic.static import make_static
    >>> family = Points(["a", "b"])
    >>> subject = StaticSubject("mine", make_static("histogram", family, pure=True), family, [PureDP(1)])
    >>> check_static(subject)
    8
    """

    name: str
    static: StaticMechanism
    family: Family
    budgets: Sequence[Budget]
    releases: int = 1000  # of each of two neighbours, for the sampled checks

    @cached_property
    def queries(self) -> list[Any]:
        """Those that a release shows."""
        return list(self.family.shown.values())

    @cached_property
    def data(self) -> list[IntArray]:
        """Nothing, one item, a few, many."""
        rng = np.random.default_rng(5)
        one = np.zeros(self.static.cells, dtype=np.int64)
        one[-1] = 1
        return [0 * one, one, rng.integers(0, 4, one.size), rng.integers(0, 1000, one.size)]

    def fit(self, key: NoiseKey, data: IntArray, budget: Budget, node: int = 1, hint: int | None = None) -> IntArray:
        """A release; each budget has a lane of its own."""
        place = Place(key.source("static"), f"{_LANE}/{self.budgets.index(budget)}", node)
        return self.static.fit(data, budget, place, hint)

    def answer(self, row: IntArray, query: Any) -> float:
        """What a released row says."""
        return float(self.static.weights(query) @ row) / self.static.unit


def check_static(subject: StaticSubject) -> int:
    """Runs every check; raises AssertionError at the first that fails; returns how many passed."""
    for one in STATIC_CHECKS:
        try:
            one(subject)
        except AssertionError as error:
            raise AssertionError(f"{subject.name}: {one.__name__}: {error}") from error
    return len(STATIC_CHECKS)


def check_declares_itself(subject: StaticSubject) -> None:
    """Shapes and abilities are declared, and the budgets fit them."""
    static = subject.static
    for number in (static.cells, static.width, static.unit):
        assert type(number) is int, "cells, width and unit are whole numbers"
        assert number >= 1, "cells, width and unit are at least 1"
    for flag in (static.pure, static.concentrated, static.additive):
        assert type(flag) is bool, "pure, concentrated and additive are truth values"
    assert static.cells == subject.family.cells, "it must have a cell for each of the family's"
    for budget in subject.budgets:
        assert static.pure if isinstance(budget, PureDP) else static.concentrated, "it does not take that budget"


def check_release_is_a_function(subject: StaticSubject) -> None:
    """The same data, budget and place give the same row, whatever was released in between; data stay as they are."""
    for budget in subject.budgets:
        for data in subject.data:
            kept, key = data.copy(), simulation(1)
            first = subject.fit(key, data, budget, node=3)
            subject.fit(key, data + 1, budget, node=4)
            again = subject.fit(simulation(1), data, budget, node=3)
            assert (first == again).all(), "the same place gave another row"
            assert (data == kept).all(), "it changed the data"


def check_shape_and_never_raises(subject: StaticSubject) -> None:
    """A row of int64 of the declared width, for nothing, for more than can be, and for any hint."""
    huge = np.full(subject.static.cells, 2**62, dtype=np.int64)
    signed = [-subject.data[-1], -huge] if subject.static.additive else []
    for budget in subject.budgets:
        for number, data in enumerate([*subject.data, huge, *signed]):
            for hint in (None, 0, 7, 2**50):
                row = subject.fit(simulation(2), data, budget, node=number, hint=hint)
                assert row.dtype == np.int64, "a row is of int64"
                assert row.shape == (subject.static.width,), "a row has the declared width"


def check_addresses(subject: StaticSubject) -> None:
    """Noise is drawn below the lane of the place; which, depends on budget, node and hint, and not on the data. Two
    nodes share none."""
    for budget in subject.budgets:
        logs = [_log(subject, data, budget, node=1, hint=9) for data in subject.data]
        assert all(log == logs[0] for log in logs), "the data decide which noise is drawn"
        if subject.static.additive:
            free = [_log(subject, data, budget, node=1, hint=None) for data in subject.data]
            assert all(log == free[0] for log in free), "the data decide which noise is drawn"
        assert all(entry.lane.startswith(_LANE) for entry in logs[0]), "noise was drawn outside of the place"
        cells = [_cells(_log(subject, subject.data[0], budget, node=node, hint=9)) for node in (1, 2, 3)]
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert not cells[one] & cells[other], "two releases share noise"
        for log in cells:
            assert log, "it draws no noise at all"


def check_without_noise_it_is_exact(subject: StaticSubject) -> None:
    """Additive ones: without noise every shown query has its exact answer."""
    if not subject.static.additive:
        return
    for data in subject.data:
        row = subject.fit(ZeroNoise(), data, subject.budgets[0])
        for query in subject.queries:
            exact = int(subject.family.vector(query) @ data) / subject.family.unit
            assert math.isclose(subject.answer(row, query), exact, rel_tol=1e-9, abs_tol=1e-6), "an answer is not exact"


def check_noise_adds(subject: StaticSubject) -> None:
    """Additive ones: the row is linear in the data, the noise is the same for all of them."""
    if not subject.static.additive:
        return
    empty, _, few, many = subject.data
    for budget in subject.budgets:
        rows = [subject.fit(simulation(3), data, budget) for data in (empty, few, many, few + many, few - many)]
        assert (rows[1] + rows[2] == rows[3] + rows[0]).all(), "the row is not linear in the data"
        assert (rows[1] - rows[2] == rows[4] - rows[0]).all(), "the row is not linear in signed data"


def check_columns_fit_the_noise(subject: StaticSubject) -> None:
    """Additive ones with one draw a row: what any item moves, measured with the law that was drawn, is within the
    budget. Exact, and over all cells up to 4096 of them (both ends and a sample above)."""
    if not subject.static.additive:
        return
    for budget in subject.budgets:
        log = _log(subject, subject.data[0], budget, node=1, hint=None)
        if len(log) != 1 or log[0].coordinates != subject.static.width:
            continue  # noise of another form: only sampled
        law = log[0].law
        empty = subject.fit(ZeroNoise(), subject.data[0], budget)
        for cell in _some_cells(subject.static.cells):
            item = np.zeros(subject.static.cells, dtype=np.int64)
            item[cell] = 1
            column = [abs(x) for x in (subject.fit(ZeroNoise(), item, budget) - empty).tolist()]
            if isinstance(budget, PureDP):
                assert isinstance(law, DiscreteLaplace), "a pure budget needs Laplace noise"
                assert Fraction(sum(column)) / law.scale <= budget.exact_epsilon, "an item moves more than is paid for"
            elif isinstance(law, DiscreteLaplace):
                assert (sum(column) / law.scale) ** 2 / 2 <= budget.exact_rho, "an item moves more than is paid for"
            else:
                assert isinstance(law, DiscreteGaussian)
                loss = Fraction(sum(x * x for x in column)) / (2 * law.sigma_squared)
                assert loss <= budget.exact_rho, "an item moves more than is paid for"


def check_neighbours_look_alike(subject: StaticSubject) -> None:
    """Sampled: no event "this number of the row, or this answer, is above (below) that" is more likely with an item
    than the budget allows. Events are chosen on half of the releases and judged on the other half."""
    for budget in subject.budgets:
        for number, data in enumerate((subject.data[0], subject.data[2])):
            more = data.copy()
            more[0] += 1
            sides = [_sampled(subject, side, budget, f"{number}-{i}") for i, side in enumerate((data, more))]
            for left, right in (sides, sides[::-1]):
                _check_pair(budget, left, right, FALSE_ALARM / (4 * len(subject.budgets)))


def _log(subject: StaticSubject, data: IntArray, budget: Budget, node: int, hint: int | None) -> list[Recorder]:
    recording = Recording(simulation(4))
    subject.fit(recording, data, budget, node=node, hint=hint)
    return recording.draws


def _cells(log: list[Recorder]) -> set[tuple[Any, ...]]:
    return {
        (entry.lane, node, entry.first + i) for entry in log for node in entry.nodes for i in range(entry.coordinates)
    }


def _some_cells(cells: int) -> list[int]:
    if cells <= 4096:
        return list(range(cells))
    return sorted({0, cells - 1, *np.random.default_rng(6).integers(0, cells, 500).tolist()})


def _sampled(subject: StaticSubject, data: IntArray, budget: Budget, lane: str) -> FloatArray:
    """Statistics of independent releases: some numbers of the row, their sum, and the shown answers."""
    static = subject.static
    columns = np.unique(np.linspace(0, static.width - 1, 6).astype(np.int64))
    weights = np.array([static.weights(query) for query in subject.queries[:6]])
    source = simulation(7).source("static")
    statistics = []
    for node in range(subject.releases):
        row = static.fit(data, budget, Place(source, f"{_LANE}/{subject.budgets.index(budget)}/{lane}", node))
        statistics.append(np.concatenate([row[columns], [row.sum()], weights @ row / static.unit]))
    return np.array(statistics, dtype=np.float64)


def _check_pair(budget: Budget, left: FloatArray, right: FloatArray, false_alarm: float) -> None:
    half = len(left) // 2
    if isinstance(budget, PureDP):
        factor, delta = math.exp(budget.epsilon), 0.0
    else:
        factor, delta = math.exp(float(epsilon_of_rho(budget.exact_rho, _DELTA))), float(_DELTA)
    error = false_alarm / (4 * left.shape[1])  # of each of two limits, for every event
    for column in range(left.shape[1]):
        for sign in (1, -1):
            a, b = sign * left[:, column], sign * right[:, column]
            cuts = np.unique(np.concatenate([a[:half], b[:half]]))
            gains = [(a[:half] >= c).mean() - factor * ((b[:half] >= c).mean() + 4 / half) for c in cuts]
            cut = cuts[int(np.argmax(gains))]
            hits, other = int((a[half:] >= cut).sum()), int((b[half:] >= cut).sum())
            surely = _limit(hits, len(a) - half, error, up=False)
            at_most = factor * _limit(other, len(b) - half, error, up=True) + delta
            assert surely <= at_most, "an event tells neighbours apart by more than the budget allows"


def _limit(hits: int, trials: int, error: float, up: bool) -> float:
    """Chernoff: the true probability is above (below) it with probability at most `error`."""
    share, goal = hits / trials, math.log(1 / error) / trials

    def divergence(p: float) -> float:
        one = share * math.log(share / p) if share else 0.0
        return one + ((1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0)

    inside, outside = (share, 1.0) if up else (share, 0.0)
    for _ in range(60):
        middle = (inside + outside) / 2
        if 0 < middle < 1 and divergence(middle) <= goal:
            inside = middle
        else:
            outside = middle
    return outside


STATIC_CHECKS: tuple[Callable[[StaticSubject], None], ...] = (
    check_declares_itself,
    check_release_is_a_function,
    check_shape_and_never_raises,
    check_addresses,
    check_without_noise_it_is_exact,
    check_noise_adds,
    check_columns_fit_the_noise,
    check_neighbours_look_alike,
)
