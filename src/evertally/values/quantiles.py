"""Quantiles of values, all shares at once, and everything else that a distribution function says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evertally.contract.doors import RecordsOfTicks
from evertally.contract.mechanism import by_tick
from evertally.contract.options import foreign, option, statistic
from evertally.contract.parts import Accuracy, Blueprint, IntArray, Options, check_beta
from evertally.contract.release import Release
from evertally.contract.ticks import LONGEST_HORIZON, checked_tick
from evertally.counting.choose import Choice, model_of
from evertally.counting.linear import LinearEngine
from evertally.counting.processes import COMPARED_AT
from evertally.encode.cells import MOST_CELLS, Cells, Outside, read_edges
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import ZCDP, ApproxDP, Neighbours, PureDP
from evertally.ranking import Ranking, Way
from evertally.statistics.own_engines import ENGINES
from evertally.statistics.separated_options import Separated
from evertally.values.descent import DescentForm, Tree
from evertally.values.descent_engine import DescentEngine, read_leaves
from evertally.values.periods import PeriodEngine, PeriodSource
from evertally.values.quantile_answers import QuantileRelease, combined
from evertally.values.quantile_form import CellDoor, QuantileForm
from evertally.values.quantile_options import apart, best_fanout, domain_of, moved_by, read_shares

SHARES = (0.5, 0.95, 0.99)
MOST_BITS = 48  # floats hold such whole numbers exactly


@statistic
class ValueQuantile(Separated):
    """Quantiles of all values so far: the median, the 95 % and 99 % points, or any others, from one budget.

    `edges` cut the line into cells, public and fixed: a list, or `et.log_edges(0.1, 3.6e6, 1.02)`. The answer for a
    share q is the upper edge of the cell that the quantile lies in; values beyond the edges count as the edges, or in
    cells of their own (`outside="cells"`), and what is no number counts nowhere. (`et.SumQuantile` is something else:
    the quantile of the counts of categories.)

    Theorem (users-and-domains 4 [R]): square root on both axes. A value in cell u of U adds r_0, r_1, .. to the columns
    from u on, r_k = floor(2^8 f(k) + 1/2): l2_squared = N_U = sum r_k^2 under "add_remove", the exact maximum over
    pairs of cells under "replace" (beyond 2^13 cells 2 N_U); a user with w events w^2 N_U, a replaced one 2 w^2 N_U.
    Prefix counts, their order and all answers are post-processing. Under a pure guarantee values are counted in a tree
    over the cells instead, whose l1 is its height: that of the square root would be 2 sqrt(U/pi) or so.

    Exactness tier "exact". Error of each prefix count: `rank_stddev`, S_U S_T/sqrt(2 rho) or a little less; of a
    quantile, (1 + q) times that in rank, and the width of a cell. Time O(values + U log U) a tick, memory as
    VectorCounter with U columns. `stddev` is None; intervals hold, each with probability 1 - beta.

    `step` takes the tick's values, `last(window)` gives the quantiles of the last ticks. With `every` the values of
    each public block of ticks are counted anew, every block with the whole budget (an event lies in one), with or
    without a horizon.

    `bits=32` in place of edges is for whole numbers of a large domain (values are rounded up): a tree of h levels with
    fan-out b over all of them, the children of each node encoded as above; l2_squared = h N_b, error factor h S_b S_T.
    Descents read one node a level, chosen by released numbers alone, and only those have noise to be made (by address,
    factorization-counting 5). Memory O(distinct values); time O(values + distinct), and 9 b h coordinates for three
    shares, O(t) each with a bank, O(log t) with mechanism="tree". Releases are the quantiles and their intervals.

    >>> import evertally as et
    >>> delay = et.ValueQuantile(edges=et.log_edges(1, 1000, 1.1), q=[0.5, 0.9], guarantee=et.ZCDP(0.5), horizon=24,
    ...                          key=et.simulation(1))
    >>> release = delay.step([float(n) for n in range(1, 1001)])
    >>> lower, upper = release.interval()
    >>> lower[0.5] <= 500 <= upper[0.5], lower[0.9] <= 900 <= upper[0.9], round(delay.rank_stddev(24), 1)
    (True, True, 4.4)
    >>> sizes = et.ValueQuantile(bits=32, q=[0.5], guarantee=et.ZCDP(0.5), horizon=24, key=et.simulation(1))
    >>> release = sizes.step([10**6 + n for n in range(10_000)])
    >>> lower, upper = release.interval()
    >>> lower[0.5] <= 1_005_000 <= upper[0.5], upper[0.5] - lower[0.5] < 500
    (True, True)
    """

    edges: Sequence[float] | Mapping[str, float] | None = option(
        'Where cells begin and end: increasing numbers, or {"from": 0.1, "to": 1000, "ratio": 1.02}.', default=None
    )
    q: float | Sequence[float] = option("The shares whose quantiles are released.", default=SHARES)
    outside: Outside = option(
        'What becomes of values beyond the edges: counted in the cells at the "ends", or in two "cells" of their own.',
        default="ends",
    )
    bits: int | None = option(
        "In place of edges: values are whole numbers from 0 to 2^bits - 1, of which only some are ever looked at.",
        default=None,
    )
    fanout: int | None = option(
        "With bits: how many children a node of the tree over all values has, a power of 2; None: up to 256, fewer "
        "under a pure guarantee.",
        default=None,
    )
    every: int | None = option("After how many ticks counting begins anew; None: never.", default=None)

    _tree: Tree | None = None

    def _blueprint(self) -> Blueprint:
        shares = read_shares(self.q)
        self.q = tuple(shares)
        if self.edges is None:
            return self._large(shares)
        foreign(self._given("bits", "fanout"), {"bits": None, "fanout": None}, "a domain without edges")
        edges = read_edges(self.edges)
        self.edges = tuple(edges)
        cells = Cells(edges, self.outside)
        domain = self._domain = domain_of(self.guarantee, cells.count)
        self.every = None if self.every is None else whole("every", self.every, 1, LONGEST_HORIZON)
        contribution = self._contributing(max_weight=int(domain.added.linf))
        moved, loose = moved_by(self.neighbours, domain.added, domain.replaced, contribution)
        rule = apart(self.neighbours, domain.added, contribution)
        if rule is not None:
            moved, loose = rule.group(self.horizon), rule.loose(self.horizon)
        address = {"edges": edges} | self._given("outside", "every") | self._user_address()
        settled: Options = {"edges": edges, "q": shares}
        form = self._shown = QuantileForm(domain, cells, shares)
        every = self.every

        def opened(source: Any, limit: int) -> CellDoor:
            limit = limit if every is None else 2**61 // every  # sums that begin anew
            # Beyond this many values in one tick the columns would be clipped, and counts no longer fit together.
            if limit // domain.added.linf < 2**16:
                raise ConfigurationError(
                    f"with this horizon and number of cells only {limit // domain.added.linf} values fit into a tick; "
                    "choose a (shorter) horizon"
                )
            return CellDoor(cells, domain, limit)

        whole_stream, self.horizon = self.horizon, self.every or self.horizon  # that of the noise
        try:
            rows = self._linear(
                "ValueQuantile",
                domain.columns,
                moved,
                contribution,
                address,
                opened,
                form,
                settled=settled,
                loose=loose,
                rule=rule,
            )
        finally:
            self.horizon = whole_stream
        return rows if self.every is None else self._tumbling(rows, self.every)

    def _large(self, shares: list[float]) -> Blueprint:
        """A tree over all whole numbers of some bits."""
        if self.bits is None:
            raise ConfigurationError("give edges=, e.g. et.log_edges(0.1, 1000, 1.05), or bits= for whole numbers")
        foreign(
            self._given("outside", "every", "max_window"), {"outside": "ends", "every": None, "max_window": 0}, "edges"
        )
        bits = self.bits = whole("bits", self.bits, 1, MOST_BITS)
        given = best_fanout(bits, isinstance(self.guarantee, PureDP)) if self.fanout is None else self.fanout
        fanout = self.fanout = whole("fanout", given, 2, MOST_CELLS)
        digit = fanout.bit_length() - 1
        if fanout != 2**digit or bits % digit:
            raise ConfigurationError("fanout is a power of 2 whose exponent divides bits, such as 256 for 32 bits")
        tree = self._tree = Tree(bits // digit, fanout, domain_of(self.guarantee, fanout, flat=True))
        self._domain = tree.children
        contribution = self._contributing(max_weight=int(tree.children.added.linf))
        if contribution.separated:
            raise ConfigurationError("bits= goes with max_events_per_user; ticks that are apart go with edges=")
        moved, loose = moved_by(self.neighbours, *tree.moved(tree.children.added, tree.children.replaced), contribution)
        form = DescentForm(tree, shares)
        rows = self._linear(
            "ValueQuantile",
            fanout,
            moved,
            contribution,
            self._given("bits", "fanout") | {"q": shares} | self._user_address(),
            lambda source, limit: RecordsOfTicks(lambda events: read_leaves(events, tree.leaves, limit), form.width),
            form,
            settled={"q": shares, "fanout": fanout},
            loose=loose,
        )
        if self.mechanism in ENGINES:
            raise ConfigurationError("bits= needs one of the noise processes of this library")
        choice, setting = self._choice, self._setting
        return replace(rows, engine=lambda source: DescentEngine(form, choice, setting, source))

    def _tumbling(self, rows: Blueprint, period: int) -> Blueprint:
        if self.unit != "event":
            raise ConfigurationError(
                "with every= every block spends the whole budget, and a user is in many of them: protect events, or "
                "leave out every"
            )
        if self.max_window:
            raise ConfigurationError("with every= counting begins anew, and there are no windows across: max_window=0")

        def engine(source: Any) -> PeriodEngine:
            def of(number: int) -> LinearEngine:
                made = rows.engine(PeriodSource(source, number))  # type: ignore[arg-type]
                if not isinstance(made, LinearEngine):
                    raise ConfigurationError("every= needs one of the noise processes of this library")
                return made

            return PeriodEngine(of, period)

        return replace(rows, engine=engine)

    @by_tick
    def rank_stddev(self, tick: int) -> float | None:
        """The standard deviation of the noise in the counts of values up to an edge, where it is largest; None where it
        is not known."""
        return self._widest(self._engine.accuracy(checked_tick(tick, self.horizon))).stddev

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None) -> float:
        """With probability at least 1 - beta no count of values up to an edge, at no tick, is further off than this: in
        ranks. With alpha for it and n values, at least q n - (1 + q) alpha of them are at most a released quantile, and
        fewer than q n + (1 + q) alpha are in the cells below its own (users-and-domains 4 [D])."""
        check_beta(beta)
        if tick is None and self.horizon is None:
            raise ConfigurationError("without a horizon the error grows for ever: ask for error_bound(beta, tick=...)")
        engine, at = self._engine, None if tick is None else checked_tick(tick, self.horizon)
        if not isinstance(engine, LinearEngine | PeriodEngine | DescentEngine):  # somebody's own
            return self._domain.reach * engine.error_bound(beta, at)
        return self._joint(beta, at, engine.noise.worst() if at is None else engine.accuracy(at))

    def ways(self) -> Ranking:
        """As for every counter, with errors in ranks, as `error_bound` states them."""
        setting = self._setting

        def in_ranks(way: Way) -> Way:
            if way.refused or not isinstance(way.charge, PureDP | ZCDP | ApproxDP):
                return way
            choice = Choice(way.name, way.charge)

            def error(beta: float) -> float:
                model, at = model_of(choice, setting), None if self.horizon else COMPARED_AT
                return self._joint(beta, at, model.spread(COMPARED_AT) if setting.horizon is None else model.worst())

            shown: dict[str, Any] = {"guess": None, "survey": None, "floor": None}
            return replace(way, expect=lambda: error(0.5), promise=lambda: error(0.05), **shown)

        return Ranking(in_ranks(way) for way in super().ways())

    def _joint(self, beta: float, tick: int | None, accuracy: Accuracy) -> float:
        """A bound for all counts of all ticks, which says this about a tick, or about those with this accuracy."""
        of_tick = beta / self.horizon if self.horizon is not None else 6 * beta / (math.pi * (tick or 1)) ** 2
        return self._widest(accuracy).radius(
            of_tick / (self._domain.cells if self._tree is None else self._tree.leaves)
        )

    def _widest(self, accuracy: Accuracy) -> Accuracy:
        """Of the prefix count with the most noise."""
        if self._tree is not None:
            return self._tree.worst(accuracy, self._tree.levels)
        domain = self._domain
        return combined(accuracy, domain.columns, float(domain.energy.max()), domain.heaviest, domain.reach)

    def _release(self, row: IntArray, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)
        if self._tree is not None:
            return made
        parts = made.tick, made.value, made.stddev, made.private, made.bounds, made.about
        return QuantileRelease(*parts, prefixes=self._shown.prefixes(row, accuracy))

    def worst_rows(self) -> tuple[IntArray, IntArray]:
        """The two rows of one tick that differ most, for those who put the promise to the test."""
        domain, w = self._domain, self.contribution.max_events_per_user or 1
        cells = np.eye(domain.cells, dtype=np.int64)
        rows = [np.zeros(domain.columns, dtype=np.int64), *(w * domain.encode(cell) for cell in cells[1:])]
        first = w * domain.encode(cells[0])
        if Neighbours.parse(self.neighbours) is Neighbours.ADD_REMOVE:
            return first, rows[0]
        return first, max(rows, key=lambda row: int(((first - row) ** 2).sum()))
