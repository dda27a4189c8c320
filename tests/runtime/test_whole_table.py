"""`et.release`: one call for a table gives what the mechanisms give, in the frame of whoever asked."""

from __future__ import annotations

import datetime as dt
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
from release_stream import FURTHER, spec_of_all_kinds
from visit_stream import WriteSpec, visits

import evertally as et
from evertally.errors import NoiseReused
from evertally.noise import ZeroNoise
from evertally.runtime.table.given import spec_from
from spec_text import ALL, spec_text

DAYS, CITIES = 12, ["Bonn", "Ulm"]
CLOCK: dict[str, Any] = {"time": "day", "start": "2024-01-01", "end": "2024-01-13", "tick": "1d"}
QUERIES = {"orders": et.query("counter"), "by_city": et.query(et.Histogram, column="city", categories=CITIES)}
ASKED: dict[str, Any] = {"queries": QUERIES, **CLOCK, "guarantee": et.ZCDP(0.5), "outside": "drop"}


def orders(days: int = DAYS) -> dict[str, list[Any]]:
    """Two rows on the first day, three on the second, and so on; two that lie outside."""
    day = [dt.datetime(2024, 1, 1 + n, 6) for n in range(days) for _ in range(n + 2)]
    city = [CITIES[i % 3 % 2] for i in range(len(day))]
    outside = [dt.datetime(2023, 12, 31, 23), dt.datetime(2024, 1, 13)]
    return {"day": [*day, *outside], "city": [*city, "Ulm", "Ulm"], "customer": list(range(len(day) + 2))}


def exact() -> dict[tuple[str, str | None], np.ndarray]:
    table = orders()
    tick = np.array([day.day for day in table["day"][:-2]])
    city = np.array(table["city"][:-2])
    counts = {("orders", None): np.bincount(tick, minlength=DAYS + 1)[1:]}
    for name in CITIES:
        counts["by_city", name] = np.bincount(tick[city == name], minlength=DAYS + 1)[1:]
    return counts


def series(table: Any, query: str, label: str | None) -> list[Any]:
    rows = table.to_pylist() if isinstance(table, pa.Table) else table
    return [row["value"] for row in rows if row["query"] == query and row["label"] == label]


def test_without_noise_every_row_is_counted_in_its_tick_and_none_that_lies_outside() -> None:
    table = et.release(orders(), **ASKED, key=ZeroNoise()).to_arrow()
    for (query, label), counts in exact().items():
        assert series(table, query, label) == np.cumsum(counts).tolist()
    assert table["time"][0].as_py() == dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    assert [str(kind) for kind in table.schema.types] == [
        *("int64", "timestamp[us, tz=UTC]", "string", "string", "int64", "double", "int64", "int64")
    ]


def test_releases_are_those_of_the_mechanisms_under_a_key_of_their_own() -> None:
    found = et.release(orders(), **ASKED, key=et.simulation(5))
    stream = et.Stream(
        "table",
        guarantee=et.ZCDP(0.5),
        horizon=DAYS,
        key=et.simulation(5).derive("et.release"),
        neighbours="add_remove",
    )
    counter = stream.add(et.Counter, share=Fraction(1, 2), name="orders")
    by_city = stream.add(et.Histogram, share=Fraction(1, 2), name="by_city", categories=CITIES)
    counts = exact()
    ours = counter.run(counts["orders", None])
    assert series(found.to_arrow(), "orders", None) == ours.tolist()
    both = by_city.run(np.stack([counts["by_city", city] for city in CITIES], axis=1))
    assert [series(found.to_arrow(), "by_city", city) for city in CITIES] == both.T.tolist()
    low, high = found.releases["orders"][3].interval(0.05)
    row = found["orders"].to_arrow().to_pylist()[3]
    assert (row["low"], row["high"], row["stddev"]) == (low, high, counter.stddev(4))


def as_polars(table: Any) -> Any:
    return polars.DataFrame(table)


