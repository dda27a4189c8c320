"""How a family of queries is released: the linear counter, or a construction around a static mechanism.

All from public numbers. `mechanism="auto"` (dynamic-data 13.5): a linear encoder takes L; what is not linear is
released anew at public times, if they or a limit on lifetimes are declared; everything else is taken by name only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evertally.contract.parts import Engine
from evertally.counting.choose import budgets
from evertally.counting.processes import COMPARED_AT
from evertally.counting.tree import Radix
from evertally.dynamic.charges import Encoder, Relation
from evertally.dynamic.choosing import Noise, Question, choose_noise
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.engine import AtWork
from evertally.dynamic.families import Boxes, Count, Family, Marginals, Points, Queries, Ranges
from evertally.dynamic.linear import UpdateEngine
from evertally.dynamic.parts import Plan, Setting, StaticMechanism
from evertally.dynamic.static import STATICS, Additive, make_static, rank_static
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource, ZeroNoise
from evertally.privacy import Change, Contribution, Guarantee, PureDP
from evertally.ranking import Ranking, Way, shown

LINEAR, ANEW = "linear", "anew"


@dataclass(frozen=True)
class Wanted:
    """The public parameters of a dynamic statistic."""

    family: Family
    relation: Relation
    guarantee: Guarantee
    contribution: Contribution
    horizon: int | None
    memory_limit: int
    queries: tuple[Any, ...] | None  # that a release shows, and errors are quoted for; None: each column of the row
    radix: Radix = "formula"
    process: str = "auto"
    static: str = "auto"
    static_options: Mapping[str, Any] = field(default_factory=dict)
    every: int | None = None
    max_items: int | None = None
    partition: Literal["identity", "finite", "infinite"] = "identity"
    beta: float = 0.05
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pure(self) -> bool:
        """Whether noise must be Laplace."""
        return isinstance(self.guarantee, PureDP)

    def made_static(self, name: str) -> StaticMechanism:
        """The static mechanism of a name."""
        return make_static(name, self.family, pure=self.pure, options=self.static_options)


@dataclass(frozen=True)
class Taken:
    """A way that was settled on: what it pays and hides, and the engine behind presence."""

    mechanism: str
    static_name: str
    static: StaticMechanism
    charge: Guarantee
    change: Change
    engine: Callable[[ItemSource], Engine]
    process: str = ""
    row: Way | None = None
    open: str = ""  # why nothing bounds the error


def settle(wanted: Wanted, mechanism: str) -> Taken:
    """The way that is taken, or the reason why there is none."""
    if mechanism == "auto":
        mechanism = automatic(wanted)
    if mechanism != ANEW and wanted.every is not None:
        raise ConfigurationError(f'every belongs to mechanism="anew", and this is "{mechanism}"')
    if mechanism in (LINEAR, ANEW) and (wanted.partition != "identity" or wanted.options):
        raise ConfigurationError(f'partition and construction belong to other mechanisms than "{mechanism}"')
    if mechanism == LINEAR:
        return linear(wanted)
    if mechanism not in CONSTRUCTIONS:
        known = ", ".join((LINEAR, *CONSTRUCTIONS))
        raise ConfigurationError(f'unknown mechanism {mechanism!r}; choose "auto" or one of {known}')
    return constructed(wanted, mechanism)


def automatic(wanted: Wanted) -> str:
    """What "auto" takes (13.5)."""
    if wanted.static == "auto" or (wanted.static in STATICS and STATICS[wanted.static].additive):
        return LINEAR
    if ANEW in CONSTRUCTIONS and (wanted.every is not None or wanted.relation.max_lifetime is not None):
        return ANEW
    rows = [_row(wanted, name) for name in CONSTRUCTIONS]
    choices = [
        f'mechanism="{row.name}" (predicted error {shown(row.bound)})'
        if not row.refused
        else f"{row.name}: {row.refused}"
        for row in rows
    ]
    nothing = "the number of items" if wanted.max_items is None else shown(float(wanted.max_items))
    raise ConfigurationError(
        f'static="{wanted.static}" is no linear encoder, and without `every` or `max_lifetime` no way is good enough '
        f"to be taken by itself; answering 0 is off by at most {nothing}. Declare one of them, or choose: "
        f"{'; '.join(choices)}"
    )


def linear(wanted: Wanted) -> Taken:
    """L, with the strategy and the process of least worst standard deviation."""
    names = _encoders(wanted.family) if wanted.static == "auto" else [wanted.static]
    found: list[tuple[float, str, Additive, Noise]] = []
    refusals: list[str] = []
    for name in names:
        try:
            static = wanted.made_static(name)
            # Exactly ours: what a strategy promises about its columns, somebody else's class may not keep.
            if type(static) is not Additive:
                raise ConfigurationError(f'static="{name}" is no linear encoder; mechanism="linear" needs one')
            noise = choose_noise(_question(wanted, static), wanted.process)
        except ConfigurationError as refusal:
            refusals.append(str(refusal))
            continue
        found.append((noise.ways.best.score * math.sqrt(static.worst().squares), name, static, noise))
    if not found:
        raise ConfigurationError("; ".join(dict.fromkeys(refusals)))
    score, name, static, noise = min(found, key=lambda one: one[0])

    def engine(source: ItemSource) -> UpdateEngine:
        return UpdateEngine(lambda: noise.make(source), static.strategy, wanted.queries)

    at = COMPARED_AT if wanted.horizon is None else None

    def error(beta: float) -> float:
        return engine(ZeroNoise().source()).error_bound(beta, at)

    row = replace(
        noise.ways.best, name=LINEAR, score=score, expect=lambda: error(0.5), promise=lambda: error(0.05), guess=None
    )
    return Taken(LINEAR, name, static, noise.charge, noise.change, engine, noise.process, row)


def constructed(wanted: Wanted, mechanism: str) -> Taken:
    """A construction around a static mechanism."""
    if wanted.process != "auto":
        raise ConfigurationError('process belongs to mechanism="linear"')
    name, static = _static(wanted)
    plan = _plan(wanted, mechanism, static)

    def engine(source: ItemSource) -> AtWork:
        return AtWork(plan.worker, source, wanted.horizon, returns=plan.returns)

    # What a construction charges for a step it knows itself; this is the step.
    change = wanted.relation.change(Encoder())
    return Taken(mechanism, name, static, plan.charge, change, engine, open=plan.open)


def ways(wanted: Wanted, taken: Taken) -> Ranking:
    """Every way to release the family, best first; constructions are taken by name, unless "auto" took one."""
    rows = [_row(wanted, name, by_name=name != taken.mechanism) for name in CONSTRUCTIONS]
    try:
        first = taken.row or linear(wanted).row
        assert first is not None
        rows.append(first)
    except ConfigurationError as refusal:
        rows.append(Way(name=LINEAR, charge=None, refused=f'mechanism "{LINEAR}": {refusal}'))
    return Ranking(rows)


def _row(wanted: Wanted, name: str, by_name: bool = True) -> Way:
    try:
        _, static = _static(replace(wanted, process="auto"))
        plan = _plan(wanted, name, static)
    except ConfigurationError as refusal:
        return Way(name=name, charge=None, refused=f'mechanism "{name}": {refusal}', by_name=by_name)
    # Not at a power of two, where one node holds everything.
    at = COMPARED_AT - 1 if wanted.horizon is None else None

    def error(beta: float) -> float:
        return AtWork(plan.worker, ZeroNoise().source(), wanted.horizon, returns=True).error_bound(beta, at)

    return Way(
        name=name,
        charge=plan.charge,
        score=math.inf if by_name else 0.0,
        expect=lambda: error(0.5),
        promise=lambda: error(wanted.beta),
        open=plan.open,
        by_name=by_name,
    )


def _encoders(family: Family) -> Sequence[str]:
    """The linear encoders that are worth a try."""
    if isinstance(family, Count | Points):
        return ["histogram"]
    if isinstance(family, Ranges | Boxes):
        return ["histogram", "hierarchy", "square-root"]
    if isinstance(family, Marginals):
        return ["histogram", "marginals"]
    # A matrix is made for queries that are listed, and may answer no others.
    return ["histogram", "matrix"] if isinstance(family, Queries) else ["histogram"]


def _question(wanted: Wanted, static: Additive) -> Question:
    norms = static.norms
    encoder = Encoder(norms.l1, norms.l2_squared, norms.linf, norms.nonnegative)
    return Question(
        wanted.guarantee,
        wanted.relation,
        encoder,
        wanted.horizon,
        static.width,
        wanted.memory_limit,
        wanted.radix,
    )


def _static(wanted: Wanted) -> tuple[str, StaticMechanism]:
    """The named static mechanism, or the one of the smallest error for one release."""
    if wanted.static != "auto":
        return wanted.static, wanted.made_static(wanted.static)
    size = None if wanted.max_items is None else float(wanted.max_items)
    budget = budgets(wanted.guarantee)[:1]
    if isinstance(wanted.family, Count | Points | Ranges | Boxes):
        # Not the matrix that is looked for, which takes seconds: it is there by name.
        made = [(name, wanted.made_static(name)) for name in _encoders(wanted.family) if _fits(wanted, name)]
        return min(made, key=lambda one: one[1].error(budget, wanted.beta, size))
    name = rank_static(wanted.family, budget, beta=wanted.beta, size=size).best.name
    return name, wanted.made_static(name)


def _fits(wanted: Wanted, name: str) -> bool:
    try:
        wanted.made_static(name)
    except ConfigurationError:
        return False
    return True


def _plan(wanted: Wanted, name: str, static: StaticMechanism) -> Plan:
    relation = wanted.relation
    options = dict(wanted.options) | ({"unique_deletions": True} if relation.unique_deletions else {})
    setting = Setting(
        static=static,
        guarantee=wanted.guarantee,
        horizon=wanted.horizon,
        identity=relation.identity,
        protects=relation.protects,
        steps=relation.steps,
        deletions=relation.deletions,
        max_lifetime=relation.max_lifetime,
        every=wanted.every,
        max_items=wanted.max_items,
        partition=wanted.partition,
        beta=wanted.beta,
        options=tuple(sorted(options.items())),
    )
    return CONSTRUCTIONS[name].plan(setting, wanted.contribution)
