"""How a network knits itself together: airports that planes join, and the triangles among them, day by day.

    python examples/airports_joined_by_planes.py [folder] [--days 365]

A plane that flew from New York to Boston and next from New York to Miami joins Boston and Miami: an edge, from then on.
The data are public (new_york.py); planes stand for people here, and airports for places. One record is protected, "a
plane flew to A and next to B"; whether there is an edge because of it. Who wants to protect a flight must see that it
is the end of one record and the beginning of another: without it two records are gone and one is new, a group of three.

Nobody lists the airports. Their number is secret too, and a triangle counts while its airports have up to 100
neighbours: a public guess, for which the noise pays (docs/graphs.md).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import evertally as et
from evertally.pictures import BAND, INK, empty_figure, in_style
from new_york import flights

MOST = 100  # neighbours of an airport that count
Edge = tuple[str, str]


def joined(days: int) -> list[list[Edge]]:
    """Where a plane flew, and where it flew next, day by day."""
    last: dict[str, str] = {}
    found: list[list[Edge]] = []
    for day in flights(days):
        found.append([])
        for flight in day:
            if flight.plane:
                before = last.get(flight.plane)
                last[flight.plane] = flight.destination
                if before not in (None, flight.destination):
                    found[-1].append((before, flight.destination))
    return found


def exact(time: list[list[Edge]]) -> dict[str, Any]:
    """Edges, pairs of edges that share an airport, and triangles. Known here because the data are public."""
    neighbours: defaultdict[str, set[str]] = defaultdict(set)
    counts, rows = {"edges": 0, "pairs": 0, "triangles": 0}, []
    for day in time:
        for one, other in day:
            if other not in neighbours[one]:
                counts["edges"] += 1
                counts["pairs"] += len(neighbours[one]) + len(neighbours[other])
                counts["triangles"] += len(neighbours[one] & neighbours[other])
                neighbours[one].add(other)
                neighbours[other].add(one)
        rows.append(dict(counts))
    return {name: np.array([row[name] for row in rows]) for name in counts}


@in_style
def draw(released: dict[str, Any], radii: dict[str, Any], true: dict[str, Any], target: Path) -> None:
    """Edges and triangles, day by day, and how closely knit the network is."""
    figure = empty_figure(10, 8)
    panels = figure.subplots(3, 1, sharex=True)
    days = np.arange(1, len(true["edges"]) + 1)
    titles = {"edges": "Pairs of airports that a plane has joined", "triangles": "Triangles among them"}
    for axes, (name, title) in zip(panels, titles.items(), strict=False):
        axes.plot(days, released[name], label="released; band: 95 % for all days at once")
        axes.fill_between(days, released[name] - radii[name], released[name] + radii[name], alpha=BAND, linewidth=0)
        axes.plot(days, true[name], color=INK, linewidth=0.8, label="exact (the data are public)")
        axes.set(title=title)
        axes.legend(loc="lower right")
    from_day = min(30, len(days) // 2)  # before, a ratio of two noisy numbers says nothing
    panels[2].plot(days[from_day:], (3 * released["triangles"] / np.maximum(released["pairs"], 1))[from_day:])
    panels[2].plot(days, 3 * true["triangles"] / np.maximum(true["pairs"], 1), color=INK, linewidth=0.8)
    panels[2].set(title="How often two neighbours of an airport are joined themselves", xlabel="day of 2013")
    panels[2].set_ylim(0, 1)
    figure.savefig(target, dpi=120, metadata={"Software": None})


def main() -> None:
    """Plays all days, and compares."""
    arguments = argparse.ArgumentParser(description="Edges, stars and triangles of a graph of airports.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("airports"))
    arguments.add_argument("--days", type=int, default=365)
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    time = joined(given.days)
    network = et.Stream("airports", guarantee=et.ApproxDP(2, 1e-6), horizon=given.days, key=et.Key.generate())
    counts = {
        "edges": network.add(et.graph.EdgeCount, share=0.1),
        "pairs": network.add(et.graph.Stars, share=0.3, k=2, max_degree=MOST),
        "triangles": network.add(et.graph.Triangles, share=0.6, max_degree=MOST),
    }
    released = {name: np.array(statistic.run(time)) for name, statistic in counts.items()}
    radii = {
        name: np.array([statistic.error_bound(beta=0.05, tick=tick) for tick in range(1, given.days + 1)])
        for name, statistic in counts.items()
    }
    true = exact(time)
    print(f"{sum(map(len, time)):,} records of {given.days} days")
    print(f"{'at the end':14}{'released':>10}{'exact':>9}{'std':>8}")
    for name, statistic in counts.items():
        print(f"{name:14}{released[name][-1]:10,}{true[name][-1]:9,}{statistic.stddev(given.days):8,.0f}")
    target = given.folder / "airports-joined-by-planes.png"
    draw(released, radii, true, target)
    print(f"The picture: {target}")


if __name__ == "__main__":
    main()
