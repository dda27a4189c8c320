"""The bank: factors of the specification, certified sensitivity, correctly rounded paths, restores, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from counting_reference import bank_columns
from planted_ties import planted_tie, unrolled

import evertally as et
from evertally.audit.gaussian import closed_form
from evertally.counting import bank_kernels as kernels
from evertally.counting.bank import BankProcess, root_above
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_schedule import Bank, build_bank, fits_lemma, inverse_fractions, poles, segments
from evertally.errors import ConfigurationError, HorizonExceeded, StateError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, Change

ONE = Change(1, 1, 1)


def process(T: int = 300, columns: int = 3, seed: int = 0, rho: float = 0.5, bank: Bank | None = None) -> BankProcess:
    source = simulation(seed).source("bank")
    return BankProcess(ZCDP(rho), ONE, horizon=T, columns=columns, source=source, bank=bank)


@pytest.mark.parametrize(
    ("T", "Q", "factor"),
    [(2**8, 4, 2.534709), (2**10, 4, 2.965806), (2**12, 4, 3.402866), (2**14, 6, 3.834365), (2**16, 6, 4.272341)],
)
def test_factors_of_the_specification(T: int, Q: int, factor: float) -> None:
    """optimal-counting 4: certified worst factor, to 1e-4."""
    bank = build_bank(T, Q)
    assert math.sqrt(certified(bank) * moments_of(bank).widest(T)) == pytest.approx(factor, rel=1e-4)


def test_within_three_thousandths_of_the_least() -> None:
    for T, least in ((2**10, 2.961465), (2**16, 4.265997)):
        bank = build_bank(T)
        assert math.sqrt(certified(bank) * moments_of(bank).widest(T)) <= 1.003 * least
        assert bank.states <= 8


def exact_filter(bank: Bank) -> list[list[Fraction]]:
    """L in rational numbers, by impulses."""
    a, K, r = unrolled(bank)
    T = len(a)
    columns = []
    for j in range(T):
        e, column = [Fraction(0)] * bank.states, []
        for t in range(T):
            nu = r[t] if t == j else Fraction(0)
            faded = [x * y for x, y in zip(a[t], e, strict=True)]
            column.append(sum(faded, nu))
            e = [x + y * nu for x, y in zip(faded, K[t], strict=True)]
        columns.append(column)
    return [[columns[j][t] for j in range(T)] for t in range(T)]


@pytest.mark.parametrize(("T", "Q", "least"), [(8, 2, 0.1430), (20, 3, 0.0619)])
def test_the_certificate_is_above_the_exact_sensitivity(T: int, Q: int, least: float) -> None:
    bank = build_bank(T, Q)
    columns = bank_columns(*unrolled(bank))
    true = max(sum((x * x for x in column), Fraction(0)) for column in columns)
    bound = Fraction(certified(bank))
    assert 0 <= bound / true - 1 < Fraction(1, 10**11)
    assert all(x >= 0 for column in columns for x in column)  # the lemma of 2.3
    _, _, r = unrolled(bank)
    smallest = min(columns[j][t] * r[t] for j in range(T) for t in range(j, T))
    assert float(smallest) == pytest.approx(least, abs=2e-3)
    L = exact_filter(bank)
    product = [[sum((L[t][k] * columns[j][k] for k in range(T)), Fraction(0)) for j in range(T)] for t in range(T)]
    assert product == [[Fraction(int(t >= j)) for j in range(T)] for t in range(T)]  # L R = A, exactly


def test_the_certificate_of_any_numbers() -> None:
    """Random coefficients, far from any optimum: never below the exact value, in rational numbers."""
    rng = np.random.default_rng(4)
    for _ in range(25):
        T, Q = int(rng.integers(1, 12)), int(rng.integers(1, 4))
        K = rng.dirichlet(np.ones(Q), T) * (1 - 2.0**-48)
        bank = Bank(rng.random((T, Q)) ** 0.1, K, np.exp(rng.uniform(-9, 9, T)), np.ones(T, dtype=np.int64))
        true = max(sum((x * x for x in column), Fraction(0)) for column in bank_columns(*unrolled(bank)))
        assert 0 <= Fraction(certified(bank)) / true - 1 < Fraction(1, 10**8)


def test_the_plain_recursion_would_be_below() -> None:
    """What the supersolution is for: without it the computed value may lie below the truth."""
    bank = build_bank(2**14, 6)
    safe, _ = kernels.compiled("sensitivities")(bank.a, bank.K, bank.r, bank.lengths, 1.0, 1.0)
    plain, _ = kernels.compiled("sensitivities")(bank.a, bank.K, bank.r, bank.lengths, 1.0, 0.0)
    assert plain.max() < safe.max() < plain.max() * (1 + 1e-8)


def broken(name: str) -> Bank:
    bank = build_bank(16)
    a, K, r = bank.a.copy(), bank.K.copy(), bank.r.copy()
    if name == "a above 1":
        a[3, 0] = 1.0 + 2.0**-52
    elif name == "K below 0":
        K[3, 0] = -K[3, 0]
    elif name == "sum of K above 1":
        K[3] *= 1 + 2.0**-40
    elif name == "NaN in r":
        r[3] = math.nan
    elif name == "NaN in a":
        a[3, 0] = math.nan
    elif name == "infinite r":
        r[3] = math.inf
    elif name == "no r":
        r[3] = 0.0
    elif name == "tiny K":
        K[3, 0] = 2.0**-300
    return replace(bank, a=a, K=K, r=r)


@pytest.mark.parametrize(
    "name",
    ["a above 1", "K below 0", "sum of K above 1", "NaN in r", "NaN in a", "infinite r", "no r", "tiny K"],
)
def test_refused_coefficients(name: str) -> None:
    with pytest.raises(StateError):
        certified(broken(name))


def test_lengths_that_run_over_are_refused() -> None:
    bank = build_bank(16)
    lengths = bank.lengths.copy()
    lengths[:4] += 2**62  # adds up to the same horizon in 64 bits
    forged = replace(bank, lengths=lengths)
    assert forged.horizon == 16
    with pytest.raises(StateError):
        certified(forged)


@pytest.mark.parametrize("columns", [1, 3, 600])
def test_however_one_gets_there_the_noise_is_the_same(columns: int) -> None:
    T = 90
    whole = process(T, columns).advance(T)
    pieces = process(T, columns)
    assert (np.concatenate([pieces.advance(n) for n in (1, 1, 7, 40, 41)]) == whole).all()
    for tick in (0, 1, 16, 50, 89):
        jumped = process(T, columns)
        jumped.seek(tick)
        assert (jumped.advance(1) == whole[tick]).all()
        jumped.seek(tick)
        assert (jumped.advance(1) == whole[tick]).all()
        kept = process(T, columns)
        kept.advance(tick)
        recalled = process(T, columns, bank=build_bank(T, 2))  # what it would build itself does not matter
        recalled.recall(tick, kept.memory())
        assert (recalled.advance(T - tick) == whole[tick:]).all()


def test_columns_do_not_depend_on_their_company() -> None:
    whole = process(40, 700).advance(40)
    assert (process(40, 5).advance(40) == whole[:, :5]).all()


def test_balls_lead_to_the_same_integers() -> None:
    small = process(120, 2)
    noise = small.advance(120)
    for tick in (1, 2, 31, 32, 33, 120):
        for column in (0, 1):
            assert small._path.by_balls(column, [tick])[0] == noise[tick - 1, column]


def test_wider_bounds_lead_to_the_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds times 1e6, so that many ticks are left open: no integer changes."""
    expected = process(40, 2).advance(40)
    run = kernels.compiled("filtered")
    redone = []

    def careful(z: Any, radius: Any, *rest: Any) -> int:
        left = int(run(z, radius + 1e-3, *rest))
        redone.append(left)
        return left

    monkeypatch.setattr(kernels, "compiled", lambda name: careful if name == "filtered" else run)
    assert (process(40, 2).advance(40) == expected).all()
    assert sum(redone) > 0


