"""What `run` gave of a frame is read by its columns, and comes back as such a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evertally as et

DAYS = pd.date_range("2024-03-01", periods=3, name="day")
VISITS = pd.DataFrame({"n": [100, 90, 80], "s": [1, 2, 3]}, index=DAYS)


def wards(*categories: str) -> et.Histogram:
    return et.Histogram(categories=categories, guarantee=et.ZCDP(5.0), horizon=3, key=et.simulation(1))


def test_columns_in_another_order_are_not_the_same_table() -> None:
    one, other = wards("n", "s"), wards("s", "n")
    for a, b in ((one.run(VISITS), other.run(VISITS)),):
        with pytest.raises(et.ConfigurationError, match="do not have the same ones"):
            et.consistent({"a": a, "b": b}, of={"a": one, "b": other}, sums={"a": "b"})
        with pytest.raises(et.ConfigurationError, match="do not have the same ones"):
            et.consistent({"a": a.to_numpy(), "b": b.to_numpy()}, of={"a": one, "b": other}, sums={"a": "b"})


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_frame_comes_back_whatever_the_order_of_its_columns(library: str) -> None:
    made = wards("n", "s")
    released = made.run(VISITS)
    expected = et.consistent({"a": released.to_numpy()}, of=made, monotone=True).value["a"]
    turned: Any = released[["s", "n"]]
    if library != "pandas":
        turned = turned.reset_index()
        turned = pl.from_pandas(turned) if library == "polars" else pa.Table.from_pandas(turned, preserve_index=False)
    found = et.consistent({"a": turned}, of=made, monotone=True).value["a"]
    assert type(found) is type(turned)
    assert np.array_equal(np.column_stack([found["n"], found["s"]]), expected)
    assert list(found.index if library == "pandas" else map(pd.Timestamp, found["day"].to_numpy())) == list(DAYS)


def test_columns_that_are_no_labels_are_refused() -> None:
    made = wards("n", "s")
    released = made.run(VISITS)
    for other in (released.rename(columns={"n": "north"}), released.assign(more=1), released[["n"]]):
        with pytest.raises(et.ConfigurationError, match="the labels of its mechanism"):
            et.consistent({"a": other}, of=made)


def test_one_number_a_tick() -> None:
    made = et.Counter(guarantee=et.ZCDP(5.0), horizon=3, key=et.simulation(1))
    released = made.run(VISITS["n"])
    found = et.consistent({"all": released}, of=made, monotone=True).value["all"]
    assert found.index.equals(DAYS)
    table = pl.DataFrame({"day": DAYS.to_numpy(), "value": released.to_numpy()})
    again = et.consistent({"all": table}, of=made, monotone=True).value["all"]
    assert again["value"].to_list() == found.tolist()
