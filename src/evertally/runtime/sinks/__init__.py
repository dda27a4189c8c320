"""Where releases go: files of lines, folders of Parquet parts, webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from evertally.runtime.releases import TickRelease
from evertally.runtime.sinks.lines import Lines
from evertally.runtime.sinks.parquet import Parts
from evertally.runtime.sinks.webhook import Webhook
from evertally.runtime.spec import StreamSpec


class Sink(Protocol):
    """A place on disk that gets every release once.

    The store remembers an offset for each sink; 0 is the beginning. It is committed after the sink has written, so
    after a crash the same ticks come again at the same offset, perhaps in other portions. The sink then holds the same
    bytes as without the crash.
    """

    name: str

    def publish(self, ticks: Sequence[TickRelease], offset: int) -> int:
        """Makes ticks durable after what was there at `offset`; returns the offset of the next.

        Without ticks it only checks that what was written up to `offset` is there. Raises StateError.
        """
        ...

    @property
    def digest(self) -> int | None:
        """Of what was written last, up to the offset."""
        ...

    def expect(self, digest: int) -> None:
        """The digest that is remembered with the offset: before anything else is written, it must be the same."""
        ...

    def last_behind(self, offset: int) -> int:
        """The last tick that is there behind `offset`, 0 if there is none: left by a crash, or proof of a future."""
        ...

    def check_new(self) -> None:
        """Raises StateError if the place holds something: called for a stream that has released nothing."""
        ...


def open_sinks(spec: StreamSpec) -> list[Sink]:
    """The sinks of a spec that are files. (A `Webhook` is not one: it goes at its own pace.)"""
    return [
        Parts(sink.name, sink.file, spec)
        if sink.file.suffix.lower() == ".parquet"
        else Lines(sink.name, sink.file, spec, sink.spreadsheet)
        for sink in spec.sinks
        if sink.file is not None
    ]


__all__ = ["Lines", "Parts", "Sink", "Webhook", "open_sinks"]