def as_file(table: Any, path: Path) -> Path:
    pyarrow.parquet.write_table(pa.table(table), path)
    return path


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "parquet", "csv"])
def test_any_library_gives_the_same_and_gets_its_own_frame_back(library: str, tmp_path: Path) -> None:
    table = orders()
    made: dict[str, Any] = {
        "pandas": lambda: pd.DataFrame(table).astype({"city": "category"}),
        "polars": lambda: as_polars(table),
        "arrow": lambda: pa.table(table),
        "parquet": lambda: as_file(table, tmp_path / "orders.parquet"),
        "csv": lambda: pd.DataFrame(table).to_csv(tmp_path / "orders.csv", index=False) or tmp_path / "orders.csv",
    }
    found = et.release(made[library](), **ASKED, key=et.simulation(5))
    assert found.to_arrow().equals(et.release(table, **ASKED, key=et.simulation(5)).to_arrow())
    module = {"pandas": "pandas", "polars": "polars"}.get(library, "pyarrow")
    assert type(found.frame).__module__.split(".")[0] == module
    assert pa.table(found).equals(found.to_arrow())


@pytest.mark.parametrize("moments", ["datetime64[ns]", "datetime64[us]", "datetime64[D]", "<U32", object])
def test_arrays_of_numpy_and_columns_of_others_in_a_dictionary(moments: Any) -> None:
    table = orders()
    arrays = {"day": np.array(table["day"], "datetime64[us]").astype(moments), "city": pd.Series(table["city"])}
    assert (
        et.release(arrays, **ASKED, key=ZeroNoise())
        .to_arrow()
        .equals(et.release(table, **ASKED, key=ZeroNoise()).to_arrow())
    )


def test_columns_of_a_dictionary_belong_together_by_their_index() -> None:
    table = {
        "day": pd.Series(["2024-01-01"] * 2, index=[0, 1]),
        7: [1, 2],
        "city": pd.Series(["Ulm"] * 2, index=[1, 0]),
    }
    asked: dict[str, Any] = {**CLOCK, "guarantee": et.ZCDP(0.5), "key": ZeroNoise()}
    by_city, by_number = (et.query("histogram", column=of, categories=["Ulm", 1]) for of in ("city", "7"))
    with pytest.raises(et.ConfigurationError, match="different indices"):
        et.release(table, {"by_city": by_city}, **asked)
    assert series(et.release(table, {"sizes": by_number}, **asked).to_arrow(), "sizes", "1")[-1] == 1


def test_an_index_with_a_name_is_a_column_and_dictionaries_come_back() -> None:
    frame = pd.DataFrame(orders()).set_index("day")
    assert et.release(frame, **ASKED, key=ZeroNoise()).to_pandas().value.max() == sum(range(2, DAYS + 2))
    assert set(et.release(orders(), **ASKED, key=ZeroNoise()).frame) >= {"tick", "value"}


def objects(table: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in table.items()})


ODD = ["noon", None, 7, float("nan"), dt.datetime.max, pd.NaT, b"\xff", Decimal("1.5"), "\ud800", [object()], object()]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("frame", [False, True])
def test_one_odd_cell_changes_no_other(odd: object, frame: bool) -> None:
    table = orders()
    before = et.release(table, **ASKED, key=ZeroNoise()).to_arrow()
    more = {"day": [*table["day"], odd], "city": [*table["city"], "Ulm"], "customer": [*table["customer"], 0]}
    given = objects(more) if frame else more
    assert et.release(given, **ASKED, key=ZeroNoise()).to_arrow().equals(before)
    assert et.release(given, **ASKED).to_arrow().num_rows == before.num_rows  # and its digest is taken
    more["day"][-1], more["city"][-1] = table["day"][0], odd
    given = objects(more) if frame else more
    after = et.release(given, **ASKED, key=ZeroNoise()).to_arrow()
    assert series(after, "by_city", "Ulm") == series(before, "by_city", "Ulm")
    assert [n - m for n, m in zip(series(after, "orders", None), series(before, "orders", None), strict=True)] == [
        1
    ] * DAYS


