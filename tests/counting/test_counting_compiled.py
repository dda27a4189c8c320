"""Compiled or interpreted, whole or in pieces: the same integers."""

from __future__ import annotations

import numpy as np
import pytest

import evertally as et
from evertally.counting.choose import build, choose
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import PROCESSES, Setting
from evertally.noise import simulation
from evertally.privacy import Change, Participation

N = 150


def process(name: str, columns: int, budget: et.PureDP | et.ZCDP) -> NoiseProcess:
    rule = Participation(Change(1, 1, 1), ticks=20, separation=7) if name == "banded" else None
    change = Change(1, 1, 1) if rule is None else rule.group(200)
    setting = Setting(change, 200 if PROCESSES[name].bounded else None, columns, 2**30, rule=rule)
    return build(choose(budget, setting, name), setting, simulation(1).source("compiled", name))


@pytest.mark.parametrize("columns", [1, 3, 200])
@pytest.mark.parametrize(
    ("name", "budget"),
    [
        (name, budget)
        for name, kind in PROCESSES.items()
        for budget in (et.ZCDP(0.5), et.PureDP(1))
        if (kind.pure or isinstance(budget, et.ZCDP))
        and (name not in ("pure-blocks", "epoch-blocks") or isinstance(budget, et.PureDP))
    ],
    ids=repr,
)
def test_one_by_one_or_all_at_once(name: str, budget: et.PureDP | et.ZCDP, columns: int) -> None:
    """One tick of few columns is interpreted, 150 ticks or 200 columns are compiled; the border is at 64."""
    whole = process(name, columns, budget).advance(N)
    single = process(name, columns, budget)
    assert np.array_equal(np.concatenate([single.advance(1) for _ in range(N)]), whole)
    for portion in (63, 64, 65):
        mover = process(name, columns, budget)
        parts = [mover.advance(min(portion, N - mover.tick)) for _ in range(-(-N // portion))]
        assert np.array_equal(np.concatenate(parts), whole)
    for start in (1, 31, 32, 100, 127, 149):
        mover = process(name, columns, budget)
        mover.seek(start)
        assert np.array_equal(mover.advance(N - start), whole[start:])
        mover.seek(0)
        assert np.array_equal(mover.advance(5), whole[:5])


@pytest.mark.parametrize("columns", [1, 3, 200])
def test_run_in_small_pieces(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from evertally.contract import doors

    def made() -> et.VectorCounter:
        return et.VectorCounter(columns, guarantee=et.ZCDP(0.5), horizon=300, key=simulation(1))

    x = np.random.default_rng(0).integers(0, 5, (300, columns))
    whole = made().run(x)
    monkeypatch.setattr(doors, "_PIECE", 7 * columns)
    assert np.array_equal(made().run(x), whole)
    assert np.array_equal(np.array([m.step(row).value for m in [made()] for row in x]), whole)
