"""Lower bounds and the tables of optimal factors."""

from __future__ import annotations

import math

import pytest
from benchmarks.formulas import SqrtFormula
from mpmath import mp

from evertally.bounds.square_root import S
from evertally.errors import ConfigurationError
from evertally.theory.dual_floor import dual_lower
from evertally.theory.frontier import (
    gamma_bounds,
    gaussian_frontier,
    lb,
    mathias_lower,
    mathias_upper,
    matousek_nikolov_talwar,
    optimal_factor,
    optimal_rms_factor,
    unbounded_frontier,
)

TABLED = sorted(gamma_bounds())


def test_mathias_beyond_the_sum():
    # The expansion takes over at 2^12; both sides of it against high precision.
    for T in (4095, 4096, 4097, 5001):
        with mp.workdps(30):
            ghat = mp.fsum(mp.csc((2 * j - 1) * mp.pi / (2 * T)) for j in range(1, T + 1)) / T
            assert mathias_upper(T) == pytest.approx(float(ghat / 2 + mp.mpf(1) / 2), rel=1e-14)
            assert mathias_lower(T) == pytest.approx(float(ghat * (mp.mpf(1) / 2 + mp.mpf(1) / (2 * T))), rel=1e-14)


def test_lower_bounds():
    assert lb(65536) == matousek_nikolov_talwar(65536) == pytest.approx(4.0377, abs=5e-5)
    assert lb(2) == mathias_lower(2) > matousek_nikolov_talwar(2)
    assert lb(1) == 1.0


def test_all_bounds_are_in_order():
    for T in [*range(1, 200), *TABLED, 1000, 2**22, 2**24 + 1, 2**30]:
        low, high = optimal_factor(T)
        rms_low, rms_high = optimal_rms_factor(T)
        assert lb(T) * (1 - 1e-9) <= low <= high <= S(T) * (1 + 1e-6)
        assert rms_low <= rms_high <= SqrtFormula(T).worst * (1 + 1e-6)
        assert rms_low <= high


@pytest.mark.parametrize("T", TABLED)
def test_tabled_brackets_are_narrow(T):
    low, high = optimal_factor(T)
    assert 0 < high - low < 3e-3
    rms_low, rms_high = optimal_rms_factor(T)
    assert 0 < rms_high - rms_low < 2e-3
    assert rms_low < low
    # Above ln(T)/pi + 0.7019, the limit that the uniform dual reaches
    assert low > math.log(T) / math.pi + 0.7019


def test_nothing_is_interpolated():
    assert optimal_factor(4097)[0] == optimal_factor(4096)[0]  # better than the dual point of 4097
    assert optimal_factor(4096)[0] < optimal_factor(5000)[0] == dual_lower(5000)
    assert optimal_factor(16383)[1] == optimal_factor(16384)[1]
    assert optimal_factor(2**24 + 1)[0] == optimal_factor(2**24)[0]
    assert lb(2**25) < optimal_factor(2**25)[0] == dual_lower(2**25)  # better than the last entry
    ticks = [*range(1, 70), *range(70, 700, 9), *(2**k + 1 for k in range(10, 34))]
    lows = [optimal_factor(T)[0] for T in ticks]
    assert lows == sorted(lows)


def test_rms_bound_from_runs():
    assert optimal_rms_factor(3 * 4096)[0] == optimal_rms_factor(4096)[0]
    assert optimal_rms_factor(4097)[0] == pytest.approx(optimal_rms_factor(4096)[0], rel=2e-4)
    assert optimal_rms_factor(4097)[0] < optimal_rms_factor(4096)[0]


def test_known_mechanisms_stay_above_the_optimum():
    for entry in gaussian_frontier():
        assert entry.worst >= optimal_factor(entry.horizon)[0] - 6e-6
        assert entry.rms >= optimal_rms_factor(entry.horizon)[0] - 6e-6


def test_unbounded_table():
    table = unbounded_frontier()
    assert table["sqrt Toeplitz told T=t (reference)", 4096] == pytest.approx(
        (S(4096) / optimal_factor(4096)[0]) ** 2, abs=1e-3
    )
    assert all(ratio >= 1 for ratio in table.values())


def test_refusal():
    with pytest.raises(ConfigurationError):
        optimal_factor(0)
