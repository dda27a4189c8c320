"""A small stream that is gone through step by step by a process that kills itself at a chosen moment. Not a test."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crash_stream import body, events

from evertally.runtime import load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.input.sources import Batch
from evertally.runtime.live import Live
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database

TICKS = 3
# With snapshots after every second tick: tick 2 ends with one, tick 3 leaves its events in the journal.
PARTS = ("start", "accept 2", "tick 2", "publish 2", "tick 3", "stop")

Burning = Callable[[str], Any]


def play(spec_file: str | Path, burning: Burning | None = None) -> None:
    """Feeds and closes some ticks. Whoever plays again goes on where it was interrupted, with the same batches."""
    at = burning or _nothing
    spec = load_spec(Path(spec_file))
    with at("start"):
        live = Live(spec)
    for tick in range(1, TICKS + 1):
        given = batches(spec, tick)
        with at(f"accept {tick}"):
            live.accept(given)
        with at(f"tick {tick}"):
            ticks = live.release_through(tick)
        with at(f"publish {tick}"):
            live.publish(ticks)
    with at("stop"):
        live.__exit__(None)


def batches(spec: StreamSpec, tick: int) -> list[tuple[str, Batch]]:
    """What comes while a tick is open."""
    return [(f"canary-{n}", parse(*body(events(1, n, tick), n), spec)) for n in (3 * tick, 3 * tick + 1)]


@contextmanager
def _nothing(part: str) -> Iterator[None]:
    yield


def play_until(spec_file: str, part: str, number: int) -> None:
    """Dies before the `number`-th call, in some part of the play, that moves anything to the disk."""
    left, burns = [number], [False]

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            if burns[0]:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return wrapper

    class Connection(sqlite3.Connection):
        execute = deadly(sqlite3.Connection.execute)
        executemany = deadly(sqlite3.Connection.executemany)
        close = deadly(sqlite3.Connection.close)

    for name in ("open", "fsync", "replace", "link", "unlink"):
        setattr(os, name, deadly(getattr(os, name)))
    connect = sqlite3.connect
    database.sqlite3.connect = lambda *args, **options: connect(*args, **options, factory=Connection)

    @contextmanager
    def burning(now: str) -> Iterator[None]:
        burns[0] = now == part
        yield
        burns[0] = False

    play(spec_file, burning)


def play_within(spec_file: str, size: int) -> None:
    """Dies in the middle of the write that makes any file longer than `size` bytes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    play(spec_file)


def command_within(size: int, *arguments: str) -> None:
    """The command line, on a disk where no file can be longer than `size` bytes."""
    from nursery import command

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # Python ignores SIGXFSZ: a write fails
    command(*arguments)