LABELLED: dict[str, Any] = {
    "queries": {
        "label": et.query("histogram", column="label", categories=["a", "7"], other="other", max_per_event=3),
        "amount": et.query("counter", column="amount", max_weight=100),
    },
    **CLOCK,
    "guarantee": et.ZCDP(0.5),
    "outside": "drop",
}


def counted(table: Any) -> list[float]:
    """Without noise, at the last tick: a, 7, others, and the sum of amounts."""
    rows = et.release(table, **LABELLED, key=ZeroNoise()).to_arrow().to_pylist()
    return [row["value"] for row in rows if row["tick"] == DAYS]


@pytest.mark.parametrize(
    ("label", "amount", "total"),
    [
        (Decimal("7.00"), Decimal("7.90"), [0, 2, 0, 14]),
        (Decimal("7.5"), Fraction(15, 2), [0, 0, 0, 14]),
        (Fraction(14, 2), Fraction(200), [0, 2, 0, 200]),
        (Decimal("1e999999999"), Decimal("1e999999999"), [0, 0, 0, 200]),
        (Decimal("nan"), Decimal("inf"), [0, 0, 0, 0]),
        (np.array(["a", "b"]), np.longdouble(3), [2, 0, 2, 6]),
        (np.array([7, 8]), np.float16(3), [0, 2, 2, 6]),
        (np.array(["2024-01-01"], "M8[ns]"), 1, [0, 0, 0, 2]),
        (np.array(7), np.array(7), [0, 0, 0, 0]),
        ({"a", "7"}, 1, [2, 2, 0, 2]),
    ],
)
def test_cells_of_any_python_type_mean_what_they_mean_to_step_events(label: Any, amount: Any, total: list[int]) -> None:
    """In a dictionary, a frame of pandas and a frame of Polars, whose columns of objects are none of Arrow's."""
    columns = {"day": ["2024-01-02"] * 2, "label": [label] * 2, "amount": [amount] * 2}
    pandas = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    objects = {name: polars.Series(columns[name], dtype=polars.Object) for name in ("label", "amount")}
    assert counted(columns) == counted(pandas) == total
    assert counted(polars.DataFrame({"day": columns["day"], **objects})) == total
    wards = et.Histogram(
        categories=["a", "7"], other="other", max_per_event=3, guarantee=et.ZCDP(0.5), horizon=1, key=ZeroNoise()
    )
    assert list(wards.step_events([label] * 2).value.values()) == total[:3]


def test_lists_of_a_parquet_file_count_in_pandas_too(tmp_path: Path) -> None:
    table = pa.table({"day": ["2024-01-02"] * 3, "label": [["a", "7"], None, ["x"]], "amount": [1, 2, 3]})
    pa.parquet.write_table(table, tmp_path / "lists.parquet")
    assert counted(pd.read_parquet(tmp_path / "lists.parquet")) == counted(table) == [1, 1, 1, 6]


def test_columns_that_nobody_reads_are_refused_in_our_own_words() -> None:
    """Also where rows lie outside and are taken out first."""
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"]))
    table = pa.table({"day": ["2024-01-02", "1999-01-01"], "label": ends, "amount": [1, 2]})
    with pytest.raises(et.ConfigurationError, match="'label' is damaged, or of a type that is not read here"):
        counted(table)
    long = {"day": ["2024-01-02"], "label": ["a"], "amount": np.array([3], np.longdouble)}
    assert counted(long) == [1, 0, 0, 3]


