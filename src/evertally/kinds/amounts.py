"""Labels with a `weight`: a second column whose amounts are added up, by label. What the kinds that offer it share."""

from __future__ import annotations

from typing import Any, Protocol

from evertally.encode.amounts import by_label
from evertally.kinds.fields import OptionError
from evertally.kinds.kind import Arguments
from evertally.kinds.proofs import ROUNDED, WORKLOADS
from evertally.kinds.reads import AMOUNTS, Cells, Parameters, Records


class Weighted(Protocol):
    """The options of a [[query]] that may have a weight."""

    @property
    def column(self) -> str | None: ...
    @property
    def max_per_event(self) -> int | None: ...
    @property
    def max_weight(self) -> int | float | None: ...
    @property
    def weight(self) -> str | None: ...
    @property
    def resolution(self) -> int | float | None: ...


def check_amounts(query: Weighted) -> None:
    """Amounts are declared in full, or not at all."""
    if query.weight is None:
        if query.resolution is not None:
            raise OptionError("resolution", "resolution goes with weight: it is what those amounts are rounded to")
        if query.max_weight is not None and (isinstance(query.max_weight, float) or query.max_weight < 1):
            raise OptionError("max_weight", "max_weight must be an integer of at least 1")
        return
    if query.resolution is None:
        raise OptionError("weight", "weight needs 'resolution': what amounts are rounded to, such as 0.01, or 1")
    if query.max_weight is None:
        raise OptionError("weight", "weight needs 'max_weight': the largest amount of one event, which noise hides")
    if query.max_per_event is not None:
        raise OptionError("max_per_event", "an event with a weight has one label: leave out max_per_event")
    if query.weight == query.column:
        raise OptionError("weight", "weight is another column than the one of labels")


def amounts_by_label(count: int, cells: Cells, parameters: Parameters) -> list[Any]:
    """What each event gives to which label, as the class takes it.

    >>> amounts_by_label(2, {"column": ["DE", None], "weight": [19.99, 5.0]}, {})
    [{'DE': 19.99}, {}]
    """
    return by_label(cells["column"], cells["weight"]) if cells else []


AMOUNTS_BY_LABEL = Records({"weight": AMOUNTS}, amounts_by_label, only_with="weight")


def without_weight(parameters: Parameters) -> Arguments:
    """The options of the class: a weight is a column of the input, and not one of them."""
    return {option: value for option, value in parameters.items() if option != "weight"}


def proof_of_workload(mechanism: Any) -> str:
    """Where weighed ticks are proved; nothing for running totals."""
    return "" if mechanism.workload is None else WORKLOADS


def proof_of_steps(mechanism: Any) -> str:
    """The same for what may be in steps: where rounded amounts are proved."""
    return proof_of_workload(mechanism) if mechanism.resolution is None else ROUNDED
