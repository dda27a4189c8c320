"""Batches of events that a hostile source might send to any mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

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
GARBAGE: list[Any] = [
    _JUNK,
    [],
    [_JUNK],
    [[_JUNK]],
    [{"a": float("nan"), "b": 10**40, None: 1}],
    np.array([np.nan, np.inf, 3.0]),
]
