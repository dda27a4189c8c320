"""The fast path gives the exact draw or none: all words of a small size, and the hardest words of the real size."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from noise_reference import ExactMagnitude, gaussian_tails, laplace_tails

from evertally.noise import DiscreteGaussian, DiscreteLaplace, compiled, kernels
from evertally.noise.quantile import (
    CELLS,
    DEGREE,
    QuantilePolynomials,
    build_polynomials,
    gaussian_quantile,
    laplace_quantile,
    minus_log,
    normal_quantile,
    thresholds,
)
from evertally.noise.sampler import PolynomialSampler, ThresholdSampler, draw, sampler, settle

# -- every word of a small word size --------------------------------------------------------------------------------

SMALL, LARGER = 14, 20  # bits: interpreted code for the first, compiled for the second
LAPLACE = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(100)]
WIDE = [Fraction(512**2), Fraction(600**2), Fraction(10**6, 3) * 3 + Fraction(1, 3)]
NARROW = [Fraction(1, 100), Fraction(3, 10), Fraction(1), Fraction(7), Fraction(100), Fraction(511**2)]


@cache
def table(law_type: type, bits: int) -> QuantilePolynomials:
    return build_polynomials(minus_log if law_type is DiscreteLaplace else normal_quantile, bits, octaves=10)


@cache
def exact(law: DiscreteLaplace | DiscreteGaussian, bits: int) -> ExactMagnitude:
    if isinstance(law, DiscreteLaplace):
        return ExactMagnitude(laplace_tails(law.scale, bits), bits)
    return ExactMagnitude(gaussian_tails(law.sigma_squared, bits), bits)


def interpreted(law, table_, changes=None) -> np.ndarray:
    fast = PolynomialSampler(law)
    numbers = dict(zip(("scale", "shift", "curvature"), fast._numbers, strict=True)) | (changes or {})
    rows = table_.coefficients.tolist(), table_.radius.tolist()
    octaves = len(rows[1]) // CELLS
    answers = [kernels.magnitude(float(v), *rows, table_.bits, octaves, **numbers) for v in range(1 << table_.bits)]
    return np.array(answers)


def vectorised(law, table_) -> np.ndarray:
    fast = PolynomialSampler(law)
    words = np.zeros((1 << table_.bits, 2), dtype=np.uint64)
    words[:, 0] = np.arange(1 << table_.bits, dtype=np.uint64) << np.uint64(1)
    out = np.empty(1 << table_.bits, dtype=np.int64)
    octaves = table_.radius.size // CELLS
    numbers = (table_.bits, octaves, *fast._numbers)
    undecided = compiled.fill_by_polynomials(words, table_.coefficients, table_.radius, *numbers, out)
    assert undecided == (out == kernels.REDO).sum()
    return np.where(out == kernels.REDO, kernels.TOO_CLOSE, out)


def wrong_and_undecided(answers: np.ndarray, law, bits: int) -> tuple[int, int, int]:
    """How many answers are wrong; how many words give none; how many words cannot be decided by anybody."""
    left, right = exact(law, bits).ends(np.arange(1 << bits))
    decided = answers != kernels.TOO_CLOSE
    wrong = decided & ((answers != left) | (answers != right))
    return int(wrong.sum()), int((~decided).sum()), int((left != right).sum())


def check_every_word(answers: np.ndarray, law, bits: int) -> None:
    wrong, undecided, impossible = wrong_and_undecided(answers, law, bits)
    assert wrong == 0
    # The blur of one word to each side, an interval closed at both ends, and the words below the table.
    assert impossible <= undecided <= 4 * impossible + (1 << bits >> 10) + 64
    assert undecided < 0.9 * (1 << bits)


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_every_small_word_laplace(scale):
    law = DiscreteLaplace(scale)
    answers = interpreted(law, table(DiscreteLaplace, SMALL))
    check_every_word(answers, law, SMALL)
    assert (vectorised(law, table(DiscreteLaplace, SMALL)) == answers).all()


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_every_larger_word_laplace(scale):
    law = DiscreteLaplace(scale)
    check_every_word(vectorised(law, table(DiscreteLaplace, LARGER)), law, LARGER)


@pytest.mark.parametrize("sigma_squared", WIDE, ids=str)
def test_every_small_word_wide_gaussian(sigma_squared):
    law = DiscreteGaussian(sigma_squared)
    assert law.is_wide()
    answers = interpreted(law, table(DiscreteGaussian, SMALL))
    check_every_word(answers, law, SMALL)
    assert (vectorised(law, table(DiscreteGaussian, SMALL)) == answers).all()


@pytest.mark.parametrize("sigma_squared", WIDE, ids=str)
def test_every_larger_word_wide_gaussian(sigma_squared):
    law = DiscreteGaussian(sigma_squared)
    check_every_word(vectorised(law, table(DiscreteGaussian, LARGER)), law, LARGER)


@pytest.mark.parametrize("bits", [SMALL, LARGER])
@pytest.mark.parametrize("sigma_squared", NARROW, ids=str)
def test_every_word_against_thresholds(sigma_squared, bits):
    """A threshold table leaves exactly the undecidable words undecided, and v = 0."""
    law = DiscreteGaussian(sigma_squared)
    floors = thresholds(law, bits)
    known = exact(law, bits)
    assert floors.tolist() == known.floors[known.floors > 0].tolist()
    left, right = known.ends(np.arange(1 << bits))
    # The walk starts from a bound; without the guide table that is the number of thresholds.
    step = 1 if bits == SMALL and floors.size < 1000 else 97
    values = floors.tolist()
    for v in {*range(0, 1 << bits, step), *values[:200], *(f + 1 for f in values[:200])}:
        k = kernels.count_above(v, values, len(values))
        if k == kernels.TOO_CLOSE:
            assert v == 0 or left[v] != right[v]
        else:
            assert k == left[v] == right[v]


@pytest.mark.parametrize("bits", [SMALL, LARGER])
@pytest.mark.parametrize("sigma_squared", NARROW, ids=str)
def test_every_word_against_thresholds_compiled(sigma_squared, bits):
    law = DiscreteGaussian(sigma_squared)
    floors = thresholds(law, bits)
    words = np.zeros((1 << bits, 2), dtype=np.uint64)
    words[:, 0] = np.arange(1 << bits, dtype=np.uint64) << np.uint64(1)
    out = np.empty(1 << bits, dtype=np.int64)
    # A guide of four bits by the sampler's rule: how many thresholds are at or above the first word of a cell.
    guide = np.array([(floors >= (cell << (bits - 4))).sum() for cell in range(16)])
    compiled.fill_by_thresholds(words, floors, guide, bits - 4, out)
    left, right = exact(law, bits).ends(np.arange(1 << bits))
    undecided = out == kernels.REDO
    assert undecided[0]
    assert (undecided[1:] == (left != right)[1:]).all()
    assert (out[~undecided] == left[~undecided]).all()


# -- planted bugs: each of these checks can fail ----------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.0, 1e-4])
@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(512**2)], ids=["laplace", "gaussian"])
def test_a_table_with_too_small_a_radius_is_caught(law, factor):
    good = table(type(law), SMALL)
    bad = dataclasses.replace(good, radius=good.radius * factor)
    assert wrong_and_undecided(interpreted(law, good), law, SMALL)[0] == 0
    assert wrong_and_undecided(interpreted(law, bad), law, SMALL)[0] > 0


def test_a_wrong_shift_is_caught():
    """1/2 is the shift of the rounded continuous law, not of the discrete one."""
    law = DiscreteLaplace(10)
    answers = interpreted(law, table(DiscreteLaplace, SMALL), {"shift": 0.5})
    assert wrong_and_undecided(answers, law, SMALL)[0] > 0


def test_a_wrong_coefficient_is_caught():
    law = DiscreteLaplace(10)
    good = table(DiscreteLaplace, SMALL)
    coefficients = good.coefficients.copy()
    coefficients[:, 1] *= 1.1
    answers = interpreted(law, dataclasses.replace(good, coefficients=coefficients))
    assert wrong_and_undecided(answers, law, SMALL)[0] > 0


# -- the real word size: hard words ------------------------------------------------------------------------------------

FAST = [
    *[DiscreteLaplace(s) for s in (Fraction(1, 10), Fraction(7, 3), 10, 1000, 10**6, 2**40)],
    *[DiscreteGaussian(s) for s in (512**2, Fraction(10**8, 3), 10**12, 2**80)],
]
EXTREME = [0, 1, 2, 3, 2**23, 2**24 - 1, 2**24, 2**25, 2**40 + 1, 2**53 + 1, 2**63, 2**64 - 2**11, 2**64 - 2, 2**64 - 1]


def magnitudes_near(law, count: int) -> list[int]:
    """Magnitudes from the centre to far out in the tail, some of each."""
    spread = float(law.scale) if isinstance(law, DiscreteLaplace) else float(law.sigma_squared) ** 0.5
    reach = 25 * spread if isinstance(law, DiscreteLaplace) else 6.9 * spread
    ks = {1, 2, 3, *np.geomspace(1, max(reach, 2), count).astype(np.int64).tolist()}
    return sorted(k for k in ks if k <= max(reach, 1))


def planted_words(law, count: int) -> list[int]:
    """Words around 2^63 S(k), at distances from nothing to well outside the tolerance."""
    words = []
    with ctx.workprec(200):
        for k in magnitudes_near(law, count):
            v = int((law.tail(k) * 2**63).floor().unique_fmpz())
            offsets = [0, 1, 2, 3, *[2**e for e in range(4, 50, 3)]]
            for offset in {*offsets, *(-o for o in offsets)}:
                if 0 <= v + offset < 2**63:
                    words.append(2 * (v + offset) + (k & 1))
    return words


def both_ends(law, word: int) -> tuple[int, int]:
    """The slow path's draw for the smallest and for the largest V that begin with the word."""
    ones = 2**64 - 1
    return settle(law, (word, 0), lambda r: (0, 0)), settle(law, (word, ones), lambda r: (ones, ones))


