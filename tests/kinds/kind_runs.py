"""Specs of graphs and strings, written, run and compared with statistics that are built by hand; not a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evertally.kinds import find
from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.spec import StreamSpec
from evertally.stream import Stream
from spec_text import spec_text

LOUD = {"rho": 1e9}  # the noise of one event is zero then, all but surely
QUIET = {"rho": 0.5}


def hour(tick: int, minute: int = 0) -> str:
    """A moment of a tick."""
    return f"2013-01-01T{tick - 1:02d}:{minute:02d}:00Z"


def written(folder: Path, *queries: Mapping[str, Any], **sections: Any) -> StreamSpec:
    path = folder / "visits.toml"
    path.write_text(spec_text(*queries, **{"guarantee": LOUD, **sections}))
    return load_spec(path)


def with_more(spec: StreamSpec, text: str) -> StreamSpec:
    """The spec with something appended."""
    spec.path.write_text(spec.path.read_text() + text)
    return load_spec(spec.path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def values(spec: StreamSpec, query: str) -> list[Any]:
    """What a query released, tick by tick: a number, or numbers by category."""
    assert spec.output_file is not None
    by_tick: dict[int, dict[Any, Any]] = {}
    for row in lines_of(spec.output_file):
        found = by_tick.setdefault(row["tick"], {})
        if row["query"] == query:
            found[row["category"]] = row["value"]
    return [found.get(None, found) for _, found in sorted(by_tick.items())]


def by_hand(spec: StreamSpec, options: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The statistics of a spec that has run, under its key, from options as Python writes them."""
    stream = Stream(
        spec.name,
        guarantee=spec.guarantee,
        horizon=spec.horizon,
        key=Key.load(spec.key_file),
        unit=spec.unit,
        max_events_per_user=spec.max_events_per_user,
    )
    made = {}
    for query in spec.queries:
        kind = find(query.kind)
        assert kind is not None
        made[query.name] = stream.add(
            kind.statistic, share=query.share, name=query.name, allow_copy=True, **options[query.name]
        )
    return made


def plain(value: Any, labels: list[str] | None) -> Any:
    """A released value as rows of a file say it."""
    if isinstance(value, dict):
        return value
    return value if labels is None else dict(zip(labels, value.tolist(), strict=True))
