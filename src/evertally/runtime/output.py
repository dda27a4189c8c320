"""Releases as bytes: one line per released number, in an order and a form that depend on nothing but the release."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

FIELDS = ("tick", "time", "query", "category", "value", "stddev", "lower", "upper")


def rows(query: str, time: str | int, release: Any, beta: float) -> Iterator[tuple[Any, ...]]:
    """The rows of one release. A histogram gives one row per category, in the declared order: order of arrival is private."""
    lower, upper = release.interval(beta=beta)
    if not isinstance(release.value, Mapping):
        yield release.tick, time, query, None, release.value, release.stddev, lower, upper
        return
    for label, value in release.value.items():
        yield (
            release.tick,
            time,
            query,
            label,
            value,
            _of(release.stddev, label),
            _of(lower, label),
            _of(upper, label),
        )


def _of(numbers: Any, label: str) -> Any:
    return numbers[label] if isinstance(numbers, Mapping) else numbers


def encode(lines: Iterator[tuple[Any, ...]], suffix: str, header: bool) -> bytes:
    """Rows as JSON lines or CSV (`suffix`); the header line only where the file begins."""
    text = io.StringIO()
    if suffix == ".csv":
        writer = csv.writer(text, lineterminator="\n")
        if header:
            writer.writerow(FIELDS)
        writer.writerows(lines)
    else:
        for line in lines:
            text.write(json.dumps(dict(zip(FIELDS, line, strict=True)), ensure_ascii=False) + "\n")
    return text.getvalue().encode("utf-8", "backslashreplace")
