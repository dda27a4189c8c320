"""Batches of events that a hostile source might send to any mechanism, and records that lie about themselves."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any, NoReturn

import numpy as np

_NEVER_THE_SAME = count(10**9)


class _Lies:
    """Every comparison says what suits the liar, and every name, hash and conversion is a new one."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__

    def __hash__(self) -> int:
        return next(_NEVER_THE_SAME)

    def __str__(self) -> str:
        return f"new {next(_NEVER_THE_SAME)}"

    __repr__ = __str__

    def __abs__(self) -> int:
        return 0

    def __int__(self) -> int:
        return next(_NEVER_THE_SAME)

    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        return float(next(_NEVER_THE_SAME))

    def __bool__(self) -> bool:
        return False

    def is_finite(self) -> bool:
        return True

    is_integer = is_finite

    def item(self) -> object:
        return self

    def encode(self, *_: object) -> bytes:
        return str(self).encode()

    def decode(self, *_: object) -> str:
        return str(self)


def _lying(kind: type) -> Any:
    """The class of those of a kind of number that pass every bound."""
    return type(f"Lying {kind.__name__}", (_Lies, kind), {})


LyingInt, LyingFloat, LyingNumpyFloat, LyingDecimal = map(_lying, (int, float, np.float64, Decimal))


class LyingFraction(_Lies, Fraction):
    """A fraction that passes every bound, made of integers that do."""

    numerator = property(lambda self: LyingInt(10**6))
    denominator = property(lambda self: LyingInt(1))


class LyingText(_Lies, str):
    """A text with a new name whenever it is asked."""

    def isascii(self) -> bool:
        return True


class LyingBytes(_Lies, bytes):
    """Bytes with a new name whenever they are asked."""

    def __bytes__(self) -> bytes:
        return str(next(_NEVER_THE_SAME)).encode()


class LyingList(list[Any]):
    """A list that iterates over other, and ever more, entries than it has."""

    def __iter__(self) -> Iterator[Any]:
        return map(str, count())

    def __len__(self) -> int:
        return 1


class LyingDict(dict[Any, Any]):
    """A mapping that shows other, and ever more, items than it has."""

    def items(self) -> Any:
        return ((str(i), 10**6) for i in count())

    def __len__(self) -> int:
        return 1


class Pretender:
    """Says that it is an integer, and is none."""

    __class__ = int

    def __int__(self) -> int:
        return 10**6

    __index__ = __int__


class _LyingType(type):
    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)


class OfLyingType(_Lies, metaclass=_LyingType):
    """An object whose class is equal to `int`, and whose name is a new one whenever it is asked."""


class Explosive:
    """Raises, whatever is done with it."""

    def _explode(self, *_: object) -> NoReturn:
        raise RuntimeError("a record raised")

    __class__ = property(_explode)
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __str__ = __repr__ = _explode
    __int__ = __index__ = __float__ = __bool__ = __len__ = __iter__ = __getattr__ = _explode


def signalling_nan(kind: Any) -> Any:
    """A NaN whose mere conversion makes a processor complain, as a numpy scalar of 32 or 64 bits."""
    bits = {np.float32: np.uint32(0x7F800001), np.float64: np.uint64(0x7FF0000000000001)}[kind]
    return np.array([bits]).view(kind)[0]


def liars() -> list[Any]:
    """One record of each kind that lies; those that are numbers are a million in truth, those that are texts "a"."""
    return [
        LyingInt(10**6),
        LyingFloat(10**6),
        LyingNumpyFloat(10**6),
        LyingDecimal(10**6),
        LyingFraction(10**6),
        LyingText("a"),
        LyingBytes(b"a"),
        LyingList(["a"]),
        LyingDict({"a": 10**6}),
        Pretender(),
        OfLyingType(),
        Explosive(),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1e999999"),
        signalling_nan(np.float32),
        signalling_nan(np.float64),
        np.longdouble(10**6),
    ]


_JUNK: list[Any] = [
    None,
    "x",
    float("nan"),
    float("inf"),
    -(10**30),
    10**30,
    [],
    {},
    object(),
    b"\xff",
    "",
    ("a", "b"),
    {"a": "b"},
]
NONSENSE: list[Any] = [  # of which next to nothing counts
    _JUNK,
    [],
    [_JUNK],
    [[_JUNK]],
    [{"a": float("nan"), "b": 10**40, None: 1}],
    np.array([np.nan, np.inf, 3.0]),
    np.array([signalling_nan(np.float32)] * 3),
]
GARBAGE: list[Any] = [*NONSENSE, liars(), [liars(), {"a": LyingInt(10**6)}]]  # liars count as what they are
