"""More than there is: queries beyond the promise of a stream must be refused, by its ledger and by `et.Stream`.

What the queries of a spec pay may be right only because their shares are. So the auditor asks for more, and knows by
its own arithmetic when that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evertally.audit.report import Report
from evertally.audit.spec_down.promise import Charge, Promise
from evertally.errors import BudgetExceeded
from evertally.noise import simulation
from evertally.privacy import ApproxDP, ApproxZCDP, Guarantee, Ledger
from evertally.statistics import Counter
from evertally.stream import Stream

_MOST = 3  # times that the charges of a stream are asked for again
_HALF_AND_MORE = "3/5"


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
    wrong = _ledger(Promise.written(content), guarantee, charges) or _deltas(guarantee) or _stream(content, guarantee)
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
