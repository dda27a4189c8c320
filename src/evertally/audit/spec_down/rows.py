"""The rows of an audit that goes from the spec down: budget, loss or change of every query, and the whole stream."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evertally.audit.faults.kept import NAME, kept_report
from evertally.audit.report import Aspect, Report, describe
from evertally.audit.returns import comes_back
from evertally.audit.spec_down.inputs import ChangeSearch, NothingSeen, ReleaseSearch, allowed
from evertally.audit.spec_down.other_words import other_words_report
from evertally.audit.spec_down.overdrawn import overdrawn_report
from evertally.audit.spec_down.promise import Charge, Promise
from evertally.audit.spec_down.reading import NotAffine
from evertally.audit.spec_down.search import LossSearch
from evertally.audit.spec_down.small import Small, ragged, small_copy
from evertally.audit.steps import Step
from evertally.audit.suite import Effort
from evertally.audit.ways import in_parts, ways_in
from evertally.errors import EvertallyError
from evertally.runtime.spec import StreamSpec

_LEAST = {"short": (1, 6), "long": (1, 6, 16)}  # ticks of copies that are tried
_RAGGED = {"short": 16, "long": 48}  # ticks of copies whose last period is cut off, at most
_OWN = 8  # ticks of a horizon that is played as it is
_WAYS = 6  # ticks of the copies that are played in several ways, at least
_SHARE, _DOOR, _SUM = "its share of the promise", "neighbours through the door", "all charges together"


def spec_steps(
    path: Path, spec: StreamSpec, made: Mapping[str, Any], effort: Effort = "short", seed: int = 0
) -> dict[str, list[Step]]:
    """For every query of a spec file what it pays, and what neighbours show; for the stream what all queries pay, and
    whether its files keep what they must."""
    steps = content_steps(tomllib.loads(path.read_text("utf-8")), spec, made, effort, seed)
    last = list(steps)[-1]  # the stream, or its only query
    return steps | {last: [*steps[last], Step(NAME, lambda: kept_report(spec))]}


def content_steps(
    content: Mapping[str, Any], spec: StreamSpec, made: Mapping[str, Any], effort: Effort = "short", seed: int = 0
) -> dict[str, list[Step]]:
    """The same of what a file would say."""
    audit = SpecAudit(content, spec, made, effort, seed)
    steps = {
        name: [
            Step(_SHARE, partial(audit.share, name)),
            Step(_DOOR, partial(audit.neighbours, name)),
            Step(ways_in.NAME, partial(audit.equal_ways, name, ways_in.NAME, ways_in.ways_in)),
            Step(in_parts.NAME, partial(audit.equal_ways, name, in_parts.NAME, in_parts.in_parts)),
        ]
        for name in made
    }
    for name in filter(lambda name: comes_back.remembers(made[name]), made):
        row = partial(audit.equal_ways, name, comes_back.NAME, comes_back.comes_back, full=True)
        steps[name].append(Step(comes_back.NAME, row))
    whole = [
        Step(_SUM, audit.total),
        Step("overdrawn", audit.overdrawn),
        Step("other words", lambda: other_words_report(spec.guarantee, spec.horizon)),
    ]
    if len(made) > 1:
        return steps | {f"{spec.name} (all queries)": whole}
    return {name: [*own, *whole] for name, own in steps.items()}


class SpecAudit:
    """A spec as plain data, beside the mechanisms that the runtime made of it.

    >>> from evertally.runtime.mechanisms import build
    >>> from evertally.runtime.table.given import spec_from
    >>> content = {"stream": {"name": "s", "horizon": 99}, "guarantee": {"rho": 0.5}, "clock": {"start": 0, "tick": 1}}
    >>> content["query"] = [{"name": "all", "kind": "counter", "share": 0.5}]
    >>> spec = spec_from(content)
    >>> audit = SpecAudit(content, spec, build(spec, None))
    >>> audit.share("all").verdict, audit.neighbours("all").verdict, audit.total().stopped
    ('holds (tight)', 'holds (tight)', 'the stream leaves 50 % of its promise unused')
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        spec: StreamSpec,
        made: Mapping[str, Any],
        effort: Effort = "short",
        seed: int = 0,
    ) -> None:
        self._content, self._spec, self._made, self._effort, self._seed = content, spec, made, effort, seed
        self._promise = Promise.written(content)
        self._charges = {name: Charge.of(one.charge) for name, one in made.items()}
        # Epsilon and delta of a query that is alone are no delta beside a rho.
        self._bad = any(charge.delta and charge.epsilon is None for charge in self._charges.values())

    # -- budget --------------------------------------------------------------------------------------------------------

    def share(self, name: str) -> Report:
        """What the mechanism pays against its share in the spec."""
        used = self._promise.used(name, self._charges[name], self._bad)
        said = "" if used.part > 0.999 else f"it leaves {100 * (1 - used.part):.0f} % of its share unused"
        return self._budget(describe(self._made[name]), _SHARE, used, said)

    def total(self) -> Report:
        """What all mechanisms pay against the promise."""
        used = self._promise.total(list(self._charges.values()))
        said = "" if used.part > 0.999 else f"the stream leaves {100 * (1 - used.part):.0f} % of its promise unused"
        return self._budget(f"Stream(horizon={self._spec.horizon})", _SUM, used, said)

    def overdrawn(self) -> Report:
        """Whether more than the promise can be had."""
        charges = [one.charge for one in self._made.values()]
        return overdrawn_report(self._content, self._spec.shared, self._spec.horizon, charges)

    def _budget(self, what: str, adversary: str, used: Any, said: str) -> Report:
        return Report(
            what,
            self._spec.guarantee,
            adversary,
            "budget",
            f"{used.unit} paid",
            used.allowed,
            used.handed_out,
            used.delta,
            0.0,
            0,
            said,
            aspect="budget",
        )

    # -- neighbours ----------------------------------------------------------------------------------------------------

    def neighbours(self, name: str) -> Report:
        """What the worst neighbours show in a small copy of the query; in longer ones, while that is not much."""
        found: list[Report] = []
        # Blocks of real Laplace noise need some ticks before an event costs all that it is charged.
        first = 6 if self._charges[name].pure else 1
        for least in sorted({first, *(ticks for ticks in _LEAST[self._effort] if ticks > first)}):
            try:
                small = small_copy(self._content, self._spec, name, self._made[name], least)
            except EvertallyError as error:
                found.append(self._not_here(self._made[name], f"no small copy of it can be built: {error}"))
                break
            if found and small.ticks < least:
                break
            found.append(self._in_copy(name, small))
            if found[-1].verdict != "no power here" or found[-1].method == "not here":
                break
        if found[-1].passed and found[-1].method != "not here":
            found += map(partial(self._in_copy, name), self._with_a_rest(name, small.ticks))
        return max(found, key=lambda report: (not report.passed, report.fraction))

    def _with_a_rest(self, name: str, played: int) -> Iterator[Small]:
        """Copies in which something that was not there yet ends with the horizon, before it is over: a period, a block,
        a window. And the query at its own horizon, if that is short."""
        horizon = self._spec.horizon or 0
        rest = ragged(self._content, self._spec, name, _RAGGED[self._effort]) or 0
        for ticks in sorted({rest, horizon if horizon <= _OWN else 0} - {0, played}):
            try:
                small = small_copy(self._content, self._spec, name, self._made[name], exactly=ticks)
            except EvertallyError:  # such a rest may be refused: then nobody has it
                continue
            if small.ticks == ticks:
                yield small

    def equal_ways(self, name: str, row: str, played: Callable[[Small, int], Report], full: bool = False) -> Report:
        """Ways that must release the same bytes, on a small copy; `full`: at its own horizon."""
        try:
            small = small_copy(self._content, self._spec, name, self._made[name], 1 if full else _WAYS, full)
        except EvertallyError as error:
            return Report.not_here(self._made[name], row, f"no small copy of it can be built: {error}")
        return played(small, self._seed)

    def _in_copy(self, name: str, small: Small) -> Report:
        if small.query.items is not None and small.query.items.one == "item" and "id" not in self._table(small):
            return self._not_here(small.made, "items without names: which records are one item, the spec cannot say")
        try:
            return self._loss(name, small)
        except NotAffine as reason:
            return self._inputs(name, small, str(reason))

    def _table(self, small: Small) -> Mapping[str, Any]:
        """The query as the copy writes it."""
        table: Mapping[str, Any] = small.spec.file.content["query"][0]
        return table

    def _search(self, kind: Any, small: Small) -> Any:
        return kind(small, self._content["stream"], self._table(small), self._effort, self._seed)

    def _loss(self, name: str, small: Small) -> Report:
        search: LossSearch = self._search(LossSearch, small)
        gaussian = search.noise["at once"].gaussian
        worst = search.worst
        claim = self._promise.claim(name, self._charges[name], gaussian, self._bad)
        return self._report(small, str(worst), "neighbours", *claim, worst.lost, "loss")

    def _inputs(self, name: str, small: Small, why: str) -> Report:
        """Where releases are not exact numbers plus noise, what reaches the noise."""
        try:
            return self._released(name, small)
        except NothingSeen:
            pass
        try:
            return self._change(small)
        except NothingSeen as reason:
            return self._not_here(small.made, f"{why}; {reason}")

    def _released(self, name: str, small: Small) -> Report:
        search: ReleaseSearch = self._search(ReleaseSearch, small)
        worst = search.worst
        unit, most = self._promise.claim(name, self._charges[name], False, self._bad)
        if worst.pair is None:
            return self._report(small, str(worst), "exact inputs", unit, most, 0.0, "change")
        epsilon, rho = search.spent(worst.pair, worst.way)
        if self._promise.pure or not rho:
            spent = math.inf if rho else epsilon
            return self._report(small, str(worst), "exact inputs", "epsilon", most, spent, "change")
        return self._report(small, str(worst), "exact inputs", "rho", most**2 / 2, rho + epsilon**2 / 2, "change")

    def _change(self, small: Small) -> Report:
        search: ChangeSearch = self._search(ChangeSearch, small)
        declared, table = small.made.sensitivity, self._table(small)
        columns = len(small.query.categories or ()) or declared.l1
        limits = allowed(self._content["stream"], table, columns) or {}
        norms = {1: float(declared.l1), 2: math.sqrt(declared.l2_squared), math.inf: float(declared.linf)}
        if "max_per_event" not in table and declared.l1 > limits.get(1, math.inf):
            search.norm, limits = math.inf, {}  # an event may count in all cells: noise is made for the largest
        else:
            search.norm = 1 if self._charges[small.query.name].pure else 2
        claimed = min(norms[search.norm], limits.get(search.norm, math.inf))
        worst = search.worst
        unit = f"l{'inf' if math.isinf(search.norm) else search.norm} change"
        return self._report(small, str(worst), "exact inputs", unit, claimed, worst.lost, "change")

    def _report(
        self, small: Small, adversary: str, method: str, unit: str, claimed: float, audited: float, aspect: Aspect
    ) -> Report:
        made = small.made
        delta = float(self._charges[small.query.name].delta)
        facts = describe(made), made.charge, adversary, method, unit, claimed, audited, delta, 0.0, 0
        return Report(*facts, aspect=aspect)

    def _not_here(self, made: Any, why: str) -> Report:
        return replace(Report.attack(made, _DOOR, False, why, "not here"), aspect="loss")