@pytest.mark.parametrize("law", FAST, ids=str)
def test_planted_words(law):
    """Next to a threshold the fast path is silent or right; a little away from it, it speaks."""
    fast = sampler(law)
    spoken = silent = 0
    for word in planted_words(law, 12):
        answer = fast.one(word)
        if answer is None:
            silent += 1
        else:
            spoken += 1
            assert (answer, answer) == both_ends(law, word), word
    assert silent > 10
    assert spoken > 10


def wrong_among_planted(law, scale=None, curvature=None, radius=1.0) -> int:
    fast = PolynomialSampler(law)
    made, shift, bound = fast._numbers
    fast._numbers = made if scale is None else scale, shift, bound if curvature is None else curvature
    fast._radius = [r * radius for r in fast._radius]
    wrong = 0
    for word in planted_words(law, 12):
        answer = fast.one(word)
        wrong += answer is not None and (answer, answer) != both_ends(law, word)
    return wrong


def test_planted_words_catch_bugs_too_small_for_small_words(monkeypatch):
    """Rounding errors, the second Euler-Maclaurin term and the remainder are all seen at 63 bits."""
    wide = DiscreteGaussian(512**2)
    assert wrong_among_planted(wide) == 0
    assert wrong_among_planted(wide, curvature=0.0) > 0
    assert wrong_among_planted(wide, scale=512.0) > 0
    monkeypatch.setattr(kernels, "_SLACK", 0.0)
    assert wrong_among_planted(DiscreteLaplace(10**6), radius=0.0) > 0


