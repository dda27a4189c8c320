"""A live stream and its thread; and one without a service, that reads folders and brokers and fills its sinks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from evertally.errors import ConfigurationError, InternalError, StateError
from evertally.runtime.input.feeds import opened_feeds
from evertally.runtime.live import Live
from evertally.runtime.pump import Pump
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import SourceSpec, StreamSpec


def with_folder(spec: StreamSpec, folder: Path) -> StreamSpec:
    """A spec that reads one more folder."""
    # Not validated: the name of a folder may be any bytes.
    source = SourceSpec.model_construct(folder=os.path.abspath(folder))
    return replace(spec, sources=(*spec.sources, source))


@contextmanager
def running(
    spec: StreamSpec, *, replay: bool = False, nothing_was_released: bool = False
) -> Iterator[tuple[Live, Pump]]:
    """A live stream with its folders and brokers, fed and closed by its own thread while the block runs.

    Raises StateError at the end if the stream had to stop by itself: what was acknowledged is safe, the same call goes
    on.
    """
    live = Live(spec, replay=replay, nothing_was_released=nothing_was_released)
    try:
        with opened_feeds(live.spec, live.mark) as feeds:
            pump = Pump(live, feeds)
            pump.start()
            try:
                yield live, pump
            finally:
                pump.stop()
    finally:
        live.abandon()
    if pump.failure is not None:
        raise (StateError if pump.foreseen else InternalError)(pump.failure)


def follow(
    spec: StreamSpec,
    stopped: threading.Event,
    seen: Callable[[TickRelease], None] = lambda release: None,
    trouble: Callable[[str], None] = lambda problem: None,
    replay: bool = False,
    nothing_was_released: bool = False,
) -> None:
    """Runs until the end of the stream, or until `stopped` is set. `trouble` hears of a file or broker once."""
    if spec.clock.close != "wall":
        raise ConfigurationError('to follow a folder or a broker, ticks must close on the wall clock: close = "wall"')
    with running(spec, replay=replay, nothing_was_released=nothing_was_released) as (_, pump):
        pump.subscribe(seen)
        told: list[str] = []
        while pump.working and not pump.ended and not stopped.wait(0.2):
            problems = pump.problems
            for problem in problems:
                if problem not in told:
                    trouble(problem)
            told = problems
