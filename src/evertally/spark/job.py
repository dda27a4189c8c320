"""What tasks are told of a batch, all of it public, and what a worker keeps between tasks: key and mechanisms.

The key is in no closure, plan, setting or environment: a job has a path and a fingerprint, and the worker reads its own
file (docs/theory/distributed.md 7).
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evertally.counting.plan import LinearPlan
from evertally.errors import StateError
from evertally.noise import WorkerKey
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.state.shelf import Shelf, open_shelf
from evertally.secret import Secret
from evertally.selection.item_plan import ItemPlan
from evertally.spark.root import content_name
from evertally.spark.ways import Part, Recipe, Way


@dataclass(frozen=True)
class Stand:
    """The stream as all batches have it: what a worker may keep."""

    spec: StreamSpec  # without what only the driver needs
    recipes: tuple[Recipe, ...]
    ways: tuple[Way, ...]
    by_user: bool  # events meet by user before they are counted
    buckets: int
    key_file: str
    fingerprint: str
    root: str
    root_id: str
    digest: str  # of all this

    @classmethod
    def stripped(cls, spec: StreamSpec) -> StreamSpec:
        """A spec without what may hold passwords and addresses."""
        return replace(spec, sources=(), sinks=(), file=None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Job:
    """One batch: which ticks it closes, and under which names the state of the batch before lies."""

    stand: Stand
    batch: int
    opened: int  # the first tick that is not closed
    through: int
    stamp: int | None  # the tick of all events, where they have no time of their own
    parts: tuple[Part, ...]
    states: Mapping[tuple[int, int, int], str]  # by query and range; empty for the first batch
    users: Mapping[int, str]  # by bucket

    def at(self) -> list[int] | None:
        """The ticks whose wide rows are released; None: all."""
        way = self.stand.spec.engine.release
        if way == "on demand":
            return []
        if way.startswith("every "):
            step = int(way.removeprefix("every "))
            return [tick for tick in range(self.opened, self.through + 1) if tick % step == 0]
        return None

    def above(self) -> int | None:
        """Wide rows show what is above this; None: everything."""
        way = self.stand.spec.engine.release
        return int(way.removeprefix("above ")) if way.startswith("above ") else None


def put(shelf: Shelf, name: str, data: bytes) -> None:
    """Keeps what its name says; another attempt may have done so already."""
    if shelf.put_new(name, data) != data:
        raise StateError(f"{name} is there with another content than its name says: the root is damaged")


class Shop(Secret):
    """What a worker process keeps for a stream. Nothing of it changes: attempts of several tasks may meet here."""

    def __init__(self, stand: Stand) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold key and sums
        self.stand = stand
        self.key = WorkerKey.load(stand.key_file)
        if self.key.fingerprint() != stand.fingerprint:
            raise StateError(
                f"the worker key {stand.key_file} of this machine is not the one of the stream; copy the file that the "
                "driver has written"
            )
        self.shelf: Shelf = open_shelf(stand.root)
        self._made: dict[int, Any] = {}
        self._plans: dict[int, Any] = {}

    @property
    def queries(self) -> tuple[QuerySpec, ...]:
        return self.stand.spec.queries

    def mechanism(self, query: int) -> Any:
        """The mechanism of a query before its first tick: for its door, which has no memory."""
        if query not in self._made:
            self._made[query] = self.fresh(query)
        return self._made[query]

    def fresh(self, query: int) -> Any:
        """One of its own, to be moved."""
        return self.stand.recipes[query].made(self.key)

    def plan(self, query: int) -> Any:
        """The plan of the slices or shards of a query."""
        if query not in self._plans:
            way = self.stand.ways[query]
            self._plans[query] = (LinearPlan if way.place == "slices" else ItemPlan).from_json(way.plan)
        return self._plans[query]

    def state(self, name: str, place: str, batch: int) -> bytes:
        """What was sealed for this place after this batch, under the name that a manifest has for it."""
        sealed = self.shelf.read(name)
        if sealed is None:
            raise StateError(
                f"{name} is missing under the root: the batch before has been taken away. A task that comes this late "
                "has lost already; if it has not, bring the root back"
            )
        padded = self.key.unseal(self._purpose(place, batch), sealed)
        return padded[8 : 8 + int.from_bytes(padded[:8], "little")]

    def keep(self, place: str, batch: int, folder: str, state: bytes) -> str:
        """Seals a state for its place and keeps it; gives its name. Sizes tell nothing but their order: pending cells
        and users would show in them."""
        size = 8 + len(state)
        room = max(1024, 1 << max(0, size.bit_length() - 3))
        padded = len(state).to_bytes(8, "little") + state + bytes(-size % room)
        sealed = self.key.seal(self._purpose(place, batch), padded)
        name = content_name(f"{folder}/{batch}/{place}", sealed)
        put(self.shelf, name, sealed)
        return name

    def _purpose(self, place: str, batch: int) -> str:
        return f"spark/{self.stand.root_id}/{batch}/{place}"


_TASKS = 8  # of a worker, until all is loaded that tasks need
_FROZEN: set[int] = set()


@lru_cache(maxsize=2)
def _shop(digest: str, *where: str) -> list[Shop]:
    return []


def shop(stand: Stand) -> Shop:
    """The shop of a stream in this process."""
    kept = _shop(stand.digest, stand.key_file, stand.fingerprint, stand.root)
    if not kept:
        kept.append(Shop(stand))
    _freeze()
    return kept[0]


def _freeze() -> None:
    """Spark looks for garbage after every task, in all that there is: modules above all, a tenth of a second each time.
    What has survived that of a worker's first tasks is there to stay, and is looked at no more. Only the first: what
    each task brings with it, public facts of its job, would stay as well."""
    known = sys.modules.get("pyspark.taskcontext")
    task = None if known is None else known.TaskContext.get()  # None: this is no worker
    if task is not None and len(_FROZEN) < _TASKS and task.taskAttemptId() not in _FROZEN:
        _FROZEN.add(task.taskAttemptId())
        gc.freeze()
