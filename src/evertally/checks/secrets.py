"""Nothing that a mechanism holds may show itself: no label, count or noise in a `repr`, none in a pickle.

A traceback, a log line and a debugger print objects without asking. So two mechanisms are played with other data under
another key, and everything that can be reached from them is looked at. What an object shows must be the same in both,
so that it is public; and what it holds must be the same in both, or the object must refuse to be pickled.
"""

from __future__ import annotations

import functools
import pickle
import re
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from evertally.checks.subject import Subject, events_of
from evertally.noise import Key, simulation

PLANTED = "planted-0b6c1e"
_TICKS = 6
_COPIES = 23
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def check_secrets_stay(subject: Subject) -> None:
    """Nothing that can be reached from a mechanism shows what depends on data or key; what holds it is not pickled."""
    shown = [_shown(_played(subject, seed)) for seed in (1, 2)]
    for one, other in (shown, shown[::-1]):
        owners = sorted({owner for owner, _ in one - other})
        assert not owners, f"{', '.join(owners)}: shows or pickles what depends on the data or on the key"


def _played(subject: Subject, seed: int) -> Any:
    """A mechanism after a few ticks: seed 2 gets the stream backwards, and one planted label and user many times."""
    mechanism = subject.make(simulation(seed))
    inputs = subject.feed(max(1, min(_TICKS, subject.length(mechanism) - 1)))
    for x in inputs if seed == 1 else inputs[::-1]:
        subject.step(mechanism, x)
    if mechanism.tick == mechanism.horizon:
        return mechanism
    known = [] if subject.owned else events_of(mechanism, inputs[0])[:_COPIES]
    events = [*known, *[PLANTED] * (_COPIES * (seed - 1))]
    named = subject.users or subject.owned
    users = {"users": [f"{PLANTED}/{seed}/{i}" for i in range(len(events))]} if named else {}
    mechanism.step_events(events, **users)
    mechanism.snapshot()
    return mechanism


def _shown(mechanism: Any) -> set[tuple[str, str]]:
    """Everything that the objects behind a mechanism show, with the names of their classes."""
    shown = set()
    for thing in reachable(mechanism):
        owner = type(thing).__qualname__
        for text in (repr(thing), str(thing), format(thing)):
            assert PLANTED not in text, f"{owner} shows a label or a user"
            # A fingerprint is the public name of a key.
            shown.add((owner, "a key" if isinstance(thing, Key) else _ADDRESS.sub("", text)))
        if _refuses_to_be_pickled(thing):
            continue
        held = _held(thing)
        assert PLANTED not in held, f"{owner} holds a label or a user, and does not inherit from Secret"
        shown.add((owner, held))
    return shown


def _refuses_to_be_pickled(thing: Any) -> bool:
    try:
        pickle.dumps(thing)
    except TypeError as refusal:
        return "not pickled" in str(refusal)
    except Exception:  # by chance: a function inside it has no name
        return False
    return False


def _held(thing: Any) -> str:
    """What an object holds itself, as text: other objects that are looked at by themselves only by their classes."""

    def text(value: Any, depth: int) -> str:
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{value.shape}{value.tolist() if value.dtype != object else ''}"
        if depth and isinstance(value, dict):
            return "{" + ", ".join(f"{text(k, depth - 1)}: {text(v, depth - 1)}" for k, v in value.items()) + "}"
        if depth and isinstance(value, list | tuple | set | frozenset | deque):
            return "[" + ", ".join(text(v, depth - 1) for v in value) + "]"
        plain = value is None or isinstance(value, str | bytes | bytearray | int | float | Fraction)
        return repr(value) if plain else type(value).__qualname__

    names = [*getattr(thing, "__dict__", ()), *_slots(thing)]
    return "; ".join(f"{name}={text(getattr(thing, name), depth=3)}" for name in names)


def _slots(thing: Any) -> list[str]:
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [name for name in names if hasattr(thing, name)]


def reachable(root: Any) -> Iterator[Any]:
    """Every object of the library's own classes that can be reached from `root`, through attributes, containers and
    closures.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=et.simulation(1))
    >>> {type(thing).__name__ for thing in reachable(counter)} >= {"Counter", "PureBlocksProcess", "AmountDoor", "Key"}
    True
    """
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen[id(thing)] = thing  # kept, so that no other object gets its number
        if type(thing).__module__.partition(".")[0] == "evertally":
            yield thing
        waiting += _inside(thing)


def _inside(thing: Any) -> list[Any]:
    inside: list[Any] = []
    if isinstance(thing, dict):
        inside += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        inside += thing
    elif isinstance(thing, np.ndarray) and thing.dtype == object:
        inside += thing.ravel().tolist()
    elif isinstance(thing, FunctionType):
        inside += [cell.cell_contents for cell in thing.__closure__ or ()]
    elif isinstance(thing, MethodType):
        inside.append(thing.__self__)
    elif isinstance(thing, functools.partial):
        inside += [thing.func, *thing.args, *thing.keywords.values()]
    if type(thing).__module__.partition(".")[0] == "evertally":
        inside += vars(thing).values() if hasattr(thing, "__dict__") else []
        inside += [getattr(thing, name) for name in _slots(thing)]
    return inside
