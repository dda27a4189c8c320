"""Spark beside one process, in one run: CPU of the whole process tree, on the same events, and the same numbers.

    python -m benchmarks.spark                 # all: 20 M events, 10^6 columns; caps; unknown items; growth
    python -m benchmarks.spark --short         # a tenth of the events
    python -m benchmarks.spark histogram users # some of the cases
    python -m benchmarks.spark --quick-java    # Java without its optimizing compiler

Two cores are shared by everything here, so CPU seconds are compared, not seconds. "Warm" is the second job of an
application: the first one starts Python workers and compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import evertally as et
import evertally.spark as es
from evertally.encode.content_order import content_order, order_key
from evertally.runtime import load_spec

HEAD = """
[stream]
name = "{name}"
horizon = {horizon}
{stream}
[guarantee]
{guarantee}
[clock]
column = "time"
start = 0
tick = 1000
close = "request"
[key]
file = "{name}.key"
[state]
file = "{name}.state"
[engine]
release = "{release}"
{engine}
"""


def tree_cpu() -> dict[str, float]:
    """CPU seconds of this process and of all that it has started, ended ones included: driver, Java, workers."""
    ticks, parents, used = os.sysconf("SC_CLK_TCK"), {}, {}
    kinds = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15])) / ticks
            kinds[int(folder.name)] = _kind(folder)

    def mine(pid: int) -> bool:
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    found = dict.fromkeys(("driver", "java", "workers"), 0.0)
    for pid, seconds in used.items():
        if mine(pid):
            found["driver" if pid == os.getpid() else kinds[pid]] += seconds
    return found | {"all": sum(found.values())}


def _kind(folder: Path) -> str:
    try:
        return "java" if b"java" in (folder / "cmdline").read_bytes().split(b"\0")[0] else "workers"
    except OSError:
        return "workers"


class Case:
    """One comparison: a spec, events in files, the same in one process."""

    def __init__(self, work: Path, name: str, head: dict[str, Any], queries: str) -> None:
        self.folder = work / name
        self.folder.mkdir(parents=True)
        given = {"stream": "", "engine": "", "release": "dense", "guarantee": "rho = 0.1", "horizon": 20} | head
        self.spec = self.folder / f"{name}.toml"
        self.spec.write_text(HEAD.format(name=name, **given) + queries)
        self.name = name

    def fresh(self) -> None:
        """Takes the stream away, so that it can begin anew."""
        for path in self.folder.iterdir():
            if path.name.startswith(self.name) and path != self.spec:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def on_spark(self, spark: Any, events: Path, through: int) -> dict[str, float]:
        found = {}
        for turn in ("first", "warm"):
            self.fresh()
            began, cpu = time.perf_counter(), tree_cpu()
            es.release_batch(spark.read.parquet(str(events)), self.spec, batch="all", until=through * 1000)
            now = tree_cpu()
            found |= {f"{turn}_cpu": now["all"] - cpu["all"], f"{turn}_s": time.perf_counter() - began}
            found |= {f"{turn}_{kind}": now[kind] - cpu[kind] for kind in ("driver", "java", "workers")}
        return found

    @property
    def key(self) -> et.Key:
        return et.Key.load(load_spec(self.spec).key_file)


def written(folder: Path, columns: dict[str, Any], files: int) -> Path:
    folder.mkdir(parents=True)
    table = pa.table(columns)
    size = -(-table.num_rows // files)
    for i in range(files):
        pq.write_table(table.slice(i * size, size), folder / f"{i:03d}.parquet")
    return folder


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = task()
    return found, time.process_time() - began


def histogram(spark: Any, work: Path, events: int, columns: int, ticks: int) -> dict[str, Any]:
    """Counts of numbered columns: slices against one mechanism."""
    rng = np.random.default_rng(1)
    folder = written(
        work / "histogram-events",
        {"time": rng.integers(0, ticks, events) * 1000, "page": rng.integers(0, columns, events)},
        8,
    )
    case = Case(
        work,
        "histogram",
        {"horizon": ticks},
        f'[[query]]\nname = "pages"\nkind = "vector_counter"\ncolumn = "page"\ncolumns = {columns}\n',
    )
    found = case.on_spark(spark, folder, ticks)

    def alone() -> Any:
        table = pq.read_table(folder)
        at, page = table["time"].to_numpy() // 1000, table["page"].to_numpy()
        stream = et.Stream("histogram", guarantee=et.ZCDP(0.1), horizon=ticks, key=case.key)
        counts = stream.add(et.VectorCounter, share=1, columns=columns, name="pages")
        return counts.run(et.SparseRows(at, page, length=ticks, width=columns))

    values, cpu = timed(alone)
    same = all(
        np.array_equal(np.array(of["value"]), values[tick - 1]) for tick, of in es.shown(load_spec(case.spec), "pages")
    )
    return found | {"one_process_cpu": cpu, "ratio": found["warm_cpu"] / cpu, "same": same, "events": events}


def stream(spark: Any, work: Path, events: int, columns: int, ticks: int) -> dict[str, Any]:
    """The same as a live stream: a file for each tick, and a request to close it."""
    rng = np.random.default_rng(1)
    case = Case(
        work,
        "stream",
        {"horizon": ticks},
        f'[[query]]\nname = "pages"\nkind = "vector_counter"\ncolumn = "page"\ncolumns = {columns}\n',
    )
    coming, folder = work / "stream-coming", work / "stream-events"
    folder.mkdir()
    pages = [rng.integers(0, columns, events // ticks) for _ in range(ticks)]
    shape = "time long, page long"
    live = es.release_stream(
        spark.readStream.schema(shape).option("maxFileAge", "100000d").parquet(str(folder)),
        case.spec,
        every="100 milliseconds",
    )
    spent = []
    with live:
        for tick, page in enumerate(pages):
            written(coming / str(tick), {"time": np.full(len(page), tick * 1000), "page": page}, 1)
            began, cpu = time.perf_counter(), tree_cpu()
            (coming / str(tick) / "000.parquet").rename(folder / f"{tick:03d}.parquet")
            live.close((tick + 1) * 1000)
            spent.append((tree_cpu()["all"] - cpu["all"], time.perf_counter() - began))
    whole = et.Stream("stream", guarantee=et.ZCDP(0.1), horizon=ticks, key=case.key)
    counts = whole.add(et.VectorCounter, share=1, columns=columns, name="pages")
    values = counts.run(np.stack([np.bincount(page, minlength=columns) for page in pages]))
    shown = es.shown(load_spec(case.spec), "pages")
    same = all(np.array_equal(np.array(of["value"]), values[tick - 1]) for tick, of in shown)
    cpu, seconds = (float(np.median([one[i] for one in spent[2:]])) for i in (0, 1))
    return {"cpu_a_tick": cpu, "seconds_a_tick": seconds, "same": same, "events": events, "ticks": ticks}


def users(spark: Any, work: Path, events: int, people: int, ticks: int) -> dict[str, Any]:
    """A cap of users before a histogram: buckets against one cap, both in the order of content."""
    rng = np.random.default_rng(2)
    names = pa.array(rng.integers(0, people, events))
    folder = written(
        work / "users-events",
        {"time": rng.integers(0, ticks, events) * 1000, "page": rng.integers(0, 1000, events), "user": names},
        8,
    )
    stream = 'unit = "user"\nmax_events_per_user = 10\nuser_column = "user"\norder = "content"'
    case = Case(
        work,
        "users",
        {"horizon": ticks, "stream": stream},
        '[[query]]\nname = "pages"\nkind = "vector_counter"\ncolumn = "page"\ncolumns = 1000\n',
    )
    found = case.on_spark(spark, folder, ticks)

    def alone() -> list[Any]:
        table = pq.read_table(folder)
        at = table["time"].to_numpy() // 1000
        page, user = (table[name].combine_chunks() for name in ("page", "user"))
        whole = et.Stream(
            "users", guarantee=et.ZCDP(0.1), horizon=ticks, key=case.key, unit="user", max_events_per_user=10
        )
        counts = whole.add(et.VectorCounter, share=1, columns=1000, name="pages")
        released = []
        for tick in range(ticks):
            rows = pa.array(np.flatnonzero(at == tick))
            some = page.take(rows), user.take(rows)
            order = pa.array(content_order([(some[0], "labels"), (some[1], "users")], order_key(case.key)))
            released.append(counts.step_events(some[0].take(order), users=some[1].take(order)).value.tolist())
        return released

    values, cpu = timed(alone)
    same = [of["value"] for _, of in es.shown(load_spec(case.spec), "pages")] == values
    return found | {"one_process_cpu": cpu, "ratio": found["warm_cpu"] / cpu, "same": same, "events": events}


def items(spark: Any, work: Path, events: int, ticks: int) -> dict[str, Any]:
    """Items that nobody listed: shards against one table."""
    rng = np.random.default_rng(3)
    ranks = np.minimum(rng.zipf(1.2, 2 * events), 10**7)
    lists = pa.ListArray.from_arrays(np.arange(0, 2 * events + 1, 2, dtype=np.int32), pa.array(ranks).cast(pa.string()))
    at = rng.integers(0, ticks, events)
    folder = written(work / "items-events", {"time": at * 1000, "words": lists}, 8)
    case = Case(
        work,
        "items",
        {"horizon": ticks, "guarantee": "epsilon = 1.0\ndelta = 1e-6"},
        '[[query]]\nname = "words"\nkind = "unknown_histogram"\ncolumn = "words"\nmax_per_event = 2\nsticky = true\n',
    )
    found = case.on_spark(spark, folder, ticks)

    def alone() -> list[Any]:
        table = pq.read_table(folder)
        when, words = table["time"].to_numpy() // 1000, table["words"].combine_chunks()
        promise = et.ApproxDP(1.0, 1e-6).with_bad_event()
        whole = et.Stream("items", guarantee=promise, horizon=ticks, key=case.key)
        counts = whole.add(et.UnknownHistogram, share=1, name="words", max_per_event=2, sticky=True)
        return [counts.step_events(words.take(pa.array(np.flatnonzero(when == t)))).value for t in range(ticks)]

    values, cpu = timed(alone)
    shown = [dict(zip(of["category"], of["value"], strict=True)) for _, of in es.shown(load_spec(case.spec), "words")]
    same = json.dumps(shown) == json.dumps(values)
    return found | {"one_process_cpu": cpu, "ratio": found["warm_cpu"] / cpu, "same": same, "events": events}


def growth(spark: Any, work: Path, events: int) -> list[dict[str, Any]]:
    """What more columns and more ticks cost: dense, and on demand."""
    found = []
    rng = np.random.default_rng(4)
    for columns, ticks, release in (
        (10**5, 5, "dense"),
        (10**6, 5, "dense"),
        (10**6, 20, "dense"),
        (10**6, 5, "on demand"),
        (10**7, 5, "on demand"),
        (10**8, 5, "on demand"),
    ):
        name = f"growth-{columns}-{ticks}-{release.replace(' ', '')}"
        folder = written(
            work / f"{name}-events",
            {"time": rng.integers(0, ticks, events) * 1000, "page": rng.integers(0, columns, events)},
            8,
        )
        query = f'[[query]]\nname = "pages"\nkind = "vector_counter"\ncolumn = "page"\ncolumns = {columns}\n'
        wide = "slice_width = 1048576" if columns > 10**7 else ""
        case = Case(work, name, {"horizon": ticks, "release": release, "engine": wide}, query + 'mechanism = "tree"\n')
        spent = case.on_spark(spark, folder, ticks)
        began = time.perf_counter()
        asked = rng.integers(0, columns, 100).tolist()
        es.ask(case.spec, "pages", categories=list(dict.fromkeys(asked)))
        spent["ask_100_s"] = time.perf_counter() - began
        size = sum(path.stat().st_size for path in case.folder.rglob("*") if path.is_file())
        about = {"columns": columns, "ticks": ticks, "release": release, "MB": size / 1e6, "events": events}
        found.append(about | spent)
        print(json.dumps(found[-1]), flush=True)
        shutil.rmtree(case.folder)
        shutil.rmtree(folder)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=["histogram", "stream", "users", "items", "growth"])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--share", type=int, default=0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--quick-java", action="store_true")
    given = parser.parse_args()
    share = given.share or (10 if given.short else 1)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        first = Case(work, "application", {}, '[[query]]\nname = "all"\nkind = "counter"\n')
        java = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"} if given.quick_java else {}
        spark = es.application(first.spec, master=f"local[{given.cores},4]", **java)
        try:
            run: dict[str, Callable[[], Any]] = {
                "histogram": lambda: histogram(spark, work, 20_000_000 // share, 10**6, 20),
                "stream": lambda: stream(spark, work, 20_000_000 // share, 10**6, 20),
                "users": lambda: users(spark, work, 10_000_000 // share, 1_000_000 // share, 20),
                "items": lambda: items(spark, work, 5_000_000 // share, 20),
                "growth": lambda: growth(spark, work, 2_000_000 // share),
            }
            for name in given.cases:
                print(name, json.dumps(run[name]()), flush=True)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
