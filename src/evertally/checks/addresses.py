"""Which noise is drawn must tell nothing: what the addresses of draws may depend on, for every kind of mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from evertally.checks.subject import Subject, alike
from evertally.noise import Recording, simulation
from evertally.noise.source import Recorder

Log = list[list[Recorder]]  # the draws before the first tick, then tick by tick


@dataclass(frozen=True)
class Played:
    """The releases of a stream, and its draws."""

    values: list[Any]
    log: Log

    @property
    def draws(self) -> list[Recorder]:
        return [entry for tick in self.log for entry in tick]


def play(subject: Subject, inputs: list[Any]) -> Played:
    """One run, always with the same key."""
    recording = Recording(simulation(10))
    mechanism = subject.make(recording)
    values, ends = [], [len(recording.draws)]
    for x in inputs:
        values.append(subject.step(mechanism, x).value)
        ends.append(len(recording.draws))
    return Played(values, [recording.draws[start:stop] for start, stop in pairwise([0, *ends])])


def check_noise_sees_no_data(subject: Subject) -> None:
    """Which noise is drawn follows from public numbers, or from what was released; no lane has two laws."""
    inputs = subject.feed(subject.length(subject.make(simulation(10))))
    forward, backward = play(subject, inputs), play(subject, inputs[::-1])
    _RULES[subject.noise](subject, inputs, forward, backward)
    drawn = [*forward.draws, *backward.draws]
    assert bool(drawn) == (subject.noise != "none"), "there is noise where none is claimed, or none where it should be"
    laws: dict[str, Any] = {}
    for entry in drawn:
        assert laws.setdefault(entry.lane, entry.law) == entry.law, "one lane, two laws: the same bits at two scales"


def _fixed(_subject: Subject, _inputs: list[Any], forward: Played, backward: Played) -> None:
    assert forward.log == backward.log, "which noise is drawn depends on the data"


def _transcript(subject: Subject, inputs: list[Any], forward: Played, backward: Played) -> None:
    _check_test_noise(forward.log)
    _check_test_noise(backward.log)
    _check_twin(forward, play(subject, _hoarded(inputs, forward.log)))


def _check_twin(one: Played, other: Played) -> None:
    assert alike(one.values, other.values), "hoarding must not show"
    assert one.draws == other.draws, "the same releases, other draws: which noise is drawn depends on the data"


def _hoarded(inputs: list[Any], log: Log) -> list[Any]:
    """A very different stream with the same transcript: everything since the last close happens at the close.

    Within an interval monotone queries only grow, so a tick that closes nothing closes nothing with fewer events, and a
    tick that closes has the same sums.
    """
    hoarded, start = [], 0
    for tick, (x, draws) in enumerate(zip(inputs, log[1:], strict=True), start=1):
        closes = any(_role(entry) != "mu" for entry in draws) or tick == len(inputs)
        hoarded.append(_together(inputs[start:tick]) if closes else _nothing(x))
        start = tick if closes else start
    return hoarded


def _together(inputs: list[Any]) -> Any:
    """The inputs of several ticks as one: numbers added up, or records in their order."""
    if _records(inputs):
        return [record for records in inputs for record in records]
    return np.sum(np.array(inputs), axis=0).tolist()


def _nothing(x: Any) -> Any:
    return [] if _records([x]) else (0 * np.array(x)).tolist()


def _records(inputs: list[Any]) -> bool:
    return all(isinstance(x, list) and not any(isinstance(one, int | np.integer) for one in x) for x in inputs)


def _check_test_noise(log: Log) -> None:
    """The test of a partition: fresh noise at every tick until no interval is left, a fresh threshold for each."""
    _check_fresh(log, ("mu", "tau", "update"))
    tested = []
    for tick, entries in enumerate(log):
        for entry in entries:
            if _role(entry) == "mu":
                assert entry.nodes in ((tick,), ()), "the noise of a test has the address of its tick"
        tested.append(any(_role(entry) == "mu" and entry.nodes for entry in entries))
    assert tested[1], "the first tick was tested without noise"
    assert sorted(tested[1:], reverse=True) == tested[1:], "a tick was tested without noise"


def _check_fresh(log: Log, roles: tuple[str, ...]) -> None:
    seen: set[tuple[str, int]] = set()
    for entry in (entry for entries in log for entry in entries if _role(entry) in roles):
        addresses = {(entry.lane, node) for node in entry.nodes}
        assert not addresses & seen, "the noise of a test was used twice"
        seen |= addresses


def _role(entry: Recorder) -> str:
    return entry.lane.rpartition("/")[2]


def _switches(subject: Subject, inputs: list[Any], forward: Played, backward: Played) -> None:
    labels = subject.make(simulation(10)).columns
    for played in (forward, backward):
        _check_fresh(played.log, ("question", "threshold", "select"))
        selected = [any(entry.lane == "select" for entry in entries) for entries in played.log]
        assert selected[1], "the first tick names no columns"
        # Questions end with the last switch, and the last switch is a tick that was asked.
        asked = [any(entry.lane == "question" for entry in entries) for entries in played.log[2:]]
        assert sorted(asked, reverse=True) == asked, "a tick was asked without noise"
        for tick, entries in enumerate(played.log):
            for entry in entries:
                if entry.lane == "question":
                    assert entry.nodes == (tick,), "the noise of a question has the address of its tick"
                    assert entry.coordinates == len(labels), "not every column was asked"
    assert sum(entry.lane == "select" for entry in forward.draws) > 1, "a stream without a switch shows little"
    _check_twin(forward, play(subject, _withheld(inputs, forward, labels)))


def _withheld(inputs: list[Any], played: Played, labels: tuple[str, ...]) -> list[Any]:
    """A different stream with the same transcript: what other columns than the named ones get happens at the switch.

    Until then "has somebody overtaken them?" is a no with fewer events too, and at the switch all sums are the same.
    """
    withheld, held = [], np.zeros(len(labels), dtype=np.int64)
    for x, value, entries in zip(inputs, played.values, played.log[1:], strict=True):
        held = held + np.array(x)
        switch = any(entry.lane == "select" for entry in entries)
        shown = np.array([switch or label in value for label in labels])
        withheld.append(np.where(shown, held, 0).tolist())
        held = np.where(shown, 0, held)
    return withheld


def _blocks(subject: Subject, _inputs: list[Any], forward: Played, backward: Played) -> None:
    k, d = (mechanism := subject.make(simulation(10))).k, len(mechanism.columns)
    for played in (forward, backward):
        for tick, entries in enumerate(played.log[1:], start=1):
            assert [entry.nodes for entry in entries] == [(tick,)] * 2, "one block a tick, with the tick as its address"
            assert [entry.coordinates for entry in entries] == [d, k], "all labels compete, and k of them are counted"
            assert set(entries[1].items or ()) <= set(entries[0].items or ()), "noise of a label that does not exist"
    assert [entries[0] for entries in forward.log[1:]] == [entries[0] for entries in backward.log[1:]], (
        "which labels compete depends on the data"
    )


def _items(subject: Subject, inputs: list[Any], forward: Played, _backward: Played) -> None:
    _check_items(subject, inputs, forward)
    # The last tick but one has old blocks in it, which ended before some items came.
    before = len(inputs) - 1
    _check_last(forward.values[before - 1], play(subject, inputs[:before][::-1]).values[-1])


def _items_in_blocks(subject: Subject, inputs: list[Any], forward: Played, backward: Played) -> None:
    _check_items(subject, inputs, forward)
    # One block holds the whole stream, which has the same sums backwards.
    _check_last(forward.values[-1], backward.values[-1])


def _check_items(subject: Subject, inputs: list[Any], forward: Played) -> None:
    """The noise of an item is a function of its label and the tick, whatever else happened."""
    shuffled = play(subject, [_turned(events) for events in inputs])
    assert alike(forward.values, shuffled.values), "the order of events shows"
    assert [_addresses(entries) for entries in forward.log] == [_addresses(entries) for entries in shuffled.log]
    among = play(subject, [_among(t, events) for t, events in enumerate(inputs)])
    assert alike(forward.values, among.values), "unreleased items show"
    for tick, entries in enumerate(forward.log):
        assert all(node <= tick for entry in entries for node in entry.nodes), "noise of blocks that have not ended"


def _turned(x: Any) -> Any:
    return tuple(part[::-1] for part in x) if isinstance(x, tuple) else x[::-1]


def _among(tick: int, x: Any) -> Any:
    events, users = x if isinstance(x, tuple) else (x, None)
    events = [f"only once, {tick}", *events, f"only here, {tick}"]
    return events if users is None else (events, [f"first of {tick}", *users, f"last of {tick}"])


def _check_last(one: dict[str, int], other: dict[str, int]) -> None:
    """The same counts, reached in another order of ticks. Of what was shown earlier, some may have stayed."""
    common = set(one) & set(other)
    assert common, "nothing was released at the end"
    assert all(one[label] == other[label] for label in common), "the noise of an item tells when it came"


def _addresses(entries: list[Recorder]) -> set[Any]:
    return {(draw.lane, node, item) for draw in entries for node in draw.nodes for item in draw.items or (draw.first,)}


_RULES: dict[str, Callable[[Subject, list[Any], Played, Played], None]] = {
    "fixed": _fixed,
    "none": _fixed,
    "transcript": _transcript,
    "switches": _switches,
    "blocks": _blocks,
    "items": _items,
    "items in blocks": _items_in_blocks,
}
