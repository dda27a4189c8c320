"""Kafka: nothing is lost and nothing counted twice, wherever the reader is cut off."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.ipc
import pytest
from visit_stream import WriteSpec

from evertally.errors import ConfigurationError
from evertally.runtime import load_spec
from evertally.runtime.input import kafka
from evertally.runtime.input.batches import ARROW, Piece
from evertally.runtime.input.folder import Unread
from evertally.runtime.input.kafka import KafkaSource
from evertally.runtime.input.quarantine import Quarantine
from evertally.runtime.input.tick_events import length
from evertally.runtime.spec import StreamSpec
from waiting import PATIENCE, until

# A pause that is long enough for librdkafka to fetch what there is.
WAIT = 0.3


class Broker:
    """librdkafka's own mock cluster, which lives as long as its producer."""

    def __init__(self) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": "-", "test.mock.num.brokers": 1})
        brokers = self._producer.list_topics(timeout=PATIENCE).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def send(self, topic: str, *values: Any, partition: int = -1, headers: Any = None) -> None:
        for value in values:
            if not isinstance(value, bytes | None):
                value = json.dumps(value).encode()
            self._producer.produce(topic, value, partition=partition, headers=headers)
        assert self._producer.flush(10) == 0


class State:
    """What the stream has accepted: events and marks, together or not at all."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}
        self.wards: list[Any] = []
        self.ids: set[str] = set()

    def accept(self, piece: Piece) -> None:
        assert piece.batch_id not in self.ids
        self.ids.add(piece.batch_id)
        self.marks.update(piece.marks)
        if length(piece.batch):
            column = piece.batch["ward"]
            self.wards += column.to_pylist() if isinstance(column, pa.Array) else column.tolist()


@pytest.fixture(scope="module")
def broker() -> Broker:
    return Broker()


@pytest.fixture
def spec(write_spec: WriteSpec) -> StreamSpec:
    return load_spec(write_spec())


@pytest.fixture
def opened(broker: Broker, spec: StreamSpec) -> Iterator[Any]:
    sources: list[KafkaSource] = []

    def make(topic: str, state: State, **options: Any) -> KafkaSource:
        sources.append(KafkaSource(broker.servers, topic, spec, state.marks.get, **options))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def drain(source: KafkaSource, state: State) -> None:
    idle = 0
    while idle < 2:
        idle += 1
        for piece in source.new(WAIT):
            state.accept(piece)
            idle = 0


def test_each_message_counts_once_whatever_is_cut_off(
    broker: Broker, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_MESSAGES", 40)
    rng = random.Random(1)
    state, sent = State(), 0
    for _ in range(12):
        broker.send("crashes", *({"ward": f"w{sent + i}"} for i in range(50)))
        sent += 50
        source = opened("crashes", state)
        for _ in range(2):
            for piece in source.new(WAIT):
                if rng.random() < 0.25:
                    break  # the process dies with a piece in hand
                state.accept(piece)
    drain(opened("crashes", state), state)
    assert sorted(state.wards) == sorted(f"w{i}" for i in range(sent))
    assert sum(state.marks.values()) == sent


def test_a_piece_that_was_not_accepted_comes_again_from_the_same_source(broker: Broker, opened: Any) -> None:
    broker.send("again", {"ward": "a"}, {"ward": "b"}, partition=0)
    state = State()
    source = opened("again", state)
    offered = []
    while not offered:
        for piece in source.new(WAIT):
            if length(piece.batch):
                offered.append(piece.batch_id)
            else:
                state.accept(piece)
    drain(source, state)
    assert state.wards == ["a", "b"]
    # From the same message on; how many a piece holds depends on how many have come by then.
    begins = offered[0].rpartition("-")[0]
    assert [piece.rpartition("-")[0] for piece in state.ids].count(begins) == 1


def test_messages_that_are_no_records_are_left_out(broker: Broker, opened: Any) -> None:
    pretty = json.dumps({"ward": "north", "other": [1]}, indent=2).encode()
    broker.send("bad", b"{", None, b"", b"[1]", pretty, b"\xff", {"ward": 7}, b'{"ward":"a"}{"ward":"b"}', partition=0)
    state = State()
    drain(opened("bad", state), state)
    assert state.wards == ["north", 7]
    assert state.marks["kafka:bad:0"] == 8


def test_whole_batches(broker: Broker, opened: Any) -> None:
    table = pa.table({"ward": ["north", "south"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = sink.getvalue().to_pybytes()
    broker.send("whole", arrow, arrow[:-9], b"", partition=0, headers={"Content-Type": ARROW.encode()})
    broker.send("whole", b'{"ward": "east"}\n{"ward"\n{"ward": "west"}\n', partition=0)
    state = State()
    drain(opened("whole", state, values="batch"), state)
    assert state.wards == [b"north", b"south", "east", "west"]
    assert state.marks["kafka:whole:0"] == 4


def test_a_stream_that_begins_at_the_end_stays_there(broker: Broker, opened: Any) -> None:
    broker.send("end", *({"ward": "old"} for _ in range(20)))
    state = State()
    for piece in opened("end", state, start="end").new(WAIT):
        state.accept(piece)
    assert sum(state.marks.values()) == 20
    broker.send("end", *({"ward": "new"} for _ in range(20)))  # while nobody reads
    drain(opened("end", state, start="end"), state)
    assert state.wards == ["new"] * 20


def test_partitions_that_come_later_begin_at_their_beginning(broker: Broker, opened: Any) -> None:
    for partition in range(2):
        broker.send("grows", {"ward": f"w{partition}"}, partition=partition)
    state = State()
    source = opened("grows", state, start="end")
    source._look_for_partitions()
    every, source._partitions = source._partitions, [0]
    drain(source, state)
    assert state.wards == []
    source._partitions = every
    drain(source, state)
    assert state.wards == ["w1"]


def drained(source: KafkaSource, state: State) -> str:
    """All that there is, and what is told at the end."""
    try:
        drain(source, state)
    except Unread as error:
        [problem] = error.problems
        return problem
    return ""


def test_messages_that_kafka_no_longer_has_are_missed_by_nobody_unasked(
    broker: Broker, opened: Any, spec: StreamSpec
) -> None:
    """Their partition waits, the others do not; the operator says when it goes on, and then nothing counts twice."""
    for partition in range(2):
        broker.send("gone", {"ward": f"a{partition}"}, partition=partition)
    state, quarantine = State(), Quarantine.beside(spec.state_file)
    drain(opened("gone", state), state)
    state.marks["kafka:gone:0"] = 10**6
    for _ in range(2):  # also after a restart
        source = opened("gone", state)
        # What the broker says may take longer than a wait for messages.
        until(lambda: "topic gone, partition 0 no longer has the next" in drained(source, state))  # noqa: B023
        broker.send("gone", {"ward": "b1"}, partition=1)
        until(lambda: drained(source, state) and "b1" in state.wards)  # noqa: B023
        state.wards.remove("b1")
        assert state.marks["kafka:gone:0"] == 10**6
    [held] = quarantine.all()
    assert (held.item, held.wish) == ("gap:kafka:gone:0:1000000", "hold")
    assert held.why == "Kafka has lost messages (nobody knows how many); drop: go on from number 1 or later"
    quarantine.decide(held.id, "retry")
    until(lambda: [one.wish for one in quarantine.all()] == ["hold"] or not drained(source, state))
    until(lambda: "waits" in drained(source, state))  # it is not there again
    quarantine.decide(held.id, "drop")
    drain(source, state)
    assert state.marks["kafka:gone:0"] == 1
    broker.send("gone", {"ward": "c0"}, partition=0)
    drain(opened("gone", state), state)
    assert sorted(state.wards) == ["a0", "a1", "c0"]
    assert list(quarantine.all()) == []


def test_what_is_refused(broker: Broker, spec: StreamSpec, opened: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"option 'auto\.offset\.reset' is not free"):
        KafkaSource(broker.servers, "t", spec, {}.get, options={"auto.offset.reset": "latest"})
    with pytest.raises(ConfigurationError, match=r"Kafka: topic t: .*no\.such\.option"):
        KafkaSource(broker.servers, "t", spec, {}.get, options={"no.such.option": "1"})
    with pytest.raises(ConfigurationError, match="values is"):
        KafkaSource(broker.servers, "t", spec, {}.get, values="csv")  # type: ignore[arg-type]
    nowhere = KafkaSource("127.0.0.1:1", "t", spec, {}.get, patience=0.2)
    with pytest.raises(ConfigurationError, match="Kafka: topic t: "):
        list(nowhere.new())
    nowhere.close()


def test_a_message_that_fails_is_set_aside_and_fetched_again_on_request(
    broker: Broker, opened: Any, spec: StreamSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, defect = KafkaSource._batch, [True]

    def batch(self: KafkaSource, messages: list[Any]) -> Any:
        if defect and any(b"poison" in message.value() for message in messages):
            raise RuntimeError("ward poison")
        return real(self, messages)

    monkeypatch.setattr(KafkaSource, "_batch", batch)
    wards = [f"w{i}" for i in range(12)]
    wards[7] = "poison"
    broker.send("aside", *({"ward": ward} for ward in wards), partition=0)
    state, quarantine = State(), Quarantine.beside(spec.state_file)
    source = opened("aside", state)
    drain(source, state)
    assert state.wards == [ward for ward in wards if ward != "poison"]
    assert state.marks["kafka:aside:0"] == 12
    [held] = quarantine.all()
    assert (held.item, held.wish) == ("kafka:aside:0:7", "hold")
    assert "ward" not in held.why
    quarantine.decide(held.id, "retry")
    drain(source, state)  # it fails again
    assert [one.wish for one in quarantine.all()] == ["hold"]
    defect.clear()
    quarantine.decide(held.id, "retry")
    broker.send("aside", {"ward": "next"}, partition=0)
    drain(opened("aside", state), state)
    assert sorted(state.wards) == sorted([*wards, "next"])
    assert list(quarantine.all()) == []
    assert state.marks["kafka:aside:0"] == 13
