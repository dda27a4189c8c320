"""A checked spec in memory: what the rest of the runtime reads instead of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from evertally.errors import ConfigurationError
from evertally.kinds import Items, Kind, Result, find, is_ours
from evertally.kinds.reads import Column
from evertally.privacy import ApproxDP, Guarantee
from evertally.runtime.clock import Clock
from evertally.runtime.spec.file import SpecFile
from evertally.runtime.spec.sections import RetentionSection, SourceSection

Retention = RetentionSection
SourceSpec = SourceSection


@dataclass(frozen=True)
class Words:
    """What readers are told about a query, and in which windows they get it: in no digest, changeable at any time.

    `window` and `per` are ticks; `written` is how the spec says them, for names in outputs.
    """

    title: str | None = None
    noun: str | None = None
    unit: str | None = None
    description: str | None = None
    window: int | None = None
    per: int | None = None
    written: str = ""


@dataclass(frozen=True)
class QuerySpec:
    """One released statistic: its mechanism, its share of the guarantee, and its column (None: events are counted)."""

    name: str
    kind: str
    share: Fraction
    column: str | None
    parameters: Mapping[str, Any]
    line: int
    words: Words = Words()

    @property
    def mechanism(self) -> str | None:
        """The mechanism that the spec names."""
        return self.parameters.get("mechanism")

    @property
    def record(self) -> Kind:
        """All that is to be known about its kind."""
        record = find(self.kind)
        if record is None:
            raise ConfigurationError(f"the kind {self.kind!r} of the query {self.name!r} is not registered")
        return record

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input columns that it reads; none if events are only counted."""
        return self.record.columns(self.column, self.parameters)

    @property
    def items(self) -> Items | None:
        """The items that it protects, each with all that names it; None: single events, or users."""
        record = self.record
        return None if record.items is None else record.items(self.parameters)

    @property
    def user_rule(self) -> str:
        """How it bounds what one user may do; empty where the cap of the stream has to do it."""
        return self.record.user_rule(self.parameters)

    @property
    def ordered(self) -> bool:
        """Whether the order in which events of a tick arrived is part of what it counts."""
        ordered = self.record.ordered
        return ordered is not None and ordered(self.parameters)

    @property
    def ours(self) -> bool:
        """Whether this library answers for its kind."""
        return is_ours(self.record)

    @property
    def result(self) -> Result:
        """The shape of its releases."""
        return self.record.result_of(self.parameters)

    @property
    def categories(self) -> Sequence[str] | None:
        """The categories that every release has, in their order: declared labels, names of expressions, ranks.

        None if a release is one value without a category, or brings the labels that it found or chose. There may be
        more than fit into memory, each made when it is asked for: whoever wants a list has a release of that size.
        """
        return self.result.categories(self.parameters)

    @property
    def rows(self) -> int:
        """About how many rows a release has, from public numbers."""
        return self.result.rows(self.parameters)

    def takes_whole(self, guarantee: Guarantee) -> bool:
        """Whether its mechanism pays in epsilon and delta themselves, of which there are no shares."""
        undivided = self.record.undivided
        if undivided is None or not undivided.meant(self.mechanism):
            return False
        return isinstance(guarantee, ApproxDP) and guarantee.adversary == "adaptive"


@dataclass(frozen=True)
class SinkSpec:
    """One place that gets every release: a file (.jsonl, .csv), a folder of Parquet parts, or a webhook."""

    name: str  # unique and stable: what was delivered is remembered under it
    file: Path | None
    webhook: str | None
    timeout: float
    spreadsheet: bool = False  # labels of CSV that begin like a formula are marked


