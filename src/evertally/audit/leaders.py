"""The largest of noisy scores, where floats cannot tell: decided by the exact variates, at whatever precision it takes.

A selection first compares enclosures of its variates, and looks at the exact ones of those that may lead. Here
enclosures are planted that overlap, and the leader is one that the enclosures would put behind.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb, ctx

from evertally.selection.noisy_max import noisy_argmax

_WIDE = 0.5  # half of an enclosure
_COLUMNS = 4


class _Planted:
    """Exact variates in enclosures of one width: `at` says where in its enclosure each of them lies, from -1 to 1."""

    def __init__(self, middle: np.ndarray, at: np.ndarray) -> None:
        self.lower, self.upper = middle - _WIDE, middle + _WIDE
        self.exact = middle + at * _WIDE

    def refine(self, i: int, bits: int) -> arb:
        return arb(float(self.exact[i]), 2.0 ** -min(bits, ctx.prec - 8))


def wrong_leader() -> str:
    """In which planted case another column is said to lead; nothing, if all are right.

    >>> wrong_leader()
    ''
    """
    random = np.random.default_rng(5)
    for scale in (Fraction(1), Fraction(7, 3), Fraction(1, 1000)):
        for _ in range(40):
            scores = random.integers(-3, 4, _COLUMNS) if scale > Fraction(1, 10) else np.zeros(_COLUMNS, dtype=np.int64)
            planted = _Planted(random.normal(size=_COLUMNS) / 4, random.uniform(-0.9, 0.9, _COLUMNS))
            exact = [
                Fraction(int(score)) + scale * Fraction(v)
                for score, v in zip(scores, planted.exact.tolist(), strict=True)
            ]
            order = sorted(range(_COLUMNS), key=lambda j: -exact[j])
            for count in (1, 2):
                found = noisy_argmax(scores.astype(np.int64), scale, planted, count=count)
                if list(found) != order[:count]:
                    return (
                        f"of scores {scores.tolist()} with enclosed noise {order[:count]} lead, and {found} are said to"
                    )
    return ""
