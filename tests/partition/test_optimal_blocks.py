"""H from banks and blocks of pure noise: a rule by name, what streams keep of it, sketches (partition/fittest.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.checks.checks import check_interrupted_calls, check_snapshot_at_every_tick
from evertally.checks.subject import Subject
from evertally.counting import bank, choose
from evertally.counting.bank import BankProcess
from evertally.counting.bank_schedule import build_bank
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.errors import ConfigurationError, StateError
from evertally.noise import ZeroNoise, simulation
from evertally.partition import Calibration, fittest
from evertally.partition.histograms import BLOCKS, OPTIMAL
from evertally.partition.optimal_blocks import OptimalBlocks
from evertally.partition.sketches import bank_sketch, block_sketch
from evertally.partition.typical import _histogram_paths
from evertally.privacy import ZCDP, Change, PureDP

ONE = Change(1, 1, 1)
CHARGES = {"pure": PureDP(1), "gaussian": ZCDP(0.5)}
KEY = simulation(3)


def blocks(charge: Any, columns: int = 2, first: int = 8, seed: int = 0, change: Change = ONE) -> OptimalBlocks:
    source = simulation(seed).source("optimal")
    return OptimalBlocks(charge, change, first=first, columns=columns, source=source)


def test_the_rule_of_before_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever `auto` takes from by now: streams without a settled rule draw by this one."""
    monkeypatch.setattr(choose, "OURS", ("bank", "pure-blocks"))
    fittest._judged.cache_clear()
    pure = {1: ("running-sum", "exact"), 48: ("running-sum", "exact"), 64: ("tree", 9), 1024: ("tree", 11)}
    gaussian = {1: ("running-sum", "exact"), 2: ("sqrt", "exact"), 300: ("sqrt", "exact"), 8192: ("tree", 5)}
    assert {n: fittest.fittest(True, n, 1) for n in pure} == pure
    assert {n: fittest.fittest(False, n, 1) for n in gaussian} == gaussian


def test_no_block_has_a_larger_error_than_before() -> None:
    zero = ZeroNoise().source()
    for pure, charge in ((True, PureDP(2.0**-10)), (False, ZCDP(2.0**-21))):
        for n in (1, 2, 5, 8, 9, 24, 48, 100, 300):
            ways = fittest.optimal(pure, n, 1), fittest.fittest(pure, n, 1)
            now, before = (fittest.make(way, charge, ONE, n, 1, zero).worst().stddev for way in ways)
            assert now <= before * (1 + 1e-6)
            if n >= 24:
                assert now < (0.75 if pure else 0.97) * before


@pytest.mark.parametrize("kind", CHARGES)
def test_memory_at_every_insert(kind: str) -> None:
    whole, walking = blocks(CHARGES[kind]).advance(40), blocks(CHARGES[kind])
    for t in range(40):
        kept = walking.memory()
        assert kept == walking.memory()
        if t in (0, 1, 7, 8, 9, 15, 16, 31, 32, 39):
            other = blocks(CHARGES[kind])
            other.recall(t, kept)
            assert (other.advance(40 - t) == whole[t:]).all()
            other.seek(t)
            assert (other.advance(1) == whole[t]).all()
        assert (walking.advance(1) == whole[t]).all()
    for broken in (b"", kept[:30], kept.replace(b"block", b"black"), kept.replace(b" exact", b" wrong")):
        with pytest.raises(StateError):
            blocks(CHARGES[kind]).recall(39, broken)


