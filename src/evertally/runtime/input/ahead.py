"""The reader of large JSON bodies is compiled before the first client comes: no answer waits for a compiler."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator

from evertally.runtime.input.batches import JSON_LINES
from evertally.runtime.input.encoded import received
from evertally.runtime.input.envelope import needed
from evertally.runtime.input.json_lines import FEW
from evertally.runtime.input.tick_events import prepared
from evertally.runtime.spec import StreamSpec

_ROWS = 512  # fewer are read by loops that are not compiled
_USES = ("labels", "users", "amounts")


@contextlib.contextmanager
def compiling_ahead(spec: StreamSpec) -> Iterator[Callable[[], None]]:
    """Compiles in a thread, beside whatever else has to be done first. It gives what waits for that; whoever leaves
    early waits too, for a process that ends while the compiler is at work may end by a fault."""
    thread = threading.Thread(target=_quietly, args=(spec,), name="evertally-compile", daemon=True)
    thread.start()
    try:
        yield thread.join
    finally:
        thread.join()


def _quietly(spec: StreamSpec) -> None:
    # What fails here fails again for the first client who sends as much, who is told what there is to be told.
    with contextlib.suppress(Exception):
        read_made_up(spec)


def read_made_up(spec: StreamSpec) -> None:
    """Reads a body of made-up events as if a client had sent it, and forgets it. Nothing of the stream is touched."""
    cells = {name: "2000-01-01T00:00:00Z" if name == spec.clock.column else "7" for name in needed(spec)}
    line = json.dumps(cells).encode() + b"\n"
    rows = max(_ROWS, FEW // len(line) + 1)
    if rows > spec.serve.max_batch_rows or rows * len(line) > spec.serve.max_batch_bytes:
        return  # nor can a client send as much
    made = received(rows * line, JSON_LINES, spec, 1, "")
    for column in made.batch.values():
        for use in _USES:
            prepared(column, use)
