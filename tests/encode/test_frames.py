"""Columns and tables of other libraries mean what the list of their cells means, and are read in one piece."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.encode.door import CategoryDoor
from evertally.encode.frames import column, struct_table, table
from evertally.encode.items import ItemDoor
from evertally.encode.labels import as_list, canonical, coded
from evertally.encode.named import columns_of, combined, counts_by_label, records
from evertally.encode.numbers import floats
from evertally.encode.owners import owners

TEXTS = ["a", "b", None, "a", "é", "e\u0301", "7", ""]
NUMBERS = [3, None, -4, 0, 7, 2**40, 7, 7]


class OnlyStream:
    """A library that nobody has heard of, and which speaks Arrow."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return self._content.__arrow_c_stream__(requested)


class OnlyArray(OnlyStream):
    def __getattribute__(self, name: str) -> Any:
        if name == "__arrow_c_stream__":
            raise AttributeError
        return object.__getattribute__(self, name)

    def __arrow_c_array__(self, requested: Any = None) -> Any:
        return self._content.__arrow_c_array__(requested)


class OnlyFrame:
    def __init__(self, content: Any) -> None:
        self._content = content

    def __dataframe__(self, *given: Any, **options: Any) -> Any:
        return self._content.__dataframe__(*given, **options)


class OnlyNumpy:
    def __init__(self, content: Any) -> None:
        self._content = content

    def to_numpy(self) -> Any:
        return np.array(self._content, dtype=object)


def texts(cells: list[Any]) -> list[Any]:
    return [
        pd.Series(cells),
        pd.Series(cells, dtype=object),
        pd.Series(cells, dtype="string"),
        pd.Series(cells, dtype=pd.StringDtype("python")),
        pd.Series(cells, dtype=pd.ArrowDtype(pa.string())),
        pd.Series(cells, dtype="category"),
        pd.Series(
            pd.Categorical(
                cells,
                categories=sorted({"unused", "more", *(cell for cell in cells if cell is not None)}, reverse=True),
            )
        ),
        pd.Index(cells),
        pd.array(cells, dtype="string"),
        pl.Series(cells, dtype=pl.String),
        pl.Series(cells, dtype=pl.Categorical),
        pl.Series(cells, dtype=pl.Object),
        OnlyStream(pa.chunked_array([cells[:3], cells[3:]], pa.string_view())),
        OnlyStream(pl.Series(cells, dtype=pl.String)),
        OnlyArray(pa.array(cells, pa.string())),
        OnlyNumpy(cells),
    ]


def numbers(cells: list[Any]) -> list[Any]:
    return [
        pd.Series(cells),
        pd.Series(cells, dtype=object),
        pd.Series(cells, dtype="Int64"),
        pd.Series(cells, dtype=pd.ArrowDtype(pa.int64())),
        pd.Series(cells, dtype="category"),
        pd.Series([None if cell is None else Decimal(cell) for cell in cells]),
        pl.Series(cells, dtype=pl.Int64),
        OnlyStream(pa.chunked_array([cells])),
        OnlyNumpy(cells),
    ]


def named(cells: Any) -> list[str | None]:
    return [canonical(cell) for cell in as_list(cells)]


@pytest.mark.parametrize("which", range(len(texts(TEXTS))))
@given(cells=st.lists(st.sampled_from(TEXTS), max_size=12))
@settings(max_examples=10)
def test_texts(which: int, cells: list[Any]) -> None:
    read = column(texts(cells)[which])
    assert named(read) == named(cells)
    door = CategoryDoor(["a", "é", "7"], other="rest", order=bytes)
    assert door.totals(read, 1).tolist() == door.totals(cells, 1).tolist()
    assert ItemDoor(order=bytes).totals(read, 1).mapping() == ItemDoor(order=bytes).totals(cells, 1).mapping()
    found, expected = owners(read), owners(cells)
    assert (found[0].tolist(), found[1].list()) == (expected[0].tolist(), expected[1].list())


@pytest.mark.parametrize("which", range(len(numbers(NUMBERS))))
def test_numbers(which: int) -> None:
    for cells in (NUMBERS, [cell for cell in NUMBERS if cell is not None]):
        read = column(numbers(cells)[which])
        assert named(read) == named(cells)
        assert np.array_equal(floats(read), floats(cells), equal_nan=True)


def test_truth_values_times_and_whatever_else() -> None:
    flags = [True, None, False]
    for series in (pd.Series(flags, dtype="boolean"), pd.Series(flags), pl.Series(flags)):
        assert named(column(series)) == ["true", None, "false"]
    times = pd.Series(pd.to_datetime(["2024-01-01", None]))
    for series in (times, times.dt.tz_localize("UTC"), times.dt.to_period("D"), pl.from_pandas(times)):
        assert named(column(series)) == [None, None]  # a time is no label, as in an array of numpy's
    odd = [["a", "b"], {"c": 2}, float("nan"), pd.NA, pd.NaT, ("d",)]
    read = as_list(column(pd.Series(odd, dtype=object)))
    assert read == [["a", "b"], {"c": 2}, None, None, None, ("d",)]
    assert column(pd.Series([{"c": 2}, 7, "a"], dtype=object).astype(str).astype("category")) is not None
    assert named(column(pd.Series(pd.Categorical([7, "a", None, 7])))) == ["7", "a", None, "7"]
    assert as_list(column(pl.Series([["a"], None, []]))) == [["a"], None, []]
    for thing in ("text", 7, None, {"a": 1}, object(), np.int64(3)):
        assert column(thing) is thing


