"""A small client while a greedy one does what it can: how long does its one line wait?

    python -m benchmarks.load_greedy [--short] [--tick SECONDS] [--only TEXT]

The greedy client has one token, six connections and no manners: it sends the largest bodies that are taken, and sends
the next one as soon as it is answered, whatever the answer is. The small client has a token of its own and sends one
line every tenth of a tick. Printed for each kind of body, with times as ratios to the tick: how long the small client
waited for its answers, how long the slowest tick took to compute, by how much one was late, what the greedy client got
in. A bar of 3 ticks holds for the 99th percentile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from benchmarks.load import CATEGORIES, MEDIA, token

CONNECTIONS = 6
LARGEST = 2**24  # bytes, the default of max_batch_bytes
ROWS = 200_000  # the default of max_batch_rows
EACH = 8  # labels of a list, which counts as a row then; longer ones as several
MAPPED = 32 * ROWS  # bytes of mappings that a body may have


def spec_text(tick: float) -> str:
    categories = json.dumps([f"item-{i}" for i in range(CATEGORIES)])
    return (
        '[stream]\nname = "load"\nhorizon = 1000000\n[guarantee]\nepsilon = 1.0\ndelta = 1e-9\n'
        f'[clock]\nstart = "first serve"\ntick = "{tick:.0f}s"\n'
        '[key]\nfile = "load.key"\n[state]\nfile = "load.state"\n[serve]\nport = 0\npublish_after = 0.5\n'
        f'[[query]]\nname = "by-item"\nkind = "histogram"\ncolumn = "item"\ncategories = {categories}\n'
        '[[query]]\nname = "all"\nkind = "counter"\n'
    )


def arrow(column: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_pydict({"item": column})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def in_one(brackets: str, entry: str, count: int) -> bytes:
    """One event of very many entries."""
    entries = ", ".join(entry % i for i in range(count))
    return f'{{"item": {brackets[0]}{entries}{brackets[1]}}}\n'.encode()


def bodies() -> dict[str, tuple[str, bytes]]:
    """What a greedy client sends: as long as a body may be, and as many rows as it may have."""
    lists = [[f"item-{(i + k * k) % CATEGORIES}" for k in range(EACH)] for i in range(ROWS // 2)]
    listed = b"".join(json.dumps({"item": items}).encode() + b"\n" for items in lists)
    listed = listed[: listed.rindex(b"\n", 0, LARGEST) + 1]
    line = json.dumps({"item": "item-7", "x": "x" * 8}).encode() + b"\n"
    return {
        "16 MB of {} lines": ("ndjson", (b"{}\n" * (LARGEST // 3))),
        "200,000 {} lines": ("ndjson", b"{}\n" * ROWS),
        "200,000 lines of text": ("ndjson", line * min(ROWS, LARGEST // len(line))),
        "200,000 Arrow nulls": ("arrow", arrow(pa.nulls(ROWS))),
        "16 MB of lists of 8 labels": ("ndjson", listed),
        "100,000 Arrow lists of 8 labels": ("arrow", arrow(pa.array(lists))),
        "16 MB of one list": ("ndjson", in_one("[]", '"item-%d"', LARGEST // 16)),
        "6 MB of one mapping": ("ndjson", in_one("{}", '"%d": 1', MAPPED // 13)),
        "16 MB of one text": ("ndjson", b'{"item": "' + b"x" * (LARGEST - 20) + b'"}\n'),
    }


@dataclass
class Client:
    """Sends for a while, and keeps how long each answer took."""

    address: str
    secret: str
    name: str
    waited: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def run(self, media: str, body: bytes, seconds: float, pause: float = 0.0) -> None:
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            with contextlib.closing(HTTPConnection(urlsplit(self.address).netloc, timeout=600)) as connection:
                while time.monotonic() < stop:
                    started = time.monotonic()
                    try:
                        self.statuses.append(self._sent(connection, media, body))
                    except (OSError, HTTPException):  # an answer before the body was read ends a connection
                        break
                    self.waited.append(time.monotonic() - started)
                    time.sleep(pause)

    def _sent(self, connection: HTTPConnection, media: str, body: bytes) -> int:
        headers = {
            "Authorization": f"Bearer {self.secret}",
            "Content-Type": MEDIA[media],
            "Idempotency-Key": f"{self.name}-{len(self.statuses)}",
        }
        connection.request("POST", "/v1/events", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def figures_of(address: str, secret: str) -> dict[str, float]:
    with contextlib.closing(HTTPConnection(urlsplit(address).netloc, timeout=600)) as connection:
        connection.request("GET", "/v1/admin/figures", headers={"Authorization": f"Bearer {secret}"})
        return dict(json.loads(connection.getresponse().read()))


def measure(media: str, body: bytes, seconds: float, tick: float) -> dict[str, float]:
    """One run; the figures by name."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "load.toml"
        spec.write_text(spec_text(tick))
        greedy, small, admin = token(spec, "ingest", "greedy"), token(spec, "ingest", "small"), token(spec, "admin")
        command = [sys.executable, "-m", "evertally.cli", "serve", str(spec)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            crowd = [Client(address, greedy, f"greedy-{number}") for number in range(CONNECTIONS)]
            one = Client(address, small, "small")
            threads = [threading.Thread(target=client.run, args=(media, body, seconds)) for client in crowd]
            line = b'{"item": "item-1"}\n'
            threads.append(threading.Thread(target=one.run, args=("ndjson", line, seconds, tick / 10)))
            for thread in threads:
                thread.start()
            took, late = [], []
            while any(thread.is_alive() for thread in threads):
                found = figures_of(address, admin)
                took.append(found["tick_seconds"])
                late.append(found["late_seconds"])
                time.sleep(tick / 4)
            server.terminate()
            server.communicate(timeout=600)
        if server.returncode != 0 or set(one.statuses) != {202}:
            raise RuntimeError("the server failed, or the small client was refused")
    taken = sum(status == 202 for client in crowd for status in client.statuses)
    refused = sum(status != 202 for client in crowd for status in client.statuses)
    return {
        "answers to the small client": float(len(one.waited)),
        "ticks that it waited at the median": float(np.median(one.waited)) / tick,
        "ticks that it waited at the 99th percentile": float(np.quantile(one.waited, 0.99)) / tick,
        "ticks that it waited at most": max(one.waited) / tick,
        "ticks that the slowest tick took to compute": max(took) / tick,
        "ticks by which the latest was late": max(late) / tick,
        "greedy batches taken": float(taken),
        "greedy batches refused": float(refused),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="ten ticks of each")
    parser.add_argument("--tick", type=float, default=2.0)
    parser.add_argument("--only", default="", help="bodies whose name has this in it")
    options = parser.parse_args()
    for name, (media, body) in bodies().items():
        if options.only not in name:
            continue
        print(f"{CONNECTIONS} connections of one token send {name}; ticks of {options.tick:.0f} s")
        for what, value in measure(media, body, (10 if options.short else 60) * options.tick, options.tick).items():
            print(f"  {value:10,.3f}  {what}", flush=True)


if __name__ == "__main__":
    main()
