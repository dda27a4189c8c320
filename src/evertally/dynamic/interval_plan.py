"""C5 and C5f from public numbers: what is refused, what a step of the neighbouring relation costs, what is built."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from evertally.dynamic.accuracy import check_laws
from evertally.dynamic.insertions import SIZE_UNKNOWN
from evertally.dynamic.insertions import _split as read_split
from evertally.dynamic.interval_tree import IntervalTree
from evertally.dynamic.ledgers import Allocation, Form, allocation
from evertally.dynamic.node import Workshop, size_law
from evertally.dynamic.partitioners import SparseVector, partitioner
from evertally.dynamic.parts import Budget, Construction, Plan, Setting
from evertally.dynamic.tolls import Purse, Toll, check_units, options_of, purse
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Contribution

MAX_ROUNDS = 64  # each halves what is left: more are never needed, and every one must be paid for
_UNBOUNDED_LEVELS = 40  # that must have a law where segments have no last number: a million years of seconds
_SMALL = 1 << 20  # bytes of a state that is kept before each call
RESTARTS = (
    "when nodes begin anew follows from noise, so nothing is known beforehand; each release has its own bound. "
    "max_rounds=1 never begins anew"
)


def interval_toll(setting: Setting) -> Toll:
    """Of the tree (dynamic-data 6.6). Where items have names, a step changes so many lifetimes, and one of them, or its
    deletion moved, costs the tree once, in both units; by value one update does (Lemma R), and an item is two of them:
    not one (6.10).

    Of a partition that is told what the door let through, twice as much: two counts change (14.2).
    """
    if setting.identity == "raw":
        raise ConfigurationError(
            '"interval-tree" must know what a deletion deletes: identity="raw" does not say. '
            'Use identity="id", "token" or "value"'
        )
    if setting.identity == "id" and setting.protects == "event" and setting.steps < 2:
        raise ConfigurationError(
            "without one record a name from outside may begin another life: two lifetimes change, not one (6.3)"
        )
    by_value = setting.identity == "value"
    return Toll(1, 1).of(2 * setting.steps if by_value and setting.protects == "item" else setting.steps)


def plan_interval_tree(setting: Setting, contribution: Contribution) -> Plan:
    """Options: `allocation` ("AT", "A0", "A1", "A2"), `max_rounds` of a node, `max_segments` = 2^K - 1 (C5f: K levels
    share the budget evenly, and after so many segments the last answer stands) or "unlimited" (C5; taken where there is
    no horizon: a tick ends one segment at most), `split` and `svt` of a partition."""
    toll = interval_toll(setting)
    check_units(setting)
    options = options_of(
        setting, allocation="AT", max_rounds=MAX_ROUNDS, max_segments=None, split=Fraction(1, 2), svt="paper"
    )
    if setting.partition not in ("identity", "finite", "infinite"):
        raise ConfigurationError(f'partition is "identity", "finite" or "infinite", not {setting.partition!r}')
    if setting.partition == "finite" and setting.horizon is None:
        raise ConfigurationError('partition="finite" needs a horizon; "infinite" needs none')
    levels = _levels(options["max_segments"], setting.horizon)
    most = None if levels is None else 2**levels - 1
    name, rounds = str(options["allocation"]), whole("max_rounds", options["max_rounds"], 1)
    shares = allocation(name, form=_form(setting, name), rounds=rounds, levels=levels)
    spent = purse(setting, toll, split=None if setting.partition == "identity" else read_split(options["split"]))
    if spent.partition is not None:
        half = spent.partition / 2
        SparseVector(half, options["svt"]).check()
        spent = Purse(spent.charge, half, spent.releases)
    _check_laws(setting, shares, spent.releases)
    made = partial(_made, setting, shares, spent, options["svt"], most)
    return Plan(spent.charge, made, returns=_small(setting, shares), open=_open(setting, shares, levels))


def _levels(most: object, horizon: int | None) -> int | None:
    if most == "unlimited" or (most is None and horizon is None):
        return None
    if most is None:
        assert horizon is not None
        return horizon.bit_length()
    segments = whole("max_segments", most, 1, 2**62 - 1)
    if segments & (segments + 1):
        raise ConfigurationError(
            f"max_segments is one less than a power of two: {2 ** segments.bit_length() - 1} costs the same"
        )
    return segments.bit_length()


def _form(setting: Setting, name: str) -> Form:
    """The value form is enough for names too (6.6); A2 needs theirs."""
    if name != "A2" or setting.identity == "value":
        return "value"
    return "token-item" if setting.protects == "item" else "token-event"


def _check_laws(setting: Setting, shares: Allocation, budget: Budget) -> None:
    """Refuses now what would be out of range later: the widest noise is that of the highest level in the last round,
    the narrowest that of leaves, and of the level above them in the first."""
    top = shares.cap or (setting.horizon.bit_length() if setting.horizon is not None else _UNBOUNDED_LEVELS)
    try:
        check_laws(setting.static, budget.share(shares.leaf), setting.largest)
        for level, round_ in ((2, 1), (top, shares.rounds)) if top >= 2 else ():
            found, height = shares.shares(level, round_), level - 1
            size_law(budget.share(found.size))
            size_law(budget.share(found.counted / height))
            check_laws(setting.static, budget.share(found.content), setting.largest)
            check_laws(setting.static, budget.share(found.deleted / height), setting.largest)
    except ConfigurationError as refusal:
        raise ConfigurationError(
            f"in a tree of {top} levels with max_rounds={shares.rounds}: {refusal}; or fewer rounds, or a horizon"
        ) from None


def _small(setting: Setting, shares: Allocation) -> bool:
    levels = shares.cap or (setting.horizon or 1 << 20).bit_length()
    tables = 8 * levels * (levels + 1) // 2 * (setting.static.cells + setting.static.width)
    return tables + 16 * (setting.largest or 0) <= _SMALL


def _open(setting: Setting, shares: Allocation, levels: int | None) -> str:
    if not setting.static.additive and setting.largest is None:
        return SIZE_UNKNOWN
    if setting.partition != "identity":
        return "how many segments there are follows from noise; each release has its own bound"
    if shares.rounds > 1 and (levels is None or levels > 1):
        return RESTARTS
    if setting.horizon is None:
        return (
            "without a horizon nothing bounds the error of all ticks together; ask for one tick, or declare a horizon"
        )
    if levels is not None and setting.horizon >= 2**levels:
        return "after max_segments segments the last answer stands, and nothing bounds what it misses"
    return ""


def _made(
    setting: Setting, shares: Allocation, spent: Purse, svt: str, most: int | None, source: ItemSource
) -> IntervalTree:
    partition = partitioner(
        setting.partition,
        spent.partition,
        svt,  # type: ignore[arg-type]
        source,
        setting.beta / 2,
        setting.horizon,
        "interval/partition",
    )
    return IntervalTree(
        Workshop(setting.static, shares, spent.releases, source, setting.beta / 2),
        named=setting.identity != "value",
        partition=partition,
        most=most,
        horizon=setting.horizon,
        largest=setting.largest,
    )


INTERVAL_TREE = Construction("interval-tree", "dynamic-data 6.2-6.10", plan_interval_tree)