def test_dictionaries_hold_what_occurs_in_the_order_in_which_it_does() -> None:
    cells = ["b", "a", None, "b"]
    for categories in (["a", "b"], ["x", "b", "a", "y"], ["b", "a"]):
        read = column(pd.Series(pd.Categorical(cells, categories=categories)))
        assert read.dictionary.to_pylist() == ["b", "a"]
        assert coded(read)[0].tolist() == [0, 1, -1, 0]  # type: ignore[index]
        chunks = pa.chunked_array([pa.array(cells).dictionary_encode(), pa.array(cells[::-1]).dictionary_encode()])
        assert table(pa.table({"a": chunks})).read(0).to_pylist() == [*cells, *cells[::-1]]  # type: ignore[union-attr]


FRAME = pd.DataFrame({"ward": ["n", "s", None], "sex": pd.Categorical(["m", "f", "f"]), "age": [3, 4, 5]})
TABLES = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "arrow": pa.Table.from_pandas(FRAME),
    "batch": pa.RecordBatch.from_pandas(FRAME),
    "stream": OnlyStream(pa.Table.from_pandas(FRAME)),
    "array": OnlyArray(pa.RecordBatch.from_pandas(FRAME)),
    "interchange": OnlyFrame(pa.Table.from_pandas(FRAME)),
    "numpy": np.array(
        [("n", "m", 3), ("s", "f", 4), (None, "f", 5)], dtype=[("ward", "O"), ("sex", "U1"), ("age", "i8")]
    ),
    "structures": pa.Table.from_pandas(FRAME).to_struct_array(),
}
TABLES["numpy"].dtype.names = ("ward", "sex", "age")


@pytest.mark.parametrize("library", TABLES)
def test_tables(library: str) -> None:
    found = table(TABLES[library]) or struct_table(TABLES[library])
    assert found is not None
    assert (found.names, len(found)) == (("ward", "sex", "age"), 3)
    rows = [("m", "n"), ("f", "s"), ("f", None)]
    places = [1, 0]
    assert records(found, places) == rows
    assert list(combined(found, places)) == rows
    with pytest.raises(TypeError, match="sex, ward"):
        columns_of(found, ["sex", "ward"])
    assert columns_of(found, ["age", "ward"], ["sex", "more"]) == [2, 0, 1, None]
    assert "n" not in repr(found).split("Table")[1].replace("not shown", "")


def test_columns_that_come_twice_or_have_no_names_are_refused() -> None:
    for frame in (pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame([[1, 2]]), pa.table([[1], [2]], ["a", "a"])):
        with pytest.raises(TypeError, match="each once"):
            columns_of(table(frame), ["a"])  # type: ignore[arg-type]


def test_histograms() -> None:
    words = pd.Series(["a", "b", "a"])
    expected = {"a": 2, "b": 1}
    assert counts_by_label(words.value_counts()) == expected
    assert counts_by_label(words.value_counts().reset_index(name="count")) == expected
    assert counts_by_label(pl.Series("word", words.to_list()).value_counts(sort=True)) == expected
    assert counts_by_label(pa.Table.from_struct_array(pa.array(words).value_counts())) == expected
    assert counts_by_label(expected) is expected
    for wrong in (words, pd.Series([1, 2], index=["a", "a"]), FRAME, pd.DataFrame({"a": ["x", "x"], "count": [1, 2]})):
        with pytest.raises(TypeError):
            counts_by_label(wrong)


def test_long_columns_are_read_without_a_look_at_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a column costs is what its different values cost."""
    looked: list[Any] = []
    monkeypatch.setattr("evertally.encode.door.canonical", lambda value: looked.append(value) or canonical(value))
    cells = ["a", "b", None, "a"] * 500
    door = CategoryDoor(["a", "b"], order=bytes)
    del looked[:]
    for series in texts(cells)[:13]:
        assert door.totals(column(series), 1).tolist() == [1000, 500]
        assert len(looked) <= 5
        del looked[:]
    found = table(pl.DataFrame({"x": cells, "y": cells[::-1]}))
    assert found is not None
    assert len(combined(found, [1, 0]).values) == 3


def test_nothing_of_other_libraries_is_loaded() -> None:
    code = (
        "import sys, evertally as et\n"
        "promise = {'guarantee': et.ZCDP(0.5), 'horizon': 9, 'mechanism': 'tree', 'key': et.simulation(1)}\n"
        "made = et.Histogram(categories=['a', 'b'], **promise)\n"
        "made.step({'a': 1}); made.step_events(['a']); made.run([[1, 2]])\n"
        "assert not {'pandas', 'polars', 'pyarrow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("which", [0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 15])
def test_without_arrow_columns_mean_the_same(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given_column = texts(TEXTS)[which]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert named(column(given_column)) == named(TEXTS)
    with pytest.raises(TypeError, match="pyarrow is needed"):
        column(OnlyStream(None))
