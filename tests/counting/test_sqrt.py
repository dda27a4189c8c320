"""The square-root process: the integer factor, its certified inverse, the bounded transform, correct rounding."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from counting_reference import GRID, Planted, integer_factor, inverse_factor, sqrt_noise
from flint import arb, ctx, fmpz_poly
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally.counting.sqrt as sqrt_module
import evertally.counting.sqrt_factor as sqrt_factor_module
from evertally.counting import fourier_kernels
from evertally.counting.fourier import Spectrum, convolve, error_factor, norm, twiddles
from evertally.counting.process import round_half_up
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.sqrt_factor import GRID_BITS, coefficients, exact_rounding, sqrt_factor
from evertally.noise import simulation
from evertally.privacy import ZCDP, Change

ONE = Change(1, 1, 1)


def process(T: int, rows: dict | None = None, *, columns: int = 1, seed: int = 0, change: Change = ONE) -> SqrtProcess:
    source = Planted(rows) if rows is not None else simulation(seed).source("sqrt test")
    return SqrtProcess(ZCDP(0.5), change, horizon=T, columns=columns, source=source)


# -- the factor --------------------------------------------------------------------------------------------------------


def test_left_times_right_is_the_prefix_sum() -> None:
    T = 40
    r, inverse = integer_factor(T), inverse_factor(T)
    for i in range(T):
        for j in range(T):
            entry = sum((inverse[i - k] * r[k - j] for k in range(j, i + 1)), Fraction(0))
            assert entry == int(j <= i)
    for k in range(T):
        assert (inverse[k] * GRID ** (k + 1)).denominator == 1  # estimates are multiples of 2^(-q t)


@pytest.mark.parametrize("T", [1, 2, 3, 10, 257, 4096])
def test_factor_is_correctly_rounded_and_its_norm_exact(T: int) -> None:
    factor = sqrt_factor(T)
    assert factor.r.tolist() == list(integer_factor(T))
    assert factor.column_norm_squared == sum(r * r for r in integer_factor(T))
    f, S = 1.0, 1.0
    for k in range(1, T):
        f *= (2 * k - 1) / (2 * k)
        S += f * f
    # Rounding moves N a little to either side (noise is made for N itself, whatever it is) ...
    assert S * (1 - 1e-5) <= factor.column_norm_squared / 2**32 <= S * (1 + 1e-5)
    # ... but what counts, the product of both norms, loses next to nothing (factorization-counting 11, step 2).
    product = math.sqrt(factor.column_norm_squared * float(np.sum(factor.inverse**2)) / 2**32)
    assert S * (1 - 1e-12) <= product <= S * (1 + 1e-6)


@pytest.mark.parametrize("T", [2**16, 2**20])
def test_factor_keeps_its_shape_for_long_horizons(T: int) -> None:
    """Non-negative and non-increasing (the sensitivity lemma needs it); the norm near ln(T)/pi + 1.0663."""
    r = coefficients(T)
    assert r[-1] > 0
    assert np.all(np.diff(r) <= 0)
    S = math.log(T) / math.pi + (0.5772156649015329 + 4 * math.log(2)) / math.pi
    assert S * (1 - 1e-5) < float(np.sum(r.astype(float) ** 2)) / 2**32 < S * (1 + 1e-5)
    assert np.array_equal(coefficients(1000), r[:1000]), "a shorter horizon must give the beginning of a longer one"


def many_digits(c: list[int]) -> list[Fraction]:
    """2^16 times the series of 1/c(z), to 70 digits: Newton's iteration in fixed point, checked by its residual."""
    bits = 256
    C, g, size = fmpz_poly(c), fmpz_poly([(1 << bits) // c[0]]), 1
    while size < len(c):
        size = min(2 * size, len(c))
        rest = fmpz_poly([-int(v) for v in (C * g).coeffs()[:size]]) + (1 << bits)
        g += fmpz_poly([int(v) >> bits for v in (g * rest).coeffs()[:size]])
    residual = ((C * g) - (1 << bits)).coeffs()[: len(c)]
    assert sum(abs(int(v)) for v in residual) < 1 << 60  # relative to 2^256: the error is below 1e-55
    return [Fraction(int(v), 1 << (bits - GRID_BITS)) for v in g.coeffs()]


@pytest.mark.parametrize("T", [1, 2, 3, 5, 17, 64, 100, 257, 1000, 1024, 4095, 4096, 2**15])
def test_certified_inverse_against_many_digits(T: int) -> None:
    factor = sqrt_factor(T)
    truth = many_digits(np.diff(factor.r, prepend=0).tolist())
    square = sum((Fraction(float(x)) - y) ** 2 for x, y in zip(factor.inverse, truth, strict=True))
    assert square <= Fraction(factor.inverse_error) ** 2
    assert factor.inverse_error < 1e-12
    assert factor.inverse.min() > 0


# -- the transform -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
def test_twiddles_are_within_their_bound(n: int) -> None:
    re, im = twiddles(n)
    top = 2 ** (n - 1)
    with ctx.workprec(120):
        for h in (2**i for i in range(n)):
            for k in {0, h // 2, h - 1, *(random.Random(h).randrange(h) for _ in range(20))}:
                sine, cosine = (arb(k) / h).sin_pi(), (arb(k) / h).cos_pi()
                off = (cosine - arb(float(re[h + k]))) ** 2 + (sine + arb(float(im[h + k]))) ** 2
                assert off.sqrt() <= 5 * arb(2) ** -53
    assert re.size == 2 * top


@pytest.mark.parametrize("size", [1, 2, 3, 31, 100, 1000, 4096])
@pytest.mark.parametrize("kind", ["random", "ones", "alternating", "spike", "decay"])
def test_convolution_error_is_within_its_bound(size: int, kind: str) -> None:
    """Against integer polynomial products: floats with 30 bits of integer have exact products."""
    rng = np.random.default_rng(size)
    big = 2**30
    x = {
        "random": rng.integers(-big, big, size),
        "ones": np.full(size, big - 1),
        "alternating": (big - 1) * (1 - 2 * (np.arange(size) % 2)),
        "spike": big * (np.arange(size) == size - 1),
        "decay": (big / (1 + np.arange(size)) ** 0.5).astype(np.int64),
    }[kind]
    y = rng.integers(-big, big, size)
    z = rng.integers(-big, big, size)
    values, radius = convolve(x.astype(float), y.astype(float), 0, 2 * size - 1)
    px, py, pz = (fmpz_poly([int(v) for v in vector]) for vector in (x, y, z))
    exact, third = px * py, px * pz
    assert worst_error(values, exact) <= radius
    # two in one transform
    n = max(1, (2 * size - 2).bit_length())
    first, second = Spectrum(x.astype(float), n).times(y.astype(float), z.astype(float))
    radius = error_factor(n) * norm(x.astype(float)) * norm(np.concatenate([y, z]).astype(float))
    assert worst_error(first[: 2 * size - 1], exact) <= radius
    assert worst_error(second[: 2 * size - 1], third) <= radius


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 14, 15, 16, 17])
def test_two_passes_at_once_are_one_after_the_other_bit_for_bit(n: int) -> None:
    """The bound is that of the textbook transform, pass by pass; what is faster may not differ from it in one bit."""
    rng = np.random.default_rng(n)
    table_re, table_im = twiddles(n)
    given = rng.normal(size=1 << n), rng.normal(size=1 << n)
    re, im = (part.copy() for part in given)
    fourier_kernels.forward(re, im, table_re, table_im)
    x, y = (part.copy() for part in given)
    for h in (2**i for i in reversed(range(n))):
        a, b = x.reshape(-1, 2, h), y.reshape(-1, 2, h)
        w, v = table_re[h : 2 * h], table_im[h : 2 * h]
        xr, xi = a[:, 0] - a[:, 1], b[:, 0] - b[:, 1]
        a[:, 0] += a[:, 1]
        b[:, 0] += b[:, 1]
        a[:, 1], b[:, 1] = xr * w - xi * v, xr * v + xi * w
    assert np.array_equal(re, x)
    assert np.array_equal(im, y)
    fourier_kernels.backward(re, im, table_re, table_im)
    for h in (2**i for i in range(n)):
        a, b = x.reshape(-1, 2, h), y.reshape(-1, 2, h)
        w, v = table_re[h : 2 * h], table_im[h : 2 * h]
        xr, xi = a[:, 1] * w + b[:, 1] * v, b[:, 1] * w - a[:, 1] * v
        a[:, 1], b[:, 1] = a[:, 0] - xr, b[:, 0] - xi
        a[:, 0] += xr
        b[:, 0] += xi
    assert np.array_equal(re, x / 2**n)
    assert np.array_equal(im, y / 2**n)


def worst_error(values: np.ndarray, exact: fmpz_poly) -> Fraction:
    return max(abs(Fraction(float(value)) - int(exact[i])) for i, value in enumerate(values))


def test_error_factor_is_not_below_the_theorem() -> None:
    with ctx.workprec(200):
        u, beta = arb(2) ** -53, 5 * arb(2) ** -53
        for n in range(1, 25):
            root5 = 1 + arb(5).sqrt() * u
            theorem = ((1 + u) * root5 * (1 + beta)) ** (3 * n) * root5 - 1
            assert theorem <= arb(error_factor(n))


@given(st.lists(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-100), min_size=1, max_size=50))
@settings(deadline=None, derandomize=True)
def test_norm_is_rounded_up(x: list[float]) -> None:
    with ctx.workprec(300):
        exact = sum((arb(v) ** 2 for v in x), arb(0)).sqrt()
        assert not exact > arb(norm(np.array(x)))


