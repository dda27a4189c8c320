"""Honaker's refinement: floats with their bound against fractions, the fallback, variances."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from counting_reference import Planted, honaker_prefix
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally.counting.honaker as honaker_module
from evertally.contract import restore
from evertally.counting.honaker import HonakerProcess, weight
from evertally.noise import Recording, simulation
from evertally.privacy import ZCDP, Change, PureDP
from evertally.statistics import VectorCounter

ONE = Change(1, 1, 1)


def process(T: int, rows: dict | None = None, *, columns: int = 1, pure: bool = False) -> HonakerProcess:
    source = Planted(rows) if rows is not None else simulation(3).source("honaker test")
    return HonakerProcess(PureDP(1) if pure else ZCDP(0.5), ONE, horizon=T, columns=columns, source=source)


def planted(T: int, scale: int, rng: random.Random) -> dict:
    return {
        (f"honaker-{h}", i): np.array([rng.randint(-scale, scale)], dtype=object)
        for h in range(T.bit_length())
        for i in range(1, (T >> h) + 1)
    }


def exact(rows: dict, t: int) -> int:
    e = honaker_prefix(t, lambda h, i: int(rows[f"honaker-{h}", i][0]))
    assert e.denominator % 2 == 1, "an odd denominator: no ties"
    return (e + Fraction(1, 2)).__floor__()


@pytest.mark.parametrize("scale", [1, 10, 10**4, 2**30, 2**42])
def test_every_tick_is_the_fraction_rounded(scale: int) -> None:
    T = 64
    rows = planted(T, scale, random.Random(scale))
    assert process(T, rows).advance(T)[:, 0].tolist() == [exact(rows, t) for t in range(1, T + 1)]


@settings(deadline=None, max_examples=15, derandomize=True)
@given(st.integers(65, 1500), st.integers(0, 2**32), st.sampled_from([3, 1000, 2**36]))
def test_random_long_horizons(T: int, seed: int, scale: int) -> None:
    rng = random.Random(seed)
    rows = planted(T, scale, rng)
    path = process(T, rows).advance(T)[:, 0]
    for t in {T, T // 2, T.bit_length(), 1 << (T.bit_length() - 1), *(rng.randint(1, T) for _ in range(6))}:
        assert path[t - 1] == exact(rows, t)


def test_forcing_the_fallback_everywhere_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = process(130, columns=2).advance(130)

    def never_sure(centre: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(centre.shape, dtype=np.int64), np.ones(centre.shape, dtype=bool)

    monkeypatch.setattr(honaker_module, "round_half_up", never_sure)
    assert np.array_equal(process(130, columns=2).advance(130), expected)


def test_claimed_float_errors_are_not_below_the_true_ones() -> None:
    """The value and its bound, as kept for every height, against fractions."""
    T = 256
    rows = planted(T, 2**40, random.Random(1))
    p = process(T, rows)
    widest = Fraction(0)
    for t in range(1, T + 1):
        p.advance(1)
        h = (t & -t).bit_length() - 1
        truth = honaker_prefix(t, lambda h, i: int(rows[f"honaker-{h}", i][0]))
        error = abs(Fraction(float(p._prefix[0, h, 0])) - truth)
        assert error <= Fraction(float(p._prefix[1, h, 0])) + Fraction(1, 2**50)
        widest = max(widest, error)
    assert widest > 0


@pytest.mark.parametrize("start", [0, 1, 37, 64, 99])
def test_seek_and_portions(start: int) -> None:
    T = 200
    whole = process(T, columns=3).advance(T)
    mover = process(T, columns=3)
    mover.seek(start)
    rng = random.Random(start)
    while mover.tick < T:
        at, count = mover.tick, rng.randint(1, T - mover.tick)
        assert np.array_equal(mover.advance(count), whole[at : at + count])


def test_seek_needs_no_more_memory_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million columns must not be multiplied by 65536 ticks on the way to a tick."""
    monkeypatch.setattr(honaker_module, "_PIECE", 64)
    p = process(100, columns=16)
    expected = p.advance(90)[-1]
    sizes = []
    original = HonakerProcess._piece

    def measured(self: HonakerProcess, count: int, settle: bool = True) -> np.ndarray:
        sizes.append(count * self.columns)
        return original(self, count, settle)

    monkeypatch.setattr(HonakerProcess, "_piece", measured)
    p.seek(89)
    assert max(sizes) <= 64
    assert np.array_equal(p.advance(1)[0], expected)


