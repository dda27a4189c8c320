"""Where planes fly next: a year of flights as one sequence of airports for each plane, under differential privacy.

    python examples/routes_of_planes.py [folder] [--days 365]

The data are public (new_york.py), so that what is released can be compared with the truth. A plane stands for a person
here, and airports for the places where they are seen: which place follows which is what movement data are asked for,
and what gives people away.

Two questions, each with a budget of its own (docs/strings.md). How often did a plane that flew to A fly to B next? One
flight is protected: whether it took place or not. And how many planes ever did so? A whole plane is protected, with all
its flights: its first 50 different routes count, and busy planes are missing from the others.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import evertally as et
from evertally.pictures import INK, empty_figure, in_style
from new_york import airports, flights

THRESHOLD = 500  # how often a route must have been flown to be looked for
MOST = 150_000  # routes that are asked for, of two million
SHOWN = 15
Day = list[tuple[str, str]]  # (plane, destination) in the order of departure
Route = tuple[str, ...]


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


@in_style
def draw(rows: list[tuple[str, tuple[int, int], tuple[int, int]]], stddevs: tuple[float, float], target: Path) -> None:
    """Bars for what is released, with two standard deviations either way, and dots for what is true."""
    figure = empty_figure(10, 6)
    panels = figure.subplots(1, 2, sharey=True)
    names = [name for name, *_ in rows]
    titles = (
        "How often a plane flew it (a flight is protected)",
        "How many planes ever did (a plane is protected:\nits first 50 routes count, exact counts have all)",
    )
    for axes, title, stddev, column in zip(panels, titles, stddevs, (1, 2), strict=True):
        axes.barh(names, [row[column][0] for row in rows], xerr=2 * stddev, ecolor=INK, capsize=3)
        axes.plot([row[column][1] for row in rows], names, ".", color=INK, label="exact (the data are public)")
        axes.set(title=title)
        axes.grid(visible=False, axis="y")
    panels[0].invert_yaxis()
    panels[0].legend(loc="lower right")
    figure.suptitle("From one destination to the next, found by released counts alone")
    figure.savefig(target, dpi=120, metadata={"Software": None})


def main() -> None:
    """Plays the year, asks for routes, and compares."""
    arguments = argparse.ArgumentParser(description="Where planes fly next, released for a year.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("routes"))
    arguments.add_argument("--days", type=int, default=365)
    given = arguments.parse_args()
    days = given.days
    given.folder.mkdir(parents=True, exist_ok=True)
    year: list[Day] = [[(one.plane, one.destination) for one in day if one.plane] for day in flights(days)]
    letters = sorted({row["faa"] for row in airports()} | {"BQN", "PSE", "SJU", "STT"})  # the list lacks Puerto Rico
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
    rows, stddevs = [], (0.0, 0.0)
    for route in [route for route in found if len(route) == 2][:SHOWN]:
        asked, by = flown.count(list(route)), known_by.count(list(route))
        print(f"{' '.join(route):12} {asked.value:9,} {often[route]:7,}   {by.value:9,} {planes[route]:7,}")
        rows.append((" ".join(route), (asked.value, often[route]), (by.value, planes[route])))
        stddevs = asked.stddev, by.stddev
    print(f"standard deviation: {stddevs[0]:.0f} flights, {stddevs[1]:.0f} planes")
    draw(rows, stddevs, given.folder / "routes-of-planes.png")
    print(f"The picture: {given.folder / 'routes-of-planes.png'}")


if __name__ == "__main__":
    main()
