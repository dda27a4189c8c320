"""The load bars of the live service: ticks of a second, a histogram of 10,000 categories, top-k and three quantiles.

    python -m benchmarks.load [--short] [--format arrow|ndjson] [--seconds S] [--senders N] [--rate EVENTS]
                              [--users N [--events M]]

Without a rate each format is sent twice: as fast as it is taken, and at the bar. With users the stream is another
(load_users.py): different and active users, revenue with an allowance, percentiles, of so many users.

A real `evertally serve` in a process of its own, senders in others, all on this machine's cores. Bodies are made
beforehand and sent again under new idempotency keys. Printed: events that were acknowledged a second, how long after
the end of its tick a release arrived (the fixed delay of publication included, and without it), how long the slowest
tick took, the memory of the server and its slope over the events, and the size of state and snapshots.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from benchmarks import load_users

CATEGORIES = 10_000
BARS = {"arrow": 200_000, "ndjson": 50_000}
MEDIA = {"arrow": "application/vnd.apache.arrow.stream", "ndjson": "application/x-ndjson"}
EVENTS_A_BATCH = {"arrow": 20_000, "ndjson": 5_000}
PUBLISH_AFTER = 0.5
WARM_UP = 2  # ticks of which nothing is told


def spec_text() -> str:
    categories = json.dumps([f"item-{i}" for i in range(CATEGORIES)])
    queries = [("by-item", 'kind = "histogram"'), ("top", 'kind = "top_k_select"\nk = 10')]
    queries += [(f"quantile-{q}", f'kind = "quantile"\nq = 0.{q}') for q in (50, 90, 99)]
    asked = "".join(
        f'[[query]]\nname = "{name}"\n{kind}\ncolumn = "item"\ncategories = {categories}\n' for name, kind in queries
    )
    return (
        '[stream]\nname = "load"\nhorizon = 1000000\nmax_events_per_tick = 500000\n'
        "[guarantee]\nepsilon = 1.0\ndelta = 1e-9\n"
        '[clock]\nstart = "first serve"\ntick = "1s"\n'
        '[key]\nfile = "load.key"\n[state]\nfile = "load.state"\n'
        f"[serve]\nport = 0\npublic = true\nrequests_per_second = 100000\nrows_per_second = 100000000\n"
        f"publish_after = {PUBLISH_AFTER}\n{asked}"
    )


def body(events: int, media: str, seed: int) -> bytes:
    """Items by Zipf's law."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, CATEGORIES + 1)
    items = [f"item-{i}" for i in rng.choice(CATEGORIES, events, p=weights / weights.sum())]
    if media == "ndjson":
        return "".join(json.dumps({"item": item}) + "\n" for item in items).encode()
    table = pa.table({"item": items})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True)
