"""Answers about windows as JSON, CSV or Arrow, made in worker threads and kept until the next release."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import pyarrow as pa

from evertally.errors import ConfigurationError
from evertally.runtime.clock import Clock, instant
from evertally.runtime.sinks.lines import csv_line
from evertally.runtime.spec import StreamSpec
from evertally.runtime.windows import Answer, Question, Windows
from evertally.runtime.windows.answers import transposed
from evertally.runtime.windows.exactness import exactness
from evertally.runtime.windows.listing import Listing, listing
from evertally.runtime.windows.question import each
from evertally.service.pages import Format, encoded
from evertally.service.problems import Refused

FIELDS = ("query", "since", "tick", "start", "end", "label", "value", "stddev", "lower", "upper")
_KEPT = 64  # answers
_KEPT_BYTES = 2**25


class Kept:
    """The last answers by what was asked and how far the stream was then: the same question gets the same bytes."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, asked: Hashable, make: Callable[[], bytes]) -> bytes:
        """The answer; what cannot be asked is refused."""
        with self._lock:
            if asked in self._answers:
                self._answers.move_to_end(asked)
                return self._answers[asked]
        try:
            made = make()
        except ConfigurationError as error:
            raise Refused(400, str(error)) from None
        with self._lock:
            if asked not in self._answers:
                self._answers[asked] = made
                self._size += len(made)
            while len(self._answers) > 1 and (len(self._answers) > _KEPT or self._size > _KEPT_BYTES):
                self._size -= len(self._answers.popitem(last=False)[1])
        return made


class WindowPages:
    """Windows of a stream as they are sent."""

    def __init__(self, spec: StreamSpec, windows: Windows) -> None:
        self._spec, self._windows, self._kept = spec, windows, Kept()

    def page(self, question: Question, published: int, form: Format) -> bytes:
        return self._kept.get((published, question, form), lambda: self._made(question, published, form))

    def _made(self, question: Question, published: int, form: Format) -> bytes:
        answer = self._windows.answer(question, published)
        if form == "json":
            return encoded(as_json(self._spec, answer))
        return as_csv(self._spec, answer) if form == "csv" else as_arrow(self._spec, answer)

    def labels(self, asked: Listing, published: int) -> bytes:
        """A page of labels."""

        def made() -> bytes:
            found, clock = listing(self._windows, asked, published), self._spec.clock
            times = {"start": clock.end_of(found["since"]), "end": clock.end_of(found["tick"])}
            return encoded(found | times | {"beta": self._spec.beta})

        return self._kept.get((published, asked), made)

    def exactness(self, query: str) -> bytes:
        """Errors by window, which depend on no data."""

        def made() -> bytes:
            rows = exactness(self._windows, query, self._spec.clock, self._spec.last_tick)
            return encoded({"query": query, "beta": self._spec.beta, "windows": rows})

        return self._kept.get(("exactness", query), made)


def length(clock: Clock, ticks: int | None, words: Callable[[int], str]) -> dict[str, Any] | None:
    """So many ticks, in seconds and in words."""
    if ticks is None:
        return None
    return {"ticks": ticks, "seconds": None if clock.integer else ticks * clock.length / 1e6, "words": words(ticks)}


def as_json(spec: StreamSpec, answer: Answer) -> dict[str, Any]:
    clock, width = spec.clock, len(answer.labels) if answer.labels is not None else 1
    content: dict[str, Any] = {
        "query": answer.query.name,
        "measure": answer.measure,
        "window": length(clock, answer.window, clock.lasting),
        "per": length(clock, answer.per, lambda ticks: each(clock, ticks)),
        "beta": answer.beta,
        "labels": answer.labels,
        "since": answer.since,
        "tick": answer.tick,
        "start": [clock.end_of(since) for since in answer.since],
        "end": [clock.end_of(tick) for tick in answer.tick],
        "stddev": [numbers.stddev for numbers in answer.numbers],
        "change": None,
    }
    content |= {name: answer.by_label(name) for name in ("value", "lower", "upper")}
    if answer.window is not None:
        unknown = [None] * width
        content["change"] = {
            "value": transposed([unknown if one is None else one[0].value for one in answer.changes], width),
            "stddev": [None if one is None else one[0].stddev for one in answer.changes],
            "clear": transposed([unknown if one is None else one[1] for one in answer.changes], width),
        }
    return content


def _lines(spec: StreamSpec, answer: Answer) -> dict[str, list[Any]]:
    """A line for each number, windows oldest first."""
    clock, labels = spec.clock, answer.labels if answer.labels is not None else [None]
    columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
    for since, tick, numbers in zip(answer.since, answer.tick, answer.numbers, strict=True):
        count = len(labels)
        shared = (answer.query.name, since, tick, clock.end_of(since), clock.end_of(tick))
        for name, cell in zip(FIELDS, shared, strict=False):
            columns[name] += [cell] * count
        columns["label"] += labels
        columns["stddev"] += [numbers.stddev] * count
        for name in ("value", "lower", "upper"):
            columns[name] += getattr(numbers, name)
    return columns


def as_csv(spec: StreamSpec, answer: Answer) -> bytes:
    columns = _lines(spec, answer)
    lines = [csv_line(FIELDS), *map(csv_line, zip(*columns.values(), strict=True))]
    return "".join(lines).encode("utf-8", "backslashreplace")


def as_arrow(spec: StreamSpec, answer: Answer) -> bytes:
    columns = _lines(spec, answer)
    integer = spec.clock.integer
    times = pa.int64() if integer else pa.timestamp("us", tz="UTC")
    types = {"since": pa.int64(), "tick": pa.int64(), "start": times, "end": times, "query": pa.string()}
    types |= {"label": pa.string(), "stddev": pa.float64()}
    named = any(isinstance(cell, str) for cell in columns["value"])
    types |= {"value": pa.string() if named else pa.float64(), "lower": pa.float64(), "upper": pa.float64()}
    if not integer:
        columns |= {name: [instant(str(time)) for time in columns[name]] for name in ("start", "end")}
    # Arrow holds UTF-8 only.
    columns["label"] = [
        label if label is None else label.encode("utf-8", "backslashreplace").decode() for label in columns["label"]
    ]
    table = pa.table({name: pa.array(columns[name], types[name]) for name in FIELDS})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return bytes(stream.getvalue())
