"""What lives, as bytes and back: sorted by name, so that the same state is the same bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from evertally.contract.rows import from_bytes, to_bytes
from evertally.encode.labels import label_bytes
from evertally.errors import StateError

_FORMAT = b"evertally-presence-1\n"
_NUMBERS = 4  # in the head, and of each life


def packed(kind: bytes, head: tuple[int, ...], lives: dict[Any, tuple[int, int, int, int]]) -> bytes:
    """Secret bytes (they name items)."""
    names = sorted(lives)
    table = np.array([lives[name] for name in names], dtype=np.int64).reshape(-1, _NUMBERS)
    parts = [to_bytes(np.array(head)), to_bytes(table)]
    if names and isinstance(names[0], str):
        raw = [label_bytes(name) for name in names]
        parts += [to_bytes(np.array([len(one) for one in raw])), b"".join(raw)]
    else:
        parts += [to_bytes(np.array(names, dtype=np.int64)), b""]
    sizes = b"".join(len(part).to_bytes(8, "big") for part in (kind, *parts))
    return b"".join([_FORMAT, sizes, kind, *parts])


def unpacked(kind: bytes, data: bytes) -> tuple[list[int], dict[Any, tuple[int, int, int, int]]]:
    """The head, and what lives; StateError, without content, for anything else."""
    start = len(_FORMAT)
    sizes = [int.from_bytes(data[start + 8 * i : start + 8 * i + 8], "big") for i in range(5)]
    at, parts = start + 40, []
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    if not data.startswith(_FORMAT) or at != len(data) or parts[0] != kind:
        raise StateError("these bytes do not say which items live; restore from an intact snapshot")
    head, table = from_bytes(parts[1]).tolist(), from_bytes(parts[2]).reshape(-1, _NUMBERS)
    numbers = from_bytes(parts[3])
    names: list[Any] = numbers.tolist()
    if kind == b"id":
        ends = [0, *np.cumsum(numbers).tolist()]
        names = [parts[4][a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]
    return head, dict(zip(names, map(tuple, table.tolist()), strict=True))
