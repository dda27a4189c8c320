"""Events from a Kafka topic, each counted exactly once.

Kafka numbers the messages of a partition. The number of the next message to be counted is a mark in the state of the
stream, moved in the same transaction as the events; the consumer starts there and never asks Kafka how far it was. A
message that was not accepted comes again, one that was accepted does not. If Kafka no longer has the next message, the
partition waits for the operator (kafka_gaps.py): going on would hide that events are missing.

A message that fails where nothing should is set aside (quarantine.py), and the next one follows. Kafka still has it: if
the operator says so, it is fetched again by its number.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Literal, NoReturn

import pyarrow as pa

from evertally.errors import ConfigurationError, StateError, described
from evertally.runtime.input import json_cells
from evertally.runtime.input.batches import JSON_LINES, Mark, Piece, parse
from evertally.runtime.input.encoded import BatchFailed
from evertally.runtime.input.envelope import BatchRefused, known, needed, recognised
from evertally.runtime.input.folder import Unread
from evertally.runtime.input.kafka_gaps import Gaps, after_gap
from evertally.runtime.input.quarantine import Quarantine
from evertally.runtime.input.sources import ROWS, Batch
from evertally.runtime.spec import StreamSpec

Values = Literal["record", "batch"]
Start = Literal["beginning", "end"]

_MESSAGES = 10_000  # in one piece
_LOOK_AGAIN = 60.0  # seconds until new partitions are looked for
_TRY_AGAIN = 5.0  # seconds until brokers that did not answer are asked again
# Positions belong to the state file. Another word here could lose events or count them twice.
_OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": False,
    "allow.auto.create.topics": False,
    "isolation.level": "read_committed",
}


class KafkaSource:
    """The messages of one topic from where the stream stands.

    The value of a message is one JSON object (`values="record"`), or a whole batch (`values="batch"`) in the format of
    its `content-type` header, JSON lines by default. A value that cannot be read is left out, like any bad record.
    `start` says where a stream begins that has counted nothing of the topic yet. `options` go to the client library,
    for example for encryption and passwords.

        source = KafkaSource("localhost:9092", "visits", spec, live.mark)
        for piece in source.new():
            live.accept([(piece.batch_id, piece.batch)], piece.marks)
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        spec: StreamSpec,
        mark: Mark,
        *,
        values: Values = "record",
        start: Start = "beginning",
        group: str = "evertally",
        options: Mapping[str, Any] | None = None,
        patience: float = 10.0,
    ) -> None:
        if values not in ("record", "batch") or start not in ("beginning", "end"):
            raise ConfigurationError('Kafka: values is "record" or "batch", and start is "beginning" or "end"')
        self.topic, self._spec, self._mark = topic, spec, mark
        self._values, self._start, self._patience = values, start, patience
        self._api = _client_library()
        self._partitions: list[int] = []
        self._looked = -math.inf
        self._trouble: ConfigurationError | None = None
        self._next: dict[int, int] = {}  # what the consumer hands over next
        self._quarantine = Quarantine.beside(spec.state_file)
        self._gaps = Gaps(self._quarantine)
        self._consumer = self._connected({"bootstrap.servers": servers, "group.id": group, **_OURS}, options or {})

    def new(self, timeout: float = 1.0) -> Generator[Piece]:
        """What has come since, after waiting at most `timeout` seconds for the first message.

        Every piece must be accepted before the next one is asked for. What cannot be accepted is thrown back.
        """
        yield from self._beginnings()
        yield from self._again()
        yield from self._past_gaps()
        self._go_to(
            {number: at for number, at in self._marks().items() if not self._gaps.waits(self._name(number), at)}
        )
        if self._next:
            yield from self._polled(timeout)
        waiting = [number for number, at in self._marks().items() if self._gaps.waits(self._name(number), at)]
        if waiting:
            raise Unread([self._gap_words(number) for number in waiting])

    def _marks(self) -> dict[int, int]:
        return {number: at for number in self._partitions if (at := self._mark(self._name(number))) is not None}

    def _polled(self, timeout: float) -> Generator[Piece]:
        found: dict[int, list[Any]] = {}
        lost: set[int] = set()
        first = self._consumer.poll(timeout)
        # `consume` would wait for as many messages as it may return.
        for message in [] if first is None else [first, *self._consumer.consume(_MESSAGES - 1, 0.0)]:
            number = message.partition()
            if message.error() is None:
                found.setdefault(number, []).append(message)
                self._next[number] = message.offset() + 1
            elif message.error().code() == self._api.KafkaError._AUTO_OFFSET_RESET:
                lost.add(number)
            else:
                self._refuse(message.error())
        if lost:
            self._next = {}  # whatever happens, it is asked for again
        for number, messages in sorted(found.items()):
            for some in [messages] if self._values == "record" else [[message] for message in messages]:
                name, end = self._name(number), some[-1].offset() + 1
                yield from self._pieces(name, some, {name: end})
        for number in sorted(lost):
            self._gaps.hold(self._name(number), self._marks()[number], *self._watermarks(number))

    def _past_gaps(self) -> Generator[Piece]:
        """Over what is lost, where the operator says so."""
        for number, at in self._marks().items():
            name = self._name(number)
            if self._gaps.dropped(name, at):
                to, _ = after_gap(at, *self._watermarks(number))
                if to != at:
                    yield Piece(f"{name}:{at} is lost", _nothing(), {name: to})
                self._gaps.forget(name, at)  # it was one decision about one gap

    def _gap_words(self, number: int) -> str:
        return (
            f"Kafka: topic {self.topic}, partition {number} no longer has the next message to be counted; events are "
            "missing, and the partition waits: see `evertally quarantine list`"
        )

    def _pieces(self, name: str, messages: list[Any], marks: Mapping[str, int]) -> Generator[Piece]:
        """A piece of these messages. If it fails it is cut until one message is left, which is set aside."""
        begin, end = messages[0].offset(), messages[-1].offset() + 1
        try:
            yield Piece(f"{name}:{begin}-{end}", self._batch(messages), marks)
            return
        except StateError:
            raise
        except Exception as error:
            why = error.place if isinstance(error, BatchFailed) else described(error)
        if len(messages) > 1:
            middle = len(messages) // 2
            yield from self._pieces(name, messages[:middle], {name: messages[middle].offset()})
            yield from self._pieces(name, messages[middle:], marks)
        else:
            self._quarantine.hold(f"{name}:{begin}", why)
            if marks:
                yield Piece(f"{name}:{begin} was set aside", _nothing(), marks)

    def _again(self) -> Generator[Piece]:
        """Messages that were set aside, and that the operator wants to be tried again. No mark moves for them."""
        prefix = f"kafka:{self.topic}:"
        for one in self._quarantine.all():
            if one.wish == "retry" and one.item.startswith(prefix):
                number, offset = map(int, one.item.removeprefix(prefix).split(":"))
                self._go_to({number: offset})
                message = self._consumer.poll(self._patience)
                self._next = {}  # the consumer stands elsewhere now
                if message is None or message.error() is not None or message.offset() != offset:
                    self._quarantine.hold(one.item, "Kafka does not hand it over")
                else:
                    yield from self._pieces(self._name(number), [message], {})
                # Not before it was accepted. If this is not reached it comes again, and is known by its id.
                if self._quarantine.wish(one.item) == "retry":
                    self._quarantine.forget(one.item)

    def close(self) -> None:
        """Leaves the brokers."""
        self._consumer.close()

    def _name(self, partition: int) -> str:
        return f"kafka:{self.topic}:{partition}"

    def _beginnings(self) -> Iterator[Piece]:
        """A piece without events that fixes where unknown partitions begin: "the end" is another one tomorrow."""
        self._look_for_partitions()
        unknown = [number for number in self._partitions if self._mark(self._name(number)) is None]
        # A partition that comes later was empty when the stream began.
        at_end = self._start == "end" and len(unknown) == len(self._partitions)
        if unknown:
            marks = {self._name(number): self._watermarks(number)[at_end] for number in unknown}
            begins = ",".join(f"{number}@{at}" for number, at in zip(unknown, marks.values(), strict=True))
            yield Piece(f"kafka:{self.topic}:begins:{begins}", _nothing(), marks)

    def _go_to(self, positions: dict[int, int]) -> None:
        if positions != self._next:
            partition = self._api.TopicPartition
            self._consumer.assign([partition(self.topic, number, at) for number, at in positions.items()])
            self._next = positions

    def _look_for_partitions(self) -> None:
        now = time.monotonic()
        if now - self._looked < (_LOOK_AGAIN if self._partitions else _TRY_AGAIN):
            if self._trouble is not None:
                raise self._trouble
            return
        self._looked = now  # before the attempt: whoever asks must not wait every time
        try:
            topic = self._consumer.list_topics(self.topic, self._patience).topics[self.topic]
        except self._api.KafkaException as error:
            if not self._partitions:
                self._fail(error.args[0])
            return  # the brokers are away; the client library looks for them
        if topic.error is not None:
            self._fail(topic.error)
        self._partitions, self._trouble = sorted(topic.partitions), None

    def _watermarks(self, partition: int) -> tuple[int, int]:
        """The first message that the topic still has, and the next one that it will have."""
        place = self._api.TopicPartition(self.topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(place, self._patience)
        except self._api.KafkaException as error:
            self._fail(error.args[0])
        return low, high

    def _fail(self, error: Any) -> NoReturn:
        """The same is said until it is time to try again."""
        self._partitions, self._trouble = [], self._problem(error)
        raise self._trouble

    def _batch(self, messages: list[Any]) -> Batch:
        if self._values == "record":
            records = (json_cells.record(message.value() or b"") for message in messages)
            names = needed(self._spec)
            try:
                found = recognised((record for record in records if record is not None), known(self._spec))
                rows, columns = json_cells.columns(found, names)
            except BatchRefused:
                return _nothing()  # there is nobody to tell
            return columns or {ROWS: pa.nulls(rows)}
        [message] = messages
        headers = {name.lower(): value for name, value in message.headers() or ()}
        media_type = (headers.get("content-type") or JSON_LINES.encode()).decode("latin-1")
        try:
            return parse(message.value() or b"", media_type, self._spec)
        except BatchRefused:
            return _nothing()  # there is nobody to tell

    def _connected(self, ours: dict[str, Any], options: Mapping[str, Any]) -> Any:
        for name in options:
            if name in ours:
                raise ConfigurationError(f"Kafka: the option {name!r} is not free; positions are kept with the events")
        try:
            return self._api.Consumer({**options, **ours}, logger=_silent())
        except self._api.KafkaException as error:
            raise self._problem(error.args[0]) from None

    def _refuse(self, error: Any) -> None:
        kinds = self._api.KafkaError
        if error.code() not in (kinds._TRANSPORT, kinds._ALL_BROKERS_DOWN, kinds._RESOLVE, kinds._TIMED_OUT):
            raise self._problem(error)

    def _problem(self, error: Any) -> ConfigurationError:
        return ConfigurationError(f"Kafka: topic {self.topic}: {error.str()}")


def _silent() -> logging.Logger:
    """The client library's own log quotes what it likes, for every attempt anew; what matters comes as an error."""
    logger = logging.getLogger("confluent_kafka")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def _nothing() -> Batch:
    return {ROWS: pa.nulls(0)}


def _client_library() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise ConfigurationError("Kafka needs an extra: pip install 'evertally[kafka]'") from None
    return confluent_kafka
