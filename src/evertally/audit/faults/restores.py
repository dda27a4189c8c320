"""Faults of snapshots: put away and taken up, older ones, several at once, under another key, with other options."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from evertally.audit.faults.findings import Found, first_difference, held, leak, not_here
from evertally.audit.faults.plays import Play, Seen, Subject, seen, state_of, text_of
from evertally.audit.faults.streams import KNOWN, Tick, feed
from evertally.contract.snapshot import pack, restore, unpack
from evertally.errors import EvertallyError
from evertally.noise import Key, NoiseKey, simulation

_MAC_BYTES = 32  # at the end of a snapshot
FLOORED = "nonnegative"  # an option that shows what is below 0 as 0: the same noisy number
Refused = (EvertallyError, TypeError)  # how a mechanism says no


def restored(subject: Subject) -> Found:
    """Put away and taken up at some ticks, and at all of them: the stream goes on as if nothing had happened."""
    if not subject.draws and not subject.remembers:
        return not_here("no later release depends on what was before, and none on the noise")
    every = range(len(subject.stream))
    told = _told(subject, [*([cut] for cut in subject.cuts), every])
    if told:
        return leak(told)
    shown = [what for what, shows in (("noise", subject.draws), ("the past", subject.remembers)) if shows]
    seen_in = " and ".join(shown)
    return held(f"restored after ticks {subject.cuts} and before every tick, all releases are the same; {seen_in} show")


def restored_users(subject: Subject) -> Found:
    """The same, told apart: whether who was there before a restore still counts as having been there."""
    if not subject.model.takes_users:
        return not_here("no users come with its events")
    if not subject.remembers_users:
        return not_here("who was there before shows in no later release of the streams that were tried")
    told = _told(subject, [[cut] for cut in subject.cuts[1:]])
    if told:
        return leak(f"users are forgotten, or others: {told}")
    return held("whoever was there before a restore counts no further after it")


def _told(subject: Subject, restarts: Sequence[Sequence[int]]) -> str | None:
    """What streams that are restored at these ticks show otherwise, or keep otherwise where nothing shows."""
    found = [(at, _continued(play, at)) for play in subject.plays for at in restarts]
    for at, difference in [*((at, shows) for at, (shows, _) in found), *((at, keeps) for at, (_, keeps) in found)]:
        if difference:
            when = f"after tick {at[0]}" if len(at) == 1 else "before every tick"
            return f"restored {when}: {difference}"
    return None


def _continued(play: Play, at: Sequence[int]) -> tuple[str | None, str | None]:
    """What a stream that is restored after these ticks shows, and keeps, otherwise than the undisturbed one."""
    first, releases, kept = min(at), list[Seen](), None
    try:
        mechanism = restore(play.snapshots[first], key=play.key)
        for number in range(first, len(play.stream)):
            if number in at and number > first:
                mechanism = restore(mechanism.snapshot(), key=play.key)
            if state_of(mechanism.snapshot(), play.key) != state_of(play.snapshots[number], play.key):
                kept = kept or f"what is kept after tick {number} is something else than without a restore"
            releases.append(seen(feed(mechanism, play.stream[number])))
    except EvertallyError as error:
        return f"it stops at tick {first + len(releases) + 1} with {type(error).__name__}", None
    return first_difference(releases, play.releases[first:]), kept


def erased(subject: Subject) -> Found:
    """Users are erased, then the stream is restored: their names are gone, and nothing of them counts again."""
    if not subject.model.takes_users:
        return not_here("no users come with its events")
    cut = len(subject.stream) // 2
    if not cut:
        return not_here("there is no tick after the first one")
    try:
        subject.make(simulation(0)).erase(list(KNOWN))
    except EvertallyError:
        return not_here("it knows nobody by name, or says that it cannot erase")
    shows = False
    for play in subject.plays:
        transcripts = []
        for again in (False, True):
            mechanism = subject.make(play.key)
            for tick in play.stream[:cut]:
                feed(mechanism, tick)
            mechanism.erase(list(KNOWN))
            blob = mechanism.snapshot()
            if any(name.encode() in blob for name in KNOWN):
                return leak("an erased name is in the next snapshot")
            mechanism = restore(blob, key=play.key) if again else mechanism
            transcripts.append([seen(feed(mechanism, tick)) for tick in play.stream[cut:]])
        told = first_difference(transcripts[1], transcripts[0])
        if told:
            return leak(f"erased and restored after tick {cut}: {told.replace('undisturbed', 'without a restore')}")
        shows |= transcripts[0] != play.releases[cut:]
    if not shows:
        return not_here("their names are gone; that they do not count shows in no later release of this stream")
    return held(f"users who were erased after tick {cut} stay so through a restore, and their names are gone")


# -- two of one stream -------------------------------------------------------------------------------------------------


def forked(subject: Subject) -> Found:
    """Two mechanisms from one snapshot, the original beside a restored one, and an older snapshot, each fed with
    another content: one of them releases a tick, no other one does."""
    tick, other, told_apart = subject.two_contents
    if not told_apart:
        return not_here("no two contents of a tick were found that a release tells apart")
    given = subject.stream[tick - 1]
    for name, both in _two_of_one_stream(subject, tick).items():
        try:
            one, two = both()
        except Refused:
            continue
        shown = [_released(mechanism, content) for mechanism, content in ((one, given), (two, other))]
        if all(release is not None for release in shown):
            return leak(f"{name}: tick {tick} was released as {shown[0]} and as {shown[1]}, under one noise")
    return held(f"of two mechanisms of one stream one at most releases tick {tick}")


def _two_of_one_stream(subject: Subject, tick: int) -> dict[str, Callable[[], tuple[Any, Any]]]:
    def before() -> tuple[Any, NoiseKey]:
        key = Key.generate()  # one that promises something: simulations may be repeated
        mechanism = own_factory(subject)(key)
        for content in subject.stream[: tick - 1]:
            feed(mechanism, content)
        return mechanism, key

    def from_one_snapshot() -> tuple[Any, Any]:
        mechanism, key = before()
        blob = mechanism.snapshot()
        return restore(blob, key=key), restore(blob, key=key)

    def original_goes_on() -> tuple[Any, Any]:
        mechanism, key = before()
        return restore(mechanism.snapshot(), key=key), mechanism

    def older_snapshot() -> tuple[Any, Any]:
        mechanism, key = before()
        blob = mechanism.snapshot()
        feed(mechanism, subject.stream[tick - 1])
        return _Released(mechanism), restore(blob, key=key)

    def made_again() -> tuple[Any, Any]:
        mechanism, key = before()
        again = own_factory(subject)(key)
        for content in subject.stream[: tick - 1]:
            feed(again, content)
        return mechanism, again

    def copied(how: Callable[[Any], Any]) -> Callable[[], tuple[Any, Any]]:
        def both() -> tuple[Any, Any]:
            mechanism, _ = before()
            return mechanism, how(mechanism)

        return both

    return {
        "two from one snapshot": from_one_snapshot,
        "the original beside a restored one": original_goes_on,
        "an older snapshot": older_snapshot,
        "a second one with the same key and names": made_again,
        "copy": copied(copy.copy),
        "deepcopy": copied(copy.deepcopy),
        "pickle": copied(lambda mechanism: pickle.loads(pickle.dumps(mechanism))),  # noqa: S301
    }


class _Released:
    """A mechanism whose tick is out already."""

    def __init__(self, mechanism: Any) -> None:
        self._mechanism = mechanism

    def step_events(self, *arguments: Any, tick: int | None, **options: Any) -> Any:
        return self._mechanism.step_events(*arguments, tick=self._mechanism.tick, **options)


def _released(mechanism: Any, content: Tick) -> str | None:
    try:
        return seen(feed(mechanism, content))[1][:60]
    except Refused:
        return None


def own_factory(subject: Subject) -> Callable[[NoiseKey], Any]:
    """Makes it as a user of the library does: in a stream of the service other fences stand around it."""
    model = subject.model
    if not model.allow_copy:
        return subject.make
    return lambda key: type(model)(**(model._options | {"guarantee": model.guarantee}), key=key)


# -- other keys, other options, other bytes ----------------------------------------------------------------------------


def elsewhere(subject: Subject) -> Found:
    """A snapshot under another key, with other options, or damaged: refused, or nothing is released otherwise."""
    play, cut = subject.plays[0], len(subject.stream) // 2
    blob = play.snapshots[cut]
    if not subject.draws and not subject.remembers:
        return not_here("no later release depends on what was before, and none on the noise")
    tried, right = 0, restore(blob, key=play.key)
    values = [feed(right, tick).value for tick in play.stream[cut:]]
    for name, bytes_, key in _elsewhere(blob, play.key):
        tried += 1
        try:
            mechanism = restore(bytes_, key=key)
            others = [feed(mechanism, tick).value for tick in play.stream[cut:]]
        except Exception:  # noqa: S112  # refused, or stopped by accident: nothing was released
            continue
        for tick, (one, other) in enumerate(zip(others, values, strict=True), start=cut + 1):
            if name.endswith(FLOORED):
                one, other = _floored(one), _floored(other)
            if _contradict(one, other):
                return leak(f"a snapshot {name} was taken up, and tick {tick} is released in two versions")
    return held(f"{tried} snapshots under another key, with other options or damaged are refused, or change nothing")


def _floored(value: Any) -> Any:
    """What the option of that name makes of a value."""
    if isinstance(value, dict):
        return {label: _floored(inner) for label, inner in value.items()}
    return np.maximum(value, 0)


def _contradict(one: Any, other: Any) -> bool:
    """Whether two released values differ in more than which labels are shown: of one noisy table more or fewer rows may
    be shown, and no row in two versions."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return text_of(one) != text_of(other)
    return any(text_of(one[label]) != text_of(other[label]) for label in one.keys() & other.keys())


def _elsewhere(blob: bytes, key: NoiseKey) -> Iterator[tuple[str, bytes, NoiseKey]]:
    yield "under another key", blob, simulation(99)
    for place in range(0, len(blob), max(1, len(blob) // 24)):
        yield f"with another byte {place}", blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :], key
    yield "that ends early", blob[:-1], key
    header, parts = unpack(blob, key)
    header.pop("parts")
    start = len(blob) - _MAC_BYTES - sum(map(len, parts))
    for part in parts:
        for place in range(start, start + len(part), max(8, len(part) // 64 * 8)):
            yield f"with another byte {place}", blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :], key
        start += len(part)
    for name, value in header["options"].items():
        for other in _other_values(value):
            yield f"with another {name}", pack(header | {"options": header["options"] | {name: other}}, parts, key), key


def _other_values(value: Any) -> Iterator[Any]:
    """Options as a snapshot keeps them, a little different."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, 2 * value + 1)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in ("epsilon", "rho", "delta"):
                yield value | {name: f"{inner}0" if "/" not in str(inner) else str(inner).replace("/", "0/")}
    elif isinstance(value, str) and value:
        yield value + "x"