def test_windows_are_differences_with_their_exact_error() -> None:
    found = et.release(orders(), **ASKED, key=et.simulation(5))
    total = series(found.to_arrow(), "orders", None)
    windows = found["orders"].window("5d").to_arrow().to_pylist()
    assert [(row["since"], row["tick"]) for row in windows] == [(2, 7), (7, 12)]
    counter = et.Counter(guarantee=et.ZCDP(Fraction(1, 4)), horizon=DAYS, key=et.simulation(1))
    for row in windows:
        assert row["value"] == total[row["tick"] - 1] - total[row["since"] - 1]
        assert row["stddev"] == counter.stddev(row["tick"], since=row["since"])
    rates = found["orders"].window("5d", per="1d", every="1d").to_arrow().to_pylist()
    assert [row["tick"] for row in rates] == list(range(5, DAYS + 1))
    assert rates[2]["value"] == pytest.approx(windows[0]["value"] / 5)
    assert rates[2]["high"] - rates[2]["low"] == pytest.approx((windows[0]["high"] - windows[0]["low"]) / 5)
    whole = found["orders"].window(DAYS).to_arrow().to_pylist()
    assert [row["value"] for row in whole] == total[-1:]
    asked_at_once = et.release(orders(), **ASKED, key=et.simulation(5), window="5d", per="1d")
    assert asked_at_once.to_arrow().equals(found.window("5d", per="1d").to_arrow())


def test_means_have_windows_and_no_rates_and_active_users_have_none() -> None:
    table = orders() | {"price": [10.0] * len(orders()["day"])}
    queries = {
        "price": et.query("mean", column="price", lower=0, upper=20),
        "active": et.query("active_users", windows=[2]),
        "items": et.query("counter"),
    }
    users = {"user": "customer", "unit": "user", "max_events_per_user": 5}
    found = et.release(table, queries, **CLOCK, guarantee=et.ZCDP(0.5), **users, key=ZeroNoise(), outside="drop")
    weekly = found.window("6d", per="1d")
    assert weekly.queries == ["price", "items"]
    assert series(weekly.to_arrow(), "price", None) == [10.0, 10.0]
    assert series(weekly.to_arrow(), "items", None) == [
        pytest.approx(sum(range(2, 8)) / 6),
        pytest.approx(sum(range(8, 14)) / 6),
    ]
    with pytest.raises(et.ConfigurationError, match="mean nothing"):
        found["active"].window("6d")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"start": None}, "start missing. time, start, end and tick are declared.*never read off the rows"),
    ({"end": "2024-01-13T01:00"}, "end must fall on a tick boundary"),
    ({"guarantee": None}, "say what is promised"),
    ({"guarantee": 1.0}, "guarantee is what is promised"),
    ({"time": "when"}, "the table has no column 'when'. Its columns: day, city, customer"),
    ({"queries": {"a": "counters"}}, "there is no such kind of query, 'counters'; did you mean 'counter'"),
    ({"queries": {"a": "zebra"}}, "there is no such kind of query, 'zebra'; there are: counter, histogram"),
    ({"queries": {"a": et.query("histogram", column="city")}}, "^query 'a': needs 'categories'"),
    ({"queries": [{"kind": "counter"}]}, "^query 1: needs 'name'"),
    ({"queries": {"a": et.query("counter", shares=1)}}, "^query 'a': has no option 'shares'. Did you mean 'share'"),
    ({"queries": {"a": et.query("counter", mechanism="gauss")}}, "^query 'a': "),
    ({"queries": "nowhere.toml"}, "the spec says so already"),
    ({"queries": 7}, "queries are given by name"),
    ({"user": "customer"}, 'unit = "user" needs max_events_per_user: the counter'),
    (
        {"outside": "refuse"},
        "has 1 row before 2024-01-01T00:00:00Z and 1 row at or after 2024-01-13T00:00:00Z: outside",
    ),
    ({"outside": "ignore"}, 'outside is "refuse" or "drop"'),
    ({"time": "city", "outside": "refuse"}, "no row has a readable time in the column 'city', so that nothing"),
    ({"window": "5h"}, "window must be whole ticks"),
    ({"window": "13d"}, "13 ticks are more than the 12"),
    ({"per": "1d"}, "per goes with a window"),
]