@pytest.mark.parametrize("name", ["filtered", "filtered_alone"])
@pytest.mark.parametrize("compiled", [True, False])
def test_what_no_float_decides_is_left_open(name: str, compiled: bool) -> None:
    """Numbers beyond what 64 bits hold, and what is no number."""
    run = kernels.compiled(name) if compiled else getattr(kernels, name)
    z = np.array([[1.0], [2.0**51], [-(2.0**63)], [2.0**70], [math.inf], [math.nan]])
    open_ticks = []
    for row in z:  # each by itself: infinity stays in the states
        one = np.ones((1, 1))
        out = np.zeros((1, 1), dtype=np.int64)
        rest = (one, 0 * one, np.ones(1), np.array([9]), 0, 1.0, 0, np.zeros((1, 1)), np.zeros(1), np.zeros(1), out)
        with np.errstate(all="ignore"):
            left = run(row.reshape(1, 1), np.zeros(1), abs(row), *rest)
        assert (left == 1) == (out[0, 0] == kernels.REDO)
        open_ticks.append(left)
    assert open_ticks == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("depth", [40, 80, 130, 400])
@pytest.mark.parametrize("side", [1, -1])
def test_near_ties_are_decided_by_more_bits(depth: int, side: int) -> None:
    rounded, true = planted_tie(depth, side)
    assert rounded == true


def test_spreads_are_those_of_the_paths() -> None:
    T, n = 48, 40000
    noise = process(T, n).advance(T).astype(np.float64)
    model = process(T, 1)
    for tick in (1, 2, 24, 47, 48):
        assert noise[tick - 1].std() == pytest.approx(model.spread(tick).stddev, rel=5 / math.sqrt(2 * n))
    for tick, window in ((48, 1), (48, 20), (30, 29), (30, 30), (25, 3)):
        before = noise[tick - 1 - window] if window < tick else 0.0
        expected = model.window_spread(tick, window).stddev
        assert (noise[tick - 1] - before).std() == pytest.approx(expected, rel=5 / math.sqrt(2 * n))
    assert model.worst().stddev >= max(model.spread(t).stddev for t in range(1, T + 1)) - 1e-12


