"""Rounding, after exact evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from evertally.contract.inputs import IntArray
from evertally.errors import ConfigurationError
from evertally.histogram.expressions.certificates import Facts
from evertally.histogram.expressions.expression import Expression


@dataclass(frozen=True, eq=False, repr=False)
class Rounded(Expression):
    """Another query, rounded after its exact evaluation: "floor", "ceil" or "half_up".

    Theorem: parameterized-histograms 1.5. Tier [R]. Time and memory of the query that is rounded.

    >>> from evertally.histogram.expressions import Mean
    >>> Rounded("half_up", Mean()).evaluate([1, 2])
    Fraction(2, 1)
    """

    mode: Literal["floor", "ceil", "half_up"]
    term: Expression

    def __post_init__(self) -> None:
        if self.mode not in ("floor", "ceil", "half_up"):
            raise ConfigurationError(f"rounding is 'floor', 'ceil' or 'half_up', not {self.mode!r}")

    def _derive(self) -> Facts:
        part = self.term._facts
        whole = Fraction(math.ceil(part.sensitivity))
        return Facts(whole, part.monotone, linear=False, jumps=True, columns=part.columns, least=part.least)

    def _ratio(self, v: IntArray) -> tuple[int, int]:
        numerator, denominator = self.term._ratio(v)
        if self.mode == "half_up":
            numerator, denominator = 2 * numerator + denominator, 2 * denominator
        return (-(-numerator // denominator) if self.mode == "ceil" else numerator // denominator), 1

    def to_json(self) -> dict[str, Any]:
        return {"rounded": self.mode, "of": self.term.to_json()}

    def __repr__(self) -> str:
        return f"{self.mode}({self.term!r})"
