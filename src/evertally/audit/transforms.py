"""The bounded transforms behind long sums, against integers."""

from __future__ import annotations

import numpy as np
from flint import arb, fmpz_poly

from evertally.balls import at_precision
from evertally.counting.fourier import convolve

_SIZES = (1, 2, 3, 5, 8, 31, 64, 200, 1024, 3000, 8192, 20_000)  # passes of all kinds, and blocks of 2^14


def wrong_transform() -> str:
    """What is wrong with convolutions in floats, in a few words; nothing if all are within what they claim.

    >>> wrong_transform()
    ''
    """
    random = np.random.default_rng(5)
    for size in _SIZES:
        x, y = (random.integers(-(2**20), 2**20, size) for _ in range(2))
        values, claimed = convolve(x.astype(np.float64), y.astype(np.float64), 0, 2 * size - 1)
        product = fmpz_poly(x.tolist()) * fmpz_poly(y.tolist())
        exact = [int(product[k]) for k in range(2 * size - 1)]
        # Integers below 2^60: their difference from a float is exact in balls.
        off = at_precision(128, lambda: max(abs(arb(float(v)) - w) for v, w in zip(values, exact, strict=True)))  # noqa: B023
        if off > arb(claimed):
            return f"a convolution of {size} numbers is farther than {claimed:.2g} from the exact one"
    return ""