# -- correct rounding --------------------------------------------------------------------------------------------------


@given(st.integers(-(2**40), 2**40), st.integers(-(2**20), 2**20), st.sampled_from([0.0, 1e-12, 1e-6, 0.25, 3.0]))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_round_half_up_decides_only_what_it_may(whole: int, fine: int, radius: float) -> None:
    centre = np.array([whole / 2 + fine * 2.0**-30])
    rounded, undecided = round_half_up(centre, radius)
    low = (Fraction(float(centre[0])) - Fraction(radius) + Fraction(1, 2)).__floor__()
    high = (Fraction(float(centre[0])) + Fraction(radius) + Fraction(1, 2)).__floor__()
    if not undecided[0]:
        assert low == high == rounded[0]


def planted(z: list[int]) -> dict:
    return {("sqrt", t): np.array([value], dtype=object) for t, value in enumerate(z, start=1)}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(1, 60), st.integers(0, 2**32), st.sampled_from([1, 2**10, 2**17, 2**25, 2**40]))
def test_advance_is_the_fraction_rounded_half_up(T: int, seed: int, scale: int) -> None:
    rng = random.Random(seed)
    z = [rng.randint(-scale, scale) for _ in range(T)]
    expected = [sqrt_noise(z[:t]) for t in range(1, T + 1)]
    assert process(T, planted(z)).advance(T)[:, 0].tolist() == expected


