"""More than there is: queries beyond the promise of a stream must be refused, by its ledger and by `et.Stream`.

What the queries of a spec pay may be right only because their shares are. So the auditor asks for more, and knows by
its own arithmetic when that does not fit.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from fractions import Fraction
from typing import Any

from evertally.audit.report import Report
from evertally.audit.spec_down.promise import Charge, Promise
from evertally.errors import BudgetExceeded, ConfigurationError
from evertally.noise import simulation
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee, Ledger, PureDP
from evertally.statistics import Counter, DynamicCount
from evertally.stream import Stream

_MOST = 3  # times that the charges of a stream are asked for again
_HALF_AND_MORE = "3/5"
_ROUNDS, _THREADS = 5, 4


class OfStream:
    """The stream, as reports name it."""

    def __init__(self, guarantee: Guarantee, horizon: int | None) -> None:
        self.audited_as, self.horizon = "Stream", horizon
        self.guarantee = self.charge = guarantee


def overdrawn_report(
    content: Mapping[str, Any], guarantee: Guarantee, horizon: int | None, charges: Sequence[Guarantee]
) -> Report:
    """Asks a ledger for the charges of a stream again, and `et.Stream` for two shares of three fifths.

    >>> from evertally.privacy import ZCDP
    >>> content = {"stream": {"name": "s", "horizon": 9}, "guarantee": {"rho": 0.5}}
    >>> content["query"] = [{"name": "all", "kind": "counter", "share": 0.5}]
    >>> overdrawn_report(content, ZCDP(0.5), 9, [ZCDP(0.25)]).verdict
    'holds (tight)'
    """
    wrong = (
        _ledger(Promise.written(content), guarantee, charges)
        or _deltas(guarantee)
        or _stream(content, guarantee)
        or _sums()
        or _names(guarantee)
        or _units(guarantee)
        or _at_once(guarantee)
    )
    told = wrong or "what does not fit the promise is refused"
    return Report.attack(OfStream(guarantee, horizon), "overdrawn", bool(wrong), told)


def _ledger(promise: Promise, guarantee: Guarantee, charges: Sequence[Guarantee]) -> str:
    ledger, paid = Ledger(guarantee), list[Charge]()
    for number, charge in enumerate(_again(charges)):
        paid.append(Charge.of(charge))
        try:
            ledger.promise(f"query {number}", charge)
        except BudgetExceeded:
            return ""
        used = promise.total(paid)
        if used.handed_out > used.allowed * (1 + 1e-9):
            return f"a ledger of {guarantee} takes {number + 1} charges, which are {used.part:.3f} of it"
    return ""


def _deltas(guarantee: Guarantee) -> str:
    """Two charges of next to no rho, with three fifths of the delta each."""
    if not isinstance(guarantee, ApproxDP | ApproxZCDP):
        return ""
    ledger = Ledger(guarantee)
    try:
        for name in ("first", "second"):
            ledger.promise(name, ApproxZCDP(1e-9, guarantee.exact_delta * 3 / 5, force=True))
    except BudgetExceeded:
        return ""
    return f"a ledger of {guarantee} takes a delta of three fifths of it twice"


def _again(charges: Sequence[Guarantee]) -> Iterable[Guarantee]:
    for _ in range(_MOST):
        yield from charges


def _stream(content: Mapping[str, Any], guarantee: Guarantee) -> str:
    asked = {"name": "first", "kind": "counter", "share": _HALF_AND_MORE}
    promise = Promise.written({**content, "stream": {"name": "audit", "horizon": 2}, "query": [asked]})
    stream = Stream("audit", guarantee=guarantee, horizon=2, key=simulation(0))
    used = promise.used("first", Charge.of(stream.add(Counter, share=_HALF_AND_MORE, name="first").charge), False)
    if used.handed_out > used.allowed * (1 + 1e-9):
        return f"three fifths of {guarantee} pay {used.part:.3f} of that"
    try:
        stream.add(Counter, share=_HALF_AND_MORE, name="second")
    except BudgetExceeded:
        return ""
    return f"a stream of {guarantee} takes two queries with three fifths of it each"


def _sums() -> str:
    """Charges of different kinds: epsilon, rho and delta add up one by one, and no epsilon is known beside a rho."""
    delta = Fraction(1, 1000)
    charges = (
        PureDP(Fraction(3, 5)),
        ZCDP(Fraction(1, 7)),
        ApproxZCDP(Fraction(1, 9), delta, force=True),
        ApproxDP(Fraction(2, 3), delta / 2, force=True),
    )
    for one in charges:
        for other in charges:
            paid, costs = one.cost + other.cost, (one.cost, other.cost)
            known = [cost.epsilon for cost in costs if cost.epsilon is not None]
            epsilon = sum(known) if len(known) == 2 else None
            if (paid.epsilon, paid.rho, paid.delta) != (epsilon, *(sum(pair) for pair in _pairs(costs))):
                return f"{one} and {other} are said to cost {paid}"
    return ""


def _pairs(costs: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    return zip(*((cost.rho, cost.delta) for cost in costs), strict=True)


def _names(guarantee: Guarantee) -> str:
    """Names are addresses of noise, and what a ledger knows promises by: there is none that is empty, or no text."""
    for name in ("", None, 0, b""):
        for told, make in (
            ("stream", lambda given: Stream(given, guarantee=guarantee, horizon=2, key=simulation(0))),
            ("promise", lambda given: Ledger(guarantee).promise(given, guarantee)),
        ):
            try:
                make(name)
            except ConfigurationError:
                continue
            return f"a {told} may be named {name!r}"
    ledger = Ledger(guarantee)
    ledger.promise("one", guarantee.share("1/4"))
    try:
        ledger.promise("one", guarantee.share("1/4"))
    except ConfigurationError:
        return ""
    return f"a ledger of {guarantee} makes two promises under one name"


def _units(guarantee: Guarantee) -> str:
    """One that hides events and one that hides items: no promise covers both, whichever comes first."""
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {"event": (Counter, {}), "item": (DynamicCount, {"lifetimes": 1})}
    for order in (("event", "item"), ("item", "event")):
        stream = Stream("audit", guarantee=guarantee, horizon=2, key=simulation(0))
        try:
            for unit in order:
                kind, options = kinds[unit]
                stream.add(kind, share="1/4", **options)
        except ConfigurationError:
            continue
        return f"a stream takes one query that hides {order[0]}s, and then one that hides {order[1]}s"
    # Columns that each change in an event of their own are not those of one user.
    users: Any = {"unit": "user", "max_events_per_user": 2, "neighbours": "independent"}
    try:
        Stream("audit", guarantee=_oblivious(guarantee), horizon=2, key=simulation(0), **users).add(
            Counter, share="1/4"
        )
    except ConfigurationError:
        return ""
    return "a stream takes independent neighbours of users, for which nothing is proved"


def _oblivious(guarantee: Guarantee) -> Guarantee:
    """The same promise for streams that are fixed beforehand."""
    made = copy(guarantee)
    object.__setattr__(made, "adversary", "oblivious")
    return made


def _at_once(guarantee: Guarantee) -> str:
    """Threads that ask for two fifths each, at the same moment: two of them fit."""
    part, before = guarantee.share("2/5"), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(_ROUNDS):
            ledger, gate = Ledger(guarantee), threading.Barrier(_THREADS)

            def ask(name: str, ledger: Ledger = ledger, gate: threading.Barrier = gate) -> None:
                gate.wait()
                with suppress(BudgetExceeded):
                    ledger.promise(name, part)

            threads = [threading.Thread(target=ask, args=(f"query {i}",)) for i in range(_THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if len(ledger.entries) != 2:
                return f"{_THREADS} threads had {len(ledger.entries)} times two fifths of {guarantee}"
    finally:
        sys.setswitchinterval(before)
    return ""
