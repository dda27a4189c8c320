"""Records as objects of Python's own types. What comes from outside may lie; what leaves here cannot.

A subclass of `int` may call itself smaller than every bound, hash as it likes and print another name whenever it is
asked. So a bound that is checked on the object itself bounds nothing: a value is first copied into an object whose type
is exactly a built-in one, by that type's own code, and only the copy is compared, hashed or written. No method of the
object is called, and its real type is asked for, not `__class__`.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

Plain = bool | int | float | str | bytes | Decimal | Fraction | None

_COPIERS: tuple[tuple[type, Callable[[Any], Plain]], ...] = (
    (str, str.__str__),
    (int, int.__index__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
    (Decimal, Decimal),  # of a Decimal, an exact copy
)
_COLLECTIONS: tuple[Any, ...] = (list, tuple, set, frozenset)
_NUMPY_TYPES = tuple(set(np.sctypeDict.values()))

# What built-in code raises over an object that it cannot read. Nothing else is caught where records are read: the
# time-out of a signal handler, or a lack of memory, ends the call, and must not be taken for an unreadable record.
UNREADABLE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RecursionError)

# A number in writing. ASCII alone, and short: Python's own grammar takes underscores, digits of every script, and any
# number of them.
NUMBER = r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,2})?"
_NUMBER = re.compile(NUMBER.encode())
_BLANKS = b" \t\r\n"

# Entries that are read of an event that is a collection of no built-in type. It may have no end.
_LONGEST_FOREIGN = 2**16


def plain(value: object) -> Plain:
    """The value as exactly bool, int, float, str, bytes, Decimal or Fraction; None if it is nothing of that kind.

    >>> class Liar(int):
    ...     def __lt__(self, other):
    ...         return True
    ...     __str__ = __repr__ = lambda self: "somebody else"
    >>> plain(Liar(7)), type(plain(Liar(7))), plain(np.float32(0.5)), plain([7])
    (7, <class 'int'>, 0.5, None)
    """
    if _is_own(value):
        return value  # type: ignore[return-value]
    try:
        return _copied(value, type(value))
    except UNREADABLE:
        return None


def _is_own(value: object) -> bool:
    kind = type(value)
    # By identity: a class of classes may define `==` and hash, too.
    return kind is str or kind is int or kind is float or kind is bool or kind is bytes or value is None


def _copied(value: Any, kind: type) -> Plain:
    if any(kind is known for known in _NUMPY_TYPES):
        return _of_numpy(value)
    for base, copy in _COPIERS:
        if issubclass(kind, base):
            return copy(value)
    if issubclass(kind, Fraction):
        # Its own slots, not what a subclass puts in their place.
        top, bottom = (plain(vars(Fraction)[slot].__get__(value)) for slot in ("_numerator", "_denominator"))
        return Fraction(top, bottom) if type(top) is type(bottom) is int else None
    return None


def _of_numpy(value: Any) -> Plain:
    if isinstance(value, np.datetime64 | np.timedelta64):  # in nanoseconds they would be integers
        return None
    with np.errstate(all="ignore"):  # a signalling NaN must not be heard
        item = value.item()
        if type(item) is np.longdouble:
            return Fraction(*map(int, item.as_integer_ratio())) if np.isfinite(item) else float(item)
    return item if _is_own(item) else None


def finite(number: float | Decimal | Fraction) -> bool:
    """Whether a number is neither infinite nor NaN, signalling or not.

    >>> finite(Fraction(10**400)), finite(Decimal("sNaN")), finite(float("inf"))
    (True, False, False)
    """
    if isinstance(number, Decimal):
        return number.is_finite()
    return not isinstance(number, float) or math.isfinite(number)  # a fraction may be too large for a float


def written(value: str | bytes) -> str | None:
    """The number that a text is, blanks around it aside; None if it is none.

    >>> written(" 7 "), written("-2.50"), written("1e3"), written("7 kg"), written("1_000"), written("nan"), written("")
    ('7', '-2.50', '1e3', None, None, None, None)
    """
    text = (value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value).strip(_BLANKS)
    return text.decode() if _NUMBER.fullmatch(text) else None


def real(value: object) -> float:
    """The number that a cell means, as a float; NaN if it means none.

    Truth values are 1 and 0, and a text is the number that it writes: a CSV file has nothing but texts. A finite number
    too large for a float is the largest float.

    >>> real(7), real("7"), real(Fraction(1, 2)), real(True), real("seven"), real(None), real([7])
    (7.0, 7.0, 0.5, 1.0, nan, nan, nan)
    >>> real(-(10**400)) == -sys.float_info.max, real(float("-inf"))
    (True, -inf)
    """
    number = plain(value)
    if isinstance(number, str | bytes):
        number = written(number)
    elif isinstance(number, float):
        return number
    if number is None or (isinstance(number, Decimal) and number.is_nan()):
        return math.nan
    try:
        near = float(number)
    except OverflowError:
        near = math.inf if number > 0 else -math.inf  # type: ignore[operator]
    if math.isfinite(near) or (isinstance(number, Decimal) and number.is_infinite()):
        return near
    return math.copysign(sys.float_info.max, near)


def whole(value: object, limit: int) -> int:
    """The number that a cell means as an integer: fractions are cut towards zero, the rest is clipped to [-limit,
    limit]; 0 if it means no finite number.

    >>> whole(2.9, 10), whole(-2.9, 10), whole(True, 10), whole("3", 10), whole(10**30, 10)
    (2, -2, 1, 3, 10)
    >>> whole(float("nan"), 10), whole(float("inf"), 10), whole("three", 10), whole(None, 10)
    (0, 0, 0, 0)
    """
    number = plain(value)
    if not isinstance(number, int):
        number = real(number)
        if not math.isfinite(number):
            return 0
    return int(max(-limit, min(limit, number)))


def pairs(event: Any) -> list[tuple[object, object]]:
    """The items of an event as (label, weight); what is no collection is taken for a label of weight 1.

    >>> pairs({"a": 2}), pairs(["a", "b"]), pairs("a")
    ([('a', 2)], [('a', 1), ('b', 1)], [('a', 1)])
    """
    kind = type(event)
    if issubclass(kind, str | bytes):
        return [(event, 1)]
    if issubclass(kind, dict):
        return list(dict.items(event))
    if issubclass(kind, Mapping):
        return _foreign(lambda: [(label, weight) for label, weight in islice(event.items(), _LONGEST_FOREIGN)])
    for own in _COLLECTIONS:
        if issubclass(kind, own):
            return [(label, 1) for label in own.__iter__(event)]
    if issubclass(kind, np.ndarray):
        # Not tolist: it makes whole numbers of times in nanoseconds.
        return [(label, 1) for label in np.ndarray.__iter__(event)]
    if issubclass(kind, Sequence | AbstractSet):
        return _foreign(lambda: [(label, 1) for label in islice(event, _LONGEST_FOREIGN)])
    return [(event, 1)]


def _foreign(read: Callable[[], list[tuple[object, object]]]) -> list[tuple[object, object]]:
    """What the code of a foreign collection gives; nothing, if it raises."""
    try:
        return read()
    except (MemoryError, TimeoutError):
        raise
    except Exception:  # foreign code may raise whatever it likes
        return []


def only(entries: Iterable[object], *kinds: type) -> bool:
    """Whether every entry is of exactly one of these types.

    >>> only([1, "a"], int, str), only([True], int)
    (True, False)
    """
    # Types by their identity, since types may compare as they like.
    return set(map(id, map(type, entries))) <= set(map(id, kinds))
