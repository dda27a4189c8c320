"""What is proved about a query from the way it is built, and the facts that the proof is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Width = int | Literal["all"]


@dataclass(frozen=True)
class Certificate:
    """What is proved about a query g from the way it is built (parameterized-histograms 1.5). False: not proved.

    `unit_scale`: |g(v) - g(w)| <= 1 for integer vectors at distance 1; the only condition that privacy needs.
    `lipschitz`: |g(v) - g(w)| <= max_i |v_i - w_i| for real vectors too; without it, error bounds use ceil(err).
    `monotone`: g never falls when columns grow. `linear`: g(v + u) - g(v) depends on u only. `zero_at_zero`: g(0) = 0.

    >>> from evertally.histogram.expressions import Columns
    >>> h = Columns(2)
    >>> (h[0] - h[1]).certificate.reason
    'one row can change it by up to 2, and 1 is allowed: use normalised(); it has a negative weight, so it may fall'
    """

    unit_scale: bool
    lipschitz: bool
    monotone: bool
    linear: bool
    zero_at_zero: bool
    reason: str


@dataclass(frozen=True)
class Facts:
    """What the rules derive for one expression. `least`: the smallest number of columns for which it is defined."""

    sensitivity: Fraction
    monotone: bool
    linear: bool
    jumps: bool
    columns: Width
    least: int


ONE_COLUMN = Facts(Fraction(1), monotone=True, linear=True, jumps=False, columns="all", least=1)


def widest(parts: Iterable[Facts]) -> Width:
    widths = [part.columns for part in parts]
    return "all" if "all" in widths else max((width for width in widths if width != "all"), default=0)
