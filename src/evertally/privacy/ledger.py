"""The ledger of a stream: what each mechanism was promised, what is left, refusal of what does not fit."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from evertally.errors import BudgetExceeded, ConfigurationError
from evertally.pictures import html_table
from evertally.privacy._promise import Cost, show
from evertally.privacy.conversions import epsilon_of_rho
from evertally.privacy.guarantees import ZCDP, ApproxDP, ApproxZCDP, Guarantee, PureDP


@dataclass(frozen=True)
class Entry:
    """One mechanism of the stream and what it was promised.

    >>> Entry("visits", PureDP(1)).rho
    Fraction(1, 2)
    """

    name: str
    charge: Guarantee

    @property
    def epsilon(self) -> Fraction | None:
        """Exact epsilon, None where only rho is known."""
        return self.charge.cost.epsilon

    @property
    def rho(self) -> Fraction:
        """Exact rho; eps^2/2 for a charge given by epsilon."""
        return self.charge.cost.rho

    @property
    def delta(self) -> Fraction:
        """Exact delta; 0 for pure and zCDP charges."""
        return self.charge.cost.delta


class Ledger:
    """Promises made on one stream, never more in total than its guarantee.

    Costs are kept as exact (epsilon, rho, delta) and added; an (epsilon, delta) total is converted once, at
    the end (streaming-selection 2.3). A pure stream adds epsilons; a zCDP stream adds rho, a pure mechanism
    costing eps^2/2; an (epsilon, delta) stream takes the better of added epsilons (where every entry has
    one) and the optimised conversion of the added rho with the delta that is left.

    What it rests on: **concurrent composition**. The mechanisms run at the same time and their input may
    depend on everything released so far by any of them. Proved in additions 1 for (rho, delta) and for pure
    charges: each mechanism comes with a pair of rho-close interactive mechanisms and a weight of its own
    transcript, whatever the strategy. For the linear mechanisms (exact sum plus data-independent noise) a
    direct argument suffices, factorization-counting 1.4 and 3.2: given the past, the releases of all of
    them together are one vector of independent noises with one shift that the changed event fixes, so the
    squared norms, i.e. the rho, add. A charge of (eps, delta) enters through its reduction to randomised
    response, which is not ours: Lyu 2022, Vadhan and Zhang 2023, for data that react Henzinger, Safavi and
    Vadhan 2024. Every charge must be for the same neighbouring relation.

    **Parallel composition is not used.** Mechanisms on disjoint parts of the data are charged the sum, not
    the maximum: with adaptive input the maximum is false for mechanisms with delta > 0 (same paper), and a
    replaced event touches two parts (factorization-counting 3.2). Nor may a later charge depend on earlier
    outputs (no filter is implemented): charges are fixed before the first tick.

    >>> ledger = Ledger(PureDP(epsilon=1))
    >>> entry = ledger.promise("visits", PureDP(1).share(0.3))
    >>> ledger.spent, ledger.left, ledger.total()
    (Fraction(3, 10), Fraction(7, 10), PureDP(epsilon=0.3))
    >>> ledger.promise("wards", PureDP(0.75))
    Traceback (most recent call last):
    evertally.errors.BudgetExceeded: 'wards' asks for PureDP(epsilon=0.75), which does not fit ...
    """

    def __init__(self, guarantee: Guarantee) -> None:
        if not isinstance(guarantee, PureDP | ZCDP | ApproxDP | ApproxZCDP):
            raise ConfigurationError(
                f"a ledger needs a guarantee such as PureDP(epsilon=1.0), not {type(guarantee).__name__}"
            )
        self.guarantee: Final = guarantee
        self._entries: dict[str, Entry] = {}
        self._turn = threading.Lock()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The promises made, in order."""
        return tuple(self._entries.values())

    @property
    def cost(self) -> Cost:
        """The sum of all promises as exact (epsilon, rho, delta)."""
        return sum((entry.charge.cost for entry in self.entries), Cost())

    @property
    def spent(self) -> Fraction:
        """The part of the guarantee that is promised away, between 0 and 1."""
        return self.guarantee.used_by(self.cost) or Fraction(0)

    @property
    def left(self) -> Fraction:
        """The largest share for which `promise(name, guarantee.share(left))` still fits (0: none).

        It is `1 - spent`, except on an (epsilon, delta) stream with pure entries: shares there mean rho.
        """
        return self.guarantee.left_after(self.cost)

    def promise(self, name: str, charge: Guarantee) -> Entry:
        """Record what `name` may lose. If it does not fit: `BudgetExceeded`, and nothing is recorded."""
        if not isinstance(name, str) or not name:
            raise ConfigurationError("a promise needs the name of the mechanism it is made to")
        with self._turn:  # two threads that see the same rest would both take it
            if name in self._entries:
                raise ConfigurationError(
                    f"there is already a promise to {name!r}; give each mechanism of a stream its own name"
                )
            fits = self.guarantee.adversary_covers(charge) and self.guarantee.admits(self.cost + charge.cost)
            if not fits:
                raise BudgetExceeded(self._refusal(name, charge))
            self._entries[name] = Entry(name, charge)
            return self._entries[name]

    def total(self) -> Guarantee | None:
        """All promises together, in the notion of the ledger's guarantee; None before the first one.

        >>> ledger = Ledger(ApproxDP(1, 1e-6))
        >>> for number in range(10):
        ...     entry = ledger.promise(f"query {number}", ledger.guarantee.share(0.1))
        >>> ledger.total(), ledger.left
        (ApproxDP(epsilon=1.0, delta=1e-06), Fraction(0, 1))
        """
        cost, promised = self.cost, self.guarantee
        if not self._entries:
            return None
        if isinstance(promised, ZCDP):
            return ZCDP(cost.rho, adversary=promised.adversary)
        if isinstance(promised, ApproxZCDP):
            return ApproxZCDP(cost.rho, cost.delta or promised.exact_delta, adversary=promised.adversary, force=True)
        if isinstance(promised, ApproxDP):
            return ApproxDP(_epsilon(cost, promised), promised.exact_delta, adversary=promised.adversary, force=True)
        assert cost.epsilon is not None, "only pure charges fit a pure guarantee"
        return PureDP(cost.epsilon, adversary=promised.adversary)

    def table(self) -> str:
        """The ledger as text.

        >>> ledger = Ledger(ZCDP(0.5))
        >>> entry = ledger.promise("visits", ZCDP(0.125))
        >>> print(ledger.table())
        guarantee  ZCDP(rho=0.5)
        visits     ZCDP(rho=0.125)
        left       0.75
        """
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("guarantee", str(self.guarantee))]
        rows += [(entry.name, str(entry.charge)) for entry in self.entries]
        return [*rows, ("left", show(self.left, up=False))]

    def _repr_html_(self) -> str:
        return html_table("Ledger", ["to", "promised"], self._rows())

    def __repr__(self) -> str:
        left = show(self.left, up=False)
        return f"<Ledger of {self.guarantee}: {len(self._entries)} promises, {left} left>"

    def _refusal(self, name: str, charge: Guarantee) -> str:
        text = f"{name!r} asks for {charge}, which does not fit the stream's guarantee {self.guarantee}: "
        if not self.guarantee.adversary_covers(charge):
            return text + (
                "it holds against oblivious input only. Choose another mechanism, or declare the "
                "stream's guarantee with adversary='oblivious'."
            )
        if self.guarantee.used_by(charge.cost) is None and isinstance(self.guarantee, PureDP | ZCDP):
            return text + (
                f"no amount of {type(charge).__name__} implies {type(self.guarantee).__name__}. Choose a "
                "mechanism with pure noise, or give the stream a guarantee of the charge's kind or weaker."
            )
        if self.guarantee.used_by(self.cost + charge.cost) is None:
            return text + (
                "the deltas use up the whole delta and leave nothing to convert rho with. Ask for a smaller "
                "delta, or give the stream a larger one."
            )
        promised = ", ".join(f"{entry.name!r} {entry.charge}" for entry in self.entries) or "nothing"
        return text + (
            f"promised so far: {promised}; left: {show(self.left, up=False)} of the guarantee. "
            "Ask for at most that share (guarantee.share reads 0.1 as exactly 1/10), "
            "or give the stream a weaker guarantee."
        )


def _epsilon(cost: Cost, promised: ApproxDP) -> Fraction:
    # The promise itself is a certified bound: `promise` checked it in terms of rho, and converting back could
    # round up past it.
    bounds = [promised.exact_epsilon]
    if cost.epsilon is not None and cost.delta <= promised.exact_delta:
        bounds.append(cost.epsilon)
    if cost.delta < promised.exact_delta:
        converted = epsilon_of_rho(cost.rho, promised.exact_delta - cost.delta)
        bounds += [converted] if converted > 0 else []
    return min(bounds)
