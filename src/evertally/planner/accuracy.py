"""`et.accuracy`: how far off releases will be, for every statistic, before there are data; `et.sweep`: by guarantee."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evertally.contract.mechanism import Mechanism
from evertally.contract.parts import Accuracy as Law
from evertally.contract.parts import check_beta
from evertally.contract.ticks import checked_tick, ends_to_look_at
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import SOMEWHERE
from evertally.integers import whole
from evertally.noise import ZeroNoise
from evertally.pictures import html_table, plot_falling
from evertally.planner.search import with_amount
from evertally.privacy import Guarantee

# What an error may depend on besides the options, and how to say so.
_ASSUMED = {
    "count": "count=, the least number of values behind a mean",
    "items": "items=, how many items are meant",
    "users": "users=, how many users there are at most",
}
_LOOKED_AT = 512  # ticks, where there are more of them
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class WindowAccuracy:
    """A sum over the last `ticks` ticks: its standard deviation and its radius (each number lies within it with
    probability 1 - beta) at the worst tick, and the root mean square of standard deviations over ticks. Beyond 2^11
    ticks the worst of those that were looked at: all that come first, and some of the others (`ends_to_look_at`)."""

    ticks: int
    stddev: float
    radius: float
    rms_stddev: float


@dataclass(frozen=True)
class Accuracy:
    """How far off one statistic will be under one guarantee. Public numbers only.

    `stddev` and `radius` are of one number at `tick`; `worst_stddev` is the largest of all ticks up to it; `bound`
    holds for all numbers and ticks at once with probability 1 - beta, and `meaning` says of what. `notes`: why
    something is None or infinite, what was assumed, and what to declare.
    """

    statistic: str
    mechanism: str
    guarantee: Guarantee
    beta: float
    tick: int
    stddev: float | None
    worst_stddev: float | None
    radius: float | None
    bound: float
    meaning: str
    windows: tuple[WindowAccuracy, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.statistic} under {self.guarantee}, by {self.mechanism}"]
        if self.stddev is not None:
            within = "" if self.radius is None else f", within {_shown(self.radius)} in {1 - self.beta:.0%} of cases"
            worst = "" if self.worst_stddev is None else f"; at worst {_shown(self.worst_stddev)}"
            lines.append(f"  at tick {self.tick}: standard deviation {_shown(self.stddev)}{within}{worst}")
        lines += [f"  {w.ticks} ticks: {_shown(w.stddev)}, within {_shown(w.radius)}" for w in self.windows]
        lines.append(f"  all at once, {1 - self.beta:.0%}: {_shown(self.bound)}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


class Sweep(tuple[Accuracy, ...]):
    """The same question under several guarantees, in the order in which they were asked. It prints as a table; `plot()`
    draws it."""

    def columns(self) -> dict[str, list[Any]]:
        """As columns, for a data frame: amount (epsilon or rho), stddev, worst_stddev, radius, bound, and the radius of
        each window."""
        found: dict[str, list[Any]] = {"amount": [_amount(one.guarantee) for one in self]}
        for name in ("stddev", "worst_stddev", "radius", "bound"):
            found[name] = [getattr(one, name) for one in self]
        for i, window in enumerate(self[0].windows if self else ()):
            found[f"radius_of_{window.ticks}"] = [one.windows[i].radius for one in self]
        return found

    def plot(self, ax: Any = None) -> Any:
        """Errors by epsilon (or rho), as a picture: of one total, of each window, and of all totals at once. Returns
        matplotlib's axes."""
        columns = self.columns()
        within = f"{1 - self[0].beta:.0%}" if self else ""
        lines = {f"one total, {within}": columns["radius"]}
        lines |= {
            _of_window(w.ticks, within): columns[f"radius_of_{w.ticks}"] for w in (self[0].windows if self else ())
        }
        lines[f"all totals at once, {within}"] = columns["bound"]
        return plot_falling(columns["amount"], lines, across=_unit(self[0].guarantee) if self else "", ax=ax)

    def _repr_html_(self) -> str:
        columns, known = self.columns(), {(one.statistic, one.mechanism, one.beta) for one in self}
        caption = ", ".join(sorted({f"{statistic} by {mechanism}" for statistic, mechanism, _ in known}))
        cells = zip(*([_finite(cell) for cell in column] for column in columns.values()), strict=True)
        said = [f"radius and bound hold with {1 - beta:.0%}" for *_, beta in sorted(known)[:1]]
        return html_table(caption, [name.replace("_", " ") for name in columns], cells, said)

    def __repr__(self) -> str:
        columns = self.columns()
        rows = [list(columns), *([_shown(cell) for cell in row] for row in zip(*columns.values(), strict=True))]
        widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows)