def nearly_tied(t: int, rng: random.Random) -> tuple[list[int], Fraction]:
    """Noise with e_t as close to k + 1/2 as a continued fraction of l_{t-1}/l_0 allows, but not on it."""
    inverse = inverse_factor(64)
    alpha = inverse[t - 1] * GRID  # e_t = 2^-16 (alpha Z_1 + Z_t)
    large = alpha.limit_denominator(rng.choice([2**10, 2**20, 2**35])).denominator * rng.choice([-1, 1])
    last = round(Fraction(GRID, 2) - alpha * large)
    z = [large] + [0] * (t - 2) + [last]
    e = (alpha * large + last) / GRID
    return z, abs(e - Fraction(1, 2))


@pytest.mark.parametrize("t", [10, 11, 13, 20, 33, 47, 60])
def test_near_ties_are_decided_correctly(t: int) -> None:
    rng = random.Random(t)
    gaps = []
    for _ in range(6):
        z, gap = nearly_tied(t, rng)
        gaps.append(gap)
        assert process(t, planted(z)).advance(t)[-1, 0] == sqrt_noise(z) == exact_rounding(np.array(z))
    assert min(gaps) < Fraction(1, 2**45), "these were meant to be too close for floats"
    if t > 10:
        assert max(gaps) > 0


