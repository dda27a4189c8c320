"""What is sent to a mechanism while faults are played on it: a few ticks of legal events, with users where it asks.

The stream is made so that what a mechanism remembers shows later. The same few users come in every tick, one of them
with more than is counted of a user for life; records of an order (edges, letters, insertions and deletions) go on from
tick to tick; one tick has a crowd, so that thresholds are passed. Whether it does show is asked of the mechanism
itself (`plays.Subject`), never taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from evertally.applications.dashboard import Dashboard, GroupBy
from evertally.applications.graph.options import GraphStatistic
from evertally.audit.amounts import largest_amount, of_amounts
from evertally.audit.applications import is_encoded, world_of
from evertally.audit.dynamic import is_dynamic
from evertally.audit.dynamic_streams import values_of
from evertally.audit.sketches import is_sketch, labels_of
from evertally.audit.values import has_allowance, has_epochs
from evertally.audit.whitebox import largest_value, of_values, takes_values
from evertally.contract.doors import by_column
from evertally.statistics.unknown import ItemFinder
from evertally.users.active import ActiveUsers
from evertally.users.distinct import DistinctUsers
from evertally.users.joins import JoinedEvents
from evertally.users.periods import PeriodUsers
from evertally.users.present import PresentItems
from evertally.users.retention import Retention

FEWEST, MOST = 6, 64  # ticks of a play, if the horizon is not shorter
_OFTEN = "ann"  # who comes in every tick, and first with more than counts
_OTHERS = ("bob", "cid", "dan")
KNOWN = (_OFTEN, *_OTHERS)
_CROWDS = (400, 20_000)  # events of one tick: enough for thresholds of a small delta, or of a long horizon
_TRIED = 4  # streams of edges or letters
_MANY = 4000  # events of one user in one tick, at most
_LASTING = ("period", "every", "pilot", "max_lifetime")  # options that say how many ticks something lasts

_SMALL = ((0, 3, _OFTEN), (1, 6, "bob"), (0, 4, _OFTEN))  # where a tick begins in the script, its events, and whose
Script = list[Any]  # records in an order in which they may come


@dataclass(frozen=True)
class Tick:
    """The events of a tick, and whose they are; None where the mechanism is not told."""

    events: Any
    users: list[str] | None = None

    def renamed(self) -> Tick:
        """The same events of people who are never heard of otherwise."""
        return self if self.users is None else replace(self, users=[f"once {user}" for user in self.users])

    def empty(self) -> Tick:
        """A tick without events."""
        return Tick(None if self.events is None else [], None if self.users is None else [])


def feed(mechanism: Any, tick: Tick, number: int | None = None) -> Any:
    """One tick through the door that every source of events goes through."""
    if tick.users is None:
        return mechanism.step_events(tick.events, tick=number)
    return mechanism.step_events(tick.events, users=tick.users, tick=number)


def length_of(model: Any) -> int:
    """How many ticks are played: some beyond whatever lasts for a number of ticks."""
    wanted = min(MOST, max([FEWEST, *(2 * ticks + 2 for ticks in lasting_of(model))]))
    return wanted if model.horizon is None else min(wanted, model.horizon)


def lasting_of(model: Any) -> list[int]:
    """How many ticks the things of this configuration last that last for a number of ticks."""
    return [value for name in _LASTING if isinstance(value := model._options.get(name), int)]


def streams_of(model: Any, ticks: int | None = None) -> Iterator[list[Tick]]:
    """Streams to choose from, those first that cost least: with few events and with crowds, records of different people
    and of one, for every script of records.

    >>> import evertally as et
    >>> caps = {"unit": "user", "max_events_per_user": 2}
    >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(0), **caps)
    >>> first = next(streams_of(counter))
    >>> [len(tick.events) for tick in first], first[0].users
    ([6, 403, 0, 3, 3, 3], ['ann', 'ann', 'ann', 'bob', 'cid', 'ann'])
    """
    count, ordered = length_of(model) if ticks is None else ticks, is_encoded(model)
    for script in scripts_of(model):
        # One user more is seen among few, and a threshold is passed by many.
        for crowd in (0, *_CROWDS[:1]) if ordered else (_CROWDS[0], 0, _CROWDS[1]):
            for alone in (False, True) if model.takes_users and ordered else (False,):
                yield [_tick(model, _sent(model, script, number, crowd, alone)) for number in range(count)]
        if model.takes_users:
            yield [_tick(model, sent) for sent in _duel(model, script, count)]


def stream_for(model: Any, ticks: int) -> list[Tick]:
    """So many ticks, of the stream that costs least."""
    return next(streams_of(model, ticks))


def small_ticks(model: Any) -> tuple[Tick, Tick, Tick]:
    """Three ticks of few events: one, another, and what comes later. To follow every line takes long."""
    script = next(scripts_of(model))
    parts = [[(script[(k + i) % len(script)], name) for i in range(n)] for k, n, name in _SMALL]
    one, two, three = (_tick(model, part) for part in parts)
    return one, two, three


def _sent(model: Any, script: Script, number: int, crowd: int, alone: bool) -> list[tuple[Any, str]]:
    """The records of a tick, and whose they are."""
    if number == 2:
        return []
    chunk = [script[(3 * number + i) % len(script)] for i in range(3)]
    # Who comes often is the last of a tick once, and the first otherwise: of two who share a place the first has it.
    names = (_OFTEN,) * 3 if alone else (_OFTEN, _OTHERS[0], _OTHERS[1 + number % 2])
    sent = list(zip(chunk, names, strict=True))
    if number == 0:
        return [*[(chunk[0], _OFTEN)] * _over(model), *sent[1:], sent[0]]
    if number == 1:
        sent += [(script[i % len(script)] if i % 4 == 0 else script[0], f"crowd {i}") for i in range(crowd)]
    return sent


def _duel(model: Any, script: Script, count: int) -> list[list[tuple[Any, str]]]:
    """Somebody gives all that counts to one record, and all of it again to another one, which is only a little behind:
    a selection, or a quantile, shows whether the second time counts."""
    one, other, many = script[0], script[min(1, len(script) - 1)], max(2, _over(model))
    ticks: list[list[tuple[Any, str]]] = [[(one, _OFTEN)] * many, [(other, _OTHERS[0])]]
    return [*ticks, *([[]] * (count // 2 - 2)), *([[(other, _OFTEN)] * many] * count)][:count]


def others_of(model: Any, tick: Tick) -> Iterator[Tick]:
    """Other contents for the same tick: somebody more; nothing at all; a crowd of one record, or of all."""
    for script in scripts_of(model):
        few = [(script[-1], "eve"), (script[0], "eve"), (script[0], "fay")]
        yield _added(tick, _tick(model, few))
        yield _tick(model, [])
        for records in (script[-1:], script[:1], script):
            yield _tick(model, [(records[i % len(records)], f"others {i}") for i in range(_CROWDS[0])])
        yield _tick(model, [(record, "eve") for record in script])


def _added(tick: Tick, more: Tick) -> Tick:
    events = None if tick.events is None else [*tick.events, *more.events]
    return Tick(events, None if tick.users is None else [*tick.users, *(more.users or [])])


def _tick(model: Any, sent: list[tuple[Any, str]]) -> Tick:
    events, users = [record for record, _ in sent], [user for _, user in sent]
    if not model.takes_users:
        return Tick(events)
    return Tick(None if _counts_users(model) else events, users)


def _over(model: Any) -> int:
    """Events of one user in one tick that reach whatever is counted of a user, and one more."""
    bounds = model.contribution
    caps = [bounds.max_events_per_user, bounds.max_events_per_user_tick if bounds.separated else None]
    if has_allowance(model):
        caps.append(math.ceil(model.sensitivity.linf / model._grid.most))
    known = [int(cap) for cap in caps if cap is not None]
    return min(_MANY, max(known)) + 1 if known else 0


def _counts_users(model: Any) -> bool:
    """Whether users come alone, without events."""
    alone = isinstance(model, ActiveUsers | DistinctUsers) and model.by is None
    return alone or isinstance(model, PeriodUsers | Retention)


def scripts_of(model: Any) -> Iterator[Script]:
    """Legal records in orders in which they may come, more than one of them different where there is a difference. The
    first one of a script is what a crowd sends."""
    if is_dynamic(model):
        values = list(values_of(model))
        yield _updates(values)
        yield [("insert", values[i % len(values)], f"new {i}") for i in range(_CROWDS[0])]
    elif isinstance(model, PresentItems):
        yield _updates([None])
        yield [("insert", None, f"new {i}") for i in range(40)]
    elif is_encoded(model):
        yield from _in_order(model)
    elif isinstance(model, JoinedEvents):
        then = list(model.then)
        yield [model.after[0], *then[:2], model.after[-1], then[-1]]
        yield [*then[:1], model.after[0], *then[1:2]]
    elif isinstance(model, ActiveUsers | DistinctUsers) and model.by is not None:
        yield _varied([*list(model.by)[:4], "never declared"])
    elif _counts_users(model):
        yield [None]
    elif is_sketch(model):
        yield _varied([*map(str, getattr(model, "watch", None) or []), *labels_of(model)][:5])
    else:
        yield _plain_records(model)


def _plain_records(model: Any) -> Script:
    """Values, labels, amounts and counts."""
    if of_values(model) or has_epochs(model):
        low, high = float(getattr(model, "lower", 0.0)), float(model.upper)
        return [high, low + 0.37 * (high - low), low, low + 0.81 * (high - low)]
    if takes_values(model):
        edges = [] if getattr(model, "edges", None) is None else list(model.edges)
        return [*map(float, edges[-2:-1]), largest_value(model), *map(float, edges[1:4])]
    if of_amounts(model):
        return [largest_amount(model, share) for share in (1.0, 0.37, 0.81)]
    if isinstance(model, Dashboard | GroupBy):
        return _varied(list(model.each_type)[:5])
    if isinstance(model, ItemFinder):
        return _varied(["fig", "pear", "lime", "plum"])
    if by_column(model):
        return _varied([str(label) for label in list(model.labels)[:5]])
    return [1]


def _varied(labels: Script) -> Script:
    """The last one first: where all counts are equal the first one is chosen anyway."""
    return [labels[-1], *labels[:-1], labels[-1]] if len(labels) > 1 else labels


def _updates(values: Script) -> Script:
    """Insertions and deletions of named items, in all declared values."""
    inserted = [("insert", values[i % len(values)], f"item {i}") for i in range(6)]
    gone = [("delete", value, name) for _, value, name in inserted[:4]]
    again = [("insert", value, name) for _, value, name in inserted[:2]]
    return [*inserted[:3], gone[0], *inserted[3:], gone[1], again[0], *gone[2:], again[1]]


def _in_order(model: Any) -> Iterator[Script]:
    """Edges or letters: the longest streams that are known to show much and are as declared, a star, the words."""
    world = world_of(model, 2)
    known = [stream for stream in world.known if world.legal(stream)] or list(world.known)
    for stream in sorted(known, key=len, reverse=True)[:_TRIED]:
        yield [sent.record for sent in stream if sent is not None]
    if isinstance(model, GraphStatistic):
        yield from _stars(model, known)
    words = getattr(model, "words", None)
    if words:
        letters = [letter for word in words for letter in word] * 3
        paired = model.sequence == "user" and model.unit == "event"
        yield [(_OFTEN, letter) for letter in letters] if paired else letters


def _stars(model: GraphStatistic, known: Any) -> Iterator[Script]:
    """Edges of one vertex, more than any threshold of a configuration that is looked at."""
    names = getattr(model, "_names", None) or [str(i) for i in range(40)]
    for template in (sent.record for stream in known[:4] for sent in stream[:1] if sent is not None):
        at = 1 if template[0] in ("insert", "delete") and len(template) == 3 else 0
        leaves = list(names)[1:40]
        yield [(*template[:at], names[0], leaf, *template[at + 2 :]) for leaf in leaves]
