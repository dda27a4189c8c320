"""Whose events are whose: a column of users as names, each once, and a number for each event."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.encode.labels import Codes, as_list, canonical, coded, is_arrow
from evertally.encode.name_kernels import kernel, rank_codes
from evertally.encode.texts import Texts


def owners(users: Any) -> tuple[Codes, Texts]:
    """Codes into distinct canonical user names, in the order of their first events; -1 for events without a user."""
    coded_users = coded(users)
    if coded_users is None:
        if is_arrow(users) and _is_nested(users):
            raise TypeError("users must hold one user per event; a column of several users for each is refused")
        values = as_list(users)
        coded_users = np.arange(len(values)), values
    codes, values = coded_users
    number: dict[str, int] = {}
    recoded = np.full(len(values) + 1, -1, np.int64)  # the last entry is where code -1 points
    for i, value in enumerate(values):
        name = canonical(value)
        if name is not None:
            recoded[i] = number.setdefault(name, len(number))
    return recoded[codes], Texts.of(list(number))


def _is_nested(users: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(users.type))


def rank_within_code(codes: Codes, count: int) -> Codes:
    """For each entry, how many earlier entries have the same code; codes are below `count`."""
    ranks = np.zeros(len(codes), np.int64)
    kernel(rank_codes, len(codes))(codes, np.zeros(count, np.int64), ranks)
    return ranks