def accuracy(
    statistic: Mechanism | Callable[..., Any],
    *arguments: Any,
    beta: float = 0.05,
    windows: Iterable[int] = (),
    tick: int | None = None,
    **options: Any,
) -> Accuracy:
    """How far off releases will be: of a mechanism, or of a class with its arguments and options (no key is needed).

    One answer for every statistic. `windows` are lengths in ticks; `tick` is the last one that is asked about (else the
    horizon, or 2^16 without one). Where an error depends on data, say what may be assumed: `count=` (the least number
    of values of a mean or variance), `items=`, `users=`. Costs no budget. To ask which guarantee an error needs:
    `et.plan(...).guarantee_for(50)`, and `guarantee_for(50, window=7)` for sums of 7 ticks.

    Time: that of building the mechanism, and of up to 512 ticks a window.

    >>> import evertally as et
    >>> asked = et.accuracy(et.Counter, guarantee=et.ZCDP(0.5), horizon=365, windows=[1, 7])
    >>> round(asked.worst_stddev, 2), [(w.ticks, round(w.rms_stddev, 2)) for w in asked.windows], asked.bound < 12
    (2.66, [(1, 1.9), (7, 2.62)], True)
    >>> mean = et.accuracy(et.RunningMean, lower=0, upper=10, guarantee=et.ZCDP(0.5), horizon=365, count=1000)
    >>> mean.stddev is None, mean.bound < 0.2, mean.notes[-1]
    (True, True, 'assumed: count=1000')
    """
    check_beta(beta)
    assumed = {name: options.pop(name) for name in _ASSUMED if name in options}
    made: Any = statistic
    if not isinstance(statistic, Mechanism):
        check_class(statistic)
        made = statistic(*arguments, **{"key": ZeroNoise()} | options)
    elif arguments or options:
        raise ConfigurationError("a mechanism that exists has its options; give a class to ask about others")
    last = checked_tick(made.horizon or SOMEWHERE if tick is None else tick, made.horizon)
    shown = _Shown(made, beta)
    law = made._engine.accuracy(last)
    deviation = made.stddev(last)
    notes: list[str] = []
    bound = _bound(made, beta, None if made.horizon and tick is None else last, assumed, notes)
    lengths = [whole("windows", length, 1, last) for length in windows]
    if lengths and not (made.differences and deviation is not None):
        notes.append("windows: differences of its releases are no sums with a known error")
        lengths = []
    if deviation is None:
        notes.insert(0, "no standard deviation: what is released is not a sum plus noise")
    return Accuracy(
        statistic=type(made).__name__,
        mechanism=made.mechanism,
        guarantee=made.guarantee,
        beta=beta,
        tick=last,
        stddev=deviation,
        worst_stddev=made.worst_stddev(last),
        radius=None if deviation is None else shown.radius(law),
        bound=bound,
        meaning=inspect.cleandoc(type(made).error_bound.__doc__ or "").split("\n\n")[0].replace("\n", " "),
        windows=tuple(shown.window(length, last) for length in lengths),
        notes=tuple(notes),
    )


