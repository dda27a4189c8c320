"""Several ticks that a cap of users counts in one call, as a cluster hands them over, against one tick after the other.

A call of several ticks reads users once and enters them once. Whoever it forgets, or enters as of another tick, counts
again later. Users come back in the next tick, after silences, in the last tick of a call and in the first of the next;
calls are cut in several places, and caps put away between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from evertally.encode import UserCap
from evertally.encode.caps import Cap
from evertally.encode.separated import SeparatedCap

_TICKS = (1, 2, 3, 4, 6, 7, 8, 11, 12, 15, 16, 17, 24, 25)  # with gaps, as where nothing happened
_EVENTS, _BUSY, _OTHERS = 45, 9, 200  # events of a tick; users who have most of them, and the rest
_EMPTY = 12  # a tick without events
New = Callable[[], Any]

# Every kind, so tight that somebody who is forgotten counts again.
KINDS: dict[str, New] = {
    "events of a user": partial(UserCap, 2),
    "many events of a user": partial(UserCap, 20),
    "separated ticks": partial(SeparatedCap, 5, 3),
    "separated ticks without a limit": partial(SeparatedCap, None, 4, events=2),
    "ticks of blocks": partial(SeparatedCap, 3, 4, calendar=True, first_block=2),
}


def wrong_kinds() -> str:
    """What is wrong with a cap of any kind; nothing, if all is well.

    >>> wrong_kinds()
    ''
    """
    told = ((name, wrong_ticks(new)) for name, new in KINDS.items())
    return next((f"{name}: {wrong}" for name, wrong in told if wrong), "")


def wrong_ticks(new: New) -> str:
    """What is wrong with a cap, that `new` makes, if it is asked for several ticks at once."""
    script = [(tick, _users(tick)) for tick in _TICKS]
    slowly, kept = new(), []
    for tick, users in script:
        kept.append(slowly.keep(users, tick))
    expected, again, last = np.concatenate(kept), slowly.to_bytes(), script[-1]
    for told, calls in _cuts(script):
        for restored in (False, True):
            cap, found = new(), []
            for call in calls:
                found.append(_at_once(cap, call))
                cap = type(cap).from_bytes(cap.to_bytes()) if restored else cap
            if (np.concatenate(found) != expected).any():
                end = ", put away between them" if restored else ""
                return f"several ticks in {told}{end} keep other events than one after the other"
            if cap.to_bytes() != again:
                return f"several ticks in {told} leave something else behind than one after the other"
            if (cap.keep(last[1], last[0]) != kept[-1]).any():
                return f"after several ticks in {told} the last one is answered otherwise when it is asked again"
    return ""


def _at_once(cap: Cap, call: Sequence[tuple[int, list[Any]]]) -> Any:
    ends = np.cumsum([0, *(len(users) for _, users in call)]).tolist()
    edges = [(tick, *edge) for (tick, _), edge in zip(call, pairwise(ends), strict=True)]
    return cap.keep_ticks([user for _, users in call for user in users], edges)


def _cuts(script: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    yield "one call", [script]
    for cut in (1, 4, len(script) - 1):
        yield "two calls", [script[:cut], script[cut:]]
    for size in (2, 5):
        yield f"calls of {size}", [script[i : i + size] for i in range(0, len(script), size)]


def _users(tick: int) -> list[Any]:
    """Of a tick: some who have many events, some who come seldom, numbers among them, and nobody."""
    random = np.random.default_rng(tick)
    busy = [f"user {i}" for i in random.integers(0, _BUSY, _EVENTS).tolist()]
    others = random.integers(0, _OTHERS, _EVENTS).tolist()
    users = [other if i % 3 == 0 else str(other) if i % 3 == 1 else busy[i] for i, other in enumerate(others)]
    return [] if tick == _EMPTY else [None, *users]
