"""Radii of the tables that samplers interpolate in, against what their theorem asks for.

A radius is right for every word, also for the worst one of 2^58 in a cell, which nobody finds by trying. So what it has
to hold is added up once more (docs/theory/samplers.md, 2 and 8; Higham 2002, 5.1): how far the stored polynomial is
from the function at some points of the cell, in balls; the roundings of Horner's rule, two for each power that a
coefficient goes through; and how far the function moves by what is not known of V, where it is steepest.
"""

from __future__ import annotations

from typing import Any

from flint import arb

from evertally.balls import at_precision
from evertally.noise import quantile, reals
from evertally.noise.quantile import QuantilePolynomials

_UNIT = arb(2) ** -53
_CELLS, _DEGREE = 32, 8
_POINTS = (-8, -5, 0, 3, 8)  # sixteenths of a cell, from its middle
_ALL, _STEP = 64, 3  # rows of the first octaves, and every third one after them
_BITS = 200


def wrong_table(kind: str) -> str:
    """What is wrong with the tables of a kind of numbers, "normal" or "laplace", in a few words; nothing if all are
    right.

    >>> wrong_table("laplace")
    ''
    """
    integers = quantile.gaussian_quantile() if kind == "normal" else quantile.laplace_quantile()
    variates = QuantilePolynomials(*reals._table("normal" if kind == "normal" else "laplace"), bits=0)
    for told, table in (("integers", integers), ("real numbers", variates)):
        rows = len(table.radius)
        for row in (*range(min(_ALL, rows)), *range(_ALL, rows, _STEP)):
            needed = at_precision(_BITS, lambda: _needed(kind, table, row))  # noqa: B023
            if needed > arb(float(table.radius[row])):
                return f"cell {row} of the table of {kind} {told} claims less than its theorem asks for"
    return ""


def _needed(kind: str, table: QuantilePolynomials, row: int) -> arb:
    octave, cell = divmod(row, _CELLS)
    unit = arb(2) ** -octave / (2 * _CELLS)
    c = [arb(float(x)) for x in table.coefficients[row]]
    left = unit * (_CELLS + cell)
    off = max((abs(_value(kind, left + unit * (8 + x) / 16) - _polynomial(c, x)) for x in _POINTS), key=_middle)
    if table.bits:  # V as a float, and up to the bits behind the first word
        roundings = [2 * _DEGREE] * (_DEGREE + 1)
        unread = unit * (_CELLS + cell + 1) * _UNIT + arb(2) ** -table.bits
    else:  # 64 bits from the leading one on
        roundings = [min(2 * k + 1, 2 * _DEGREE) for k in range(_DEGREE + 1)]
        unread = unit * arb(2) ** -52
    horner = sum((n * _UNIT * abs(x) / 2**k for k, (n, x) in enumerate(zip(roundings, c, strict=True))), arb(0))
    return off + horner + _slope(kind, left) * unread


def _middle(ball: arb) -> Any:
    return ball.mid()


def _value(kind: str, v: arb) -> arb:
    return -v.log() if kind == "laplace" else arb(2).sqrt() * v.erfcinv()


def _slope(kind: str, v: arb) -> arb:
    """How steep it is at the small end of a cell: both fall, and less and less."""
    if kind == "laplace":
        return 1 / v
    z = _value(kind, v)
    return (arb.pi() / 2).sqrt() * (z * z / 2).exp()


def _polynomial(c: list[arb], sixteenths: int) -> arb:
    total = arb(0)
    for x in reversed(c):
        total = total * sixteenths / 16 + x
    return total
