"""The webhooks of a stream: a thread each, and a small file each that remembers the last tick delivered.

What is remembered is public and may be lost: then ticks are delivered again, which receivers must expect anyway. A
receiver that is away for longer than the log keeps ticks in full misses those that were thinned out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evertally.errors import StateError
from evertally.runtime.history import History
from evertally.runtime.pump import Pump
from evertally.runtime.releases import TickRelease
from evertally.runtime.sidecar import write_atomically
from evertally.runtime.sinks import Webhook
from evertally.runtime.spec import SinkSpec, StreamSpec

_WINDOW = 1000  # ticks that are looked for at once
_AT_ONCE = 16  # ticks that are read at once


@contextmanager
def webhooks(spec: StreamSpec, pump: Pump, history: History) -> Iterator[None]:
    """Delivers every published tick to the webhooks of the spec while the block runs."""
    with ExitStack() as stack:
        for sink in spec.sinks:
            if sink.webhook is not None:
                _start(stack, spec, sink, pump, history)
        yield


def _start(stack: ExitStack, spec: StreamSpec, sink: SinkSpec, pump: Pump, history: History) -> None:
    memory = Path(f"{spec.state_file}.{sink.name}")

    def read(after: int) -> Sequence[TickRelease]:
        published = pump.published
        for start in range(after, published, _WINDOW):
            ticks = history.ticks(start + 1, min(published, start + _WINDOW), limit=_WINDOW)
            if ticks:
                return history.read(ticks[:_AT_ONCE])
        return []

    def done(tick: int) -> None:
        write_atomically(memory, json.dumps({"delivered": tick}).encode())

    webhook = Webhook(spec, sink, read, done, _delivered(memory))
    stack.callback(webhook.stop)
    stack.callback(pump.subscribe(lambda release: webhook.wake()))
    webhook.start()


def _delivered(memory: Path) -> int:
    try:
        return int(json.loads(memory.read_bytes())["delivered"])
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError):
        raise StateError(f"{memory} cannot be read; remove it, and all ticks are delivered again") from None