# -- the error formula -------------------------------------------------------------------------------------------------


def weights_at(t: int, T: int) -> list[Fraction]:
    """The weight of every node's noise in e_t, by planting a one in each."""
    found = []
    for h in range(T.bit_length()):
        for i in range(1, (T >> h) + 1):
            w = honaker_prefix(t, lambda a, b, h=h, i=i: int((a, b) == (h, i)))
            if w:
                found.append(w)
    return found


def test_variance_is_the_sum_of_squared_weights() -> None:
    T = 40
    p = process(T, pure=True)
    for t in range(1, T + 1):
        weights = weights_at(t, T)
        assert all(w > 0 for w in weights), "window_bound needs weights that are not negative"
        square_sum = sum(w * w for w in weights)
        assert square_sum == sum(Fraction(2**h, 2 ** (h + 1) - 1) for h in range(6) if t >> h & 1)
        spread = p.spread(t)
        assert spread.variance == pytest.approx(float(square_sum) * p.law.stddev() ** 2, rel=1e-12)
        assert spread.proxy == pytest.approx(float(square_sum) * float(p.law.scale) ** 2, rel=1e-12)
        assert spread.peak == pytest.approx(float(max(weights)) * float(p.law.scale), rel=1e-12)


@pytest.mark.parametrize("T", [1, 2, 3, 4, 7, 8, 12, 100, 127, 128, 129, 700, 1023, 1024])
def test_worst_by_brute_force(T: int) -> None:
    p = process(T)
    assert p.worst().variance == max(p.spread(t).variance for t in range(1, T + 1))
    assert p.worst().radius(0.01) >= max(p.spread(t).radius(0.01) for t in range(1, T + 1))


def test_window_spread_is_that_of_the_true_weights() -> None:
    T = 24
    p = process(T)
    nodes = [(h, i) for h in range(5) for i in range(1, (T >> h) + 1)]
    path = {
        t: [honaker_prefix(t, lambda a, b, n=n: int((a, b) == n)) for n in nodes] if t else [Fraction(0)] * len(nodes)
        for t in range(T + 1)
    }
    for t in range(1, T + 1):
        for window in range(1, t + 1):
            weights = [a - b for a, b in zip(path[t], path[t - window], strict=True)]
            spread = p.window_spread(t, window)
            assert spread.proxy == pytest.approx(float(sum(w * w for w in weights) * p.law.sigma_squared), rel=1e-12)
            assert spread.peak**2 == pytest.approx(float(max(map(abs, weights)) ** 2 * p.law.sigma_squared), rel=1e-12)


def test_deviation_of_the_specification() -> None:
    """factorization-counting 8.4: 12.233 at T = 2^16, in units of sigma_1. It is reached at 2^16 - 1."""
    p = process(2**16)
    assert np.sqrt(p.worst().variance) == pytest.approx(12.233, abs=6e-4)
    assert [round(weight(h), 4) for h in range(4)] == [1.0, 0.6667, 0.5714, 0.5333]


def test_memory_leads_to_the_same_noise_as_the_long_way() -> None:
    def fresh() -> HonakerProcess:
        return HonakerProcess(ZCDP(0.5), Change(1, 1, 1), horizon=300, columns=3, source=simulation(4).source("memory"))

    whole = fresh().advance(300)
    for tick in range(300):
        walked = fresh()
        walked.seek(tick)
        jumped = fresh()
        jumped.recall(tick, walked.memory())
        assert jumped.tick == tick
        assert np.array_equal(jumped.advance(300 - tick), whole[tick:])


def test_a_snapshot_comes_back_without_drawing_the_past_again() -> None:
    key = Recording(simulation(5))
    counter = VectorCounter(columns=2, guarantee=PureDP(1.0), horizon=4096, mechanism="honaker", key=key)
    counter.run(np.zeros((1000, 2), dtype=np.int64))
    drawn = len(key.draws)
    again = restore(counter.snapshot(), key=key)
    assert len(key.draws) == drawn
    row = np.ones(2, dtype=np.int64)
    assert np.array_equal(again.step(row).value, counter.step(row).value)