def other_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another version might find them."""
    monkeypatch.setattr(bank, "build_bank", lambda n: build_bank(n, 2))


def test_a_block_goes_on_with_its_own_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, stopped = blocks(ZCDP(0.5)).advance(60), blocks(ZCDP(0.5))
    stopped.advance(20)
    kept = stopped.memory()
    other_coefficients(monkeypatch)
    other = blocks(ZCDP(0.5))
    other.recall(20, kept)
    assert (other.advance(12) == whole[20:32]).all(), "the block in force, and what the closed ones hold"
    assert (other.advance(28) != whole[32:]).any(), "later blocks are this version's"
    other.seek(20)
    with pytest.raises(AssertionError, match="two laws"):  # without a memory it would be another stream
        other.advance(1)


def test_real_noise_out_of_range_leaves_the_rule_of_before() -> None:
    change = Change(2**38, 2**76, 2**38)
    large = blocks(ZCDP(0.5), first=2**16, change=change)
    assert fittest.fitting_of(large._inner) == ("tree", 5)
    again = blocks(ZCDP(0.5), first=2**16, change=change)
    again.recall(0, large.memory())
    assert (again.advance(3) == large.advance(3)).all()


def sparse(key: Any = KEY, **options: Any) -> et.Counter:
    common: dict[str, Any] = {"guarantee": et.PureDP(2.0), "horizon": 1000, "largest": 2000, "mechanism": "sparse"}
    return et.Counter(**(common | options), key=key)


def test_a_new_stream_settles_the_rule_and_an_old_one_keeps_what_it_had() -> None:
    new = sparse()
    numbers = new._options["calibration"]
    assert numbers["H"] == OPTIMAL
    assert (sparse(calibration=numbers).run([3] * 300) == new.run([3] * 300)).all()
    named = sparse(calibration={"H": BLOCKS, "charge": numbers["charge"]})._options["calibration"]
    before = {name: value for name, value in named.items() if name != "H"}
    old = sparse(calibration=before)
    assert old._options["calibration"] == before, "nothing is added to what an earlier version settled"
    process = old._engine.worker.partition._process  # type: ignore[attr-defined]
    assert not isinstance(process, OptimalBlocks)
    old.run([3] * 200)
    again = et.restore(old.snapshot(), key=KEY)
    assert again._options["calibration"] == before
    assert (again.run([3] * 100) == old.run([3] * 100)).all()
    with pytest.raises(ConfigurationError, match="calibration"):
        sparse(calibration=numbers | {"H": "blocks of a later version"})
    assert Calibration(before).rule("H", lambda: OPTIMAL, before=BLOCKS, beside="split, n, kappa") == BLOCKS


@pytest.mark.parametrize("guarantee", [et.PureDP(2.0), et.ApproxDP(2.0, 1e-6)], ids=repr)
def test_a_restored_stream_goes_on(guarantee: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = sparse(guarantee=guarantee)._options["calibration"] | {"H": OPTIMAL}
    whole = sparse(guarantee=guarantee, calibration=numbers)
    whole.run([5] * 150)
    blob = whole.snapshot()
    other_coefficients(monkeypatch)
    again = et.restore(blob, key=KEY)
    closes = whole._engine.worker.partition  # type: ignore[attr-defined]
    assert closes.closes > 3
    assert (again.run([5] * 150) == whole.run([5] * 150)).all()


@pytest.mark.parametrize("guarantee", [et.PureDP(20.0), et.ApproxDP(20.0, 1e-6)], ids=repr)
@pytest.mark.parametrize("check", [check_interrupted_calls, check_snapshot_at_every_tick])
def test_conformance(check: Any, guarantee: Any) -> None:
    common: dict[str, Any] = {"guarantee": guarantee, "horizon": 24, "largest": 2400}
    numbers = sparse(**common)._options["calibration"] | {
        "H": OPTIMAL,
        "split, n, kappa": [["1/10", "2/5", "1/2"], 8, 9],
    }

    def make(key: Any) -> et.Counter:
        return sparse(key, **common, calibration=numbers)

    inputs = [30 * (t % 4) for t in range(24)]
    check(Subject("sparse", make, lambda n: inputs[:n], lambda x: x, ticks=24, noise="transcript"))


def test_sketches_have_the_spreads_of_the_processes() -> None:
    columns, exact = 4000, 6 * math.sqrt(5 / (4 * 4000))
    zero, source = ZeroNoise().source(), simulation(1).source("sketch")
    gauss = BankProcess(ZCDP(2.0**-21), ONE, horizon=64, columns=1, source=zero)
    path = bank_sketch(64, 40, columns, source, "bank")
    for t in (1, 2, 40):
        assert path[t - 1].std() == pytest.approx(gauss.spread(t).stddev / 1024, rel=exact)
    for n, ticks in ((60, (1, 30, 60)), (4000, (1, 63, 64, 65, 128, 150))):
        pure = PureBlocksProcess(PureDP(2.0**-10), ONE, horizon=n, columns=1, source=zero)
        path = block_sketch(n, ticks[-1], columns, source, f"blocks-{n}")
        for t in ticks:
            assert path[t - 1].std() == pytest.approx(pure.spread(t).stddev / 1024, rel=exact)


def test_paths_of_blocks_follow_the_rule() -> None:
    """Closed blocks hold their last noise; where nothing differs the paths are those of before, to the last bit."""
    assert np.array_equal(_histogram_paths(True, OPTIMAL, 3, 6, 8), _histogram_paths(True, BLOCKS, 3, 6, 8))
    paths, model = _histogram_paths(True, OPTIMAL, 16, 60, 2000), blocks(PureDP(2.0**-10), 1, 16)
    for j in (1, 16, 17, 32, 33, 60):
        assert paths[j].std() == pytest.approx(model.spread(j).stddev / 1024, rel=6 * math.sqrt(5 / 8000))


def test_sketches_are_as_fine_as_the_noise_that_they_stand_for() -> None:
    """Real noise: of many columns hardly two have the same."""
    for sketch in (bank_sketch, block_sketch):
        first = sketch(64, 1, 500, simulation(6).source("fine"), "lane")[0]
        assert len(np.unique(first)) > 490
