"""How much memory a mechanism takes, about. As private as what it holds: for administrators."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_MANY = 64  # of the entries of a long list so many are looked at, and stand for the others
_NOT_ITS_OWN = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_bytes(mechanism: Any) -> int:
    """The bytes of all arrays, texts and numbers behind a mechanism, each counted once: its tables, sums and noise.

    >>> import evertally as et
    >>> small, large = (et.VectorCounter(columns=n, guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(n))
    ...                 for n in (10, 100_000))
    >>> held_bytes(large) - held_bytes(small) > 8 * 99_990
    True
    """
    return int(_bytes(mechanism, set()))


def _bytes(holder: Any, seen: set[int]) -> float:
    """By a list of what is still to be looked at: what is held may lie deeper than Python calls go."""
    total, left = 0.0, [(holder, 1.0)]
    while left:
        one, times = left.pop()
        if id(one) in seen or isinstance(one, _NOT_ITS_OWN):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            owner = one if one.base is None else one.base
            if owner is one or id(owner) not in seen:
                seen.add(id(owner))
                total += times * (owner.nbytes if isinstance(owner, np.ndarray) else one.nbytes)
            if one.dtype == object:
                left += _some(one.ravel().tolist(), one.size, times)
            continue
        total += times * sys.getsizeof(one, 0)
        if isinstance(one, Mapping):
            left += _some(one.keys(), len(one), times) + _some(one.values(), len(one), times)
        elif isinstance(one, list | tuple | set | frozenset):
            left += _some(one, len(one), times)
        else:
            left += [(value, times) for value in getattr(one, "__dict__", {}).values()]
            slots = (name for kind in type(one).__mro__ for name in _named(getattr(kind, "__slots__", ())))
            left += [(getattr(one, name, None), times) for name in slots if not name.startswith("__")]
    return total


def _some(entries: Iterable[Any], count: int, times: float) -> list[tuple[Any, float]]:
    return [(entry, times * max(1.0, count / _MANY)) for entry in islice(entries, _MANY)]


def _named(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots
