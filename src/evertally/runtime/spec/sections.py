"""What the sections of a spec may say, and what they say when they are silent. Queries are next door."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, RootModel, model_validator

from evertally.kinds.fields import (
    Flag,
    Line,
    Lines,
    Name,
    Natural,
    Number,
    OptionError,
    Positive,
    Probability,
    Seconds,
    Section,
    Text,
    Ticks,
    Whole,
)
from evertally.runtime.spec.network import HostNames, Port, WebAddress, in_the_clear

RELEASE_FILES = (".jsonl", ".csv", ".parquet")


def _release_file(name: str) -> str:
    if Path(name).suffix.lower() not in RELEASE_FILES:
        raise ValueError("must end in .jsonl or .csv, or in .parquet for a folder of Parquet parts")
    return name


ReleaseFile = Annotated[Text, AfterValidator(_release_file)]


class StreamSection(Section):
    name: Name
    horizon: Whole | None = None
    neighbours: Literal["add_remove", "replace", "independent"] = "add_remove"
    unit: Literal["event", "user", "user-period"] = "event"
    max_events_per_user: Whole | None = None
    user_column: Text | None = None
    period: Ticks | None = None
    max_events_per_tick: Whole | None = None
    order: Literal["arrival", "content"] = "arrival"
    title: Line | None = None
    noun: Line | None = None
    description: Lines | None = None

    @model_validator(mode="after")
    def _users_are_named(self) -> Self:
        if self.max_events_per_user is not None and self.unit != "user":
            raise OptionError("max_events_per_user", 'max_events_per_user needs unit = "user"')
        if self.user_column is None and self.unit != "event":
            raise OptionError("unit", f'unit = "{self.unit}" needs user_column')
        if self.period is not None and self.unit != "user-period":
            raise OptionError("period", 'period needs unit = "user-period"')
        if self.period is None and self.unit == "user-period":
            raise OptionError("unit", 'unit = "user-period" needs period, the length of a block of ticks')
        return self


class GuaranteeSection(Section):
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    adversary: Literal["adaptive", "oblivious"] = "adaptive"
    force: bool | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.model_fields_set - {"adversary", "force"} not in ({"epsilon"}, {"rho"}, {"epsilon", "delta"}):
            raise OptionError(None, "needs exactly one of: epsilon; epsilon and delta; rho")
        if self.force is not None and self.delta is None:
            raise OptionError("force", "force is for a large delta, and there is none here")
        return self


class ClockSection(Section):
    """Start, tick and end depend on each other: the clock itself reads them."""

    column: Text | None = None
    start: Any
    tick: Any
    end: Any = None
    close: Literal["wall", "request"] = "wall"


class EventsSection(RootModel[dict[Text, Literal["time", "integer", "number", "text", "list of text", "counts"]]]):
    """Columns and their types."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


class KeySection(Section):
    file: Text


class StateSection(Section):
    file: Text
    snapshot_every: Whole = 64
    batch_ids: Whole = 100_000


def _check_spreadsheet(section: OutputSection | SinkSection) -> None:
    if section.spreadsheet and not (section.file or "").lower().endswith(".csv"):
        raise OptionError("spreadsheet", "spreadsheet goes with a file that ends in .csv")


class OutputSection(Section):
    file: ReleaseFile | None = None
    beta: Probability = 0.05
    spreadsheet: Flag = False

    @model_validator(mode="after")
    def _only_csv(self) -> Self:
        _check_spreadsheet(self)
        return self


class SinkSection(Section):
    file: ReleaseFile | None = None
    webhook: WebAddress | None = None
    timeout: Positive = 5.0
    spreadsheet: Flag = False

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        _check_spreadsheet(self)
        if (self.file is None) == (self.webhook is None):
            raise OptionError("webhook" if self.webhook else None, "needs exactly one of: file; webhook")
        if self.file is not None and "timeout" in self.model_fields_set:
            raise OptionError("timeout", "timeout goes with webhook")
        return self


