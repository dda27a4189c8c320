"""What a stream promises and what each query may cost, from the words of the spec: plain TOML, and own arithmetic.

Nothing of `evertally.privacy` is asked: a share that is multiplied by something, a promise that is converted wrongly or
a ledger that adds up something else is what this is there to notice. The rules, each with its theorem:

* `epsilon`: losses of pure mechanisms add up; a share is that part of epsilon.
* `rho`: rho adds up (price-of-continual-release 2); a pure mechanism costs epsilon^2/2 (Bun and Steinke).
* `epsilon` and `delta`: a share is that part of the largest rho that implies the promise (`curves.rho_of`). Where some
  query may show labels that only one unit brought, half of delta is kept for that and handed out by the same shares
  (streaming-selection 2.3), and rho is that of the other half. A query that is alone may pay in epsilon and delta.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from evertally.audit.spec_down.curves import epsilon_of, log_delta, mu_of, rho_of

_ROUNDED = 1e-12  # of a curve that is found by floats: far below what `Report.passed` forgives


@dataclass(frozen=True)
class Charge:
    """What a mechanism says that it pays: the numbers alone, by the names that they have.

    >>> from evertally import PureDP
    >>> Charge.of(PureDP(0.5)).rho
    Fraction(1, 8)
    """

    epsilon: Fraction | None  # None where only rho is known
    rho: Fraction
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, charge: Any) -> Self:
        epsilon, delta = getattr(charge, "exact_epsilon", None), getattr(charge, "exact_delta", Fraction(0))
        rho = getattr(charge, "exact_rho", None)
        if rho is None:
            assert epsilon is not None, "a charge has an epsilon or a rho"
            rho = Fraction(epsilon) ** 2 / 2
        return cls(None if epsilon is None else Fraction(epsilon), Fraction(rho), Fraction(delta))

    @property
    def pure(self) -> bool:
        """Whether an epsilon is all of it."""
        return self.epsilon is not None and not self.delta


@dataclass(frozen=True)
class Used:
    """What was handed out of what may be, in one unit."""

    unit: str
    allowed: float
    handed_out: float
    delta: float = 0.0

    @property
    def part(self) -> float:
        """The part that is used."""
        return self.handed_out / self.allowed


@dataclass(frozen=True)
class Query:
    """A query as the spec writes it, and its share."""

    name: str
    share: Fraction
    table: Mapping[str, Any]


@dataclass(frozen=True)
class Promise:
    """A guarantee and its shares.

    >>> promise = Promise.written({"guarantee": {"rho": 0.5}, "query": [{"name": "a", "kind": "counter"}]})
    >>> promise.used("a", Charge(None, Fraction(13, 20))).part
    1.3
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    queries: tuple[Query, ...]
    stream: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file."""
        return cls.written(tomllib.loads(path.read_text("utf-8")))

    @classmethod
    def written(cls, content: Mapping[str, Any]) -> Self:
        """From what a file says."""
        said, tables = content["guarantee"], content["query"]
        epsilon, delta, rho = (
            None if name not in said else Fraction(said[name]) for name in ("epsilon", "delta", "rho")
        )
        # As it is written: 0.1 is 1/10. Without shares all are equal.
        shares = [Fraction(str(table["share"])) if "share" in table else Fraction(1, len(tables)) for table in tables]
        queries = (Query(str(table["name"]), share, table) for table, share in zip(tables, shares, strict=True))
        return cls(epsilon, delta, rho, tuple(queries), dict(content.get("stream", {})))

    def query(self, name: str) -> Query:
        """A query by its name."""
        return next(query for query in self.queries if query.name == name)

    @property
    def pure(self) -> bool:
        """Whether it is an epsilon alone."""
        return self.epsilon is not None and self.delta is None

    @property
    def alone(self) -> bool:
        """Whether one query has all of it."""
        return len(self.queries) == 1 and self.queries[0].share == 1

    def used(self, name: str, charge: Charge, bad: bool = False) -> Used:
        """What a query pays of its share. `bad`: some query of the stream pays a delta beside its rho."""
        share = self.query(name).share
        if self.rho is not None:
            return Used("rho", float(self.rho * share), math.inf if charge.delta else float(charge.rho))
        assert self.epsilon is not None
        if self.delta is None:
            paid = float(charge.epsilon) if charge.pure and charge.epsilon is not None else math.inf
            return Used("epsilon", float(self.epsilon * share), paid)
        if self.alone and charge.epsilon is not None:
            return self._undivided(charge)
        kept = self.delta / 2 if bad else Fraction(0)
        allowed = rho_of(float(self.epsilon), float(self.delta - kept)) * float(share)
        if charge.delta > kept * share:
            return Used("rho", allowed, math.inf, float(charge.delta))
        return Used("rho", allowed, float(charge.rho), float(charge.delta))

    def _undivided(self, charge: Charge) -> Used:
        assert self.epsilon is not None
        assert self.delta is not None
        assert charge.epsilon is not None
        paid = math.inf if charge.delta > self.delta else float(charge.epsilon)
        return Used("epsilon", float(self.epsilon), paid, float(self.delta))

    def total(self, charges: Sequence[Charge]) -> Used:
        """All charges together against the whole promise, in its own unit."""
        rho, bad = sum((one.rho for one in charges), Fraction(0)), sum((one.delta for one in charges), Fraction(0))
        epsilons = [one.epsilon for one in charges]
        added = None if None in epsilons else float(sum(one for one in epsilons if one is not None))
        if self.rho is not None:
            return Used("rho", float(self.rho), math.inf if bad else float(rho))
        assert self.epsilon is not None
        if self.delta is None:
            return Used("epsilon", float(self.epsilon), math.inf if bad or added is None else added)
        # Epsilons and deltas added, or rho converted once, with the delta that is left.
        ways = [] if added is None or bad > self.delta else [added]
        if bad < self.delta:
            ways.append(self._converted(float(rho), float(self.delta - bad)))
        return Used("epsilon", float(self.epsilon), min(ways, default=math.inf), float(self.delta))

    def _converted(self, rho: float, delta: float) -> float:
        """The epsilon of rho. At the promise itself the curve is steep: what keeps delta up to a float is all of it."""
        assert self.epsilon is not None
        exact = float(self.epsilon)
        if abs(log_delta(rho, exact) - math.log(delta)) <= _ROUNDED * max(1.0, abs(math.log(delta))):
            return exact
        return epsilon_of(rho, delta)

    def claim(self, name: str, charge: Charge, gaussian: bool, bad: bool = False) -> tuple[str, float]:
        """How much the noise of a query may show: epsilon of Laplace noise, the distance mu of Gaussian noise."""
        share = self.query(name).share
        if self.epsilon is not None and self.delta is None:
            # Gaussian noise keeps no pure promise: whatever it shows is too much.
            return ("mu", 0.0) if gaussian else ("epsilon", float(self.epsilon * share))
        if self.rho is not None:
            rho = float(self.rho * share)
        else:
            assert self.epsilon is not None
            assert self.delta is not None
            if self.alone and charge.epsilon is not None:
                whole = float(self.epsilon), float(self.delta)
                return ("mu", mu_of(*whole)) if gaussian else ("epsilon", whole[0])
            rho = rho_of(float(self.epsilon), float(self.delta / 2 if bad else self.delta)) * float(share)
        # A pure mechanism of epsilon is epsilon^2/2-zCDP, and mu^2/2 is the rho of normal laws at distance mu.
        return "mu" if gaussian else "epsilon", math.sqrt(2 * rho)
