"""C1 to C4: prefixes of what was inserted, by a tree or by doubling blocks, with any partition. dynamic-data 5.

Around an additive mechanism also one *signed* instance for insertions and deletions (6.1, refinement): its nodes may
hold negative counts, which only noise that does not look at data can hide.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from evertally.dynamic.accuracy import check_laws
from evertally.dynamic.partitioners import SparseVector, partitioner
from evertally.dynamic.parts import Construction, Place, Plan, Setting, StaticMechanism
from evertally.dynamic.prefix import DoublingBlocks, FiniteTree
from evertally.dynamic.sides import Facts, Side, Sides, Takes
from evertally.dynamic.tolls import Purse, Toll, check_units, insertions_toll, options_of, purse, signed_toll
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.privacy import Contribution

Form = Literal["tree", "doubling"]

SIZE_UNKNOWN = (
    "the error of this static mechanism grows with the number of items, which nobody declared; "
    "declare max_items, how many items there are at most"
)
NO_LAST_TICK = (
    "without a horizon nothing bounds the error of all ticks together; ask for one tick, or declare a horizon"
)
_SMALL = 1 << 20  # bytes of a state that is kept before each call


def plan_tree(setting: Setting, contribution: Contribution) -> Plan:
    """C1: a tree over all ticks of a horizon."""
    if setting.horizon is None:
        raise ConfigurationError('"tree" divides its budget by the levels of a known horizon; "doubling" needs none')
    if setting.partition != "identity":
        raise ConfigurationError('"tree" releases every tick; with a partition use "doubling" (C3, C4)')
    return _plan(setting, "tree")


def plan_doubling(setting: Setting, contribution: Contribution) -> Plan:
    """C2, and with a partition C3 (finite) and C4 (infinite)."""
    return _plan(setting, "doubling")


def _plan(setting: Setting, form: Form) -> Plan:
    deleting = setting.deletions or setting.max_lifetime is not None
    if deleting and not setting.static.additive:
        raise ConfigurationError(
            f'"{form}" takes deletions only around additive mechanisms, whose noise looks at no data; '
            'use "subtract", "anew" or "interval-tree", or declare deletions=False'
        )
    toll = signed_toll(setting) if deleting else insertions_toll(setting)
    # One signed instance sums up what is present; else there are no deletions. Both hold `max_items` items at most only
    # where the size matters at all: for mechanisms that are not additive.
    return plan_sides(setting, form, toll, ("all",), size=setting.max_items)


def plan_sides(
    setting: Setting,
    form: Form,
    toll: Toll,
    takes: tuple[Takes, ...],
    *,
    size: float | None,
    unknown: str = SIZE_UNKNOWN,
    **more: Any,
) -> Plan:
    """A side for each of `takes`, all with the same budgets: what a step costs over all of them is in the toll. `size`
    is how many items they hold, and `unknown` what to say where that matters and is None; `more` are more options."""
    check_units(setting)
    options = options_of(setting, split=Fraction(1, 2), svt="paper", **more)
    if setting.partition == "finite" and setting.horizon is None:
        raise ConfigurationError('partition="finite" needs a horizon; "infinite" needs none')
    if setting.partition not in ("identity", "finite", "infinite"):
        raise ConfigurationError(f'partition is "identity", "finite" or "infinite", not {setting.partition!r}')
    split = None if setting.partition == "identity" else read_split(options["split"])
    spent = purse(setting, toll, split=split)
    if spent.partition is not None:
        SparseVector(spent.partition, options["svt"]).check()
    check_laws(setting.static, spent.releases.share(Fraction(1, _deepest(form, setting.horizon))), setting.max_items)
    made = partial(_sides, setting, form, takes, spent, options["svt"], Facts(setting.horizon, size))
    opened = "" if setting.static.additive or size is not None else unknown
    levels = (setting.horizon or 1 << 20).bit_length() + 2
    small = 8 * levels * (setting.static.cells + setting.static.width) * len(takes) <= _SMALL
    return Plan(spent.charge, made, returns=small, open=opened or (NO_LAST_TICK if setting.horizon is None else ""))


def _deepest(form: Form, horizon: int | None) -> int:
    """Into how many parts the budget is divided at the most; without a horizon after 2^62 ticks."""
    levels = (horizon or 1 << 62).bit_length()
    return levels if form == "tree" else 2 * levels


def read_split(value: Any) -> Fraction:
    try:
        split = Fraction(repr(value) if isinstance(value, float) else value)
    except (TypeError, ValueError, ZeroDivisionError):
        split = Fraction(0)
    if not 0 < split < 1:
        raise ConfigurationError("split is the part of the budget that the partition has, between 0 and 1")
    return split


def _sides(
    setting: Setting, form: Form, takes: tuple[Takes, ...], spent: Purse, svt: Any, facts: Facts, source: ItemSource
) -> Sides:
    static = setting.static
    sides = []
    for taken in takes:
        lane = f"prefix-{taken}"
        partition = partitioner(
            setting.partition, spent.partition, svt, source, setting.beta, setting.horizon, f"{lane}/partition"
        )
        structure = STRUCTURES[form](static, spent, setting.horizon, source, lane)
        sides.append(Side(taken, partition, structure, static.cells))
    return Sides(static, sides, facts)


def _tree(static: StaticMechanism, spent: Purse, horizon: int | None, source: ItemSource, lane: str) -> FiniteTree:
    assert horizon is not None

    def place(level: int, index: int) -> Place:
        return Place(source, f"{lane}/tree-{level}", index)

    return FiniteTree(static, spent.releases, horizon, place)


def _doubling(
    static: StaticMechanism, spent: Purse, horizon: int | None, source: ItemSource, lane: str
) -> DoublingBlocks:
    def place(role: str, node: int) -> Place:
        return Place(source, f"{lane}/{role}", node)

    return DoublingBlocks(static, spent.releases, place)


STRUCTURES: dict[str, Callable[..., FiniteTree | DoublingBlocks]] = {"tree": _tree, "doubling": _doubling}
TREE = Construction("tree", "dynamic-data 5.1", plan_tree)
DOUBLING = Construction("doubling", "dynamic-data 5.2, 5.3, 5.4", plan_doubling)
