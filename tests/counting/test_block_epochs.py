"""Blocks without a horizon: epochs, what closed ones hold, budgets, spreads (optimal-counting 6.1)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evertally as et
from conformance.mechanisms import counter
from evertally.audit.gaussian import BLOCK_HEIGHT, ImpulseSource
from evertally.checks import CHECKS
from evertally.checks.checks import check_error_formula
from evertally.counting import block_epochs
from evertally.counting.block_epochs import BlockEpochs
from evertally.counting.block_table import GRID
from evertally.counting.choose import Choice, model_of
from evertally.counting.process import WithoutEnd, path_bound
from evertally.counting.processes import Setting
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import Change, PureDP

ONE = Change(1, 1, 1)
UNIT = 2.0**-10  # an epsilon at which rounding is nothing


def process(columns: int = 1, seed: int = 0) -> BlockEpochs:
    return BlockEpochs(PureDP(1), ONE, columns=columns, source=simulation(seed).source("epochs"))


def model() -> BlockEpochs:
    return BlockEpochs(PureDP(UNIT), ONE, columns=1, source=ZeroNoise().source())


def test_epochs_follow_one_another() -> None:
    epochs, start = model(), 0
    for k in range(7):
        n = 32 ** (k + 1)
        assert (epochs.before(k), epochs.length(k)) == (start, n)
        assert [epochs.piece_of(t) for t in (start + 1, start + n, start + n + 1)] == [k, k, k + 1]
        start += n


def test_a_closed_epoch_is_held_by_its_last_row() -> None:
    noise = process(3).advance(1200)
    held, start = np.zeros(3, dtype=np.int64), 0
    for k, n in enumerate((32, 1024, 144)):
        source = simulation(0).source("epochs")
        alone = PureBlocksProcess(PureDP(1), ONE, horizon=32 ** (k + 1), columns=3, source=source, lane=f"epoch-{k}")
        rows = alone.advance(n)
        assert (noise[start : start + n] == held + rows).all()
        held, start = held + rows[-1], start + n


def test_however_one_gets_there_the_noise_is_the_same() -> None:
    whole, pieces = process(2).advance(1100), process(2)
    assert (np.concatenate([pieces.advance(n) for n in (1, 31, 2, 1000, 66)]) == whole).all()
    for tick in (0, 31, 32, 33, 1055, 1056, 1057, 5):
        pieces.seek(tick)
        assert (pieces.advance(1) == whole[tick]).all()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of 4, 16, 64 ticks."""
    monkeypatch.setattr(block_epochs, "GROWTH", 2)


@pytest.mark.usefixtures("short")
def test_what_hides_an_event_costs_epsilon() -> None:
    """Read off the program by impulses: the shift of one epoch's draws that hides an event at all ticks of all epochs,
    those after the epoch was closed among them."""
    source: Any = ImpulseSource()
    noise = BlockEpochs(PureDP(1), ONE, columns=150, source=source)
    parts, tables, held = [], [], np.zeros(150)
    for start, n in ((0, 4), (4, 16), (20, 6)):
        noise.seek(start)
        (level,) = noise._inner._levels  # type: ignore[attr-defined]
        rows = level.rows(1, n)[0] / BLOCK_HEIGHT
        parts.append(held + rows)
        tables.append((start, level.table))
        held = held + rows[-1]
    W = np.concatenate(parts)
    for j in range(1, 27):
        k = noise.piece_of(j)
        start, table = tables[k]
        inside = j - 1 - start
        column = np.concatenate([np.diag(table.d)[:, inside], table.dense[:, inside]])
        shift, cost = np.zeros(150), Fraction(0)
        for row in np.flatnonzero(column).tolist():
            size = Fraction(int(column[row]), GRID)  # scales are 1
            cost += abs(size)
            shift[source.columns[f"epoch-{k}-0", 1 + row]] = float(size)
        assert Fraction(99, 100) < cost <= 1
        assert np.abs(W @ shift - (np.arange(1, 27) >= j)).max() < 1e-6


# V eps^2 of the worst tick of 2^k .. 2^(k+1) - 1, and the same of epoch trees.
STATED = {4: (22, 260), 6: (117, 770), 9: (117, 2370), 10: (505, 3190), 15: (1079, 10160), 19: (1080, 20140)}


@pytest.mark.parametrize("k", STATED)
def test_golden_variances(k: int) -> None:
    tree: Any = model_of(Choice("epoch-tree", PureDP(UNIT)), Setting(ONE, None, 1, 2**30))
    blocks = model()
    assert isinstance(blocks, WithoutEnd)
    found = [made.worst_in(k).variance * UNIT**2 for made in (blocks, tree)]
    assert found == pytest.approx(STATED[k], abs=1)
    if k <= 10:
        widest = max(blocks.spread(t).proxy for t in range(2**k, 2 ** (k + 1)))
        assert blocks.worst_in(k).proxy == pytest.approx(widest)


def test_spreads_are_those_of_the_paths() -> None:
    n = 6000
    noise, made = process(n, 2).advance(1060).astype(np.float64), process()
    exact = 6 * math.sqrt(5 / (4 * n))
    for tick in (1, 32, 33, 200, 1056, 1060):
        assert noise[tick - 1].std() == pytest.approx(made.spread(tick).stddev, rel=exact)
    for tick, window in ((30, 5), (33, 1), (40, 30), (1060, 4), (1060, 1040), (1057, 1)):
        moved = noise[tick - 1] - noise[tick - 1 - window]
        assert moved.std() == pytest.approx(made.window_spread(tick, window).stddev, rel=exact)
    assert made.window_spread(9, 9) == made.spread(9)
    for tick in (20, 900):
        assert made.spread(tick).radius(0.05) < path_bound(made, 0.05, tick) < 10 * made.spread(tick).stddev
    largest = np.abs(noise[32:1056]).max(axis=0)
    assert (largest > path_bound(made, 0.05, 700)).mean() < 0.05


def test_auto_and_refusals() -> None:
    made = et.Counter(guarantee=et.PureDP(1), horizon=None, key=et.simulation(0))
    assert made.mechanism == "epoch-blocks"
    with pytest.raises(ConfigurationError, match="pure budgets"):
        et.Counter(guarantee=et.ZCDP(1.0), horizon=None, mechanism="epoch-blocks")
    with pytest.raises(ConfigurationError, match="without a horizon"):
        et.Counter(guarantee=et.PureDP(1.0), horizon=9, mechanism="epoch-blocks")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Any) -> None:
    if check is check_error_formula:
        return  # seven seconds; test_spreads_are_those_of_the_paths is about the same
    check(counter(et.PureDP(1.0), None, "epoch-blocks", ticks=24))
