"""Bugs that careless or hostile hands find: objects that are believed, labels that are mixed up, state that shows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally import balls
from evertally.encode import AmountDoor, ValueDoor, door, labels, owners, values
from evertally.encode.labels import as_list
from evertally.encode.plain import real
from evertally.histogram.expressions import Expression
from evertally.noise import sampler
from evertally.secret import Secret
from evertally.selection import meta
from evertally.selection.item_table import ItemTable
from evertally.statistics import column_queries
from evertally.statistics.unknown import UnknownItems

_TYPES = "exact types after conversion, bounds after conversion"
_RAISES = "price-of-continual-release P8: no record decides whether a call raises"


@plant("records that lie", trap=_TYPES)
def bound_on_the_object() -> Bug:
    """a bound that asks the record"""

    def whole(value: Any, limit: int) -> int:
        try:
            if not isinstance(value, Real | Decimal) or value != value or abs(value) == math.inf:
                return 0
            return limit if value >= limit else -limit if value <= -limit else int.__index__(value)  # type: ignore[operator, arg-type]
        except Exception:
            return 0

    def totals(self: AmountDoor, events: Any, tick: int) -> int:
        numbers = [whole(value, self.max_weight) for value in as_list(events)]
        return sum(number if self.signed or number > 0 else 0 for number in numbers)

    return all_of(replaced(door, whole=whole), replaced(AmountDoor, totals=totals))


@plant("owners that lie", trap=_TYPES)
def printed_names() -> Bug:
    """an owner has the name that it prints"""
    return replaced(labels, plain=lambda value: value)


@plant("owners that lie", trap=_RAISES)
def several_owners_raise() -> Bug:
    """an event of several owners raises"""
    original = owners._one_by_one

    def one_by_one(column: Any) -> Any:
        if any(type(value) in (list, tuple, dict) for value in as_list(column)):
            raise TypeError("users must hold one user per event")
        return original(column)

    return replaced(owners, _one_by_one=one_by_one)


@plant("ranges that floats cannot cut")
def denormal_range() -> Bug:
    """a range of denormal numbers (a step of 0.0 makes NaN, and NaN makes -2^63)"""

    def init(self: ValueDoor, lower: float, upper: float, resolution: float | None = None) -> None:
        width = Fraction(upper) - Fraction(lower)
        self.middle, self.grid = float((Fraction(lower) + Fraction(upper)) / 2), float(width / 2000)
        self.steps = 1000

    def totals(self: ValueDoor, events: Any, tick: int) -> NDArray[np.int64]:
        numbers = np.array([float(value) for value in events], dtype=np.float64)
        with np.errstate(all="ignore"):
            positions = np.clip(np.rint((numbers - self.middle) / self.grid), -self.steps, self.steps)
            return np.array([positions.astype(np.int64).sum(), self.steps * len(numbers)], dtype=np.int64)

    return replaced(ValueDoor, __init__=init, totals=totals)


@plant("records that lie", trap=_RAISES)
def signalling_nan() -> Bug:
    """a signalling NaN is heard"""

    def floats(events: Any) -> NDArray[np.float64]:
        if isinstance(events, np.ndarray) and events.dtype.kind == "f":
            return events.astype(np.float64)
        return np.array([real(value) for value in as_list(events)], dtype=np.float64)

    return all_of(replaced(values, floats=floats), replaced(door, floats=floats))


@plant("queries that lie")
def certified_object() -> Bug:
    """a query certified as the object that it is (parameterized-histograms 1.5: a certificate, not a promise)"""

    def certified(query: Any, columns: int, **_: Any) -> Expression:
        assert isinstance(query, Expression)
        assert query.certificate.unit_scale
        return query

    return replaced(column_queries, certified=certified)


@plant("items that belong to nobody")
def items_without_owners() -> Bug:
    """items taken without owners (price-of-continual-release 9.5: the cap is kept at the door, and every event passes
    it)"""
    return replaced(UnknownItems, _check_owners=lambda self: None)


@plant("labels that JSON takes for one")
def labels_as_json() -> Bug:
    """labels of open blocks kept as JSON (streaming-selection 10.1: two labels are never taken for one)"""

    def written(tables: Sequence[Any]) -> bytes:
        return json.dumps(tables).encode()

    return replaced(meta, tables_to_bytes=written, tables_from_bytes=json.loads)


@plant("what objects show")
def printed_labels() -> Bug:
    """a table that prints its labels (streaming-selection 10.3: only what is released is shown)"""
    return replaced(ItemTable, __repr__=lambda self: f"ItemTable({self.labels.list()}, {self.counts.tolist()})")


@plant("what objects show")
def pickled_state() -> Bug:
    """exact state in a pickle (a snapshot without a checksum, and a copy with the same noise)"""

    def without_refusing(self: Any, protocol: Any) -> Any:
        return object, ()

    return replaced(Secret, __reduce_ex__=without_refusing)


@plant("a neighbour that changes the precision")
def wide_middle() -> Bug:
    """the middle of a ball kept, however wide it is (samplers.md, section 2: constants of the kernel are certified)"""

    def once(formula: Any, bits: int) -> Any:
        with balls.precision(bits):
            return formula()

    return all_of(replaced(sampler, certain=once, sharp=lambda ball, bits: float(ball.mid())))


@plant("two threads that set the precision")
def no_lock() -> Bug:
    """no lock around the precision (flint.ctx.prec is one number for all threads)"""
    return replaced(balls, _lock=nullcontext())
