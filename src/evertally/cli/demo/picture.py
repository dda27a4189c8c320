"""The demo's picture: departures per day as released, with error bands, and the error of the running count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally import Histogram, simulation
from evertally.cli.demo.flights import ticks_a_day
from evertally.pictures import BAND, empty_figure, in_style, look
from evertally.runtime import StreamSpec
from evertally.runtime.mechanisms import build

Series = Mapping[tuple[str, str | None], NDArray[np.int64]]

_SHOWN = ("UA", "EV", "AA", "HA")


@in_style
def draw(spec: StreamSpec, releases: Path, exact: Series, target: Path) -> None:
    """Reads the releases file back and draws from it alone; exact counts appear only in the panel that says so."""
    released, radius = _read(releases)
    figure = empty_figure(10, 8)
    top, bottom = figure.subplots(2, 1, height_ratios=(3, 2))
    _draw_days(top, spec, released)
    _draw_error(bottom, spec, released, radius, exact)
    figure.savefig(target, dpi=120, metadata={"Software": None})


def _read(releases: Path) -> tuple[Series, Series]:
    values: dict[tuple[str, str | None], list[int]] = {}
    radii: dict[tuple[str, str | None], list[int]] = {}
    with open(releases) as lines:
        for row in map(json.loads, lines):
            key = row["query"], row["category"]
            values.setdefault(key, []).append(row["value"])
            radii.setdefault(key, []).append(row["upper"] - row["value"])
    return {k: np.array(v) for k, v in values.items()}, {k: np.array(v) for k, v in radii.items()}


def _band(spec: StreamSpec) -> NDArray[np.float64]:
    """Half the 95 % interval of a week's count, at every midnight from the first full week on.

    The difference of two releases is free and has its own error, known without any data.
    """
    query = next(query for query in spec.queries if query.name == "by-carrier")
    running = build(spec, simulation(0))[query.name]
    day, week = ticks_a_day(spec), 7 * ticks_a_day(spec)
    twin: Any = Histogram(
        **query.parameters,
        guarantee=running.guarantee,
        horizon=running.horizon,
        key=simulation(0),
        mechanism=running.mechanism,
        max_window=week,
    )
    nothing = np.zeros((week, len(twin.columns)), dtype=np.int64)
    twin.run(nothing[day:])
    band = []
    while twin.tick + day <= twin.horizon:
        twin.run(nothing[:day])
        lower, upper = twin.last(week).interval(beta=0.05)
        band.append((upper["UA"] - lower["UA"]) / 2)
    return np.array(band)


def _draw_days(axes: Any, spec: StreamSpec, released: Series) -> None:
    band = _band(spec) / 7
    days = np.arange(7, 7 + len(band))
    day, week = ticks_a_day(spec), 7 * ticks_a_day(spec)
    for place, label in enumerate(_SHOWN):
        running = released["by-carrier", label]
        before = np.concatenate([np.zeros(week, np.int64), running[:-week]])
        mean = (running - before)[week - 1 :: day] / 7
        (line,) = axes.plot(days, mean, label=label, **look(place))
        axes.fill_between(days, mean - band, mean + band, color=line.get_color(), alpha=BAND, linewidth=0)
    axes.set_ylabel("departures a day")
    axes.legend(title="carrier, 95 % band", ncols=4, loc="upper left")
    title = f"Departures from New York per day (mean of 7 days), as released: {spec.guarantee}"
    _frame(axes, title, days, headroom=1.25)


def _frame(axes: Any, title: str, days: Any, headroom: float) -> None:
    axes.set_title(title)
    axes.set_xlim(0, days[-1])
    axes.set_ylim(top=axes.get_ylim()[1] * headroom)


def _draw_error(axes: Any, spec: StreamSpec, released: Series, radius: Series, exact: Series) -> None:
    days = np.arange(1, len(radius["all", None]) + 1) / ticks_a_day(spec)
    for key, name in ((("all", None), "all departures"), (("by-carrier", "UA"), "carrier UA")):
        (line,) = axes.plot(days, released[key] - exact[key], linewidth=0.7, label=f"{name}: released - exact")
        for sign in (-1, 1):
            axes.plot(days, sign * radius[key], color=line.get_color(), linestyle="--", linewidth=1)
    axes.set_xlabel("day of 2013")
    axes.set_ylabel("departures")
    axes.legend(title="dashed: 95 % interval of each tick", ncols=2, loc="upper left")
    title = "Error of the running counts (exact ones are known here because the data are public)"
    _frame(axes, title, days, headroom=1.5)