@pytest.mark.parametrize(("other", "words"), REFUSED, ids=[words[:25] for _, words in REFUSED])
def test_refusals_are_in_the_words_of_the_call(other: dict[str, Any], words: str) -> None:
    with pytest.raises(et.ConfigurationError, match=words) as refused:
        et.release(orders(), **ASKED | other, key=ZeroNoise())
    assert "et.release:" not in str(refused.value)
    assert "[" not in str(refused.value)


def test_a_key_is_no_text() -> None:
    for name in (None, "orders"):
        with pytest.raises(et.ConfigurationError, match="key is a Key object, nothing of type str"):
            et.release(orders(), **ASKED, key="secret", name=name)


@pytest.mark.parametrize("table", [7, [1, 2], pd.Series([1]), {"day": 7, "city": ["Ulm"]}, {"day": [1, 2], "city": []}])
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(et.ConfigurationError):
        et.release(table, **ASKED, key=ZeroNoise())


def test_a_column_of_periods_is_refused_without_a_word_of_its_content() -> None:
    frame = pd.DataFrame(orders()).assign(day=pd.period_range("2024-01-01", periods=len(orders()["day"])))
    with pytest.raises(et.ConfigurationError, match=r"the column 'day' is of a type, period\[D\]"):
        et.release(frame, **ASKED, key=ZeroNoise())


def test_a_key_sees_one_table_under_one_name() -> None:
    key = et.Key.generate()
    first = et.release(orders(), **ASKED, key=key).to_arrow()
    assert et.release(orders(), **ASKED, key=key).to_arrow().equals(first)
    other = orders()
    other["city"][0] = "Ulm" if other["city"][0] == "Bonn" else "Bonn"
    moved = ASKED | {"start": "2023-12-31", "end": "2024-01-12"}
    for table, asked in ((other, ASKED), (orders(), moved), (orders(DAYS - 1), ASKED)):
        with pytest.raises(NoiseReused, match="another table"):
            et.release(table, **asked, key=key)
    assert not et.release(other, **ASKED, key=key, name="corrected").to_arrow().equals(first)


def test_the_same_rows_on_another_clock_or_of_another_column_are_another_table() -> None:
    table = {"day": ["2024-01-05"] * 9, "city": ["Ulm"] * 9, "birthplace": ["Bonn"] * 9}
    asked = ASKED | {"key": et.Key.generate()}
    et.release(table, **asked)
    with pytest.raises(NoiseReused, match="another table"):
        et.release(table, **asked | {"start": "2024-01-02", "end": "2024-01-14"})
    elsewhere = {**QUERIES, "by_city": QUERIES["by_city"] | {"column": "birthplace"}}
    with pytest.raises(NoiseReused, match="another table"):
        et.release(table, **asked | {"queries": elsewhere})


def test_a_drawn_key_knows_its_table_too() -> None:
    found = et.release(orders(), **ASKED)
    assert et.release(orders(), **ASKED, key=found.key).to_arrow().equals(found.to_arrow())
    assert not et.release(orders(), **ASKED).to_arrow().equals(found.to_arrow())
    with pytest.raises(NoiseReused):
        et.release(orders(DAYS - 2), **ASKED, key=found.key)


def test_a_loaded_key_needs_a_name(tmp_path: Path) -> None:
    et.Key.generate().save(tmp_path / "shop.key")
    with pytest.raises(et.ConfigurationError, match="say what it is used for"):
        et.release(orders(), **ASKED, key=et.Key.load(tmp_path / "shop.key"))
    et.release(orders(), **ASKED, key=et.Key.load(tmp_path / "shop.key"), name="january")


