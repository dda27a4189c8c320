"""Sums of amounts of unknown size: the bound is found from what was released, epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import RowForm
from evertally.contract.mechanism import Mechanism, by_tick
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.parts import Accuracy, Blueprint, IntArray
from evertally.contract.rounding import ROUNDINGS, Rounder
from evertally.contract.units import check_room, own_numbers
from evertally.counting.choose import Choice, budgets, choose, estimated, rank, worst_of
from evertally.counting.process import Budget
from evertally.counting.processes import OURS, Setting
from evertally.encode.values import AmountGrid, as_written
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import ZCDP, Change, PureDP, change
from evertally.ranking import Ranking
from evertally.values.epochs_bounds import Bounds, SizesAndSums, read_epochs
from evertally.values.epochs_engine import SHOWN, EpochPlan, EpochSums
from evertally.values.sums import check_relation, user_change

LABELS = ("total", "bound")


@statistic
class AdaptiveSum(Mechanism):
    """The sum of all amounts so far, where nobody knows how large amounts are: each epoch has a bound, and amounts are
    cut to it. Amounts lie between 0 and `upper`, which may be far too large.

    How many amounts there are of each size (powers of two) is counted and released at every tick, for `sizes_share` of
    the budget. At the first tick of an epoch its bound is the smallest power of two that `quantile` of all amounts
    reach, by the counts released at the tick before it. The sum of an epoch is a counter of its own, with noise for its
    bound; totals are sums of what was released. The first epoch has the bound `first_bound` (None: `upper`).

    Theorem (users-and-domains 3 and 1.7 [R]): rho_h + rho_s under adaptive streams, whatever the rule, because it reads
    released numbers only; an event lies in one epoch, and a user with w events has sum_e w_e^2 <= w^2. Error: the noise
    of each closed epoch stays, so take few: twelve equal ones have two and a half times the noise of one. By default
    there is a `pilot` of a sixteenth of the horizon, and one long epoch. **What is cut off is in neither value nor
    interval, and no promise bounds it.** Exactness tier "exact"; time O(1) an event; memory of two counters.

    A release has the `total` and the `bound` that holds now; `sizes()` are the counts.

    >>> import evertally as et
    >>> spent = et.AdaptiveSum(upper=1_000_000, pilot=2, first_bound=100, guarantee=et.ZCDP(0.5), horizon=100,
    ...                        key=et.simulation(1))
    >>> for day in range(3):
    ...     release = spent.step([12, 30, 25, 9] * 500)
    >>> release.value["bound"], abs(release.value["total"] - 3 * 500 * 76) < 5 * release.stddev
    (32.0, True)
    >>> [size for size, count in spent.sizes().items() if count > 1000]
    [16, 32]
    """

    upper: float = option("Amounts above this are taken for it, whatever the bound.")
    resolution: float = option("What amounts are rounded to, e.g. 0.01.", default=1)
    rounding: Literal["random", "nearest"] = option(
        'How: "random" without a bias, by coins of each event; or to the "nearest" multiple.', default="random"
    )
    epochs: Sequence[int] | None = option(
        "The lengths of epochs, in ticks; what is left of the horizon is the last one. None: a pilot and the rest.",
        default=None,
    )
    pilot: int | None = option("The length of the pilot epoch; None: a sixteenth of the horizon.", default=None)
    first_bound: float | None = option(
        "The bound of the first epoch, a public guess, taken to the next power of two steps; None: `upper`.",
        default=None,
    )
    quantile: float = option("Which part of all amounts a bound is to leave whole.", default=0.99)
    sizes_share: float = option("Which part of the budget counts sizes, to find bounds.", default=0.1)
    memory_limit: int = option("The bytes that noise may take at most.", default=2**30)

    def _blueprint(self) -> Blueprint:
        check_neighbours(self.neighbours, self.guarantee)
        if self.rounding not in ROUNDINGS:
            raise ConfigurationError('rounding is "random" or "nearest"')
        if self.mechanism not in ("auto", *OURS):
            raise ConfigurationError(f'mechanism {self.mechanism!r} is not for sums with epochs; use "auto"')
        named = ("upper", "resolution", "first_bound", "quantile", "sizes_share")
        numbers = own_numbers(self._given(*named))
        for name, number in numbers.items():
            setattr(self, name, number)
        relation = check_relation(self.neighbours, "a sum")
        grid = self._grid = AmountGrid(0, self.upper, self.resolution)
        epochs = read_epochs(self.epochs, self.pilot, self.horizon)
        self.epochs = list(epochs.lengths)
        contribution = self._contributing(max_weight=grid.high)
        events = contribution.max_events_per_user
        memory = whole("memory_limit", self.memory_limit, 1, 2**62)

        def moved(bound: int) -> Change:
            # Amounts between 0 and the bound: a replaced one moves the sum as far as one that is there or not.
            return Change(bound, bound**2, bound) if events is None else user_change(events * bound, relation, False)[0]

        def setting(length: int, bound: int) -> Setting:
            return Setting(moved(bound), length, 1, memory)

        sizes_paid, sums_paid = self._budgets()
        self._longest = setting(max(epochs.lengths), grid.high)
        self._paid = sums_paid
        name = choose(sums_paid, self._longest, self.mechanism).mechanism
        columns = len(Bounds(grid.high, Fraction(1), 0, 0).steps)
        unit = self._contributing(max_weight=1)
        counted = Setting(change(relation, unit, columns), self.horizon, columns, memory)
        sizes = choose(sizes_paid, counted, name)
        slack = math.ceil(worst_of(estimated(sizes, counted)))
        bounds = Bounds(grid.high, self._part("quantile"), self._first(grid), slack)
        sums = Choice(name, sums_paid)
        plan = EpochPlan(epochs, bounds, sizes, counted, sums, setting)
        for length in set(epochs.lengths):
            choose(sums_paid, setting(length, 1), name)  # refused here, or never

        def door(source: ItemSource, limit: int) -> SizesAndSums:
            check_room(limit, grid.high)
            return SizesAndSums(grid, Rounder(source, 0, grid.high, self.rounding), bounds.steps, limit)

        charge = budgets(self.guarantee)[0]
        return Blueprint(
            word="AdaptiveSum",
            address=numbers
            # A replay must find the same bounds: the rule, and the noise that it allows for, are part of the address.
            | {"epochs": self.epochs, "memory_limit": memory, "rule": 1, "slack": slack}
            | self._given("rounding", "unit", "max_events_per_user"),
            mechanism=name,
            charge=charge,
            contribution=contribution,
            sensitivity=moved(grid.high),
            door=door,
            engine=lambda source: EpochSums(plan, source),
            form=TotalAndBound(grid, len(bounds.steps)),
            settled=numbers | {"epochs": self.epochs, "pilot": None},
        )

    def _part(self, name: str) -> Fraction:
        part = as_written(getattr(self, name))
        if part is None or not 0 < part < 1:
            raise ConfigurationError(f"{name} is a part of a whole, a number between 0 and 1")
        return part

    def _budgets(self) -> tuple[Budget, Budget]:
        """What counts of sizes pay, and what sums pay."""
        whole_budget, part = budgets(self.guarantee)[0], self._part("sizes_share")
        adversary = self.guarantee.adversary
        if isinstance(whole_budget, PureDP):
            epsilon = whole_budget.exact_epsilon
            return PureDP(epsilon * part, adversary=adversary), PureDP(epsilon * (1 - part), adversary=adversary)
        rho = whole_budget.exact_rho
        return ZCDP(rho * part, adversary=adversary), ZCDP(rho * (1 - part), adversary=adversary)

    def _first(self, grid: AmountGrid) -> int:
        """The place of the first bound among all bounds."""
        steps = Bounds(grid.high, Fraction(1), 0, 0).steps
        if self.first_bound is None:
            return len(steps) - 1
        guess = as_written(self.first_bound)
        if guess is None or not 0 < guess <= grid.high * grid.step:
            raise ConfigurationError(f"first_bound is an amount between 0 and {self.upper}; got {self.first_bound!r}")
        return next(place for place, step in enumerate(steps) if step >= guess / grid.step)

    def sizes(self) -> dict[float, int]:
        """How many amounts so far have each bound as the smallest that does not cut them, as released at the last
        tick, with noise."""
        row = self._kept.played.recent[-1]
        bounds = Bounds(self._grid.high, Fraction(1), 0, 0).steps
        shown = (own_numbers({"": float(x)})[""] for x in self._grid.shown(np.array(bounds)))
        return dict(zip(shown, row[SHOWN:].tolist(), strict=True))

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None) -> float:
        """With probability at least 1 - beta no total of any tick is further off than this from the sum of the amounts
        as they were cut, whatever bounds are found."""
        return float(self._grid.shown(np.asarray(self._bound(beta, tick))))

    def ways(self) -> Ranking:
        """The processes for the longest epoch, as if its bound were the largest."""
        ways = rank(self._paid, self._longest)
        return Ranking(way.shown_as(lambda steps: float(self._grid.shown(np.asarray(steps)))) for way in ways)

    def _about(self) -> str:
        return f"{super()._about()}, cut at the bound of their epoch: what was cut off is in neither value nor interval"


class TotalAndBound(RowForm):
    """The total and the bound that holds now; the counts of sizes are behind them."""

    labels: list[str]

    def __init__(self, grid: AmountGrid, sizes: int) -> None:
        super().__init__(SHOWN + sizes, LABELS)
        self._grid = grid

    def show(self, row: IntArray) -> dict[str, float]:
        total, bound = self._grid.shown(row[:SHOWN]).tolist()
        return {"total": total, "bound": bound}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return self._grid.shown(rows[:, :SHOWN])

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, float], dict[str, float]]:
        radius = np.array([math.floor(accuracy.radius(beta)), 0])
        return self.show(row[:SHOWN] - radius), self.show(row[:SHOWN] + radius)

    def deviation(self, accuracy: Accuracy) -> float | None:
        """Of the total."""
        return None if accuracy.stddev is None else float(self._grid.shown(np.asarray(accuracy.stddev)))
