"""How far one event can move the innovations of a bank: a bound on max_j ||R e_j||^2 that rounding cannot spoil.

optimal-counting 2.4 [R, reviewed twice]. With R = L^-1 A, column j of R is the innovation sequence of a unit step, and
M_t = F_t^T M_(t+1) F_t + c c^T/r^2 has ||R e_t||^2 in its last corner. What the program computes is a supersolution:
after each step more than all rounding errors of that step is added to the diagonal, so the computed M is above the true
one in Loewner's order at every tick, and the largest corner is an upper bound. It is a bound for these very numbers,
however they were found; and the lemma of 2.3 (R >= 0, which S3 and two-entry S4 rest on) is checked in fractions.
"""

from __future__ import annotations

import numpy as np

from evertally.counting import bank_kernels as kernels
from evertally.counting.bank_schedule import Bank, fits_lemma
from evertally.errors import StateError

_SMALLEST, _LARGEST = 2.0**-200, 2.0**200
_LONGEST = 2**40


def certified(bank: Bank, lam: float = 1.0) -> float:
    """S >= max_j ||R e_j||^2, or a refusal: NaN, signs, sums of K above 1, numbers that could underflow.

    R = L^-1 W with W_tj = lam^(t-j), lam an exact dyadic number; 1 for counting.

    >>> from evertally.counting.bank_schedule import build_bank
    >>> round(certified(build_bank(1024)), 4)
    22.9098
    """
    check(bank, lam)
    top, last = kernels.compiled("sensitivities")(bank.a, bank.K, bank.r, bank.lengths, lam, 1.0)
    # A running maximum drops NaN; the last matrix does not, for NaN and infinity are absorbing.
    if not (np.isfinite(last).all() and np.isfinite(top).all()):
        raise _refused()
    return float(top.max())


def check(bank: Bank, lam: float = 1.0) -> None:
    """The conditions of the certificate and of the lemma of 2.3."""
    n, Q = bank.a.shape if bank.a.ndim == 2 else (0, 0)
    shaped = n > 0 and Q > 0 and bank.K.shape == (n, Q) and bank.r.shape == (n,) == bank.lengths.shape
    # Longer ones than any horizon could add up to one by running over.
    if not shaped or (bank.lengths < 1).any() or (bank.lengths > _LONGEST).any():
        raise _refused()
    for numbers in (bank.a, bank.K, bank.r):
        nonzero = numbers[numbers != 0]
        # NaN is not within any bounds.
        if not ((nonzero >= _SMALLEST) & (nonzero <= _LARGEST)).all():
            raise _refused()
    if not 0 < lam <= 1 or not (bank.r > 0).all() or not fits_lemma(bank, lam):
        raise _refused()


def _refused() -> StateError:
    return StateError("these coefficients are not those of a bank whose sensitivity can be certified")