def sweep(
    statistic: Callable[..., Any], *arguments: Any, amounts: Sequence[float], guarantee: Guarantee, **options: Any
) -> Sweep:
    """`accuracy` under several guarantees like `guarantee`: with each of the `amounts` as its epsilon (or rho).

    >>> import evertally as et
    >>> et.sweep(et.Counter, guarantee=et.PureDP(1), amounts=[0.1, 1], horizon=365, windows=[7])
    amount  stddev  worst_stddev  radius  bound  radius_of_7
       0.1    86.1          86.2     170    381          259
         1    8.61          8.62    17.5     38         26.8
    """
    return Sweep(accuracy(statistic, *arguments, guarantee=with_amount(guarantee, a), **options) for a in amounts)


def check_class(statistic: Any) -> None:
    """Refuses what is no statistic, above all its name as a spec writes it."""
    if not callable(statistic):
        called = f", and not {statistic!r}" if isinstance(statistic, str) else ""
        raise ConfigurationError(f"a statistic is asked about by its class, such as et.Counter{called}")


class _Shown:
    """Laws of a mechanism in the units of what it shows."""

    def __init__(self, made: Any, beta: float) -> None:
        self._made, self._beta = made, beta

    def radius(self, law: Law) -> float:
        shown = self._made._form.deviation(law)
        return law.radius(self._beta) * (shown / law.stddev if shown and law.stddev else 1.0)

    def window(self, length: int, last: int) -> WindowAccuracy:
        ticks: Sequence[int] = range(length, last + 1)
        if len(ticks) > _LOOKED_AT:
            ticks = [length, last, *(length + int(len(ticks) * (i * _GOLDEN % 1)) for i in range(_LOOKED_AT - 2))]
        engine, form = self._made._engine, self._made._form

        def law_at(tick: int) -> Any:
            return engine.accuracy(tick) if tick == length else engine.window(tick, length)

        # A mean over ticks needs an even choice of them, the worst one the places where it may be.
        laws = [law_at(t) for t in ticks]
        worst = [law_at(t) for t in ends_to_look_at(length, last)] if last - length >= _LOOKED_AT else []
        widest = max([*laws, *worst], key=lambda law: law.stddev)
        mean = math.sqrt(math.fsum(form.deviation(law) ** 2 for law in laws) / len(laws))
        return WindowAccuracy(length, form.deviation(widest), self.radius(widest), mean)


def _bound(made: Any, beta: float, tick: int | None, assumed: dict[str, Any], notes: list[str]) -> float:
    known = inspect.signature(type(made).error_bound).parameters
    for name in assumed:
        if name not in known:
            raise ConfigurationError(f"the error of a {type(made).__name__} does not depend on {name}; leave it out")
    found = float(made.error_bound(beta, tick, **assumed))
    because = getattr(made, "unbounded_because", None)
    missing = [_ASSUMED[name] for name in known if name in _ASSUMED and name not in assumed]
    if because and not assumed:
        notes.append(f"{'no bound' if math.isinf(found) else 'the bound is of noise alone'}: {because}")
    if missing:
        notes.append(f"the bound depends on data: add {' and '.join(missing)}")
    if assumed:
        notes.append("assumed: " + ", ".join(f"{name}={value}" for name, value in assumed.items()))
    return found


def _of_window(ticks: int, within: str) -> str:
    return f"{ticks:,} tick{'s' * (ticks > 1)}, {within}"


def _unit(guarantee: Any) -> str:
    return "epsilon" if hasattr(guarantee, "epsilon") else "rho"


def _amount(guarantee: Any) -> float:
    return float(getattr(guarantee, _unit(guarantee)))


def _finite(cell: Any) -> Any:
    return "none" if isinstance(cell, float) and math.isinf(cell) else cell


def _shown(number: float | None) -> str:
    if number is None:
        return ""
    if math.isinf(number):
        return "none"
    return f"{number:,.0f}" if number >= 1000 else f"{number:,.3g}"
