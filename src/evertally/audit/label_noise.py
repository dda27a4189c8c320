"""The noise of a label over many ticks, as a matrix: which draw is in which release, asked of the program.

The product's own code runs on planted noise, so that a bug shows as what it does. Only the laws of draws are taken for
granted. From the matrix, `separation` gives the most powerful test against a change.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.audit.game import Factory, FloatArray, IntArray, owned
from evertally.audit.gaussian import sigma_squared
from evertally.noise import ItemSource, Law, ZeroNoise
from evertally.noise.source import ZeroSource
from evertally.statistics.unknown import ItemFinder

Label = str | None  # None: the threshold of an unknown domain
Draw = tuple[str, int]  # lane and node

ABSENT = -(2**62)  # in the place of a count that is not released


class _Reader:
    """The hash of `item_addresses`, which notes whose address is whose."""

    def __init__(self, names: dict[tuple[int, int], Label], data: bytes = b"") -> None:
        self._names, self._data = names, data

    def copy(self) -> _Reader:
        return _Reader(self._names)

    def update(self, data: bytes) -> None:
        self._data += data

    def digest(self) -> bytes:
        digest = hashlib.blake2b(self._data, digest_size=16).digest()
        words = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:12], "little")
        self._names[words] = None if self._data == b"\xff" else self._data.decode("utf-8", "surrogatepass")
        return digest


class _Named(ZeroSource):
    """A source that reads labels off their addresses."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], Label] = {}

    def item_hash(self) -> Any:
        return _Reader(self._names)

    def _labels(self, items: NDArray[np.uint64]) -> list[Label]:
        return [self._names[first, second] for first, second in items.tolist()]


class ScriptKey(ZeroNoise):
    """A key that hands out one source."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def source(self, *path: str | bytes) -> ItemSource:
        source: ItemSource = self._source
        return source


class _LabelDraws(_Named):
    """For every (lane, node), a draw for each of the labels; 0 where nothing was planted. It notes what was asked."""

    def __init__(self, labels: Sequence[str], planted: Mapping[Draw, IntArray]) -> None:
        super().__init__()
        self._numbers = {label: i for i, label in enumerate(labels)}
        self._planted = planted
        self._last: tuple[bytes, list[int]] = (b"", [])  # the same labels come again at every tick
        self.asked: dict[Draw, Law] = {}

    def item_draws(self, lane: str, law: Law, node: int, items: NDArray[np.uint64]) -> IntArray:
        self.asked.setdefault((lane, node), law)
        draws = self._planted.get((lane, node))
        if draws is None:
            return np.zeros(len(items), dtype=np.int64)
        addresses = items.tobytes()
        if self._last[0] != addresses:
            self._last = addresses, [self._numbers[str(label)] for label in self._labels(items)]
        return draws[self._last[1]]


def _played(make: Factory, source: _LabelDraws, stream: Sequence[int], weight: int, unveiled: bool = False) -> IntArray:
    """What is released about each label, (ticks, labels), if every label occurs `stream[t]` times in tick t."""
    mechanism = make(ScriptKey(source))
    if unveiled and isinstance(mechanism, ItemFinder):
        mechanism._worker().threshold = SimpleNamespace(at=lambda t: ABSENT + 1)
    labels = list(source._numbers)
    releases = np.full((len(stream), len(labels)), ABSENT, dtype=np.int64)
    for t, times in enumerate(stream):
        events: list[Any] = [label if weight == 1 else {label: weight} for label in labels for _ in range(times)]
        users: dict[str, Any] = {}
        if owned(mechanism):
            users = {"users": [f"{t} {i}" for i in range(len(events))]}
        elif mechanism._users is not None:
            users = {"users": [label for label in labels for _ in range(times)]}
        for label, value in mechanism.step_events(events, **users).value.items():
            releases[t, source._numbers[label]] = value
    return releases


def item_table(make: Factory, stream: Sequence[int], *, weight: int = 1) -> tuple[FloatArray, list[Law]]:
    """(ticks, draws): what each draw adds to the released counts of a label, if all labels were shown; and the laws.

    The threshold is lifted, which decides about labels and not about rho (streaming-selection 7.2, good part). Over a
    known domain the mechanism must show all its columns, and have one for each draw.
    """
    columns: list[str] | None = getattr(make(ZeroNoise()), "columns", None)
    source = _LabelDraws(columns or ["label"], {})
    exact = _played(make, source, stream, weight, unveiled=True)[:, :1]
    draws = list(source.asked)
    labels = columns or [f"draw {i}" for i in range(len(draws))]
    impulses = dict(zip(draws, np.eye(len(draws), len(labels), dtype=np.int64), strict=True))
    responses = _played(make, _LabelDraws(labels, impulses), stream, weight, unveiled=True) - exact
    return responses[:, : len(draws)].astype(np.float64), list(source.asked.values())


def separation(responses: FloatArray, laws: Sequence[Law], moved: FloatArray) -> float:
    """mu of the most powerful test against a move of the releases; infinite where a move meets no noise at all."""
    covariance = (responses * np.array([sigma_squared(law) for law in laws])) @ responses.T
    direction = np.linalg.lstsq(covariance, moved, rcond=1e-10)[0]
    if not np.allclose(covariance @ direction, moved, atol=1e-6):
        return math.inf
    return math.sqrt(float(moved @ direction))


class PlantedVariates:
    """Real numbers that are known exactly."""

    def __init__(self, values: Sequence[float]) -> None:
        self.lower = self.upper = np.array(values, dtype=np.float64)

    def refine(self, i: int, bits: int) -> arb:
        return arb(float(self.lower[i]))