class SourceSection(Section):
    """Where a live stream fetches events by itself: a folder that others write into, or a topic of Kafka."""

    folder: Text | None = None  # beside the spec, unless it is absolute
    kafka: Text | None = None  # addresses of brokers
    topic: Text | None = None
    values: Literal["record", "batch"] = "record"
    start: Literal["beginning", "end"] = "beginning"
    options: dict[Text, Text] = Field(default_factory=dict, repr=False)  # of the client library; may hold passwords

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.folder is None) == (self.kafka is None):
            raise OptionError("kafka" if self.kafka else None, "needs exactly one of: folder; kafka")
        for option in ("topic", "values", "start", "options"):
            if self.kafka is None and option in self.model_fields_set:
                raise OptionError(option, f"{option} goes with kafka")
        if self.kafka is not None and self.topic is None:
            raise OptionError("kafka", "kafka (the addresses of brokers) needs a topic")
        return self


class RetentionSection(Section):
    """What the release log keeps: the last `full` ticks, then every `every`-th (0: none), nothing older than `keep`."""

    full: Whole = 100_000
    every: Natural = 60
    keep: Whole | None = None

    @model_validator(mode="after")
    def _keeps_what_is_kept_in_full(self) -> Self:
        if self.keep is not None and self.keep < self.full:
            raise OptionError("keep", f"keep must be at least full, which is {self.full}")
        return self


class ServeSection(Section):
    host: Text = "127.0.0.1"
    port: Port = 8321
    tokens: Text | None = None
    public: Flag = False
    behind_proxy: Flag = False
    certificate: Text | None = None
    private_key: Text | None = None
    max_batch_bytes: Whole = 2**24
    max_batch_rows: Whole = 200_000
    max_waiting_bytes: Whole = 2**30
    max_waiting_rows: Whole = 2**26
    max_memory_bytes: Whole = 2**28
    requests_per_second: Positive = 200.0
    rows_per_second: Positive = 200_000.0
    connections: Whole = 800
    connections_per_address: Whole | None = None
    listeners_per_token: Whole = 32
    hosts: HostNames | None = None
    publish_after: Seconds | None = None

    @model_validator(mode="after")
    def _encrypted_or_local(self) -> Self:
        for given, missing in (("certificate", "private_key"), ("private_key", "certificate")):
            if getattr(self, given) is not None and getattr(self, missing) is None:
                raise OptionError(given, f"{given} needs {missing}: TLS takes both")
        if problem := in_the_clear(self.host, self.certificate, self.behind_proxy):
            raise OptionError("host", problem)
        if self.max_batch_bytes > self.max_waiting_bytes:
            raise OptionError("max_batch_bytes", "max_batch_bytes must be at most max_waiting_bytes")
        if self.max_batch_rows > self.max_waiting_rows:
            raise OptionError("max_batch_rows", "max_batch_rows must be at most max_waiting_rows")
        return self


def _pages(width: int) -> int:
    if width % 16:
        raise ValueError("must be a multiple of 16; 65536, or a multiple of it, is quickest")
    return width


def _release_way(way: str) -> str:
    if way in ("dense", "on demand") or re.fullmatch(r"(every [1-9]\d{0,8}|above -?\d{1,18})", way):
        return way
    raise ValueError('must be "dense", "every k" (ticks), "above x" (a public number) or "on demand"')


class EngineSection(Section):
    """Where and how the stream is played on many machines. None of it decides a released number."""

    kind: Literal["spark"] = "spark"
    root: Text | None = None
    home: Text | None = None
    public: Text | None = None
    worker_key: Text | None = None
    slice_width: Annotated[Whole, AfterValidator(_pages)] = 2**16
    user_buckets: Whole = 16
    label_shards: Whole = 16
    release: Annotated[Text, AfterValidator(_release_way)] = "dense"
    keep: Whole = 2
    grace: Seconds = 10.0


LISTS = ("sink", "source", "query")  # of tables: there may be several
ALL = ("stream", "guarantee", "clock", "events", "key", "state", "output", "retention", "serve", "engine", *LISTS)
