"""Pictures of releases: every number with its error, and nothing that the noise could have made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

import evertally as et
from evertally.pictures import LINES
from evertally.pictures.style import COLOURS


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def histogram(labels: int = 3, **options: Any) -> et.Histogram:
    categories = [f"label {i}" for i in range(labels)]
    return et.Histogram(categories=categories, guarantee=et.ZCDP(0.5), horizon=20, key=et.simulation(1), **options)


def test_bars_have_whiskers_and_are_hollow_where_nothing_is_known() -> None:
    release = histogram().step([100, 0, 40])
    axes = release.plot(beta=0.01)
    low, high = release.interval(0.01)
    assert [text.get_text() for text in axes.get_yticklabels()] == list(release.value)
    assert [bar.get_width() for bar in axes.patches] == list(release.value.values())
    whiskers = [bars.lines[2][0].get_segments()[0][:, 0].tolist() for bars in axes.containers if hasattr(bars, "lines")]
    assert whiskers == [[low[label], high[label]] for label in release.value]
    filled = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert filled == [LINES[0], COLOURS["card"], LINES[0]]


def test_lines_have_bands() -> None:
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=20, key=et.simulation(1))
    releases = [counter.step(50) for _ in range(10)]
    axes = et.plot(releases)
    (line,) = axes.lines
    assert line.get_ydata().tolist() == [release.value for release in releases]
    edges = {(x, y) for x, y in axes.collections[0].get_paths()[0].vertices.tolist()}
    for release in releases:
        assert {(release.tick, bound) for bound in release.interval(0.05)} <= edges


@pytest.mark.parametrize("library", ["arrow", "pandas", "dict"])
def test_tables_of_run_are_drawn_whatever_holds_them(library: str) -> None:
    table = histogram().run(np.full((5, 3), 30), full=True)
    given = {"arrow": table, "pandas": table.to_pandas(), "dict": table.to_pydict()}[library]
    axes = et.plot(given)
    assert len(axes.lines) == len(axes.collections) == 3
    values = table.filter(np.array(table["column"].to_pylist()) == "label 1")["value"].to_pylist()
    assert axes.lines[1].get_ydata().tolist() == values


def test_of_many_labels_the_largest_are_drawn_in_their_own_colours() -> None:
    release = histogram(9).step([0, 900, 0, 800, 700, 600, 500, 400, 0])
    axes = et.plot([release])
    assert [line.get_label() for line in axes.lines] == [f"label {i}" for i in (1, 3, 4, 5, 6, 7)]
    assert axes.lines[-1].get_color() == LINES[1]
    assert axes.lines[-1].get_linestyle() == "--"
    assert axes.get_legend().get_title().get_text() == "and 3 more"


def test_a_tidy_frame_has_a_picture_for_each_query() -> None:
    table = {"day": [day for day in range(9) for _ in range(20)]}
    queries = {"visits": "counter", "again": "counter"}
    clock: dict[str, Any] = {"time": "day", "start": 0, "end": 9, "tick": 1}
    found = et.release(table, queries, **clock, guarantee=et.ZCDP(0.5), key=et.simulation(1))
    axes = found.window(3, per=1).plot()
    assert [one.get_title(loc="left") for one in axes] == ["visits", "again"]
    assert axes[0].get_ylabel() == "per 1 tick"
    assert axes[-1].get_xlabel() == "windows of 3 ticks, each drawn at its end"
    own = pyplot.figure().subplots()
    assert found["visits"].plot(ax=own) is own
    with pytest.raises(et.ConfigurationError, match="2 pictures to draw and 1 axes"):
        found.plot(ax=own)


@pytest.mark.parametrize(
    "what", [7, [], [1, 2], "text", {"tick": [1]}, {"tick": [], "value": [], "low": [], "high": []}]
)
def test_what_is_no_release_is_no_picture(what: Any) -> None:
    with pytest.raises(et.ConfigurationError, match="picture"):
        et.plot(what)


def test_one_number_is_no_picture() -> None:
    release = et.Counter(guarantee=et.ZCDP(0.5), horizon=20, key=et.simulation(1)).step(5)
    with pytest.raises(et.ConfigurationError, match="a release of one number is no picture"):
        release.plot()


def test_means_have_no_rate_and_names_stand_beside_the_lines() -> None:
    table = {"day": [day for day in range(6) for _ in range(20)], "price": [1.0] * 120, "city": ["Ulm", "Bonn"] * 60}
    queries = {
        "price": et.query("mean", column="price", lower=0, upper=2),
        "turnover": et.query("running_sum", column="price", upper=2),
        "by_city": et.query("histogram", column="city", categories=["Bonn", "Ulm"]),
    }
    clock: dict[str, Any] = {"time": "day", "start": 0, "end": 6, "tick": 1}
    found = et.release(table, queries, **clock, guarantee=et.ZCDP(0.5), key=et.simulation(1))
    axes = found.window(3, per=1).plot()
    assert [one.get_ylabel() for one in axes] == ["", "per 1 tick", "per 1 tick"]
    axes[0].figure.draw_without_rendering()
    assert axes[-1].get_legend().get_window_extent().x0 >= axes[-1].get_window_extent().x1