def test_windows_of_the_specification() -> None:
    """optimal-counting 7, T = 2^16, rho = 1/2, in the middle."""
    model = process(2**16, 1)
    for window, expected in ((1, 2.33), (16, 3.61), (256, 4.52), (4096, 5.31), (16384, 5.73)):
        assert math.sqrt(model.window_spread(2**15, window).variance) == pytest.approx(expected, abs=0.01)


def test_the_joint_bound_holds() -> None:
    T = 64
    model = process(T, 1)
    bound = model.joint_radius(0.2)
    paths = np.abs(process(T, 20000, seed=3).advance(T)).max(axis=0)
    assert (paths > bound).mean() < 0.2
    assert bound <= model.worst().radius(0.2 / T)


def test_the_scale_is_not_below_what_is_needed() -> None:
    model = process(500, 1, rho=0.37)
    needed = Fraction(certified(model.bank)) / (2 * ZCDP(0.37).exact_rho)
    assert needed <= Fraction(model.sigma) ** 2 <= needed * (1 + Fraction(1, 2**50))
    assert Fraction(root_above(Fraction(1, 3))) ** 2 >= Fraction(1, 3)


@pytest.mark.parametrize("T", [1, 2, 3, 64, 257])
def test_the_most_powerful_test_sees_no_more_than_is_claimed(T: int) -> None:
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=T, mechanism="bank", key=et.simulation(0))
    mu = closed_form(counter).mu.max()
    assert 0.9 < mu <= 1.0


def test_a_stream_keeps_its_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version may build others: a restored stream goes on with those that it began with."""
    common: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 80, "mechanism": "bank"}
    begun, calm = (et.Counter(**common, key=et.simulation(n)) for n in (7, 7))
    assert (begun.run([1] * 30) == calm.run([1] * 30)).all()
    snapshot = begun.snapshot()
    from evertally.counting import bank as module

    monkeypatch.setattr(module, "build_bank", lambda horizon: build_bank(horizon, 2))
    again = et.restore(snapshot, key=et.simulation(7))
    assert (again.run([1] * 50) == calm.run([1] * 50)).all()


def test_memory_that_is_not_one() -> None:
    kept = process()
    kept.advance(5)
    memory = kept.memory()
    for wrong in (b"", memory[:-1], memory[:40], b"x" + memory[1:], memory + b"x"):
        with pytest.raises(StateError):
            process().recall(5, wrong)
    with pytest.raises(StateError):
        process(301).recall(5, memory)
    with pytest.raises(StateError):
        Bank.from_bytes(b"short")


def test_refusals() -> None:
    with pytest.raises(HorizonExceeded):
        process(10).advance(11)
    with pytest.raises(ConfigurationError, match="Gaussian"):
        et.Counter(guarantee=et.PureDP(1.0), horizon=100, mechanism="bank")
    with pytest.raises(ConfigurationError, match="horizon"):
        et.Counter(guarantee=et.ZCDP(1.0), horizon=None, mechanism="bank")
    with pytest.raises(ConfigurationError, match="horizons up to"):
        et.Counter(guarantee=et.ZCDP(1.0), horizon=2**25, mechanism="bank")
    with pytest.raises(ConfigurationError, match="range of exact numbers"):
        BankProcess(ZCDP(1e-30), ONE, horizon=100, columns=1, source=ZeroNoise().source())


def test_segments_cover_the_horizon() -> None:
    for T in (1, 2, 31, 32, 365, 1000, 10**6):
        lengths = segments(T)
        assert lengths.sum() == T
        assert lengths.min() >= 1


def test_fractions_of_the_inverse() -> None:
    s, w = poles(1.9, 5000.0, 5)
    at_infinity, at_zero, t, rho = inverse_fractions(s, w)
    for x in (0.1, 3.0, 700.0):
        r = float((w / (x + s)).sum())
        assert 1 / (x * r) == pytest.approx(at_infinity + at_zero / x + float((rho / (x + t)).sum()), rel=1e-12)
    assert min(at_infinity, at_zero, *t, *rho) > 0


def test_compiled_and_interpreted_build_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = build_bank.__wrapped__(32, 3)
    monkeypatch.setattr(kernels, "compiled", lambda name: getattr(kernels, name))
    assert build_bank.__wrapped__(32, 3).digest == compiled.digest
    assert fits_lemma(compiled)


def test_coefficients_of_another_shape_are_refused() -> None:
    bank = build_bank(64)
    for shaped in (bank.a[None], bank.a.ravel(), bank.a[:, :, None]):
        with pytest.raises(StateError):
            certified(replace(bank, a=shaped))
