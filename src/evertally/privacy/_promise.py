"""What the four kinds of guarantee share: their cost in the ledger, what covers what, how a share is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy._delta import delta_warning
from evertally.privacy._exact import float_up

Adversary = Literal["adaptive", "oblivious"]


@dataclass(frozen=True)
class Cost:
    """The loss of one or more mechanisms in the three currencies of the ledger, as exact fractions.

    `epsilon` is None when no finite epsilon (with this delta) is known. Costs add: basic composition for
    (epsilon, delta), zCDP composition for (rho, delta) (streaming-selection 2.3).

    >>> from evertally.privacy import PureDP, ZCDP
    >>> PureDP(1).cost + ZCDP(0.25).cost
    Cost(epsilon=None, rho=Fraction(3, 4), delta=Fraction(0, 1))
    """

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: Cost) -> Cost:
        both = self.epsilon is not None and other.epsilon is not None
        epsilon = (self.epsilon or Fraction(0)) + (other.epsilon or Fraction(0)) if both else None
        return Cost(epsilon, self.rho + other.rho, self.delta + other.delta)


class RoundedUp:
    """A parameter of a guarantee as a float: its exact value (`exact_epsilon`, ...), rounded up."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._exact = f"exact_{name}"

    def __get__(self, promise: Any, owner: type) -> float:
        if promise is None:
            raise AttributeError("a parameter is that of a guarantee, not of its class")
        return float_up(getattr(promise, self._exact))


@dataclass(frozen=True, repr=False)
class Promise(ABC):
    """Base of the guarantees: it names its adversary and can tell what fits under it."""

    adversary: Adversary

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What a mechanism with this guarantee adds to a ledger."""

    @abstractmethod
    def used_by(self, cost: Cost) -> Fraction | None:
        """The part of this promise that `cost` uses up (at most 1: it fits), None if no amount would fit."""

    def _parameters(self) -> dict[str, Fraction]:
        names = [field.name for field in fields(self) if field.name.startswith("exact_")]
        return {name.removeprefix("exact_"): getattr(self, name) for name in names}

    def left_after(self, cost: Cost) -> Fraction:
        """The largest share that still fits beside `cost`."""
        used = self.used_by(cost)
        return max(Fraction(0), 1 - used) if used is not None else Fraction(0)

    def covers(self, other: Promise) -> bool:
        """Whether every mechanism that keeps `other` also keeps this promise.

        >>> from evertally.privacy import PureDP, ZCDP
        >>> ZCDP(0.5).covers(PureDP(1)), PureDP(1).covers(ZCDP(0.5))
        (True, False)
        """
        return self.adversary_covers(other) and self.admits(other.cost)

    def admits(self, cost: Cost) -> bool:
        """Whether mechanisms with this cost, together, keep this promise."""
        used = self.used_by(cost)
        return used is not None and used <= 1

    def adversary_covers(self, other: Promise) -> bool:
        """What holds against adaptive adversaries holds against oblivious ones, not the other way round."""
        return self.adversary == "oblivious" or other.adversary == "adaptive"

    def warning(self, events: int | None = None) -> str | None:
        """What is wrong with a delta this large, if anything; `events`: how many there may be, where declared."""
        delta = self._parameters().get("delta")
        return None if delta is None else delta_warning(delta, events)

    def __repr__(self) -> str:
        words = [f"{name}={show(value)}" for name, value in self._parameters().items()]
        words += ["adversary='oblivious'"] if self.adversary == "oblivious" else []
        warning = self.warning()
        words += [] if warning is None else [f"WARNING: {warning}"]
        return f"{type(self).__name__}({', '.join(words)})"


def read_share(fraction: Fraction | str | float) -> Fraction:
    """A share in (0, 1]. Floats are read as the decimal they print as, so that ten times 0.1 is exactly 1.

    >>> read_share(0.1) * 10, read_share("1/3")
    (Fraction(1, 1), Fraction(1, 3))
    """
    try:
        share = Fraction(repr(float(fraction)) if isinstance(fraction, float) else fraction)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ConfigurationError(f"a share must be a number such as 0.3 or '1/3', not {fraction!r}") from None
    if not 0 < share <= 1:
        raise ConfigurationError(f"a share must lie above 0 and not above 1, and is {fraction!r}")
    return share


def show(value: Fraction, *, up: bool = True) -> str:
    """A fraction for human eyes: a decimal where that is exact, a short fraction, otherwise rounded.

    Losses are rounded up; what is left to spend is rounded down (`up=False`).

    >>> show(Fraction(3, 10)), show(Fraction(1, 3)), show(Fraction(1.5))
    ('0.3', '1/3', '1.5')
    """
    decimal = repr(float(value))
    if float(value) == value or Fraction(decimal) == value:
        return decimal
    if value.denominator < 1000:
        return str(value)
    return repr(float_up(value)) if up else repr(-float_up(-value))


def set_parameters(promise: Promise, adversary: Adversary, **parameters: Fraction) -> None:
    """Fill a frozen guarantee once, at its construction."""
    if adversary not in ("adaptive", "oblivious"):
        raise ConfigurationError(f"adversary must be 'adaptive' or 'oblivious', not {adversary!r}")
    object.__setattr__(promise, "adversary", adversary)
    for name, value in parameters.items():
        object.__setattr__(promise, name, value)


def group_size(size: int) -> int:
    return whole("the number of events of a group", size, 1)