def test_what_is_shown_is_public() -> None:
    found = et.release(orders(), **ASKED)
    assert repr(found) == "<Released: orders, by_city; 12 ticks, ZCDP(rho=0.5)>"
    assert "not private" in repr(et.release(orders(), **ASKED, key=et.simulation(1)))
    page = found._repr_html_()
    assert "Bonn" in page
    assert "36 rows" in page
    secret = bytes(found.key._secret).hex()
    assert secret not in page + repr(vars(found))
    assert found.ledger.left == 0
    assert [query["name"] for query in found.certificate["queries"]] == ["orders", "by_city"]


def test_the_guarantee_is_kept_to_the_last_digit() -> None:
    third = et.ZCDP(Fraction(1, 3))
    found = et.release(orders(), **ASKED | {"guarantee": third}, key=et.simulation(1))
    assert found.guarantee == third
    assert found.ledger.guarantee.exact_rho == Fraction(1, 3)


def test_every_kind_of_a_spec(write_spec: WriteSpec) -> None:
    ticks = 3
    content = tomllib.loads(spec_of_all_kinds(write_spec, FURTHER).path.read_text())
    spec = spec_from(content)
    content["clock"] |= {"end": spec.clock.end_of(ticks), "close": "request"}
    events = visits(0, ticks)
    table = {name: [event.get(name) for event in events] for name in spec.columns()}
    found = et.release(table, content, key=et.simulation(3))
    tidy = found.to_arrow().to_pylist()
    assert {row["query"] for row in tidy} >= {query.name for query in spec.queries if not query.result.brings_labels}
    assert max(row["tick"] for row in tidy) == ticks
    for query in spec.queries:
        mine = [row for row in tidy if row["query"] == query.name]
        if query.result.value == "label":
            assert all(row["label"] is not None and row["value"] is None for row in mine)
        else:
            assert all(row["low"] <= row["value"] <= row["high"] for row in mine), query.name
    with_windows = found.window(2)
    assert {row["tick"] for row in with_windows.to_arrow().to_pylist()} == {ticks}
    assert 3 < len(with_windows.queries) < len(spec.queries)


def test_a_spec_says_everything_and_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "orders.toml"
    path.write_text(spec_text(ALL, clock={"column": "day", "start": "2024-01-01", "tick": "1d"}))
    with pytest.raises(et.ConfigurationError, match="the table has 1 row before 2024-01-01T00:00:00Z: outside="):
        et.release(orders(), path, key=ZeroNoise())
    found = et.release(orders(), path, key=ZeroNoise(), outside="drop")
    assert len(found.to_arrow()) == 48
    assert not list(tmp_path.glob("visits.*"))  # no key, no state, no output
    with pytest.raises(et.ConfigurationError, match="name: the spec says so already"):
        et.release(orders(), path, name="orders")
    path.write_text(path.read_text().replace("rho", "rhos"))
    with pytest.raises(et.ConfigurationError, match=r"orders.toml:\d+: \[guarantee\] has no option 'rhos'"):
        et.release(orders(), path)


def test_users_may_be_counted_where_single_events_are_hidden() -> None:
    table = {"day": [1, 1, 2, 2], "who": [7.0, 7.0, float("nan"), 8.0]}
    clock: dict[str, Any] = {"time": "day", "start": 1, "end": 3, "tick": 1}
    frame = pd.DataFrame(table)
    for unit in ({"unit": "event"}, {}):
        found = et.release(
            frame, {"people": "distinct_users"}, **clock, user="who", guarantee=et.ZCDP(0.5), key=ZeroNoise(), **unit
        )
        assert series(found.to_arrow(), "people", None) == [1, 2]
        assert found.certificate["unit"]["protects"] == unit.get("unit", "user")


REVENUE: dict[str, Any] = {
    "column": "city", "categories": CITIES, "weight": "amount", "max_weight": 5, "resolution": 0.25,
}  # fmt: skip


