"""Names that share a hash: found by whoever knows the secret numbers of a table, as the auditor does and nobody else.

The hash of a name is sum_j R_j (byte_j + 1) mod 2^64, so two names that differ by d share it where sum_j R_j d_j is 0
mod 2^64. Such d with small entries are short vectors of a lattice: with 20 free places about 2^(64/20) long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flint

_MIDDLE, _REACH = 79, 90  # letters around "O", all of them printable ASCII
_FREE = 20  # places that may differ


def sharing(multipliers: Sequence[int], places: Sequence[int], length: int) -> tuple[bytes, bytes] | None:
    """Two names of some length that differ at these places alone, and have one hash; None if none was found.

    >>> import random
    >>> numbers = random.Random(1)
    >>> secret = [numbers.getrandbits(64) for _ in range(24)]
    >>> one, other = sharing(secret, range(4, 24), 24)
    >>> sum(r * (a - b) for r, a, b in zip(secret, one, other)) % 2**64, one[:4] == other[:4], one == other
    (0, True, False)
    """
    found = _short(multipliers, places)
    if found is None:
        return None
    one, other = bytearray([_MIDDLE] * length), bytearray([_MIDDLE] * length)
    for place, d in zip(places, found, strict=True):
        one[place], other[place] = _MIDDLE + d - d // 2, _MIDDLE - d // 2
    return bytes(one), bytes(other)


def _short(multipliers: Sequence[int], places: Sequence[int]) -> list[int] | None:
    n, heavy = len(places), 2**80  # so heavy that short vectors have 0 in the last column
    rows: list[list[int]] = [
        [int(i == j) for j in range(n)] + [heavy * int(multipliers[place])] for i, place in enumerate(places)
    ]
    rows.append([0] * n + [heavy * 2**64])
    reduced: Any = flint.fmpz_mat(rows).lll()
    vectors = [[int(one) for one in row] for row in reduced.tolist()]
    short = [row[:-1] for row in vectors if row[-1] == 0 and any(row) and max(map(abs, row)) <= _REACH]
    return min(short, key=lambda row: max(map(abs, row))) if short else None


def families(multipliers: Sequence[int]) -> list[tuple[bytes, bytes]]:
    """Pairs that differ in one byte of every eight, for each of the eight, and short pairs that differ anywhere: loops
    that compare eight bytes at once must look at all of them."""
    asked = [(range(k, k + 8 * _FREE, 8), 8 * _FREE) for k in range(8)]
    asked += [(range(length), length) for length in (_FREE, _FREE + 1, _FREE + 3)]
    asked += [(range(length - _FREE, length), length) for length in (_FREE + 6, _FREE + 9)]
    found = [sharing(multipliers, places, length) for places, length in asked]
    return [pair for pair in found if pair is not None]
