"""The webhooks of a stream: a thread each. The store remembers the last tick that each receiver took.

It is remembered with the next tick, so after a crash a tick may be delivered again, which receivers must expect anyway.
The log keeps every tick until all webhooks have it, whatever the retention says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from evertally.runtime.live import Live
from evertally.runtime.pump import Pump
from evertally.runtime.releases import TickRelease
from evertally.runtime.sinks import Webhook
from evertally.runtime.spec import SinkSpec
from evertally.runtime.state.history import History
from evertally.runtime.windows import Windows
from evertally.runtime.windows.outputs import WindowRows
from evertally.service.logs import log

_WINDOW = 1000  # ticks that are looked for at once
_AT_ONCE = 16  # ticks that are read at once


@contextmanager
def webhooks(live: Live, pump: Pump, history: History) -> Iterator[None]:
    """Delivers every published tick to the webhooks of the spec while the block runs."""
    with ExitStack() as stack:
        for sink in live.spec.sinks:
            if sink.webhook is not None:
                _start(stack, live, sink, pump, history)
        yield


def _start(stack: ExitStack, live: Live, sink: SinkSpec, pump: Pump, history: History) -> None:
    rows = None
    if live.spec.longest_window:
        rows = WindowRows(live.spec, Windows(live.spec, *live.laws(anew=True), history.read))

    def read(after: int) -> Sequence[TickRelease]:
        published = pump.published
        for start in range(after, published, _WINDOW):
            ticks = history.ticks(start + 1, min(published, start + _WINDOW), limit=_WINDOW)
            if ticks:
                releases = history.read(ticks[:_AT_ONCE])
                return releases if rows is None else rows.added(releases)
        return []

    def trouble(failure: str | None) -> None:
        pump.told(sink.name, failure)
        log.warning("%s: %s", sink.name, failure or "delivers again")

    done = partial(live.delivered, sink.name)
    webhook = Webhook(live.spec, sink, read, done, live.delivered_through(sink.name), trouble=trouble)
    stack.callback(webhook.stop)
    stack.callback(pump.subscribe(lambda release: webhook.wake()))
    webhook.start()
