"""Answers about windows as JSON, CSV and Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from evertally.runtime.clock import Clock, instant
from evertally.runtime.sinks.lines import csv_line, marked
from evertally.runtime.spec import StreamSpec
from evertally.runtime.windows.answers import Answer, transposed
from evertally.runtime.windows.question import each

FIELDS = ("query", "since", "tick", "start", "end", "label", "value", "stddev", "lower", "upper")


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
    columns |= {name: list(map(marked, columns[name])) for name in ("label", "value")}
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