class Work:
    """What is sent: how long, how much at most (0: no limit), how fast (0: as it is answered), and of how many users
    (0: the stream of items)."""

    media: str
    seconds: float
    events: int
    rate: float
    users: int = 0

    def bodies(self, number: int, senders: int) -> list[bytes]:
        """Enough for everybody to come where there are users; a few otherwise."""
        size = EVENTS_A_BATCH[self.media]
        if not self.users:
            return [body(size, self.media, 100 * number + i) for i in range(8)]
        needed = max(8, min(self.events or 4 * self.users, 4 * self.users) // (size * senders))
        return [load_users.body(size, self.media, 10_000 * number + i, self.users) for i in range(needed)]


def send(address: str, token: str, number: int, senders: int, work: Work, sent: Any, ready: Any) -> None:
    """One sender; all begin when all have their bodies."""
    media, rate = work.media, work.rate / senders
    bodies = work.bodies(number, senders)
    connection = HTTPConnection(urlsplit(address).netloc, timeout=600)  # ends with the process
    ready.wait()
    batch, started = 0, time.time()
    stop_at = started + work.seconds
    while time.time() < stop_at and not (work.events and sent.value >= work.events):
        if rate:
            time.sleep(max(0.0, started + batch * EVENTS_A_BATCH[media] / rate - time.time()))
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": MEDIA[media],
            "Idempotency-Key": f"{number}-{batch}",
        }
        connection.request("POST", "/v1/events", bodies[batch % len(bodies)], headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status == 503:  # back-pressure: the same batch again
            time.sleep(0.05)
            continue
        if answer.status != 202:
            raise RuntimeError(f"the service answered {answer.status}")
        batch += 1
        with sent.get_lock():
            sent.value += EVENTS_A_BATCH[media]


@dataclass
class Watch:
    """What a reader sees: when each tick arrived, and how much memory the server had then."""

    address: str
    process: int
    sent: Any
    admin: str
    lags: list[float] = field(default_factory=list)
    memory: list[tuple[int, float]] = field(default_factory=list)  # events sent, MB
    ticks: list[float] = field(default_factory=list)  # seconds that a tick took to compute and to store

    def run(self) -> None:
        with contextlib.closing(HTTPConnection(urlsplit(self.address).netloc, timeout=60)) as connection:
            connection.request("GET", "/v1/releases/live")
            with connection.getresponse() as stream:
                for line in stream:
                    if line.startswith(b"data:") and b'"tick"' in line:
                        arrived = time.time()
                        self.lags.append(arrived - _seconds(json.loads(line[5:])["time"]))
                        self.memory.append((self.sent.value, resident(self.process)))
                        self.ticks.append(self._tick_seconds())

    def wait(self) -> None:
        """Until there is a tick behind those of the warm-up: ticks go on when nothing is sent, and a machine that does
        much else may have seen none."""
        until = time.monotonic() + 300
        while min(len(self.lags), len(self.ticks)) <= WARM_UP and time.monotonic() < until:
            time.sleep(0.1)

    def _tick_seconds(self) -> float:
        """Of the last tick; 0 once the service ends."""
        try:
            with contextlib.closing(HTTPConnection(urlsplit(self.address).netloc, timeout=60)) as connection:
                connection.request("GET", "/v1/admin/figures", headers={"Authorization": f"Bearer {self.admin}"})
                return float(json.loads(connection.getresponse().read())["tick_seconds"])
        except (OSError, HTTPException):
            return 0.0


def _seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def resident(process: int) -> float:
    """Memory of a process in MB."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(process: int) -> float:
    """Of a process so far: what a busy machine does not change."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def token(spec: Path, role: str, name: str | None = None) -> str:
    made = [sys.executable, "-m", "evertally.cli", "token", "add", str(spec), "--role", role, "--name", name or role]
    added = subprocess.run(made, capture_output=True, text=True, check=True)
    return next(word for word in added.stdout.split() if word.startswith("evt_"))


def on_disk(folder: Path) -> dict[str, float]:
    """The store of a service that ended, and the snapshots in it, sealed as they are."""
    state = sum(path.stat().st_size for path in folder.glob("load.state*")) / 1e6
    with contextlib.closing(sqlite3.connect(folder / "load.state")) as store:
        sizes = store.execute("SELECT query, SUM(LENGTH(sealed)) FROM snapshot GROUP BY query").fetchall()
    each = {f"MB of the snapshot of {query}": size / 1e6 for query, size in sizes}
    return {"MB of state on disk": state, "MB of all snapshots": sum(each.values())} | each


def measure(work: Work, senders: int) -> dict[str, float]:
    """One run; the figures by name."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "load.toml"
        spec.write_text(load_users.spec_text(PUBLISH_AFTER) if work.users else spec_text())
        ingest, admin = token(spec, "ingest"), token(spec, "admin")
        command = [sys.executable, "-m", "evertally.cli", "serve", str(spec)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            spawn = multiprocessing.get_context("spawn")
            sent, ready = spawn.Value("q", 0), spawn.Barrier(senders + 1)
            watch = Watch(address, server.pid, sent, admin)
            watching = threading.Thread(target=watch.run)
            watching.start()
            workers = [
                spawn.Process(target=send, args=(address, ingest, number, senders, work, sent, ready))
                for number in range(senders)
            ]
            for worker in workers:
                worker.start()
            ready.wait()
            started, used = time.time(), cpu_seconds(server.pid)
            for worker in workers:
                worker.join()
            lasted = time.time() - started
            time.sleep(2.5)
            watch.wait()
            used = cpu_seconds(server.pid) - used
            server.terminate()
            server.communicate(timeout=600)
            watching.join()
        if server.returncode != 0 or any(worker.exitcode != 0 for worker in workers):
            raise RuntimeError("the server or a sender failed")
        found = figures(watch, sent.value, lasted)
        return found | {"CPU seconds of the server per million events": used / sent.value * 1e6} | on_disk(Path(folder))


def figures(watch: Watch, events: int, seconds: float) -> dict[str, float]:
    lags = np.array(watch.lags[WARM_UP:])
    at, used = np.array(watch.memory[len(watch.memory) // 3 :]).T  # after the warm-up
    slope = float(np.polyfit(at, used, 1)[0]) if len(at) > 2 and at[-1] > at[0] else float("nan")
    return {
        "events": float(events),
        "seconds": seconds,
        "events per second": events / seconds,
        "ticks seen": float(len(lags)),
        "p50 seconds from the end of a tick to its arrival": float(np.quantile(lags, 0.5)),
        "p99 seconds from the end of a tick to its arrival": float(np.quantile(lags, 0.99)),
        "p99 of that beyond the fixed delay": float(np.quantile(lags, 0.99)) - PUBLISH_AFTER,
        "seconds that a tick took at the median": float(np.median(watch.ticks[WARM_UP:])),
        "seconds that the slowest tick took": max(watch.ticks[WARM_UP:]),
        "MB of memory at the end": used[-1],
        "MB of memory per million events, after the warm-up": slope * 1e6,
        "millions of events over which this was fitted": (at[-1] - at[0]) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="five seconds of each format")
    parser.add_argument("--format", choices=sorted(MEDIA), default=None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--rate", type=float, default=None, help="events a second; 0: as fast as they are taken")
    parser.add_argument("--users", type=int, default=0, help="a stream about so many users")
    parser.add_argument("--events", type=int, default=0, help="ends after so many")
    options = parser.parse_args()
    for media in (options.format,) if options.format else ("arrow", "ndjson"):
        for rate in (0.0, float(BARS[media])) if options.rate is None else (options.rate,):
            seconds = 5.0 if options.short else options.seconds
            found = measure(Work(media, seconds, options.events, rate, options.users), options.senders)
            share = found["events per second"] / BARS[media]
            speed = f"at {rate:,.0f} events a second" if rate else "as fast as they are taken"
            print(f"{media}, {speed}: {share:.2f} of the bar of {BARS[media]:,}")
            for name, value in found.items():
                print(f"  {value:14,.3f}  {name}", flush=True)


if __name__ == "__main__":
    main()
