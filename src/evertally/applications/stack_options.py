"""Options of a stack: parts, multipliers, weights; and how its records are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.applications.records import Record
from evertally.applications.stacking import LARGEST_MULTIPLIER, Counted, Part, balanced
from evertally.encode.labels import is_text
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import Change, Guarantee, PureDP


def read_parts(parts: Any) -> dict[str, Part]:
    if not isinstance(parts, Mapping) or not parts:
        raise ConfigurationError('parts are statistics by name: {"edges": et.part(et.graph.EdgeCount), ...}')
    given = dict(parts.items())
    if not all(type(name) is str and name and is_text(name) for name in given):
        raise ConfigurationError("parts are named by texts")
    if not all(isinstance(part, Part) for part in given.values()):
        raise ConfigurationError("each part is made by et.part(class, option=...): guarantee and key are the stack's")
    return given


def check_alike(counted: list[Counted]) -> None:
    """One promise covers parts that hide a change of the same thing."""
    hidden = {part.hides for part in counted}
    if len(hidden) > 1:
        raise ConfigurationError("the parts of a stack protect one and the same thing; these protect different ones")


def read_by_event(counted: list[Counted]) -> Callable[[Any], Record | None]:
    def read(record: Any) -> Record | None:
        found = tuple(part.read(record) for part in counted)
        return None if all(one is None for one in found) else found

    return read


def read_by_user(counted: list[Counted]) -> Callable[[Any], Record | None]:
    """Records come with the user that `step_events` was given."""

    def read(record: Any) -> Record | None:
        found = tuple(part.read(record if part.takes_users else record[1]) for part in counted)
        return None if all(one is None for one in found) else found

    return read


def read_multipliers(given: Any, weights: Any, units: Mapping[str, Change], guarantee: Guarantee) -> list[int]:
    """The multipliers that were given, or balanced ones."""
    names = list(units)
    shares = _by_name("weights", {} if weights is None else weights, names)
    if given == "auto":
        found = [_balance(guarantee, _weight(shares.get(name, 1)), unit) for name, unit in units.items()]
        return balanced(found)
    if weights is not None:
        raise ConfigurationError('weights go with multipliers="auto"; multipliers that are given need none')
    numbers = _by_name("multipliers", given, names)
    if set(numbers) != set(names):
        raise ConfigurationError("multipliers are given for every part, or for none")
    return [whole("a multiplier", numbers[name], 1, LARGEST_MULTIPLIER) for name in names]


def read_weights(given: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """How important each of these is: 1 where nothing is said."""
    weights = _by_name("weights", {} if given is None else given, list(names))
    return np.array([float(_weight(weights.get(name, 1))) for name in names])


def _by_name(what: str, given: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        raise ConfigurationError(f"{what} are numbers by the names of parts")
    return dict(given)


def _weight(weight: Any) -> Fraction:
    try:
        found = Fraction(weight) if isinstance(weight, int | str | Fraction) else Fraction(str(float(weight)))
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        found = Fraction(0)
    if not Fraction(1, 1000) <= found <= 1000:
        raise ConfigurationError("weights are numbers from 1/1000 to 1000")
    return found


def _balance(guarantee: Guarantee, weight: Fraction, unit: Change) -> Fraction:
    """The square of what a multiplier is to be in proportion to."""
    if isinstance(guarantee, PureDP):
        return (weight / unit.l1) ** 2
    return weight / unit.l2_squared


def settled(counted: Counted, part: Part) -> Part:
    """With its options as it keeps them in snapshots of its own."""
    return Part(part.kind, {name: counted.made._options[name] for name in part.options})
