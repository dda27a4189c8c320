"""What is possible, beside what is predicted: the certified floor of running counts, and the price of not knowing how
long a stream will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evertally.counting.bank_open import OPEN_LAST_TICK
from evertally.counting.choose import Choice, estimated, rank
from evertally.counting.processes import PROCESSES, SEPARATED, Setting
from evertally.counting.sqrt_estimate import SquareRoot
from evertally.counting.survey import widest
from evertally.histogram.tasks import SOMEWHERE
from evertally.planner.user_cost import about_users
from evertally.privacy import Guarantee, Neighbours, PureDP
from evertally.ranking import Way, finely
from evertally.statistics.linear_options import is_linear
from evertally.statistics.workload_options import Weighing

# What is compared: all that is told how long a stream will be, and all that goes on for ever.
_TOLD = tuple(name for name, process in PROCESSES.items() if process.bounded and name not in SEPARATED)
_NOT_TOLD = tuple(name for name, process in PROCESSES.items() if not process.bounded)
_NOTHING = 0.5  # noise of so small a standard deviation mostly rounds to 0: ratios of it mean nothing


@dataclass(frozen=True)
class Price:
    """What not knowing the length of a stream costs: the worst standard deviations up to tick `ticks` of the best
    process that was told it, and of the best that goes on. Who is told a length may ignore it, so the ratio is never
    below 1, although of processes that we have the best that goes on may be the better one.

    `least`: no Gaussian noise that is not told has at every tick up to `ticks` less than so many times the least
    *variance* of noise that is told that tick (computed, not certified); None where the noise is not Gaussian, or for
    less than 2^8 ticks.

    >>> price = Price(65536, "bank", 4.0, "bank-open", 5.0, 1.5795)
    >>> price.ratio, price.variance_ratio
    (1.25, 1.5625)
    """

    ticks: int
    told: str
    told_stddev: float
    not_told: str
    not_told_stddev: float
    least: float | None = None

    @property
    def ratio(self) -> float:
        """Of standard deviations; 1 where not knowing costs nothing."""
        return max(1.0, self.not_told_stddev / self.told_stddev) if self.told_stddev else 1.0

    @property
    def variance_ratio(self) -> float:
        """Of variances."""
        return self.ratio**2

    def __str__(self) -> str:
        both = f"{self.not_told} {finely(self.not_told_stddev)}, {self.told} {finely(self.told_stddev)}"
        if self.ratio == 1:
            return f"not knowing that {self.ticks:,} ticks are all costs nothing: worst sd {both}"
        least = "" if self.least is None else f"; any Gaussian noise pays about {self.least:.2f} at some tick"
        return (
            f"not knowing that {self.ticks:,} ticks are all costs {self.ratio:.2f} times the worst sd: {both} "
            f"(variance {self.variance_ratio:.2f} times{least})"
        )


def counting(made: Any) -> Setting | None:
    """The public parameters of running counts (`Counter`, `VectorCounter`, `Histogram`); None for all else."""
    if not isinstance(made, Weighing) or made.workload is not None or not is_linear(made):
        return None
    return made._setting


def with_floors(ways: Sequence[Way], made: Any) -> list[Way]:
    """The same rows, running counts with the certified floor of what each of them pays.

    A floor is about what is surely possible: one unit may move one column in one tick by all of its weight. Where one
    draw would hide that with a scale below 1 there is none: a floor is about real Gaussian noise, and integer noise of
    so small a scale has less variance than its scale says.
    """
    setting = counting(made)
    if setting is None:
        return list(ways)
    # research formulas, which a stream does not wait for
    from evertally.theory.count_floors import count_floor, mu_above

    contribution = made.contribution
    both_ways = 2 if contribution.signed and made.neighbours is Neighbours.REPLACE else 1
    moved = contribution.max_weight * (contribution.max_events_per_user or 1) * both_ways
    moved = min(moved, setting.change.linf)

    def floor(way: Way) -> float | None:
        if way.survey is None or isinstance(way.charge, PureDP) or way.charge is None:
            return None
        if moved < mu_above(way.charge) * (1 - 1e-6):  # which lies a hair above the truth
            return None
        return count_floor(setting.horizon or SOMEWHERE, way.charge, moved)

    return [replace(way, floor=floor(way)) for way in ways]


def notes_on(ways: Sequence[Way], made: Any) -> list[str]:
    """What floors mean, and the price of not knowing."""
    users = about_users(made)
    if counting(made) is None:
        return users
    fitting = [way for way in ways if not way.refused and way.survey is not None]
    notes = []
    if any(way.floor is not None for way in fitting):
        notes.append("floor: no Gaussian noise that pays this has a smaller worst sd (certified; before rounding)")
    if any(isinstance(way.charge, PureDP) for way in fitting):
        notes.append("under a pure budget no floor is shown")
    price = price_of(made)
    return [*notes, *([] if price is None else [str(price)]), *users]


def price_of(made: Any) -> Price | None:
    """The price of not knowing the horizon (without one: of not knowing that it would be 2^16); None where no process
    fits, past the last tick of "bank-open" (2^30), where there is hardly any noise, or for other than counts."""
    setting = counting(made)
    if setting is None or setting.rule is not None:  # without an end users whose ticks are apart have other charges
        return None
    ticks = setting.horizon or SOMEWHERE
    if ticks > OPEN_LAST_TICK:
        return None
    told = _best(_TOLD, made.guarantee, replace(setting, horizon=ticks), ticks)
    not_told = _best(_NOT_TOLD, made.guarantee, replace(setting, horizon=None), ticks)
    if told is None or not_told is None or not_told[0] < _NOTHING:
        return None
    from evertally.theory.count_floors import open_ratio

    # What is certain of Gaussian noise says nothing of a told process that is far from the best.
    gaussian = told[1] in ("bank", "sqrt") and not_told[1] == "bank-open"
    return Price(ticks, told[1], told[0], not_told[1], not_told[0], open_ratio(ticks) if gaussian else None)


def _best(names: Sequence[str], guarantee: Guarantee, setting: Setting, ticks: int) -> tuple[float, str] | None:
    found = []
    for name in names:
        for way in rank(guarantee, setting, name).fitting:
            charge: Any = way.charge
            model = estimated(Choice(name, charge), setting)
            top = model.worst() if isinstance(model, SquareRoot) else widest(model, ticks)
            if top is not None:
                found.append((top.stddev, name))
    return min(found, default=None)
