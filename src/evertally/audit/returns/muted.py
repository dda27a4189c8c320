"""A mechanism whose engine makes no noise and adds nothing up: it takes down what it is handed, at every tick.

Noise is what a tick costs most, and nothing of it is looked at here. So long streams can be walked tick by tick through
the real door, caps and rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from evertally.contract.admission import AdmissionEngine
from evertally.contract.parts import Played
from evertally.runtime.sieve import stepped

Numbers = dict[Any, int]  # what a tick adds, by place or label; nothing that is 0


class Muted:
    """In the place of an engine: the last batch, and rows that are those before the first tick."""

    def __init__(self, real: Any, rows: Any) -> None:
        self._real, self._rows = real, rows
        self.width, self.handed = real.width, None

    def start(self) -> Any:
        return self._real.start()

    def begin(self, tick: int) -> None:
        """Nothing moves."""

    def go_back(self, tick: int, state: Any) -> None:
        """Nothing has moved."""

    def play(self, batch: Any, state: Any) -> Played:
        self.handed = batch
        return Played(self._rows, None, state)

    def accuracy(self, tick: int) -> Any:
        return self._accuracy

    @cached_property
    def _accuracy(self) -> Any:
        return self._real.accuracy(1)


class Walk:
    """Ticks through a mechanism with a muted engine, in turn.

    >>> import evertally as et
    >>> from evertally.audit.spec_down.playing import prepared
    >>> from evertally.audit.spec_down.small import Small
    >>> from evertally.runtime.mechanisms import build
    >>> from evertally.runtime.table.given import spec_from
    >>> stream = {"name": "s", "horizon": 2**20, "unit": "user", "user_column": "who"}
    >>> content = {"stream": stream, "guarantee": {"rho": 0.5}, "clock": {"start": 0, "tick": 1}}
    >>> spec = spec_from(content | {"query": [{"name": "all", "kind": "distinct_users"}]})
    >>> walk = Walk(build(spec, None)["all"])
    >>> for tick in (1, 2, 2**20):
    ...     (rows,) = prepared(Small(spec, walk.mechanism, 1), [[{"who": "ann"}, {"who": f"guest {tick}"}]])
    ...     walk.step(rows, spec.queries[0], tick)
    ...     print(walk.handed)
    {0: 2}
    {0: 1}
    {0: 1}
    """

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism
        rows: Any = mechanism._kept.played.recent
        outer: Any = mechanism._engine
        # Behind a cap the door says what came through; rules of users, and of items, are before an engine of their own.
        before: Any = outer if isinstance(outer, AdmissionEngine) else None
        self._muted = Muted(outer if before is None else before.inner, rows)
        if before is None:
            mechanism._engine = self._muted
        else:
            before.inner = self._muted
        mechanism._plays_numbers = False

    def step(self, rows: Any, query: Any, tick: int) -> None:
        """Plays a tick. Ticks before it that were left out had no events, and nothing to be done in them."""
        mechanism = self.mechanism
        if mechanism.tick < tick - 1:
            mechanism._kept, mechanism._engine_tick = replace(mechanism._kept, tick=tick - 1), tick - 1
        stepped(mechanism, rows, query, tick)

    @property
    def handed(self) -> Numbers:
        """What the engine was handed last."""
        return as_numbers(self._muted.handed)

    @property
    def came_through(self) -> bytes:
        """A digest of what came through the door at the last tick."""
        digest: bytes = self.mechanism._last_input()
        return digest


def as_numbers(batch: Any) -> Numbers:
    """What a tick adds, of whatever an engine takes: a row, totals by label, updates of items."""
    if isinstance(batch, np.ndarray):
        row = batch.reshape(-1)
        return {place: int(row[place]) for place in np.flatnonzero(row).tolist()}
    (one,) = batch
    if isinstance(one, np.ndarray):
        return as_numbers(one)
    pairs: Iterable[tuple[Any, Any]]
    if hasattr(one, "signs"):
        pairs = zip(one.cells.tolist(), one.signs.tolist(), strict=True)
    elif isinstance(one, Mapping):
        pairs = one.items()
    else:
        pairs = zip(one.labels.list(), one.counts.tolist(), strict=True)
    found: Numbers = {}
    for place, amount in pairs:
        found[place] = found.get(place, 0) + int(amount)
    return {place: amount for place, amount in found.items() if amount}
