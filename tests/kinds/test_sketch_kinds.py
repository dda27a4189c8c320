"""Sketches and heavy prefixes in specs: spellings, releases, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from release_stream import released
from visit_stream import WriteSpec, spec_writer

from evertally.errors import ConfigurationError
from evertally.kinds import find
from evertally.runtime import load_spec, plan
from spec_text import queries_text

SOME: dict[str, Any] = {"name": "some", "share": 0.1, "column": "patient", "watch": ["p1", "p2"], "width": 256}
OFTEN: dict[str, Any] = {
    "name": "often",
    "share": 0.1,
    "column": "minutes",
    "labels": "number",
    "symbols": 2,
    "fanout": 10,
    "threshold": 20,
}
_ROOM = (("share = 0.75", "share = 0.5"),)


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    return spec_writer(tmp_path)


@pytest.mark.parametrize(
    ("given", "spellings"), [(SOME, ("sketch", "count_sketch")), (OFTEN, ("heavy-prefixes", "heavy_prefixes"))]
)
def test_every_spelling_is_one_stream(write_spec: WriteSpec, given: dict[str, Any], spellings: tuple[str, ...]) -> None:
    specs = [load_spec(write_spec(*_ROOM, append=queries_text(given | {"kind": kind}))) for kind in spellings]
    assert len({spec.digest for spec in specs}) == 1
    assert {spec.queries[-1].kind for spec in specs} == {find(spellings[0]).name}  # type: ignore[union-attr]


def test_what_is_watched_and_what_is_found_is_released(write_spec: WriteSpec) -> None:
    queries = queries_text(SOME | {"kind": "sketch"}, OFTEN | {"kind": "heavy-prefixes"})
    spec = load_spec(write_spec(*_ROOM, append=queries))
    last = [found for _, found in released(spec, 3)][-1]
    assert list(last["some"].value) == ["p1", "p2"]
    assert last["some"].table.shape == (5, 256)
    assert all(label.isdigit() for label in last["often"].value)
    planned = {query.name: query for query in plan(spec).queries}
    assert planned["some"].error_bound is None  # collisions are not known beforehand
    assert "users-and-domains 5.1" in find("sketch").proof_of_change("add_remove", "event")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"name": "s", "kind": "sketch", "share": 0.1, "column": "ward"}, "watch"),
        (SOME | {"kind": "sketch", "rows": 4}, "rows is odd"),
        (OFTEN | {"kind": "heavy-prefixes", "labels": "ipv6"}, "labels"),
    ],
)
def test_refused(write_spec: WriteSpec, query: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        plan(load_spec(write_spec(*_ROOM, append=queries_text(query))))