@dataclass(frozen=True)
class ServeSpec:
    """Where and to whom a live stream is served."""

    host: str
    port: int
    tokens: Path
    public: bool
    behind_proxy: bool
    certificate: Path | None
    private_key: Path | None
    max_batch_bytes: int
    max_batch_rows: int
    max_waiting_bytes: int
    max_waiting_rows: int
    max_memory_bytes: int
    requests_per_second: float
    rows_per_second: float
    connections: int
    connections_per_address: int | None  # of strangers; None behind a proxy, whose address all of them have
    listeners_per_token: int
    hosts: tuple[str, ...] | None  # by which the service may be asked; None: as its place on the network suggests
    publish_after: float  # seconds after the end of a tick: the same for all ticks, whatever they hold


@dataclass(frozen=True)
class EngineSpec:
    """Where a stream keeps things that is played on many machines, and how it is cut. Nothing of it is in an address of
    noise; the number of buckets and shards is fixed when the stream begins."""

    root: str  # private as a whole: state, and what dead attempts have written
    home: str  # of the marks: beside the key, apart from the root and its backups
    public: str  # what readers may see
    worker_key: Path  # the same path on all workers
    slice_width: int
    user_buckets: int
    label_shards: int
    release: str  # "dense", "every k", "above x", "on demand"
    keep: int  # states of so many batches stay
    grace: float  # seconds


@dataclass(frozen=True)
class StreamSpec:
    """A checked spec. Paths are absolute; what is not in the file has its default."""

    path: Path
    name: str
    horizon: int | None
    neighbours: str
    unit: Literal["event", "user", "user-period"]
    max_events_per_user: int | None
    user_column: str | None
    period: int | None  # ticks of a block, where one user's events in one block are protected
    max_events_per_tick: int | None
    guarantee: Guarantee
    shared: Guarantee  # what the queries get shares of: it suffices for the guarantee
    clock: Clock
    key_file: Path
    state_file: Path
    output_file: Path | None
    beta: float
    queries: tuple[QuerySpec, ...]
    digest: str
    events: Mapping[str, str] | None  # the declared columns and their types
    snapshot_every: int
    batch_ids: int
    sinks: tuple[SinkSpec, ...]  # the output file is the first one
    sources: tuple[SourceSpec, ...]
    retention: Retention
    serve: ServeSpec
    engine: EngineSpec
    file: SpecFile = field(repr=False, compare=False)
    parts: Mapping[str, str] = field(default_factory=dict)  # short digests of what the digest is about, by name
    title: str | None = None  # words for readers, as in `Words`
    noun: str | None = None
    description: str | None = None
    order: Literal["arrival", "content"] = "arrival"  # of the events of a tick, where the first ones count

    @property
    def last_tick(self) -> int | None:
        """The last tick that the stream will ever release; None if it has no end."""
        return self.clock.ticks if self.clock.ticks is not None else self.horizon

    @property
    def items(self) -> Items | None:
        """The items that all queries protect (a spec in which they differ is refused); None: single events, or
        users."""
        return self.queries[0].items

    @property
    def protects(self) -> Literal["event", "item", "node", "user", "user-period"]:
        """The protected unit."""
        return self.unit if self.items is None else self.items.one

    @property
    def longest_window(self) -> int:
        """The ticks that outputs look back on."""
        return max((query.words.window or 0 for query in self.queries), default=0)

    @property
    def rows(self) -> int:
        """About how many rows a tick has, from public numbers: sizes must not depend on events."""
        return sum(query.rows for query in self.queries)

    def columns(self) -> list[str]:
        """The input columns that the stream needs, each once."""
        return self.wanted(self.clock.column, self.user_column)

    def wanted(self, *others: str | None) -> list[str]:
        """The columns that the queries read, after others, each once."""
        read = [column.name for query in self.queries for column in query.columns]
        return list(dict.fromkeys([*(name for name in others if name is not None), *read]))

    def uses(self) -> list[tuple[str, str]]:
        """The columns that queries read, and that of users, each with its use, each once: what an event means."""
        found = {(column.name, str(column.reads.use)) for query in self.queries for column in query.columns}
        return sorted(found if self.user_column is None else found | {(self.user_column, "users")})
