"""How the interval tree spends its budget over levels, rounds and roles, and the proof that it is enough (6.6, 6.10).

An allocation says which part of the tree's budget (an epsilon, or a rho: dynamic-data 1.2) each release of a node may
cost. Whether one change of the stream stays within the whole budget is one of three inequalities (`Form`), summed here
for the very numbers that are used: a factor found by hand is how such ledgers break (6.6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Literal

from evertally.errors import ConfigurationError
from evertally.integers import whole

Form = Literal["value", "token-event", "token-item"]

# A rational below 6/pi^2: pi^2 = 9.86960440108935...
_SERIES = Fraction(6 * 10**13, 98_696_044_010_894)
_GRID = 2**64
_SUMMED_LEVELS = 64  # above them: a bound on the tail


@dataclass(frozen=True)
class Shares:
    """Parts of the tree's budget for the four releases of one round: its size, its content, each of the two trees over
    its deletions (their number; their content)."""

    size: Fraction
    content: Fraction
    counted: Fraction
    deleted: Fraction

    @property
    def opening(self) -> Fraction:
        """i(r) of dynamic-data 6.6."""
        return self.size + self.content

    @property
    def deletion(self) -> Fraction:
        """d(r) of dynamic-data 6.6."""
        return self.counted + self.deleted


@dataclass(frozen=True)
class Allocation:
    """Level weights times round shares. `cap`: how many levels there are at most (C5f, dynamic-data 6.9); None: no end.

    `form` is the inequality that was asserted.

    >>> at = allocation("AT", form="value", rounds=64)
    >>> at.leaf, at.shares(2, 1).content, at.spent <= 1
    (Fraction(1, 2), Fraction(1, 24), True)
    """

    name: str
    form: Form
    rounds: int
    cap: int | None
    leaf: Fraction
    spent: Fraction  # a rigorous upper bound on the ledger, as a part of the tree's budget
    _shares: Callable[[int, int], Shares]

    def shares(self, level: int, round_: int) -> Shares:
        """What round `round_` of an inner node (level 2 or higher) may spend."""
        if level < 2 or not 1 <= round_ <= self.rounds or (self.cap is not None and level > self.cap):
            raise AssertionError("a release outside the ledger")
        return self._shares(level, round_)


@dataclass(frozen=True)
class _Series:
    """Weights of levels: positive, with a sum of at most 1, and a rigorous bound on what comes after `last`."""

    weight: Callable[[int], Fraction]
    after: Callable[[int], Fraction]


def _levels(name: str, cap: int | None) -> _Series:
    if cap is not None:
        return _Series(lambda level: Fraction(1, cap), lambda last: Fraction(max(0, cap - last), cap))
    if name in ("A0", "A1"):
        return _Series(lambda level: _SERIES / level**2, lambda last: _SERIES / last)  # sum over k > K of 1/k^2 < 1/K
    return _Series(lambda level: Fraction(1, level * (level + 1)), lambda last: Fraction(1, last + 1))


def _telescoping(round_: int) -> Fraction:
    return Fraction(1, round_ * (round_ + 1))


@cache
def allocation(name: str, *, form: Form, rounds: int, levels: int | None = None) -> Allocation:
    """The named allocation, with its ledger asserted.

    - "AT" (default): weights 1/(k(k+1)) for levels and rounds, a leaf spends all on its content.
    - "A0": the paper's, weights 6/(pi^2 k^2), as printed. "A1": its rounds normalised, leaves spend all on their
      content, everything divided by the ledger of these very numbers.
    - "A2": trees over deletions at a constant share; only where every deletion names a lifetime of its own.
    """
    rounds = whole("max_rounds", rounds, 1, 128)
    levels = None if levels is None else whole("levels", levels, 1, 62)
    weight = _levels(name, levels).weight
    if name == "AT":
        leaf, shares = weight(1), _four_alike(weight, _telescoping)
    elif name == "A0":
        leaf, shares = weight(1) * _SERIES / 4, _four_alike(weight, lambda round_: _SERIES / (2 * round_**2))
    elif name == "A1":
        leaf, shares = _normalised(weight, rounds, levels, form)
    elif name == "A2":
        leaf, shares = _deletions_once(weight, form)
    else:
        raise ConfigurationError(f"allocation must be 'AT', 'A0', 'A1' or 'A2', not {name!r}")
    spent = ledger(leaf, shares, name, form, rounds, levels)
    if spent > 1:
        raise AssertionError(f"the allocation {name} spends {float(spent):.4f} of its budget")
    return Allocation(name, form, rounds, levels, leaf, spent, shares)


def _four_alike(weight: Callable[[int], Fraction], of_round: Callable[[int], Fraction]) -> Callable[[int, int], Shares]:
    def shares(level: int, round_: int) -> Shares:
        one = weight(level) * of_round(round_) / 2
        return Shares(one, one, one, one)

    return shares


def _deletions_once(weight: Callable[[int], Fraction], form: Form) -> tuple[Fraction, Callable[[int, int], Shares]]:
    """A2: holders are retired, so one deletion is fed to one node in one round (6.10). Removing one of two deletions of
    a lifetime moves the one that counts: two feeds change, and each tree gets 1/8; 1/4 is for whole lifetimes only."""
    if form == "value":
        raise ConfigurationError(
            "allocation 'A2' needs names: by value one update may move a deletion in every node above it. "
            "Use allocation='AT', or identity='token'"
        )
    constant = Fraction(1, 4) if form == "token-item" else Fraction(1, 8)

    def shares(level: int, round_: int) -> Shares:
        one = weight(level) * _telescoping(round_) / 4
        return Shares(one, one, constant, constant)

    return weight(1) / 2, shares


def _normalised(
    weight: Callable[[int], Fraction], rounds: int, levels: int | None, form: Form
) -> tuple[Fraction, Callable[[int, int], Shares]]:
    """A1: a node at level l opens at most 2^(l-1) rounds, so their series is finite; then all is divided by the ledger
    of this allocation, rounded down to a grid: no release costs more than its exact quotient, whose ledger is 1."""
    squares = [Fraction(0), *accumulate(Fraction(1, r * r) for r in range(1, rounds + 1))]

    def unscaled(level: int, round_: int) -> Shares:
        most = rounds if level > 11 else min(rounds, 2 ** (level - 1))
        # A round beyond `most` cannot be opened; a zero would be no budget, so it keeps the formula.
        one = weight(level) / (4 * round_**2 * squares[most])
        return Shares(one, one, one, one)

    whole_ledger = ledger(weight(1), unscaled, "A1", form, rounds, levels)

    def shares(level: int, round_: int) -> Shares:
        one = _down(unscaled(level, round_).size / whole_ledger)
        return Shares(one, one, one, one)

    return _down(weight(1) / whole_ledger), shares


def _down(share: Fraction) -> Fraction:
    return Fraction(share.numerator * _GRID // share.denominator, _GRID)


def ledger(
    leaf: Fraction,
    shares: Callable[[int, int], Shares],
    name: str,
    form: Form,
    rounds: int,
    levels: int | None,
) -> Fraction:
    """An upper bound on what one change of the stream costs, as a part of the tree's budget: the inequality `form` of
    dynamic-data 6.6 with these numbers. Levels beyond the summed ones count with the tail of their series."""
    series = _levels(name, levels)
    last = _SUMMED_LEVELS if levels is None else levels
    cost = _node_by_value if form == "value" else _node_openings
    nodes = [cost([shares(level, r) for r in range(1, _possible(level, rounds) + 1)]) for level in range(2, last + 1)]
    total = leaf + sum(nodes, Fraction(0))
    if levels is None:
        total += nodes[-1] / series.weight(last) * series.after(last)
    if form == "value":
        return total
    fed = max((shares(level, 1).deletion for level in range(2, last + 1)), default=Fraction(0))
    return total + (2 if form == "token-event" else 1) * fed


def _possible(level: int, rounds: int) -> int:
    """A node at this level takes 2^(level-1) - 1 steps: it opens no more rounds than one more than that."""
    return rounds if level > 11 else min(rounds, 2 ** (level - 1))


def _node_openings(rounds: list[Shares]) -> Fraction:
    return sum((shares.opening for shares in rounds), Fraction(0))


def _node_by_value(rounds: list[Shares]) -> Fraction:
    """max{ sup_R I(R) + d(R), sup_{R1 <= R2} d(R1) + I(R2) - I(R1) + d(R2) }; R1 = R2 is two feeds of one round."""
    opened = list(accumulate(shares.opening for shares in rounds))
    fed = [shares.deletion for shares in rounds]
    held = max(i + d for i, d in zip(opened, fed, strict=True))
    # The best R1 for every R2, in one pass: the largest d(R1) - I(R1) so far.
    moved, best = Fraction(0), fed[0] - opened[0]
    for i, d in zip(opened, fed, strict=True):
        best = max(best, d - i)
        moved = max(moved, best + i + d)
    return max(held, moved)
