"""The sources that a live stream reads by itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from evertally.runtime.input.batches import Mark, Piece
from evertally.runtime.input.folder import Folder
from evertally.runtime.spec import SourceSpec, StreamSpec

_PATIENCE = 1.0  # seconds, now and then, that a broker which is away may hold up the stream

# What has come since it was last asked; does not wait. Of a piece that is thrown back it makes what is right.
Feed = Callable[[], Generator[Piece]]


@contextmanager
def opened_feeds(spec: StreamSpec, mark: Mark) -> Iterator[Sequence[Feed]]:
    """The folders and brokers of a spec. `mark` says how far the stream has accepted each of them."""
    with ExitStack() as stack:
        yield [_opened(source, spec, mark, stack) for source in spec.sources]


def _opened(source: SourceSpec, spec: StreamSpec, mark: Mark, stack: ExitStack) -> Feed:
    if source.folder is not None:
        return Folder(spec.path.parent / source.folder, spec, mark).new
    from evertally.runtime.input.kafka import KafkaSource

    kafka = KafkaSource(
        source.kafka or "",
        source.topic or "",
        spec,
        mark,
        values=source.values,
        start=source.start,
        group=f"evertally-{spec.name}",
        options=source.options,
        patience=_PATIENCE,
    )
    stack.callback(kafka.close)
    return partial(kafka.new, 0.0)
