"""How many flights cross a line on the map, for any line: the graph of flights from New York, released every day.

    python examples/flights_across_regions.py [folder] [--days 365]

A flight is an increment of 1 between two airports; what is released is a weighted graph, and every cut of it can be
asked for after the fact, also lines that nobody thought of beforehand (docs/graphs.md). One flight is protected. The
data are public (new_york.py), so the truth can stand beside it. Draws the cuts between New York and four regions.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import evertally as et
from evertally.pictures import INK, empty_figure, in_style
from new_york import AIRPORTS, airports, flights

ZONES = {"-5": "east", "-6": "centre", "-7": "mountains", "-8": "west"}


def regions() -> dict[str, list[str]]:
    """Large airports of the United States by time zone: public."""
    found: dict[str, list[str]] = {zone: [] for zone in ZONES.values()}
    for row in airports():
        if row["tz"] in ZONES and "Intl" in row["name"] and row["faa"] not in AIRPORTS:
            found[ZONES[row["tz"]]].append(row["faa"])
    return found


@in_style
def draw(released: dict[str, Any], radii: dict[str, Any], true: dict[str, Any], target: Path) -> None:
    """The cut between New York and each region, day by day, and how far it is off."""
    figure = empty_figure(10, 7)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for region, values in released.items():
        days = np.arange(1, len(values) + 1)
        (line,) = top.plot(days, values, label=region)
        top.plot(days, true[region], ":", color=INK, linewidth=0.8)
        bottom.plot(days, values - true[region], color=line.get_color(), linewidth=0.9)
        bottom.plot(days, radii[region], "--", color=line.get_color(), linewidth=0.7)
        bottom.plot(days, -radii[region], "--", color=line.get_color(), linewidth=0.7)
    top.set(title="Flights between New York and four regions since January 2013, released every day", ylabel="flights")
    top.legend(title="released (dotted: exact)", loc="upper left")
    bottom.set(
        title="Released less exact; dashed: the 95 % interval of one day", xlabel="day of 2013", ylabel="flights"
    )
    figure.savefig(target, dpi=120, metadata={"Software": None})


def main() -> None:
    """Plays the year, asks for cuts on every day, and for others at its end."""
    arguments = argparse.ArgumentParser(description="Cuts of the graph of flights from New York.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("regions"))
    arguments.add_argument("--days", type=int, default=365)
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    places = regions()
    vertices = [*AIRPORTS, *(airport for region in places.values() for airport in region)]
    known = set(vertices)
    year = [[(one.origin, one.destination) for one in day] for day in flights(given.days)]
    graph = et.graph.CutGraph(
        vertices=vertices,
        copies="counted",  # every flight is one more
        guarantee=et.ApproxDP(1, 1e-6),
        horizon=given.days,
        key=et.Key.generate(),
        name="flights",
    )
    released: dict[str, list[float]] = {region: [] for region in places}
    radii: dict[str, list[float]] = {region: [] for region in places}
    for day in year:
        release = graph.step(day)
        for region, others in places.items():
            cut = release.cut(list(AIRPORTS), others)
            released[region].append(cut.value)
            radii[region].append(cut.interval(beta=0.05)[1] - cut.value)
    flown = [[flight for flight in day if known >= set(flight)] for day in year]
    true = {
        region: np.cumsum([sum(destination in others for _, destination in day) for day in flown])
        for region, others in places.items()
    }
    print(f"{sum(map(len, flown)):,} flights between {len(vertices)} airports in {given.days} days")
    print(f"{'New York and':20}{'released':>10}{'exact':>9}{'std':>7}")
    for region, others in places.items():
        cut = release.cut(list(AIRPORTS), others)
        print(f"the {region:16}{cut.value:10,}{true[region][-1]:9,}{cut.stddev:7.0f}")
    west = [*places["mountains"], *places["west"]]
    cut = release.cut(west)  # against everybody else: thousands of pairs, and the noise of each
    lower, upper = cut.interval(beta=0.05)
    across = sum((one in west) != (other in west) for day in flown for one, other in day)
    print(f"over the Rocky Mountains: {cut.value:,} (95 %: {lower:,.0f} to {upper:,.0f}), exactly {across:,}")
    target = given.folder / "flights-across-regions.png"
    draw(
        {region: np.array(values) for region, values in released.items()},
        {region: np.array(values) for region, values in radii.items()},
        true,
        target,
    )
    print(f"The picture: {target}")


if __name__ == "__main__":
    main()