def test_amounts_by_category_of_a_frame() -> None:
    table = orders()
    rows = len(table["day"])
    table["amount"] = [0.25 * (n % 9) if n % 5 else None for n in range(rows)]
    queries = {"revenue": et.query("histogram", **REVENUE), "by_city": QUERIES["by_city"]}
    asked = ASKED | {"queries": queries}
    found = et.release(pd.DataFrame(table), **asked, key=ZeroNoise())
    expected = {city: [0.0] * DAYS for city in CITIES}
    for day, city, amount in list(zip(table["day"], table["city"], table["amount"], strict=True))[:-2]:
        expected[city][day.day - 1] += amount or 0.0
    for city in CITIES:
        assert series(found.to_arrow(), "revenue", city) == np.cumsum(expected[city]).tolist()
        weeks = np.array(expected[city]).reshape(-1, 4).sum(axis=1)
        assert series(found.window("4d").to_arrow(), "revenue", city) == weeks.tolist()
        assert series(found.window("4d", per="1d").to_arrow(), "revenue", city) == (weeks / 4).tolist()
    assert found.certificate["queries"][0]["in_plain_words"] == "Sum of amount by city"


@pytest.mark.parametrize("option", ["window", "per"])
def test_windows_are_asked_of_the_call(option: str) -> None:
    with pytest.raises(et.errors.ConfigurationError, match=r"query 'orders': window and per are asked for in the call"):
        et.release(orders(), **(ASKED | {"queries": {"orders": et.query("counter", **{option: "2d"})}}))


def test_a_spec_says_its_windows(tmp_path: Path) -> None:
    clock = {"column": "day", "start": "2024-01-01", "end": "2024-01-13", "tick": "1d"}
    weekly = {"name": "orders", "kind": "counter", "share": 0.5, "window": "4d", "per": "2d"}
    daily = {"name": "by_city", "kind": "histogram", "share": 0.3, **_cities(), "window": "1d"}
    plain = {"name": "again", "kind": "counter", "share": 0.2}
    path = tmp_path / "orders.toml"
    path.write_text(spec_text(weekly, daily, plain, stream={"name": "orders"}, clock=clock))
    found = et.release(orders(), path, outside="drop", key=ZeroNoise())
    windows = found.window().to_arrow()
    counts = exact()
    assert set(windows["query"].to_pylist()) == {"orders", "by_city"}
    assert series(windows, "orders", None) == (counts["orders", None].reshape(-1, 4).sum(axis=1) / 2).tolist()
    assert series(windows, "by_city", "Ulm") == counts["by_city", "Ulm"].tolist()
    assert "windows of 1 day and 4 days" in repr(found.window())
    assert repr(found.window()["orders"]).startswith("<Released: orders; 12 ticks, windows of 4 days")
    with pytest.raises(et.errors.ConfigurationError, match="no query of a spec says which window"):
        found["again"].window()
    with pytest.raises(et.errors.ConfigurationError, match="every goes with a window"):
        found.window(every="1d")


def _cities() -> dict[str, Any]:
    return {"column": "city", "categories": CITIES}


class _ByStream:
    """A table of a library that nobody knows by name."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class _Subclass(pd.DataFrame):
    """As other packages make them."""


def test_libraries_are_told_in_one_place() -> None:
    table = orders()
    expected = et.release(table, **ASKED, key=ZeroNoise()).to_arrow()
    frames = [_ByStream(pa.table(table)), _Subclass(table), pa.table(table).to_batches()[0]]
    for frame, library in zip(frames, (pa.Table, pd.DataFrame, pa.Table), strict=True):
        found = et.release(frame, **ASKED, key=ZeroNoise())
        assert isinstance(found.frame, library)
        assert found.to_arrow().equals(expected)
    for wrong in (pa.array([1]), pd.Series([1]), np.zeros(3), [1, 2], _ByStream(pa.chunked_array([[1]]))):
        with pytest.raises(et.errors.ConfigurationError, match="a table is a frame of pandas or Polars"):
            et.release(wrong, **ASKED)
