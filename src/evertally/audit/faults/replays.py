"""Faults of ticks: one that is asked for again, one that is left out, one after the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evertally.audit.faults.findings import Found, held, leak, not_here
from evertally.audit.faults.plays import Subject, seen
from evertally.audit.faults.restores import Refused
from evertally.audit.faults.streams import Tick, feed, stream_for
from evertally.audit.whitebox import again, smaller
from evertally.contract.snapshot import restore
from evertally.errors import EvertallyError
from evertally.noise import simulation

_SHORT = (3, 4, 6, 8, 12)  # horizons of copies: periods and blocks of all sizes fit into one of them
_LONGEST, _LONG = 40, 2000  # ticks that are played to the end as they are: always, and where no copy can be made


def replayed(subject: Subject) -> Found:
    """The last tick again, with the same content, with another, and of other people; and ticks that are not next: the
    first release, or a refusal."""
    tick, other, told_apart = subject.two_contents
    given = subject.stream[tick - 1]
    for play in subject.plays:
        first = play.releases[tick - 1]
        live = restore(play.snapshots[tick - 1], key=play.key)
        feed(live, play.stream[tick - 1])
        for whose, mechanism in (("", live), (" of a restored mechanism", restore(play.snapshots[tick], key=play.key))):
            if (same := _answer(mechanism, given, tick)) != first:
                how = "is refused: it is read otherwise than before" if same is None else "was released in two versions"
                return leak(f"tick {tick}{whose} with the same content {how}")
            for content in (other, given.renamed()):
                shown = _answer(mechanism, content, tick)
                if shown not in (None, first):
                    return leak(f"tick {tick}{whose} was {first[1][:60]}, and for another content {shown[1][:60]}")
                if shown is not None and content is other and told_apart:
                    return leak(f"tick {tick}{whose}: another content was taken for one that was released")
            for wrong in (tick - 1, tick + 2, 0, -1):
                if _answer(mechanism, other, wrong) is not None:
                    return leak(f"tick {wrong}{whose} was released after tick {tick}")
            if mechanism.tick != tick:
                return leak(f"a refused call{whose} has used a tick")
    if not told_apart:
        return not_here("the same content gives the same release; no other content shows in a release of its tick")
    return held(
        f"tick {tick} again is the same for the same content, and refused for another; so are ticks out of order"
    )


def _answer(mechanism: Any, content: Tick, tick: int) -> Any:
    try:
        return seen(feed(mechanism, content, tick))
    except Refused:
        return None


def past_the_horizon(subject: Subject) -> Found:
    """Calls after the last tick, of every kind, on the mechanism and on a restored one: nothing more is released."""
    model = subject.model
    if model.horizon is None:
        return not_here("there is no horizon: noise is made for every tick that may come")
    made = _to_the_end(subject)
    if made is None:
        return not_here("no copy of this configuration is short enough to be played to its end")
    make, horizon, stream = made
    key = simulation(3)
    mechanism = make(key)
    for content in stream[:-1]:
        feed(mechanism, content)
    more = stream[-1]
    calls: dict[str, Callable[[Any], Any]] = {
        "step_events": lambda m: feed(m, more),
        "step_events with a tick": lambda m: feed(m, more, horizon + 1),
        "step": lambda m: m.step(more.events),
        "run": lambda m: m.run([more.events]),
    }
    for whose, one in (("", mechanism), (" of a restored mechanism", restore(mechanism.snapshot(), key=key))):
        for name, call in calls.items():
            try:
                call(one)
            except Exception:  # whatever stopped it, nothing was released
                if one.tick != horizon:
                    return leak(f"{name}{whose} was refused after the horizon {horizon}, and used a tick")
                continue
            return leak(f"{name}{whose} released a tick after the horizon {horizon}")
    return held(f"nothing is released after tick {horizon}")


def _to_the_end(subject: Subject) -> tuple[Any, int, list[Tick]] | None:
    """The mechanism, or a short copy of it, its horizon, and one tick more than that."""
    model = subject.model
    if model.horizon <= _LONGEST:
        return subject.make, model.horizon, stream_for(model, model.horizon + 1)
    for horizon in _SHORT:
        try:
            copy = smaller(model, horizon)
            made = again(copy)
            made(simulation(0))
        except (EvertallyError, TypeError, ValueError):
            continue
        return made, horizon, stream_for(copy, horizon + 1)
    return (subject.make, model.horizon, stream_for(model, model.horizon + 1)) if model.horizon <= _LONG else None
