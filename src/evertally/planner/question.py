"""`et.plan`: every way to release a statistic, ranked, with predicted errors and bounds, before there are data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evertally.contract.parts import check_beta
from evertally.counting.bank import LONGEST_BANK
from evertally.counting.choose import rank
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import SOMEWHERE, Task
from evertally.integers import whole
from evertally.noise import ZeroNoise
from evertally.planner.accuracy import accuracy, check_class
from evertally.planner.possible import Price, counting, notes_on, price_of, with_floors
from evertally.planner.search import longest_horizon, smallest_guarantee
from evertally.privacy import ApproxDP, Guarantee, Neighbours, PureDP
from evertally.ranking import Ranking, Way, shown

_BETA = 0.05
# What an error depends on besides the options: how many values a mean has, how many items are meant.
_ASKED = ("count", "items")
_FLOORS: dict[str, Any] = {
    "MaxSum": "max_sum",
    "SumSelect": "sum_select",
    "TopK": "top_k",
    "TopKSelect": "top_k_select",
    "Histogram": "histogram",
}


@dataclass(frozen=True)
class _Question:
    make: Callable[..., Any]
    arguments: Sequence[Any]
    options: dict[str, Any]
    asked: Mapping[str, Any]

    def made(self, **other: Any) -> Any:
        """The mechanism, without noise."""
        return self.make(*self.arguments, **self.options | {"key": ZeroNoise()} | other)

    def bound(self, beta: float, **other: Any) -> float:
        return _bound(self.made(**other), beta, self.asked)


class Plan(Ranking):
    """Ways, best first: `best` is what a mechanism of this class takes. Prints as a table.

    `constant` is the expected error of the constant answer 0, and `possible` the largest that what was declared allows;
    `floor` what no mechanism stays below on all streams of this length, small answers or not. Each is None where
    nothing is known. `guarantee_for` and `horizon_for` ask the other way round.
    """

    def __init__(
        self, ways: Iterable[Way], question: _Question, task: Task | None, least: float | None, made: Any = None
    ) -> None:
        super().__init__(with_floors(list(ways), made), lambda: notes_on(self, made))
        self._question, self._made = question, made
        self.constant = None if task is None else task.ceiling
        self.possible = None if task is None else task.reachable
        self.floor = least

    @cached_property
    def price(self) -> Price | None:
        """What not knowing the horizon costs running counts; None for all else.

        >>> import evertally as et
        >>> price = plan(et.Counter, guarantee=et.ZCDP(0.5), horizon=2**16).price
        >>> price.told, price.not_told, round(price.variance_ratio, 2), round(price.least, 2)
        ('bank', 'bank-open', 1.59, 1.58)
        """
        return price_of(self._made)

    def guarantee_for(self, error: float, beta: float = _BETA, *, window: int | None = None) -> Guarantee:
        """The least epsilon (or rho), of three digits, under which no answer of any tick is off by more than `error`,
        but for a probability of beta. Found by building mechanisms and asking for their `error_bound`, of the way that
        is taken or named: another one may have a smaller bound where its typical error is larger.

        >>> import evertally as et
        >>> asked = plan(et.Counter, guarantee=et.PureDP(1.0), horizon=1000)
        >>> found = asked.guarantee_for(error=50, beta=0.05)
        >>> found, et.Counter(guarantee=found, horizon=1000, key=et.simulation(1)).error_bound(beta=0.05) <= 50
        (PureDP(epsilon=0.893), True)

        With `window`, a number of ticks, it is about sums over so many of them: each by itself is off by no more than
        `error`, but for a probability of beta. It is the radius of `et.accuracy(windows=[...])`, at the worst
        of the windows that are looked at there.

        >>> weekly = asked.guarantee_for(error=50, window=7)
        >>> et.accuracy(et.Counter, guarantee=weekly, horizon=1000, windows=[7]).windows[0].radius <= 50
        True
        """
        check_beta(beta)
        ask, like = self._question, self._question.options["guarantee"]
        if window is not None:
            window = whole("window", window, 1, self._question.options["horizon"] or SOMEWHERE)
            return smallest_guarantee(like, error, lambda promise: self._radius(window, promise, beta))
        return smallest_guarantee(like, error, lambda promise: ask.bound(beta, guarantee=promise, **self._name))

    def horizon_for(self, error: float, beta: float = _BETA) -> int:
        """The longest horizon, of three digits, with an error bound of at most `error` under the guarantee.

        >>> import evertally as et
        >>> plan(et.Counter, guarantee=et.PureDP(1.0), horizon=1000).horizon_for(error=50)
        1020
        """
        check_beta(beta)
        ask, like = self._question, self._question.options["horizon"]
        return longest_horizon(like, error, lambda ticks: ask.bound(beta, horizon=ticks, **self._name), [LONGEST_BANK])

    def _radius(self, window: int, promise: Guarantee, beta: float) -> float:
        made = self._question.made(guarantee=promise, **self._name)
        found = accuracy(made, beta=beta, windows=[window], **self._question.asked)
        if not found.windows:
            raise ConfigurationError(f"{found.statistic}: {found.notes[-1]}")
        return found.windows[0].radius

    @property
    def _name(self) -> dict[str, str]:
        """What must be named to be taken is named."""
        return {"mechanism": self.best.name} if self.best.by_name else {}

    def _further(self) -> list[tuple[str, ...]]:
        further: list[tuple[str, ...]] = []
        if self.constant is not None and self.possible is not None:
            further.append(("constant 0", "nothing", shown(self.constant), shown(self.possible)))
        if self.floor is not None:
            further.append(("floor, any stream", "", "", shown(self.floor)))
        return further


def plan(make: Callable[..., Any], *arguments: Any, **options: Any) -> Plan:
    """The ways to release a statistic under a guarantee: what `mechanism="auto"` chooses from, and why.

    `make` is a class such as `et.Counter` or `et.MaxSum`; arguments and options are its own (`largest` and
    `max_events_per_tick` above all). For a `RunningMean` add `count=`, the number of values that errors are quoted for.
    Rows of running counts also have their worst and root-mean-square standard deviation over the ticks, beside the
    certified floor of Gaussian noise (`count_floors`), and the plan has the `price` of not knowing the horizon.
    Predictions are what the largest error of any tick typically is, for questions about columns on a stream that
    reaches `largest` evenly (price-of-continual-release 3.8). Bounds hold with probability 95 %, or 1 - beta where the
    class takes `beta`; without a horizon at tick 2^16. From public numbers only: this costs no budget, and no data are
    asked for.

    >>> import evertally as et
    >>> ranked = plan(et.MaxSum, 10, guarantee=et.PureDP(1.0), horizon=10**6, largest=10**4, max_per_event=1)
    >>> ranked.best.name, ranked.constant
    ('rebased', 10000.0)
    >>> [way.name for way in ranked if way.name in ("rebased", "tree", "recompute")]
    ['rebased', 'tree', 'recompute']
    >>> ranked.fitting[-1].bound, ranked.fitting[-1].open.split(": ")[-1]
    (inf, 'declare max_events_per_tick')
    >>> print(plan(et.MaxSum, 10, guarantee=et.ZCDP(0.5), horizon=4096, mechanism="tree"))
    mechanism   pays     predicted  bound  memory   tier
    tree        rho 0.5       89.9    126    80 B  exact
    constant 0  nothing      4,096   none
    >>> bank = plan(et.Counter, guarantee=et.ZCDP(0.5), horizon=4096, mechanism="bank").best
    >>> round(bank.worst_stddev, 3), round(bank.rms_stddev, 3), round(bank.floor, 3)
    (3.415, 3.413, 3.394)
    """
    check_class(make)
    if "guarantee" not in options or "horizon" not in options:
        raise ConfigurationError("a plan is for a guarantee and a horizon (None: no end): give both")
    asked = {name: options.pop(name) for name in _ASKED if name in options}
    question = _Question(make, arguments, options, asked)
    wanted: str = options.get("mechanism", "auto")
    named: Sequence[str] = getattr(make, "named_ways", ())
    if wanted in named:
        return Plan([_named(question, wanted)], question, None, None)
    if not hasattr(make, "ways"):
        return Plan([_named(question, name, by_name=name != named[0]) for name in named], question, None, None)
    made = question.made()
    task: Task | None = getattr(made, "_task", None)
    least = None if task is None else _floor(_FLOORS.get(type(made).__name__), question, task)
    rows = [way for way in made.ways(**asked) if wanted in ("auto", way.name)]
    if not rows:
        rows = [_named(question, wanted)]  # a process that is never taken unless it is named
    if wanted == "auto":
        rows += [_named(question, name, by_name=True) for name in named]
    return Plan(rows, question, task, least, made)


def _named(question: _Question, name: str, by_name: bool = False) -> Way:
    """The row of a way that is taken by its name: it is built, and asked."""
    try:
        made = question.made(mechanism=name)
        return replace(own_way(made, **question.asked), name=name, by_name=by_name)
    except (ConfigurationError, TypeError) as error:  # also an option that it does not have
        return Way(name=name, charge=None, refused=f'mechanism "{name}": {error}', by_name=by_name)


def own_way(made: Any, **asked: Any) -> Way:
    """The row of a mechanism that exists: that of the table it was chosen from, or what it says itself."""
    if hasattr(made, "ways"):
        ranking: Ranking = made.ways(**asked)
        chosen = made.way_name, made.charge
        own = next((way for way in ranking if (way.name, way.charge) == chosen), None)
        setting = counting(made)
        if own is None and setting is not None:
            named = rank(made.guarantee, setting, made.mechanism)
            own = next((way for way in named if (way.name, way.charge) == chosen), None)
        if own is not None:
            return replace(own, name=made.mechanism)
    labels = getattr(made, "columns", None)
    return Way(
        name=made.mechanism,
        charge=made.charge,
        score=_bound(made, 0.5, asked),
        promise=lambda: _bound(made, _BETA, asked),
        memory=None if labels is None else 8 * len(labels) * (2 + made.horizon.bit_length()),
        tier=made.exactness,
        open=getattr(made, "unbounded_because", None) or "",
    )


def ranking_of(made: Any) -> Ranking:
    """The ranked table behind a mechanism that exists; its own row where there is no other."""
    ranking: Ranking = made.ways() if hasattr(made, "ways") else Ranking([own_way(made)])
    ways = with_floors(ranking, made)
    return Ranking(ways, lambda: notes_on(ways, made))


def _bound(made: Any, beta: float, asked: Mapping[str, Any]) -> float:
    """An error bound; without a horizon at tick 2^16."""
    return float(made.error_bound(beta, SOMEWHERE if made.horizon is None else None, **asked))


def _floor(kind: Any, question: _Question, task: Task) -> float | None:
    known = isinstance(task.guarantee, PureDP | ApproxDP) and task.neighbours is not Neighbours.INDEPENDENT
    if kind is None or task.horizon is None or not known:
        return None
    from evertally.theory.floors import floor  # research formulas, which a stream does not wait for

    touched = question.options.get("max_per_event", 1 if kind == "histogram" else None)
    found = floor(kind, task.horizon, task.columns, task.guarantee, neighbours=task.neighbours, max_per_event=touched)
    return found.value
