"""Releases as bytes: one line per released number, in an order and a form that depend on nothing but the release."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

FIELDS = ("tick", "time", "query", "category", "value", "stddev", "lower", "upper")


def entries(release: Any, beta: float) -> Iterator[tuple[str | None, Any, Any, Any]]:
    """What a release consists of: (category, value, lower, upper), in an order that is public.

    A histogram has an entry per category, in the declared order: the order of arrival is private. Where labels are
    found or chosen, there is one for each released label, best first, and none for any other. A list has one per
    rank. A value is a number or a label; of a label, lower and upper bound how far its sum is from the right one.
    """
    value, (lower, upper) = release.value, release.interval(beta=beta)
    if isinstance(value, Mapping):
        yield from ((label, number, lower[label], upper[label]) for label, number in value.items())
    elif isinstance(value, list | np.ndarray):
        for rank, one in enumerate(zip(*map(_plain, (value, lower, upper)), strict=True), start=1):
            yield str(rank), *one
    else:
        yield None, value, lower, upper


def _plain(values: Any) -> list[Any]:
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def rows(query: str, time: str | int, release: Any, beta: float) -> Iterator[tuple[Any, ...]]:
    """The rows of one release."""
    stddev = None if release.stddev is None else float(f"{release.stddev:.6g}")
    for category, value, lower, upper in entries(release, beta):
        yield release.tick, time, query, category, value, stddev, lower, upper


def _cell(value: Any) -> str:
    """A CSV cell. Labels may be anybody's text: a carriage return, which csv.writer lets pass, would end the row."""
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def encode(lines: Iterator[tuple[Any, ...]], suffix: str, header: bool) -> bytes:
    """Rows as JSON lines or CSV (`suffix`); the header line only where the file begins."""
    text = io.StringIO()
    if suffix == ".csv":
        for line in chain([FIELDS] if header else [], lines):
            text.write(",".join(map(_cell, line)) + "\n")
    else:
        for line in lines:
            text.write(json.dumps(dict(zip(FIELDS, line, strict=True)), ensure_ascii=False) + "\n")
    return text.getvalue().encode("utf-8", "backslashreplace")
