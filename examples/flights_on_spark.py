"""A year of flights from New York on Spark: how many planes there were, where they flew, and which routes they flew,
under one promise about each plane with all its flights. In four batches, and once more in one process.

    python examples/flights_on_spark.py [folder] [--days 365]

The data are public (new_york.py), so exact counts may be shown beside the released ones. A plane stands for a person
here. Of each plane its first 10 airports and its first 10 routes count; nobody lists the routes beforehand. A year of
336,000 flights needs no cluster: this is the smallest thing that shows all of it (docs/spark.md). Needs Java 17 and
`pip install 'evertally[spark,demo]'`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import evertally.spark as es
from evertally.runtime import load_spec, plain_words, run
from new_york import START, Flight, airports, flights

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = 4
SHOWN = 6
MOST = 10  # airports, and routes, of one plane that count

SPEC = """\
[stream]
name = "planes-from-new-york"
horizon = {days}
unit = "user"                # a plane, with all that it ever does
user_column = "plane"
order = "content"            # rows of a shuffle come in any order

[guarantee]
epsilon = 2.0
delta = 1e-6

[clock]
column = "time"
start = {start}T00:00:00Z
tick = "1d"

[key]
file = "secret/planes.key"

[state]
file = "planes.state"

[output]
file = "planes.jsonl"        # of one process; on Spark releases go to public/

[engine]
root = "root"
home = "marks"
public = "public"
slice_width = 256            # of {airports} airports: some slices, so that there is something to cut
user_buckets = 4
label_shards = 4

[[query]]
name = "planes"
share = 0.1
kind = "distinct_users"

[[query]]
name = "by-airport"
share = 0.3
kind = "distinct_users"
column = "destination"
categories = {names}
max_categories = {most}

[[query]]
name = "by-route"
share = 0.6
kind = "unknown_distinct_users"
column = "route"
max_categories = {most}
"""


def exact(found: list[Flight]) -> dict[str, dict[str, int]]:
    """How many planes there were, by airport and by route. Known here because the data are public."""
    planes: dict[str, dict[str, set[str]]] = {"planes": {"all": set()}, "by-airport": {}, "by-route": {}}
    for one in found:
        planes["planes"]["all"].add(one.plane)
        planes["by-airport"].setdefault(one.destination, set()).add(one.plane)
        planes["by-route"].setdefault(route(one), set()).add(one.plane)
    return {query: {label: len(names) for label, names in of.items()} for query, of in planes.items()}


def route(one: Flight) -> str:
    return f"{one.origin} {one.destination}"


def written(found: list[Flight], path: Path) -> Path:
    """Flights as a file of events."""
    columns: dict[str, Any] = {
        "time": pa.array([one.moment for one in found], pa.timestamp("us", "UTC")),
        "plane": [one.plane for one in found],
        "destination": [one.destination for one in found],
        "route": [route(one) for one in found],
    }
    pq.write_table(pa.table(columns), path)
    return path


def on_spark(spark: SparkSession, folder: Path, found: list[Flight], days: int) -> None:
    """Four batches, one after the other: what a scheduler would start when a file of events is complete."""
    edges = [days * number // BATCHES for number in range(BATCHES + 1)]
    for number, (first, stop) in enumerate(pairwise(edges), start=1):
        until = START + dt.timedelta(days=stop)
        mine = [one for one in found if first <= (one.moment.date() - START).days < stop]
        events = spark.read.parquet(str(written(mine, folder / f"flights-{number}.parquet")))
        done = es.release_batch(events, folder / "planes.toml", batch=f"part {number}", until=f"{until}")
        print(f"batch {done['batch']}: {len(mine):,} flights, days {done['opened']} to {done['through']}")


def in_one_process(folder: Path, found: list[Flight], days: int) -> dict[tuple[int, str, str | None], float]:
    """The same stream without Spark. It takes a copy of the key, which only these public data allow: with the same
    noise on other events, the difference of the two would be exact."""
    alone = folder / "alone"
    (alone / "secret").mkdir(parents=True, mode=0o700)
    shutil.copy(folder / "planes.toml", alone)
    shutil.copy(folder / "secret" / "planes.key", alone / "secret")
    spec = load_spec(alone / "planes.toml")
    run(spec, written(found, alone / "flights.parquet"), nothing_was_released=True)
    with open(alone / "planes.jsonl") as lines:
        rows = [json.loads(line) for line in lines]
    return {(row["tick"], row["query"], row["category"]): row["value"] for row in rows}


def main() -> None:
    """Plays the year on Spark, shows what came out beside the truth, and holds it against one process."""
    arguments = argparse.ArgumentParser(description="Planes from New York, released on Spark.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("planes-on-spark"))
    arguments.add_argument("--days", type=int, default=365)
    given = arguments.parse_args()
    folder, days = given.folder, given.days
    folder.mkdir(parents=True)
    end = START + dt.timedelta(days=days)
    found = [one for day in flights(days) for one in day if one.plane and one.moment.date() < end]
    names = sorted({row["faa"] for row in airports()} | {"BQN", "PSE", "SJU", "STT"})  # the list lacks Puerto Rico
    path = folder / "planes.toml"
    path.write_text(SPEC.format(days=days, start=START, airports=len(names), names=json.dumps(names), most=MOST))
    print(plain_words(load_spec(path)))
    spark = es.application(path)
    try:
        on_spark(spark, folder, found, days)
        rows = es.releases(spark, path).collect()
    finally:
        spark.stop()
    last, true = [row for row in rows if row["tick"] == days], exact(found)
    print(f"\n{'after ' + str(days) + ' days':22} {'released':>8}  {'95 % interval':>16} {'exact':>7}")
    for query in ("planes", "by-airport", "by-route"):
        # Looks at released counts alone: nothing is shown because of what the exact counts say.
        best = sorted((row for row in last if row["query"] == query), key=lambda row: -row["value"])
        for row in best[:SHOWN]:
            label = row["category"] or "all"
            span = f"{row['lower']:,.0f} to {row['upper']:,.0f}"
            print(f"{query:10} {label:11} {row['value']:8,.0f}  {span:>16} {true[query].get(label, 0):7,}")
    print("Of busy planes, airports and routes after the tenth are missing from the released counts, by the rule.")
    alone = in_one_process(folder, found, days)
    same = {(row["tick"], row["query"], row["category"]): row["value"] for row in rows} == alone
    print(f"{len(alone):,} released numbers of {days} days; one process releases {'the same' if same else 'OTHERS'}")


if __name__ == "__main__":
    main()
