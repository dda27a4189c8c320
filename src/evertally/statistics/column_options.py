"""Options of statistics that ask something of column sums, and their blueprint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, TypeGuard

from evertally.contract.mechanism import Mechanism, by_tick
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.parts import Blueprint, Door, Form, Options, check_beta
from evertally.counting.processes import PROCESSES
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import exact_number
from evertally.histogram.tasks import AllColumns, Task, monotone
from evertally.histogram.ways import ColumnWay, check_known, choose, rank
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.partition import Queries, Split
from evertally.partition.intervals import PartitionEngine
from evertally.privacy import Contribution, change, moves_one_way
from evertally.ranking import Ranking
from evertally.statistics.by_column import ABOUT_BUSIEST

Share = str | float | Fraction


@statistic
class Guessing(Mechanism):
    """Statistics whose ways are steered by guesses and declarations about the stream. Not used directly.

    `largest` is a public guess at the largest answer: it steers accuracy. `max_events_per_tick` is a public fact: no
    tick has more events. Neither is ever enforced, and no privacy rests on them. A guess carries no error bound, and
    neither does what nobody declared: bounds, intervals and `status` hold whatever the answers are, as long as
    `max_events_per_tick` is true; without it some ways have no bound, and "auto" takes none of these.
    """

    largest: int | None = option("A public guess at the largest answer; it steers accuracy alone.", default=None)
    max_events_per_tick: int | None = option(ABOUT_BUSIEST, default=None)
    beta: float = option("The failure probability that partitions are made for.", default=0.05)
    split: Sequence[Share] | None = option(
        "How a partition divides its budget between tau, mu and the histogram; None: the best.", default=None
    )
    calibration: Mapping[str, Any] | None = option(
        "Numbers that a planner settled for this mechanism; a snapshot carries them.", default=None
    )

    @property
    def status(self) -> Literal["ok", "exhausted", "unbounded"]:
        """Whether the present answer has an error bound ("ok").

        "exhausted": a partition has used up its intervals, and the answer is frozen. "unbounded": nothing that was
        declared bounds the error of a repeated or constant answer (`unbounded_because`). Both are private, and their
        intervals say what is known.
        """
        worker = getattr(self._engine, "worker", None)
        if isinstance(worker, PartitionEngine):
            return "exhausted" if worker.partition.exhausted else "ok"
        return "unbounded" if self.unbounded_because else "ok"

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None, *, trust_largest: bool = False) -> float:
        """With probability at least 1 - beta no answer of any tick is further off than this.

        With `tick`, the bound for that tick, all ticks together still failing with probability at most beta; without a
        horizon `tick` is needed. It holds on every stream, or where `max_events_per_tick` was declared on every stream
        that keeps it; where that bounds nothing it is infinite (`unbounded_because`). With `trust_largest` it is the
        bound of a partition while answers stay below `largest`: smaller, and worth as much as that guess.

        >>> import evertally as et
        >>> top = et.MaxSum(10, guarantee=et.PureDP(1.0), horizon=10**6, largest=10**4, mechanism="bounded")
        >>> top.error_bound(), 0 < top.error_bound(trust_largest=True) < 10**5
        (inf, True)
        """
        return self._bound(beta, tick, trust_largest)

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its way from, with bounds that hold with probability 1 - beta."""
        return rank(replace(self._task, settled=None))

    def _partitioned(
        self,
        *,
        word: str,
        mechanism: str,
        columns: int,
        queries: Queries,
        max_per_event: int,
        max_weight: int,
        memory_limit: int,
        address: Options,
        door: Callable[[ItemSource, int], Door],
        form: Callable[[ColumnWay], Form],
        linear: bool = False,
        selects: bool = False,
        shown: str | None = None,
        settled: Options | None = None,
    ) -> Blueprint:
        """The blueprint of a question about column sums. `shown`: what the constructor calls this mechanism."""
        relation = check_neighbours(self.neighbours, self.guarantee)
        largest = None if self.largest is None else whole("largest", self.largest, 1, 2**60)
        weight = whole("max_weight", max_weight, 1, 2**40)
        busiest, most = self.max_events_per_tick, None
        if busiest is not None:
            most = weight * whole("max_events_per_tick", busiest, 1, 2**40)
        check_beta(self.beta)
        shares = None if self.split is None else [exact_number(share, "a part of the split") for share in self.split]
        if shares is not None and len(shares) != 3:
            raise ConfigurationError("a split has three parts: for tau, for mu and for the histogram")
        contribution = self._contributing(max_per_event=max_per_event, max_weight=weight)
        moved = change(relation, contribution, columns)
        loose = change(relation, contribution, columns, cancels=False)
        event = change(relation, Contribution(max_per_event=max_per_event, max_weight=weight), columns)
        task = Task(
            self.guarantee,
            relation,
            moved,
            event,
            moved.linf // event.linf,
            self.horizon,
            columns,
            queries,
            one_way=moves_one_way(relation, contribution) and monotone(queries),
            linear=linear,
            selects=selects,
            largest=largest,
            growth=most or _guessed_growth(weight, largest, self.horizon),
            most=most,
            beta=self.beta,
            split=None if shares is None else Split.of(*shares),
            memory_limit=whole("memory_limit", memory_limit, 1, 2**62),
            settled=self.calibration,
            loose=loose,
        )
        self._task = task
        check_known(mechanism)
        try:
            approach = choose(task, mechanism)
        except (KeyError, ValueError, TypeError, ZeroDivisionError) as error:
            if self.calibration is None:
                raise
            raise ConfigurationError(
                "calibration is what this version settled for the same options, as a snapshot carries it; leave it out"
            ) from error
        # What is paid for by norms; partitions and selections pay for events, one by one.
        summed = approach.name in PROCESSES or (approach.name == "recompute" and isinstance(queries, AllColumns))
        split = None if shares is None else [str(share) for share in shares]
        found = {"calibration": approach.numbers, "split": split}
        return Blueprint(
            word=word,
            address=address
            | self._given("max_events_per_tick", "beta")
            | (self._user_address() if summed else self._given("unit", "max_events_per_user"))
            | {"largest": largest, "max_weight": weight, "memory_limit": memory_limit}
            | found,
            mechanism=approach.name if shown is None else shown,
            named=approach.name,
            charge=approach.charge,
            contribution=contribution,
            sensitivity=moved,
            door=door,
            engine=approach.build,
            form=form(approach),
            settled=(settled or {}) | found,
            open=approach.open,
        )


def _guessed_growth(weight: int, largest: int | None, horizon: int | None) -> int:
    """What an answer may grow by in a tick, where nobody said: one event, or more if `largest` needs more."""
    return max(weight, 1 if largest is None or horizon is None else -(-largest // horizon))


def is_question(mechanism: Any) -> TypeGuard[Guessing]:
    """Whether its answers are asked of column sums, in one of many ways."""
    return isinstance(mechanism, Guessing) and "_task" in vars(mechanism)
