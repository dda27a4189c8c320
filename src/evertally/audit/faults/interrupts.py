"""Faults inside a call: it ends at some line, in a step, a snapshot or a restore; another call comes in between.

A call that raised has released nothing, so nothing of its events may be left: not in what is kept, and not in what is
released when the tick comes again, be it with another content. Lines are interrupted one after the other on the same
mechanism, so that what each of them left behind adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from evertally.audit.faults.findings import Found, first_difference, held, leak, not_here
from evertally.audit.faults.plays import Play, Subject, seen, state_of
from evertally.audit.faults.restores import Refused
from evertally.audit.faults.streams import Tick, feed, small_ticks
from evertally.checks import interruptions
from evertally.checks.interruptions import Place
from evertally.contract.snapshot import restore
from evertally.errors import InterruptedCall

AnyPlace = TypeVar("AnyPlace", bound=Place)
_AUDITOR = str(Path(__file__).parents[1])
# Where calls are committed, and users counted: between two instructions of a line there a signal may come.
_COMMITTING = ("contract/guarded.py", "contract/mechanism.py", "contract/paths.py")


def interrupted_calls(subject: Subject, most: int) -> Found:
    """A tick that is interrupted at `most` places, one after the other, then sent with another content."""
    first, second, later = small_ticks(subject.model)
    count = 0
    for cut in (0, 1) if _room(subject) > 2 else (0,):
        for key in subject.keys:
            before = subject.play(key, [first] * cut)
            expected = subject.play(key, [*before.stream, second, *([later] if _room(subject) > cut + 1 else [])])
            count, told = _interrupt(subject, before, first, expected, most)
            if told:
                return leak(told)
    if not count:
        return not_here("no line of this package runs in a call of it")
    return held(
        f"a tick that was interrupted at {count} places and came again with another content shows the other alone"
    )


def _room(subject: Subject) -> int:
    horizon = subject.model.horizon
    return 9 if horizon is None else int(horizon)


def _interrupt(subject: Subject, before: Play, content: Tick, expected: Play, most: int) -> tuple[int, str | None]:
    key, blob, ticks = before.key, before.snapshots[-1], len(before.stream)
    places = places_of(lambda: restore(blob, key=key), lambda one: feed(one, content), most)
    victim, kept = restore(blob, key=key), state_of(blob, key)
    for place in places:
        where = interruptions.name_of(place)
        if not interruptions.interrupted(partial(feed, victim, content), place, _COMMITTING):
            victim = restore(blob, key=key)  # it ran another way this time, to its end
            continue
        if victim.tick != ticks:
            return 0, f"interrupted {where}, a call without a release has used a tick"
        try:
            left = state_of(victim.snapshot(), key)
        except InterruptedCall:  # there is no way back, and it says so
            victim = restore(blob, key=key)
            continue
        if left != kept and not _noise_alone(before, content, places, left):
            return 0, f"interrupted {where}, a call without a release has changed what is kept"
    try:
        releases = [seen(feed(victim, tick)) for tick in expected.stream[ticks:]]
    except InterruptedCall:
        return 0, "a mechanism that went on after an interruption refuses its next tick"
    told = first_difference(releases, expected.releases[ticks:])
    return len(places), told and f"after {len(places)} interruptions {told}"


def _noise_alone(before: Play, content: Tick, places: Sequence[Place], left: Any) -> bool:
    """Whether an interrupted tick without events leaves the same: noise may be kept as of another tick then."""
    key, blob, nothing = before.key, before.snapshots[-1], content.empty()
    for place in places:
        victim = restore(blob, key=key)
        if interruptions.interrupted(partial(feed, victim, nothing), place, _COMMITTING):
            try:
                if state_of(victim.snapshot(), key) == left:
                    return True
            except InterruptedCall:
                continue
    return False


def places_of(make: Callable[[], Any], call: Callable[[Any], Any], most: int) -> list[Place]:
    """Places of a call, in their order: all where it commits, and of the other lines so many, evenly."""
    one, two = make(), make()
    _, lines = interruptions.lines_of(partial(call, one))
    _, returns = interruptions.returns_of(partial(call, two), _COMMITTING)
    own = [line for line in lines if not line[0].co_filename.startswith(_AUDITOR)]
    committing: list[Place] = [line for line in own if line[0].co_filename.endswith(_COMMITTING)]
    rest = [line for line in own if line not in set(committing)]
    step = max(1, -(-len(rest) // most))
    return [*thinned(committing, most), *rest[::step], *thinned(returns, most)]


def thinned(places: Sequence[AnyPlace], most: int) -> list[AnyPlace]:
    """At most so many of them, evenly, the last one among them: what comes last is the commit."""
    step = max(1, -(-len(places) // most))
    return list(places[::-1][::step][::-1])


def interrupted_restores(subject: Subject, most: int) -> Found:
    """A restore, and a snapshot, that end half-way: the next restore goes on as if they had not been."""
    play, cut = subject.plays[0], len(subject.stream) // 2
    blob, count = play.snapshots[cut], 0
    for place in places_of(lambda: None, lambda _: restore(blob, key=play.key), most):
        count += interruptions.interrupted(partial(restore, blob, key=play.key), place, _COMMITTING)
    mechanism = restore(blob, key=play.key)
    for place in places_of(lambda: mechanism, lambda one: one.snapshot(), most):
        count += interruptions.interrupted(mechanism.snapshot, place, _COMMITTING)
    try:
        releases = [seen(feed(mechanism, tick)) for tick in play.stream[cut:]]
    except Refused as error:
        return leak(f"after interrupted restores the stream stops with {type(error).__name__}")
    told = first_difference(releases, play.releases[cut:])
    if told:
        return leak(f"after {count} interrupted restores and snapshots {told}")
    if not count:
        return not_here("no line of this package runs in a restore of it")
    if not subject.draws and not subject.remembers:
        return not_here("no later release depends on what was before, and none on the noise")
    return held(f"{count} restores and snapshots that ended half-way leave no trace")


def two_at_once(subject: Subject, most: int) -> Found:
    """While a call is inside, another one comes with another content, from a signal handler and from a thread: it is
    refused, and the first one releases what it would have released."""
    first, second, _ = small_ticks(subject.model)
    key = subject.keys[0]
    (expected,) = subject.released(key, [first])
    _, lines = interruptions.lines_of(partial(feed, subject.make(key), first))
    inside = [line for line in lines if line[0].co_filename.endswith(_COMMITTING)]
    body = [line for line in inside if line[0].co_name != "guarded"]
    if not body:
        return not_here("no line of the contract runs in a call of it")
    places = thinned(body, most)
    for place in places:
        mechanism = subject.make(key)
        where = interruptions.name_of(place)
        try:
            release, others = interruptions.entered(
                partial(feed, mechanism, first), place, partial(feed, mechanism, second)
            )
        except Refused as error:
            return leak(f"{where} a second call came, and the one that was inside stops with {type(error).__name__}")
        if any(error is None for error in others):
            return leak(f"{where} a second call was let in while the first one was inside")
        told = first_difference([seen(release)], [expected])
        if told or mechanism.tick != 1:
            return leak(f"{where} a refused call disturbed the one that was inside: {told or 'it used a tick'}")
    return held(f"at {len(places)} places inside a call a second one is refused")
