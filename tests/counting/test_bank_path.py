"""The path of a bank: one set of integers, whatever makes them (optimal-counting 3.2, 3.3, 10)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb

import evertally as et
from evertally.balls import at_precision
from evertally.counting import bank as bank_module
from evertally.counting import bank_kernels as kernels
from evertally.counting import bank_path
from evertally.counting.bank import BankProcess
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_open import open_bank
from evertally.counting.bank_path import BankPath
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.errors import StateError
from evertally.noise import simulation
from evertally.noise.reals import RealLaw, Reals
from evertally.privacy import ZCDP, Change

LAW = RealLaw("normal", "a test")


def path(T: int, columns: int, sigma: float = 3.0) -> BankPath:
    return BankPath(build_bank(T), sigma, LAW, columns, simulation(4).source("paths"), "bank")


@pytest.mark.parametrize("columns", [1, 3])
def test_interpreted_and_compiled_make_the_same_noise(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = path(60, columns).rows(0, 60)
    monkeypatch.setattr(kernels, "compiled", lambda name: getattr(kernels, name))
    assert (path(60, columns).rows(0, 60) == expected).all()


@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_of_any_width_make_the_same_noise(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = path(50, 64).rows(0, 50)
    monkeypatch.setattr(bank_path, "_BLOCK", block)
    assert (path(50, 64).rows(0, 50) == expected).all()


@pytest.mark.parametrize("columns", [1, 40])
def test_states_are_within_their_bounds(columns: int) -> None:
    """Against balls; a thousandth of the bound would not do."""
    T = 700
    made = path(T, columns)
    made.rows(0, T)
    made.by_balls(0, [T])
    block, balls = made._blocks[0], made._balls[0]._e
    off = [at_precision(192, partial(distance, ball, float(block.e[k, 0]))) for k, ball in enumerate(balls)]
    assert (np.array(off) <= block.err).all()
    assert (np.array(off) > block.err / 1000).any()
    assert columns == 1 or (np.abs(block.e).max(axis=1) <= block.big).all()


@pytest.mark.parametrize("bank", [build_bank(400), open_bank()], ids=["bank", "bank-open"])
def test_the_bound_on_states_holds_after_every_tick(bank: Bank) -> None:
    """The open bank takes up to 1.8 of a draw: a bound that forgets the factor is below some states."""
    made = BankPath(bank, 3.0, LAW, 4, simulation(4).source("paths"), "bank")
    for _ in range(400):
        made._make_exactly(1)
        assert (np.abs(made._blocks[0].e).max(axis=1) <= made._blocks[0].big).all()


def distance(ball: arb, value: float) -> float:
    return float(abs(ball - arb(value)).upper())


class Words:
    """A source of given words."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> Reals:
        some = self._words[nodes.start - 1 : nodes.stop - 1, first : first + coordinates]
        return Reals("normal", np.ascontiguousarray(some), lambda i, j, r: (0, 0))


def test_golden_sum_of_the_specification() -> None:
    """optimal-counting 10: 2048 ticks, Q = 6, 512 columns."""
    words = np.random.default_rng(1).integers(0, 2**64, (2048, 512, 2), dtype=np.uint64)
    source: Any = Words(words)
    process = BankProcess(
        ZCDP(0.5), Change(1, 1, 1), horizon=2048, columns=512, source=source, bank=build_bank(2048, 6)
    )
    noise = process.advance(2048)
    assert int(noise.sum()) == 16502
    assert float(noise.std()) == pytest.approx(3.1793, abs=5e-5)
    alone: Any = Words(words[:, 17:18])
    one = BankProcess(ZCDP(0.5), Change(1, 1, 1), horizon=2048, columns=1, source=alone, bank=build_bank(2048, 6))
    assert (one.advance(2048)[:, 0] == noise[:, 17]).all()


def test_what_wide_paths_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where noise is not made ahead no older states are kept; a memory of an earlier tick is then that of the start."""
    monkeypatch.setattr(bank_path, "_AHEAD", 4)
    whole = path(40, 8).rows(0, 40)
    wide = path(40, 8)
    wide.rows(0, 10)
    wide.rows(10, 20)
    for tick in (12, 20):
        again = path(40, 8)
        again.recall(tick, wide.memory(tick))
        assert (again.rows(tick, 40) == whole[tick:]).all()


def test_a_torn_path_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption in the middle of a block leaves no half-filtered states behind."""
    monkeypatch.setattr(bank_path, "_AHEAD", 4)
    whole = path(40, 8).rows(0, 40)
    torn = path(40, 8)
    torn.rows(0, 10)
    original = kernels.compiled("filtered")

    def interrupted(*arguments: Any) -> int:
        original(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "compiled", lambda name: interrupted)
        with pytest.raises(KeyboardInterrupt):
            torn.rows(10, 20)
    again = path(40, 8)
    again.recall(12, torn.memory(12))
    assert (again.rows(12, 40) == whole[12:]).all()
    assert (torn.rows(10, 40) == whole[10:]).all()


def test_bounds_below_zero_are_no_memory() -> None:
    kept = path(40, 2)
    kept.rows(0, 40)
    numbers = np.frombuffer(kept.memory(40)[8:], dtype="<f8").copy()
    for wrong in (-1.0, np.nan, np.inf):
        numbers[-1] = wrong
        with pytest.raises(StateError):
            path(40, 2).recall(40, kept.memory(40)[:8] + numbers.tobytes())


def test_an_interrupted_stream_goes_on_with_its_own_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    common: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 80, "mechanism": "bank"}
    begun, calm = (et.Counter(**common, key=et.simulation(n)) for n in (7, 7))
    expected = calm.run([1] * 80)
    begun.run([1] * 30)
    monkeypatch.setattr(bank_module, "build_bank", lambda horizon: build_bank(horizon, 2))
    begun._engine.go_back(30, begun._kept.played.state)
    assert (begun.run([1] * 50) == expected[30:]).all()


@pytest.mark.parametrize("T", [1, 2, 90, 3000])
def test_variances_in_closed_form(T: int) -> None:
    """Against the recursion over all ticks."""
    bank = build_bank(T)
    variance, covariance = np.empty(T), np.empty(T)
    kernels.compiled("neighbours")(bank.a, bank.K, bank.r, bank.lengths, variance, covariance)
    moments = moments_of(bank)
    made = [moments.variance(t) for t in range(1, T + 1)]
    assert np.allclose(made, variance, rtol=1e-10, atol=0)
    assert moments.widest(T) == pytest.approx(variance.max(), rel=1e-9)
    for since, tick in ((1, T), (max(1, T // 3), T // 2 + 1), (T, T)):
        assert moments.widest(tick, since) == pytest.approx(variance[since - 1 : tick].max(), rel=1e-6)
    for t in range(1, T, max(1, T // 9)):
        assert moments.covariance(t, t + 1) == pytest.approx(covariance[t - 1], rel=1e-9)
