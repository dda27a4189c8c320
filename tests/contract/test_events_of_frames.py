"""Events, users and records from frames: what they release is what lists release."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from conformance.one_of_each import one_of_each
from evertally.checks.subject import Subject, events_of, same


def series(cells: Any) -> Any:
    """A Series that begins anywhere: where rows of events come from says nothing."""
    kind = object if any(isinstance(cell, tuple | list | dict) for cell in cells) else None
    return pd.Series(list(cells), index=range(7, 7 + len(cells)), dtype=kind if len(cells) else object)


def polars_series(cells: Any) -> Any:
    try:
        return pl.Series(list(cells), strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        return pl.Series(list(cells), dtype=pl.Object)


@pytest.mark.parametrize("library", [series, polars_series])
@pytest.mark.parametrize("subject", one_of_each(), ids=lambda subject: subject.name)
def test_columns_of_events_release_what_lists_release(subject: Subject, library: Callable[[Any], Any]) -> None:
    plain, framed = (subject.make(et.simulation(seed)) for seed in (2, 2))
    for number, x in enumerate(subject.feed(3), 1):
        if subject.owned:
            events, users = x if isinstance(x, tuple) else (None, x)
        else:
            events = events_of(plain, x)
            users = [f"{number}/{i}" for i in range(len(events))] if subject.users else None
        expected = plain.step_events(events, users=users)
        events = None if events is None else library(events)
        found = framed.step_events(events, users=None if users is None else library(users))
        assert same(found.value, expected.value)
    assert framed.snapshot() == plain.snapshot()


def shuffled(rows: list[tuple[Any, ...]], names: list[str], order: list[int], library: str) -> Any:
    """A table with its columns in another order."""
    columns = {names[i]: [row[i] for row in rows] for i in order}
    if library == "pandas":
        return pd.DataFrame(columns)
    if library == "polars":
        return pl.DataFrame(columns, strict=False)
    if library == "numpy":
        kinds = [(name, object) for name in columns]
        return np.array(list(zip(*columns.values(), strict=True)), dtype=kinds)
    if library == "named tuples":
        return list(map(namedtuple("Row", columns)._make, zip(*columns.values(), strict=True)))  # type: ignore[misc]
    arrow = pa.table({name: pa.array(cells) for name, cells in columns.items()})
    return arrow.to_struct_array() if library == "structures" else arrow


promise = {"guarantee": et.ZCDP(0.5), "horizon": 9, "allow_copy": True}
word, maybe = st.sampled_from("abc"), st.sampled_from(["a", "b", "c", "x", None])
action = st.sampled_from(["insert", "delete", "toggle", None])
GROUPS = partial(et.GroupBy, columns={"p": ["a", "b"], "q": ["b", "c"]}, tables=[["q"], ["p", "q"]], **promise)
BY_NAME = "pandas", "polars", "numpy", "arrow", "structures"
RECORDS = {
    "GroupBy": (GROUPS, ["p", "q"], st.tuples(maybe, maybe), (*BY_NAME, "named tuples")),
    "DynamicHistogram": (
        partial(et.DynamicHistogram, categories=["a", "b"], lifetimes=1, **promise),
        ["action", "value", "id"],
        st.tuples(action, maybe, maybe),
        (*BY_NAME, "named tuples"),
    ),
    "PresentItems": (
        partial(et.PresentItems, max_flips=4, **promise),
        ["action", "value", "id"],
        st.tuples(action, st.none(), maybe),
        ("named tuples",),
    ),
    "EdgeCount": (
        partial(et.graph.EdgeCount, vertices=["a", "b", "c"], **promise),
        ["u", "v"],
        st.tuples(maybe, maybe),
        BY_NAME,
    ),
    "EdgeCount, updates": (
        partial(et.graph.EdgeCount, vertices=["a", "b", "c"], updates="both", **promise),
        ["action", "u", "v"],
        st.tuples(action, maybe, maybe),
        BY_NAME,
    ),
    "CutGraph": (
        partial(et.graph.CutGraph, vertices=["a", "b", "c"], copies="counted", max_weight=4, **promise),
        ["u", "v", "weight"],
        st.tuples(maybe, maybe, st.sampled_from([None, 1, 2, 9])),
        BY_NAME,
    ),
    "SpanningForestCost": (
        partial(et.graph.SpanningForestCost, vertices=["a", "b", "c"], max_weight=4, **promise),
        ["u", "v", "weight"],
        st.tuples(maybe, maybe, st.integers(0, 5)),
        BY_NAME,
    ),
    "EpisodeCounts": (
        partial(et.strings.EpisodeCounts, alphabet="abc", words=["ab", "ba"], sequence="user", **promise),
        ["user", "letter"],
        st.tuples(maybe, maybe),
        BY_NAME,
    ),
}


@pytest.mark.parametrize("which", RECORDS)
@given(data=st.data())
@settings(max_examples=15)
def test_records_are_read_by_the_names_of_their_columns(which: str, data: st.DataObject) -> None:
    make, names, record, libraries = RECORDS[which]
    rows = data.draw(st.lists(record, min_size=1, max_size=8))
    library = data.draw(st.sampled_from(libraries))
    order = data.draw(st.permutations(range(len(names))))
    table = shuffled(rows, names, order, library)
    plain, framed, ticks = (make(key=et.noise.ZeroNoise()) for _ in range(3))
    expected = plain.step_events(rows)
    assert same(framed.step_events(table).value, expected.value)
    assert framed._kept.totals is None or framed._last_input() == plain._last_input()
    if not isinstance(framed, et.GroupBy):
        ticks.run([table])
        assert ticks._last_input() == plain._last_input()


EDGES = pd.DataFrame({"u": ["a"], "v": ["b"]})


@pytest.mark.parametrize(
    ("which", "table"),
    [
        ("GroupBy", pd.DataFrame({"p": ["a"]})),
        ("GroupBy", pd.DataFrame({"p": ["a"], "q": ["b"], "r": ["b"]})),
        ("GroupBy", pd.DataFrame([["a", "b"]])),
        ("GroupBy", pd.DataFrame([["a", "b"]], columns=["p", "p"])),
        ("GroupBy", pa.table({"p": ["a"], "x": ["b"]}).to_struct_array()),
        ("DynamicHistogram", pd.DataFrame({"action": ["insert"], "id": ["b"]})),
        ("DynamicHistogram", pd.DataFrame({"value": ["a"], "id": ["b"]})),
        ("PresentItems", pd.DataFrame({"value": ["a"], "id": ["b"]})),
        ("EdgeCount", EDGES.assign(weight=[1])),
        ("EdgeCount", EDGES[["u"]]),
        ("EdgeCount", EDGES[["u", "u"]]),
        ("EdgeCount, updates", EDGES),
        ("SpanningForestCost", EDGES),
        ("EpisodeCounts", EDGES),
    ],
)
def test_tables_of_other_columns_are_refused(which: str, table: Any) -> None:
    mechanism = RECORDS[which][0](key=et.noise.ZeroNoise())
    with pytest.raises(TypeError) as refusal:
        mechanism.step_events(table)
    assert mechanism.tick == 0
    assert "'a'" not in str(refusal.value)


def test_edges_may_have_weights_and_presences_need_no_value() -> None:
    cuts = RECORDS["CutGraph"][0]
    weighed = [cuts(key=et.noise.ZeroNoise()).step(edges).value for edges in (EDGES, [("a", "b")])]
    assert same(*weighed)
    present = RECORDS["PresentItems"][0](key=et.noise.ZeroNoise())
    assert present.step_events(pd.DataFrame({"id": [7, 8], "action": ["insert"] * 2})).value == 2
    assert present.step_events(pd.Series([9]), pd.Series([7, 8])).value == 1
    grows = et.DynamicHistogram(
        categories=["a", "b"], deletions=False, key=et.noise.ZeroNoise(), guarantee=et.ZCDP(0.5), horizon=9
    )
    assert grows.step_events(pd.DataFrame({"id": [7, 8], "value": ["a", "a"]})).value == {"a": 2, "b": 0}


@pytest.mark.parametrize(
    "statistic", [et.Counter, et.RunningMean, et.Stacked, et.DistinctUsers], ids=lambda kind: kind.__name__
)
def test_a_table_is_refused_where_an_event_is_one_entry(statistic: Any) -> None:
    options: dict[Any, Any] = {
        et.RunningMean: {"lower": 0, "upper": 9},
        et.Stacked: {"parts": {"one": et.part(et.Histogram, categories=["a", "b"])}},
    }
    mechanism = statistic(**options.get(statistic, {}), **promise, key=et.simulation(1))
    with pytest.raises(TypeError, match="choose the column"):
        mechanism.step_events(pd.DataFrame({"a": [1], "b": [2]}))
    assert mechanism.tick == 0


def capped() -> Any:
    return et.Counter(**promise, unit="user", max_events_per_user=2, key=et.noise.ZeroNoise())


@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_users_that_are_missing_are_nobody(kind: Any) -> None:
    users = ["ann", None, "bob", "ann", "ann"]
    expected = capped().step_events([1] * 5, users=users).value
    frame = pd.DataFrame({"amount": [1] * 5, "user": pd.Series(users, dtype=kind)})
    assert capped().step_events(frame["amount"], users=frame["user"]).value == expected == 3
    assert capped().step_events(frame["amount"], users=pl.Series(users)).value == expected
    erased = capped()
    erased.erase(pd.Series(["ann"]))
    assert erased.step_events(frame["amount"], users=frame["user"]).value == 1


def test_numbers_of_users_are_the_same_user_in_every_type() -> None:
    counter = et.Counter(**promise, unit="user", max_events_per_user=1, key=et.noise.ZeroNoise())
    for users in (
        pd.Series([7, None], dtype="Int64"),
        pd.Series([7, None]),  # floats, in pandas
        pd.Series(["7", None]),
        pl.Series([7, None]),
        pd.Series([7, None], dtype="category"),
    ):
        assert counter.step_events([1, 1], users=users).value == 1


def test_rows_of_events_and_users_belong_together() -> None:
    frame = pd.DataFrame({"amount": [1, 1], "user": ["ann", "bob"]})
    for users in (frame["user"][::-1], frame["user"].rename({0: 5})):
        counter = capped()
        with pytest.raises(TypeError, match="different indices"):
            counter.step_events(frame["amount"], users=users)
        assert counter.tick == 0
    assert capped().step_events(frame["amount"], users=frame["user"][::-1].to_numpy()).value == 2


def test_options_that_list_labels_take_columns() -> None:
    labels = pd.Series(["b", "a"], dtype="category")
    for given_labels in (labels, labels.cat.categories[::-1], pl.Series(["b", "a"]), pa.array(["b", "a"])):
        made = et.Histogram(categories=given_labels, **promise, key=et.noise.ZeroNoise())
        assert list(made.categories) == ["b", "a"]


def test_one_release_of_a_histogram_of_pandas_and_polars() -> None:
    words = ["the"] * 300 + ["private"] * 100 + ["rare"]
    once = partial(et.oneshot.unknown_histogram, guarantee=et.ApproxDP(1.0, 1e-6), key=et.simulation(1))
    expected = once({"the": 300, "private": 100, "rare": 1}).value
    assert once(pd.Series(words).value_counts()).value == expected
    assert once(pl.Series("word", words).value_counts()).value == expected
    known = partial(et.oneshot.known_histogram, guarantee=et.ZCDP(0.5), key=et.simulation(1))
    assert (
        known(pd.Series(words).value_counts(), pd.Index(["the", "a"])).value == known({"the": 300}, ["the", "a"]).value
    )


def test_messages_of_local_learning_may_lie_in_a_column() -> None:
    protocol = et.local.Protocol(guarantee=et.ApproxDP(1.0, 1e-9), clients=100, low=0, high=9)
    messages = [et.local.Client(protocol, et.simulation(i)).message(i) for i in range(3)]
    for column in (pd.Series(messages), pl.Series(messages), pa.array(messages), iter(messages)):
        assert et.local.Server(protocol).add_many(column).messages == 3


def stream(values: Any, times: int = 1) -> Any:
    """Something that can be read a number of times and no more, as the result of a query can."""

    class Result:
        left = times

        def __arrow_c_stream__(self, requested: Any = None) -> Any:
            assert self.left, "read once more"
            self.left -= 1
            return values.__arrow_c_stream__(requested)

    return Result()


def test_what_can_be_read_once_is_read_once() -> None:
    events = pd.DataFrame({"q": ["b", "c"], "p": ["a", "b"]})
    expected = GROUPS(key=et.noise.ZeroNoise()).step_events([("a", "b"), ("b", "c")]).value
    assert GROUPS(key=et.noise.ZeroNoise()).step_events(stream(pa.Table.from_pandas(events))).value == expected
    assert GROUPS(key=et.noise.ZeroNoise()).step_events(pa.table(events).to_reader()).value == expected
    column = pa.chunked_array([["a", "b"], ["b"]])
    histogram = et.Histogram(categories=["a", "b"], key=et.noise.ZeroNoise(), **promise)
    assert histogram.step_events(stream(column)).value == {"a": 1, "b": 2}
    row = pa.table({"b": [1], "a": [2]})
    assert histogram.step(stream(row)).value == {"a": 3, "b": 3}
    assert histogram.run([stream(row), {"a": 1}]).tolist() == [[5, 4], [6, 4]]
    assert histogram.run(stream(row)).to_pylist() == [{"a": 8, "b": 5}]
    counter = et.Counter(key=et.noise.ZeroNoise(), **promise)
    assert counter.run(stream(pa.chunked_array([[1, 2]]))).tolist() == [1, 3]
    assert capped().step_events(stream(pa.chunked_array([[1, 1]])), users=stream(column[:2])).value == 2
    means = et.RunningMean(lower=0, upper=9, key=et.noise.ZeroNoise(), **promise)
    assert means.run([stream(pa.chunked_array([[4, 5]]))]).tolist() == means.run([[4, 5]]).tolist()


def test_tables_of_users_capped() -> None:
    events = pd.DataFrame({"q": ["b"] * 4, "p": ["a"] * 4, "user": ["ann", "ann", "ann", None]})
    groups = GROUPS(unit="user", max_events_per_user=2, key=et.noise.ZeroNoise())
    assert groups.step_events(events[["q", "p"]], users=events["user"]).value["q=b"] == 2
    with pytest.raises(TypeError, match="different indices"):
        groups.step_events(events[["q", "p"]], users=events["user"][::-1])
