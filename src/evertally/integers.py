"""The one validator of whole numbers that are options."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.errors import ConfigurationError


def own_integer(value: Any) -> int | None:
    """Python's own integer for what is one, numpy's included; None for anything else, truth values too. A subclass may
    say anything when it is asked, so it is not asked.

    >>> own_integer(np.int32(3)), own_integer(True), own_integer(3.0)
    (3, None, None)
    """
    if issubclass(type(value), int) and type(value) is not bool:
        return int.__index__(value)
    return int(value) if isinstance(value, np.integer) and type(value).__module__ == "numpy" else None


def whole(name: str, value: Any, low: int | None, high: int | None = None) -> int:
    """An integer option in range.

    >>> whole("k", np.int32(3), 1, 10)
    3
    >>> whole("k", True, 1, 10)
    Traceback (most recent call last):
    ...
    evertally.errors.ConfigurationError: k must be an integer from 1 to 10; got True
    """
    number = own_integer(value)
    if number is None or (low is not None and number < low) or (high is not None and number > high):
        allowed = "a whole number" + (f" of at least {low}" if low is not None else "")
        allowed = f"an integer from {low} to {high}" if high is not None else allowed
        raise ConfigurationError(f"{name} must be {allowed}; got {value!r}")
    return number
