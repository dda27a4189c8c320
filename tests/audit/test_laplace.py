"""Real Laplace noise: the cost of hiding a change, against linear programs, exact tails and planted bugs."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import evertally as et
from counting.block_costs import in_levels
from evertally.audit.laplace import form_at, hiding, shift_form, telling_ticks
from evertally.audit.suite import plan, run
from evertally.audit.whitebox import closed_form_report, levels_report
from evertally.counting import block_level, pure_blocks

KEY = et.simulation(0)


def counter(T: int, epsilon: float = 1.0, **options: Any) -> et.Counter:
    return et.Counter(guarantee=et.PureDP(epsilon), horizon=T, mechanism="pure-blocks", key=KEY, **options)


def least(W: np.ndarray, change: np.ndarray) -> float:
    """By a linear program of somebody else's."""
    found = linprog(np.ones(2 * W.shape[1]), A_eq=np.hstack([W, -W]), b_eq=change, bounds=(0, None), method="highs")
    return float(found.fun)


@pytest.mark.parametrize("shape", [(1, 3), (4, 4), (6, 9), (10, 40), (20, 23)])
def test_bounds_from_both_sides_meet_at_the_least_cost(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[1])
    W, changes = rng.normal(size=shape), rng.normal(size=(5, shape[0]))
    cost = hiding(W, changes, steps=500)  # random matrices take longer than noise does
    expected = [least(W, change) for change in changes]
    assert (cost.lower <= np.array(expected) * (1 + 1e-9)).all()
    assert cost.lower == pytest.approx(expected, rel=3e-3)
    assert cost.upper == pytest.approx(expected, rel=3e-3)
    assert np.allclose(cost.shifts @ W.T, changes, atol=1e-6)


def test_a_tail_that_shows_it() -> None:
    """One release of three draws: its exact law, cell by cell, loses what the score says and never more."""
    scales = np.array([0.7, 0.4, 0.1])
    others = [[b for j, b in enumerate(scales) if j != i] for i in range(3)]
    shares = [math.prod(b**2 / (b**2 - c**2) for c in rest) for b, rest in zip(scales, others, strict=True)]

    def above(x: float) -> float:
        return sum(w * math.exp(-x / b) / 2 for w, b in zip(shares, scales, strict=True))

    cells = [above(k - 0.5) - above(k + 0.5) for k in range(1, 30)]
    losses = [math.log(a / b) for a, b in pairwise(cells)]
    lost = float(hiding(scales[None], np.ones((1, 1)), roundings=0.0).lower[0])
    assert max(losses) == pytest.approx(lost, rel=1e-6)
    assert all(loss <= lost * (1 + 1e-6) for loss in losses)


@pytest.mark.parametrize(("T", "sizes"), [(16, (16,)), (10, (16,)), (64, (16, 16)), (33, (16, 16))])
def test_blocks_lose_their_epsilon_and_no_more(T: int, sizes: tuple[int, ...]) -> None:
    with in_levels(*sizes):
        form = shift_form(counter(T), T)
    assert form is not None
    lost, tick = form.worst()
    assert lost <= 1
    assert lost == pytest.approx(max(least(form.W, c) for c in form.changes([1, T // 2, tick])), rel=1e-3)
    assert lost > (0.95 if T != 33 else 0.8)  # two whole blocks show little of the level above


def test_reports_of_columns_and_weights() -> None:
    heavy = counter(16, 0.3, max_weight=3, neighbours="replace")
    moved = et.VectorCounter(
        3, guarantee=et.PureDP(2.0), horizon=16, mechanism="pure-blocks", max_per_event=1, neighbours="replace", key=KEY
    )
    for model, claimed in ((heavy, 0.3), (moved, 2.0)):
        report = closed_form_report(model, 16)
        assert (report.unit, report.claimed, report.passed) == ("epsilon", claimed, True)
        assert report.fraction > 0.95


def test_long_horizons_at_their_telling_ticks() -> None:
    model = counter(4096)
    assert telling_ticks(model.noise) == [*range(1, 65), *range(128, 4097, 64)]
    assert telling_ticks(counter(100).noise) == []
    report = levels_report(counter(2**13), 150)  # of a copy
    assert (report.passed, report.mechanism) == (True, "Counter(mechanism=pure-blocks, horizon=4096)")
    assert report.fraction > 0.95
    assert {step.name for step in plan(lambda key: counter(2**13))} >= {"closed form", "levels", "change of tick 1"}


def smaller_scales(value: Any) -> float:
    return float(value) / 1.05


def last_row_too(self: Any, tick: int, count: int) -> Any:
    centre, radius = original_rows(self, tick, count)
    for i in range(count):
        if self.above is not None and tick + i and (tick + i) % self.table.n == 0:
            centre[i] += self._walked((tick + i) // self.table.n - 1, self.table.n, 1)[0][0]
    return centre, radius


def no_upper_level(self: Any, tick: int, count: int) -> Any:
    centre, radius = original_rows(self, tick, count)
    return (centre * 0, radius * 0) if self.above is None else (centre, radius)


original_rows = block_level.BlockLevel.rows


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (pure_blocks, "float_above", smaller_scales),
        (block_level.BlockLevel, "rows", last_row_too),
        (block_level.BlockLevel, "rows", no_upper_level),
    ],
)
def test_planted_bugs_are_seen(owner: Any, name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_levels(16, 16):
        assert closed_form_report(counter(64), 64).passed
        monkeypatch.setattr(owner, name, bug)
        assert not closed_form_report(counter(64), 64).passed


def test_noise_that_is_not_there_is_no_small_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pure_blocks.PureBlocksProcess.advance

    def silent(self: Any, count: int = 1) -> Any:
        rows = original(self, count)
        rows[-1] = 0
        return rows

    monkeypatch.setattr(pure_blocks.PureBlocksProcess, "advance", silent)
    assert closed_form_report(counter(16), 16).audited > 1e3


def test_other_noise_has_no_such_form() -> None:
    tree = et.Counter(guarantee=et.PureDP(1.0), horizon=9, mechanism="tree", key=KEY)
    assert shift_form(tree, 9) is None
    assert form_at(tree, [3, 5]) is None


@pytest.mark.parametrize(
    ("guarantee", "process", "fraction"), [(et.PureDP(1.0), "pure-blocks", 0.9), (et.ZCDP(0.5), "bank", 0.6)]
)
def test_what_is_present_now_is_audited_with_real_noise(guarantee: Any, process: str, fraction: float) -> None:
    """Insertions and deletions are charged apart, and two changes of sign share noise: not all of it is shown."""
    make = lambda key: et.DynamicCount(guarantee=guarantee, horizon=100, process=process, key=key)  # noqa: E731
    (report,) = [run(step) for step in plan(make) if step.name == "lifetimes"]
    assert report.passed
    assert report.fraction > fraction