@pytest.mark.parametrize("law", FAST, ids=str)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(word=st.integers(0, 2**64 - 1), second=st.integers(0, 2**64 - 1))
def test_fast_and_slow_agree_on_any_word(law, word, second):
    answer = sampler(law).one(word)
    if answer is not None:
        assert answer == settle(law, (word, second), lambda r: (0, 0))


@pytest.mark.parametrize("law", FAST, ids=str)
def test_fast_and_slow_agree_on_many_words(law):
    rng = np.random.default_rng(5)
    fast = sampler(law)
    silent = 0
    for word, second in rng.integers(0, 2**64, (400, 2), dtype=np.uint64).tolist():
        word >>= int(rng.integers(0, 30)) if second & 1 else 0  # half of them far out in the tail
        answer = fast.one(word)
        if answer is None:
            silent += 1
        else:
            assert answer == settle(law, (word, second), lambda r: (0, 0))
    assert silent < 200


@pytest.mark.parametrize("sigma_squared", NARROW, ids=str)
def test_narrow_gaussians_on_planted_and_random_words(sigma_squared):
    law = DiscreteGaussian(sigma_squared)
    fast = sampler(law)
    assert isinstance(fast, ThresholdSampler)
    floors = exact(law, 63).floors
    near = [f + o for f in floors.tolist()[::7] for o in (-1, 0, 1)]
    random = np.random.default_rng(6).integers(0, 2**63 - 1, 4000).tolist()
    words = np.array([v for v in (*near, *random, 0, 1, 2**63 - 2) if v >= 0], dtype=np.int64)
    left, right = exact(law, 63).ends(words)
    for v, a, b in zip(words.tolist(), left.tolist(), right.tolist(), strict=True):
        undecidable = v == 0 or a != b
        assert fast.one(2 * v) == (None if undecidable else a)
        assert fast.one(2 * v + 1) == (None if undecidable else -a)


