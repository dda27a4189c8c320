"""How far apart two clients' messages are before the noise: the columns of the integer factor, and their distance.

factorization-counting 6.9 and 11. A client in cell j (from 0) sends column j of R plus noise, R the integer square-root
factor. In local privacy neighbours *replace*: one column becomes another, and noise must cover Delta_swap^2 =
max ||R_j - R_j'||^2. (The largest column alone, which the paper uses, is too small: 1/1.66 of its square at w = 1024.)
"""

from __future__ import annotations

import numpy as np
from flint import fmpz_poly
from numpy.typing import NDArray

from evertally.counting.sqrt_factor import coefficients

IntArray = NDArray[np.int64]


def column(r: IntArray, cell: int) -> IntArray:
    """Column `cell` of R: r_0, r_1, ... from row `cell` on.

    >>> column(np.array([8, 4, 3]), 1).tolist()
    [0, 8, 4]
    """
    rows = np.zeros(r.size, dtype=np.int64)
    rows[cell:] = r[: r.size - cell]
    return rows


def swap_distance_squared(r: IntArray) -> int:
    """Delta_swap^2 for these integers, exactly; O(w log w).

    For columns d apart, ||R_j - R_{j+d}||^2 = sum_{i<d} r_i^2 + sum_{k<w-d-j} (r_{k+d} - r_k)^2: the earlier the pair,
    the more rows it has, so the first column is one of the two. Then it is N_w + N_{w-d} - 2 A_d with N_m the sum of
    the first m squares and A_d the autocorrelation at lag d, one product of integer polynomials.

    >>> swap_distance_squared(np.array([8, 4, 3]))  # (8, 4, 3) against (0, 0, 8)
    105
    """
    w = r.size
    if w < 2:
        raise ValueError("one cell alone has nothing to be told apart from")
    entries = [int(entry) for entry in r]
    squares = [0]
    for entry in entries:
        squares.append(squares[-1] + entry * entry)
    products = fmpz_poly(entries) * fmpz_poly(entries[::-1])  # A_d stands at degree w - 1 - d
    return max(squares[w] + squares[w - d] - 2 * int(products[w - 1 - d]) for d in range(1, w))


def integer_factor(cells: int) -> IntArray:
    """r_0..r_{w-1}; nobody writes into it, since the noise was made for these numbers."""
    r = coefficients(cells)
    r.flags.writeable = False
    return r