@pytest.mark.parametrize("t", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("k", [-4, -1, 0, 2])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_exact_rounding_on_ties_and_beside_them(t: int, k: int, off: int) -> None:
    z = np.zeros(t, dtype=np.int64)
    z[-1] = k * GRID + GRID // 2 + off
    assert exact_rounding(z) == k + (0 if off < 0 else 1) == sqrt_noise(z.tolist())
    if t > 1:
        # a tie broken by the smallest possible amount, l_{t-1}
        for sign in (-1, 1):
            z[0] = sign
            assert exact_rounding(z) == sqrt_noise(z.tolist())


def test_exact_rounding_meets_a_tie_that_no_ball_excludes() -> None:
    """A tie of two huge terms: no ball of few bits excludes 1/2, the multiple of 2^(-16 t) decides in the end."""
    t = 12
    scaled = [value * GRID ** (k + 1) for k, value in enumerate(inverse_factor(64))]
    assert all(value.denominator == 1 for value in scaled)
    z = [0] * t
    z[0] = GRID ** (t - 1)  # l_{t-1} Z_1 is a multiple of 2^-16, to be filled up to a half by Z_t
    e = inverse_factor(64)[t - 1] * z[0]
    z[-1] = int((Fraction(1, 2) - (e - e.__floor__())) * GRID)
    total = inverse_factor(64)[t - 1] * z[0] + Fraction(z[-1], GRID)
    assert total - total.__floor__() == Fraction(1, 2)
    assert exact_rounding(np.array(z, dtype=object)) == total.__floor__() + 1


def test_a_tie_in_a_ball_that_never_gets_sharp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balls around short dyadic numbers happen to be exact. Where they are not, the boundary is never excluded, and the
    grid of multiples of 2^(-16 t) must decide: half up, and without an endless loop."""

    def blurred(value: int) -> arb:
        return arb(0, 1e-200) if value == 0 else arb(value)

    monkeypatch.setattr(sqrt_factor_module, "arb", blurred)
    for t in (1, 2, 10, 30):
        for k in (-3, 0, 5):
            for off in (-1, 0, 1):
                z = np.zeros(t, dtype=np.int64)
                z[-1] = k * GRID + GRID // 2 + off
                assert exact_rounding(z) == k + (0 if off < 0 else 1)


def test_forcing_the_fallback_everywhere_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = process(150, columns=3).advance(150)
    calls = []

    def never_sure(centre: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
        calls.append(len(centre))
        return np.zeros(centre.shape, dtype=np.int64), np.ones(centre.shape, dtype=bool)

    monkeypatch.setattr(sqrt_module, "round_half_up", never_sure)
    assert np.array_equal(process(150, columns=3).advance(150), expected)
    assert sum(calls) >= 450


@pytest.mark.parametrize("T", [1, 2, 63, 64, 65, 127, 128, 129, 1000])
def test_blocks_that_double_give_what_one_block_gives(T: int) -> None:
    whole = process(T, columns=3).advance(T)
    single = process(T, columns=3)
    assert np.array_equal(np.concatenate([single.advance(1) for _ in range(T)]), whole)
    rng = random.Random(T)
    for _ in range(5):
        mover = process(T, columns=3)
        mover.seek(rng.randrange(T))
        while mover.tick < T:
            at, count = mover.tick, rng.randint(1, T - mover.tick)
            assert np.array_equal(mover.advance(count), whole[at : at + count])


def test_columns_do_not_depend_on_their_number() -> None:
    """Two columns share a transform; which two must not matter."""
    alone = [process(100, columns=c).advance(100) for c in (1, 2, 3, 6)]
    for some in alone:
        assert np.array_equal(some, alone[-1][:, : some.shape[1]])


def test_long_path_against_many_digits() -> None:
    T = 3000
    rng = np.random.default_rng(0)
    z = np.rint(rng.normal(0, 2**18, T)).astype(np.int64)
    path = process(T, planted(z.tolist())).advance(T)[:, 0]
    inverse = many_digits(np.diff(coefficients(T), prepend=0).tolist())
    for t in [1, 2, 64, 65, 1000, 2047, 2048, 2999, 3000]:
        e = sum(inverse[t - 1 - i] * int(z[i]) for i in range(t)) / GRID
        assert (e + Fraction(1, 2)).__floor__() == path[t - 1]


# -- the error formula -------------------------------------------------------------------------------------------------


def test_spread_is_the_sum_of_squared_weights() -> None:
    T = 40
    p = process(T)
    inverse = inverse_factor(64)
    sigma_squared = float(p.law.sigma_squared)
    for t in range(1, T + 1):
        weights = sum(float(inverse[k]) ** 2 for k in range(t))
        assert p.spread(t).variance == pytest.approx(sigma_squared * weights, rel=1e-9)
        for window in range(1, t + 1):
            moved = [float(inverse[k] - (inverse[k - window] if k >= window else 0)) for k in range(t)]
            assert p.window_spread(t, window).variance == pytest.approx(
                sigma_squared * sum(w * w for w in moved), rel=1e-9
            )
    assert p.worst() == p.spread(T)
    assert max(p.spread(t).variance for t in range(1, T + 1)) == p.worst().variance


@pytest.mark.parametrize(("T", "factor"), [(2**8, 2.831050), (2**10, 3.272554), (2**12, 3.713884), (2**16, 4.596444)])
def test_worst_deviation_is_that_of_the_specification(T: int, factor: float) -> None:
    """factorization-counting 4: max std S_T in units of 1/sqrt(2 rho)."""
    assert math.sqrt(process(T).worst().variance) == pytest.approx(factor, rel=3e-6)
    assert GRID_BITS == 16


@pytest.mark.parametrize("horizon", [50, 3000])
def test_the_smoothed_path_and_what_smoothing_is_worth(horizon: int) -> None:
    """Gaussian noise of standard deviation 2 on every draw: the variance of the path grows by that of its sums, which
    are farther out than `smoothing` with probability below 1e-14 (eight standard deviations)."""
    process = SqrtProcess(ZCDP(0.5), Change(1, 1, 1), horizon=horizon, columns=1, source=simulation(1).source("s"))
    energy = float(np.sum(sqrt_factor(horizon).inverse ** 2)) / 4.0**GRID_BITS
    smoothed = float(process.path().largest[-1])
    assert smoothed / energy == pytest.approx(float(process.law.sigma_squared) + 4, rel=1e-12)
    tail = math.erfc(process.smoothing() / math.sqrt(2 * 4 * energy)) / 2
    assert 1e-20 < tail < 1e-14