@pytest.mark.parametrize("law", [*FAST, *[DiscreteGaussian(s) for s in NARROW[:-1]]], ids=str)
def test_vectors_and_single_draws_are_the_same(law):
    """Compiled against interpreted, bit for bit, with planted and extreme words among random ones."""
    rng = np.random.default_rng(7)
    hard = planted_words(law, 6)[::3] if not isinstance(sampler(law), ThresholdSampler) else []
    plain = rng.integers(0, 2**64, 300, dtype=np.uint64).tolist()
    words = np.array([(w, int(s)) for w in (*EXTREME, *hard, *plain) for s in (0, 12345, 2**64 - 1)], dtype=np.uint64)

    def more(i: int, round_: int) -> tuple[int, int]:
        return (7 * i + round_, 0)

    together = draw(law, words, more)
    one_by_one = [int(draw(law, words[i : i + 1], lambda _, r, i=i: more(i, r))[0]) for i in range(len(words))]
    assert together.tolist() == one_by_one


@pytest.mark.parametrize(
    "law",
    [
        DiscreteLaplace(10),
        DiscreteLaplace(2**40),
        DiscreteGaussian(7),
        DiscreteGaussian(512**2),
        DiscreteGaussian(2**80),
    ],
    ids=str,
)
def test_a_tie_is_decided_by_more_bits_of_the_same_address(law):
    """All 127 bits of round 0 equal those of S(k): zeros in round 1 are below S(k), ones above it."""
    k = 5
    with ctx.workprec(300):
        leading = int((law.tail(k) * 2**127).floor().unique_fmpz())
    word, second = (leading >> 64) << 1, leading & (2**64 - 1)
    asked = []

    def more(bits):
        def words(round_):
            asked.append(round_)
            return bits, bits

        return words

    assert settle(law, (word, second), more(0)) == k
    assert settle(law, (word, second), more(2**64 - 1)) == k - 1
    assert settle(law, (word | 1, second), more(0)) == -k
    assert asked == [1, 1, 1]
    assert sampler(law).one(word) is None


def test_kernel_constants_match_the_table():
    assert (kernels.CELLS, kernels.DEGREE) == (CELLS, DEGREE)
    for quantile in (laplace_quantile(), gaussian_quantile()):
        assert quantile.bits == 63
        assert quantile.coefficients.shape == (40 * CELLS, DEGREE + 1)
        assert (quantile.radius > 0).all()
        # Nine tenths of all words fall into the first three octaves: there the tolerance is a few roundings.
        assert quantile.radius[: 3 * CELLS].max() < 5e-15


def test_compiled_code_is_tied_to_the_file_of_the_kernels():
    """numba's cache notices changes of that file only; elsewhere, machine code of an old kernel would live on."""
    for function in (compiled.fill_by_polynomials, compiled.fill_by_thresholds):
        assert function.py_func.__code__.co_filename == kernels.__file__


def test_few_draws_need_the_slow_path():
    """The share of draws that the word does not decide: none in 200000 up to scale 1e6, below 1 % at the largest."""
    words = np.random.default_rng(8).integers(0, 2**64, (200_000, 2), dtype=np.uint64)
    out = np.empty(200_000, dtype=np.int64)
    for law in (DiscreteLaplace(10), DiscreteLaplace(1000), DiscreteGaussian(100), DiscreteGaussian(10**6)):
        assert sampler(law).many(words, out) == 0
    for law in (DiscreteLaplace(10**6), DiscreteGaussian(10**12)):
        assert sampler(law).many(words, out) <= 5
    for law in (DiscreteLaplace(2**40), DiscreteGaussian(2**80)):
        assert sampler(law).many(words, out) < 2000
