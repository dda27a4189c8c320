"""Releases as they are kept: nothing of them is lost, and damage is noticed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from release_stream import released, rows, spec_of_all_kinds, spec_of_user_kinds
from visit_stream import WriteSpec

from evertally.contract.release import Release
from evertally.errors import StateError
from evertally.kinds import OURS
from evertally.runtime.releases import (
    FIELDS,
    TickRelease,
    as_json,
    compressed,
    decompressed,
    pack,
    unpack,
)
from evertally.runtime.spec import QuerySpec, StreamSpec

LABELS = st.text(st.characters(), max_size=5)  # any text that Python can hold, lone surrogates included
WHOLE = st.integers(-(2**70), 2**70)
REAL = st.floats(allow_nan=False)
MINUTES = list(map(str, range(50)))
PAIRS = [json.dumps(pair) for pair in combinations(["north", "south", "p1", "p2"], 2)]


def entries(release: Any, beta: float, names: list[str] | None = None) -> Iterator[tuple[str | None, Any, Any, Any]]:
    """(category, value, lower, upper) as the release itself has them; numbers in a row are ranks, or have names."""
    value, (lower, upper) = release.value, release.interval(beta=beta)
    if isinstance(value, Mapping):
        yield from ((str(label), number, lower[label], upper[label]) for label, number in value.items())
    elif isinstance(value, list | np.ndarray):
        columns = (list(part.tolist() if isinstance(part, np.ndarray) else part) for part in (value, lower, upper))
        for rank, one in enumerate(zip(*columns, strict=True), start=1):
            yield str(rank) if names is None else names[rank - 1], *one
    else:
        yield None, value, lower, upper


@pytest.fixture
def spec(write_spec: WriteSpec) -> StreamSpec:
    return spec_of_all_kinds(write_spec)


def test_every_kind_of_query_comes_back_row_by_row(spec: StreamSpec, tmp_path: Path) -> None:
    of_users = spec_of_user_kinds(tmp_path)
    assert {query.kind for query in (*spec.queries, *of_users.queries)} == {kind.name for kind in OURS}
    labels, releases = row_by_row(spec, 48)
    assert {("found", "north"), ("ahead", "attic"), ("order", "2"), ("middle", "south")} <= labels
    assert {("cuts", '["north", "p2"]'), ("by-degree", ">=3"), ("words", "south north"), ("often", "south")} <= labels
    assert {category for name, category in labels if name == "numbers"} == {"7", "true", "caf\u00e9", "0"}
    assert {category for name, category in labels if name == "by-minute"} == set(MINUTES)
    assert math.isclose(releases["mean"].value, 25, abs_tol=10)
    labels, _ = row_by_row(of_users, 12)
    assert {("people", None), ("by-ward", "rest"), ("in-bits", None)} <= labels


def row_by_row(spec: StreamSpec, ticks: int) -> tuple[set[tuple[str, str | None]], dict[str, Any]]:
    labels = set()
    for kept, releases in released(spec, ticks):
        expected = []
        for name, release in releases.items():
            stddev = None if release.stddev is None else float(f"{release.stddev:.6g}")
            for category, value, lower, upper in entries(
                release, spec.beta, {"cuts": PAIRS, "by-minute": MINUTES}.get(name)
            ):
                expected.append((kept.tick, kept.time, name, category, value, stddev, lower, upper))
                labels.add((name, category))
        found = list(rows(spec, kept))
        # Compared as text: 1 and 1.0 are two different lines in a file.
        assert json.dumps(found) == json.dumps(expected)
        assert all(len(row) == len(FIELDS) for row in found)
    return labels, releases


def test_a_reader_may_ask_for_some_queries(spec: StreamSpec) -> None:
    *_, (kept, releases) = released(spec, 3)
    part = TickRelease(kept.tick, kept.time, {name: kept.payloads[name] for name in ("half", "all")})
    assert [row[2] for row in rows(spec, part)] == ["all", "half"]  # in the order of the spec
    told = as_json(spec, part)
    assert (told["tick"], told["time"], list(told["queries"])) == (3, "2013-01-01T03:00:00Z", ["all", "half"])
    assert told["queries"]["all"]["value"] == releases["all"].value
    assert json.loads(json.dumps(told)) == told


def query(kind: str, **parameters: Any) -> QuerySpec:
    return QuerySpec("q", kind, Fraction(1), "column", parameters, line=1)


def of_counts(counts: Mapping[str, Any], lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Release:
    return Release(1, dict(counts), 1.5, True, lambda beta: (lower, upper))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(LABELS, st.tuples(WHOLE | REAL, WHOLE | REAL, WHOLE | REAL), max_size=5))
@example({"\udc80": (1, 0, 2), "": (-0.0, 0.1, 1e300)})
def test_any_label_and_any_number_comes_back(items: dict[str, tuple[Any, Any, Any]]) -> None:
    value, lower, upper = ({label: parts[i] for label, parts in items.items()} for i in range(3))
    payload = pack(query("unknown-histogram"), of_counts(value, lower, upper), 0.05)
    found = unpack(query("unknown-histogram"), payload)
    assert found["category"] == list(items)
    for name, part in (("value", value), ("lower", lower), ("upper", upper)):
        assert repr(found[name]) == repr(list(part.values()))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(LABELS, WHOLE, min_size=1, max_size=5), st.integers(0, 2**66), st.booleans())
def test_one_radius_stands_for_all_bounds(counts: dict[str, int], radius: int, one_off: bool) -> None:
    lower, upper = ({label: n + move for label, n in counts.items()} for move in (-radius, radius))
    if one_off:
        upper[list(upper)[-1]] += 1
    payload = pack(query("unknown-top"), of_counts(counts, lower, upper), 0.05)
    assert ("radius" in json.loads(payload)) != one_off
    found = unpack(query("unknown-top"), payload)
    assert (found["value"], found["lower"], found["upper"]) == tuple(list(x.values()) for x in (counts, lower, upper))


def test_bounds_are_read_by_label() -> None:
    value = {"a": 1, "b": 2}
    found = unpack(
        query("unknown-top"), pack(query("unknown-top"), of_counts(value, {"b": 7, "a": 5}, {"b": 8, "a": 6}), 0.05)
    )
    assert (found["lower"], found["upper"]) == ([5, 7], [6, 8])


def test_numpy_and_python_numbers_are_the_same_bytes() -> None:
    def made(number: Any, deviation: Any) -> list[bytes]:
        single = Release(1, number(5), deviation, True, lambda beta: (number(3), number(7)))
        several = Release(1, [number(5)] * 2, deviation, True, lambda beta: ([number(3)] * 2, [number(8)] * 2))
        return [pack(query("counter"), single, 0.05), pack(query("top", k=2), several, 0.05)]

    assert made(np.int64, np.float64(2.5)) == made(int, 2.5)
    assert made(np.float64, None) == made(float, None)
    array = Release(1, np.array([5, 4]), None, True, lambda beta: (np.array([3, 2]), np.array([7, 6])))
    assert unpack(query("top", k=2), pack(query("top", k=2), array, 0.05))["lower"] == [3, 2]


def test_declared_labels_are_not_kept_again() -> None:
    labels = [f"a label that nobody wants to read ten thousand times {i}" for i in range(10_000)]
    counts = {label: 17 * i % 1000 for i, label in enumerate(labels)}
    lower, upper = ({label: n + move for label, n in counts.items()} for move in (-40, 40))
    asked = query("histogram", categories=labels)
    payload = pack(asked, of_counts(counts, lower, upper), 0.05)
    assert len(compressed(payload)) < 4 * len(labels)
    assert b"label" not in payload
    found = unpack(asked, payload)
    assert (found["category"], found["lower"]) == (labels, list(lower.values()))


def test_categories_that_are_public() -> None:
    assert query("histogram", categories=["b", 3, "a"], other="rest").categories == ["b", "3", "a", "rest"]
    assert query("leaders", k=3, categories=["a"]).categories == ["1", "2", "3"]
    assert query("query", expressions={"x": {}, "y": {}}, categories=["a"]).categories == ["x", "y"]
    for kind in ("counter", "leader", "unknown-top", "streaming-top"):
        assert query(kind, k=3, categories=["a"]).categories is None


def test_damage_is_noticed_and_not_shown() -> None:
    asked = query("unknown-top")
    kept = compressed(pack(asked, of_counts({"secret": 1}, {"secret": 0}, {"secret": 3}), 0.05))
    broken = [kept[:i] + bytes([kept[i] ^ 1]) + kept[i + 1 :] for i in range(len(kept))]
    # A flipped bit may leave a stream that says the same; it may not change what is read.
    texts, refusals = [], []
    for other in [*broken, b"", kept[:-1], kept + b"x", compressed(b'{"category":["secret"]'), b"secret"]:
        try:
            texts.append(unpack(asked, decompressed(other)))
        except StateError as error:
            refusals.append(repr(error))
    assert "secret" not in "".join(refusals)
    assert all(text == unpack(asked, decompressed(kept)) for text in texts)
    assert len(texts) < 3


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"category": ["a"], "value": [1], "stddev": 1},
        {"category": ["a"], "value": [1, 2], "radius": 1, "stddev": 1},
        {"category": ["a"], "value": ["x"], "radius": 1, "stddev": 1},
        {"category": ["a"], "value": [1], "radius": [1], "stddev": 1},
        {"value": 1, "radius": 1, "stddev": 1},
    ],
)
def test_what_is_no_release_of_the_query_is_refused(content: Any) -> None:
    with pytest.raises(StateError, match="damaged"):
        unpack(query("unknown-top"), json.dumps(content).encode())
    with pytest.raises(StateError, match="damaged"):
        unpack(query("histogram", categories=["a", "b"]), pack(query("counter"), counted(), 0.05))


def counted() -> Release:
    return Release(1, 5, None, True, lambda beta: (3, 7))
