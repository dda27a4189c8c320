"""Releases as bytes: one line per released number, in an order and a form that depend on nothing but the release."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

FIELDS = ("tick", "time", "query", "category", "value", "stddev", "lower", "upper")


def rows(query: str, time: str | int, release: Any, beta: float) -> Iterator[tuple[Any, ...]]:
    """The rows of one release.

    A histogram gives one row per category, in the declared order: the order of arrival is private.
    """
    lower, upper = release.interval(beta=beta)
    stddev = None if release.stddev is None else float(f"{release.stddev:.6g}")
    if not isinstance(release.value, Mapping):
        yield release.tick, time, query, None, release.value, stddev, lower, upper
        return
    for label, value in release.value.items():
        yield release.tick, time, query, label, value, stddev, lower[label], upper[label]


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
