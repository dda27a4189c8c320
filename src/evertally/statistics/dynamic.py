"""What is present now: counts of items that are inserted and deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.dynamic.families import FAMILIES, Count, Family, Points, Ranges, read_family
from evertally.errors import ConfigurationError
from evertally.statistics.dynamic_options import Dynamic


@statistic
class DynamicCount(Dynamic):
    """How many items are present: insertions so far, less deletions.

    Theorem (dynamic-data 13.1 [R], resting on S3/S4 of factorization-counting 2.4): the exact number plus the noise of
    a counter, calibrated to what one item does to the ticks, +1 when it comes and -1 when it goes. Adaptive streams
    included. `neighbours="add_remove"` and `protects="item"`: streams with and without one item, its insertion and
    everything that names it; (l1, l2^2) = (2, 2) in the rows. `protects="event"`: with and without one record; (1, 1)
    for "raw", (2, 2) for "token" and "value", (4, 8) for "id", because a name from outside whose first insertion is
    missing may begin another life. `unit="user"`: a group of `max_events_per_user` events.

    Error: standard deviation sqrt(2) times that of a `Counter` (item; twice under PureDP), e.g. 21.7 for epsilon 1,
    delta 1e-6 and 8760 ticks; it does not grow with the number of updates. Exactness tier "exact". Time O(1) for an
    update and one step of the noise process for a tick; memory O(items present), with identity="id" O(names ever seen).

    >>> import evertally as et
    >>> beds = et.DynamicCount(guarantee=et.ApproxDP(1.0, 1e-6), horizon=8760, key=et.simulation(1))
    >>> release = beds.step_events(["ann", "bob", "eve"], deleted=["bob"])
    >>> beds.mechanism, beds.process, round(beds.stddev(8760), 1)
    ('linear', 'bank', 21.7)
    >>> lower, upper = release.interval(beta=0.01)
    >>> lower <= 2 <= upper
    True
    >>> visits = et.DynamicCount(identity="token", guarantee=et.ZCDP(0.1), horizon=100, key=et.simulation(2))
    >>> _ = visits.step_events([None, None], deleted=[])
    >>> first, second = visits.tokens
    >>> visits.step([("delete", None, first)]).tick
    2
    """

    def _blueprint(self) -> Blueprint:
        family = Count()
        return self._present("DynamicCount", family, family.shown, single=True)


@statistic
class DynamicHistogram(Dynamic):
    """How many items of each category are present.

    The categories are public and fixed, and every one is released at every tick, zero or not. The category of an item
    is that of its insertion; a deletion by id or token names the item alone. Labels outside the list are dropped
    silently, or counted under `other`.

    Theorem, neighbouring relations, error, tier, time: as `DynamicCount`, for every category, at the same price: an
    item lies in one category (dynamic-data 13.1, max |g| = 1). Memory O(items present) and that of the noise process
    for each category.

    >>> import evertally as et
    >>> wards = et.DynamicHistogram(categories=["north", "south"], guarantee=et.PureDP(1.0), horizon=100,
    ...                             key=et.simulation(1))
    >>> release = wards.step([("insert", "north", 17), ("insert", "south", 18), ("delete", None, 17)])
    >>> list(release.value), release.answer("south").value == release.value["south"]
    (['north', 'south'], True)
    >>> wards.run([[("insert", "north", 19)], []]).shape
    (2, 2)
    """

    categories: Sequence[str] = option("The categories, all of them.")
    other: str | None = option("A column for labels that were not declared; None: they are dropped.", default=None)

    def _blueprint(self) -> Blueprint:
        if isinstance(self.categories, int | str):
            raise ConfigurationError("categories is a list of labels")
        family = Points(self.categories, self.other)
        self.categories = family.categories
        return self._present("DynamicHistogram", family, family.shown, settled={"categories": list(family.categories)})


@statistic
class DynamicRange(Dynamic):
    """How many items have a value in a range, for any range over ordered cells.

    With `size` values are the whole numbers 0..size-1, and a range is (low, high), both included. With `edges` cell i
    holds edges[i] <= value < edges[i+1], and a range is a pair of edges, low <= value < high. `ranges` are shown at
    every tick (default: everything); `release.answer((low, high))` has any other one.

    Theorem (dynamic-data 13.1 [R] with the encoder g): the rows of a strategy over the cells (the cells, a hierarchy
    of any fan-out, or for Gaussian noise the integer square root along the domain, users-and-domains 4) are counted
    together; an item moves them by a column of the strategy, whose exact norms multiply the charges of `DynamicCount`.
    Error of a range: that of a count times the factor of the strategy, for 1024 cells 3.27 (square root) against up to
    32 (cells); `static` names one. Exactness tier "exact". Time O(updates x entries of a column + rows) for a tick,
    memory O(items present) and that of the noise process for each row.

    >>> import evertally as et
    >>> ages = et.DynamicRange(size=100, ranges=[(0, 17), (65, 99)], guarantee=et.ZCDP(0.1), horizon=100,
    ...                        key=et.simulation(1))
    >>> release = ages.step([("insert", 70, "ann"), ("insert", 12, "bob"), ("delete", None, "bob")])
    >>> list(release.value), ages.static
    (['0..17', '65..99'], 'square-root')
    >>> lower, upper = release.answer((60, 80)).interval(beta=0.01)
    >>> lower <= 1 <= upper
    True
    """

    size: int | None = option("How many cells there are: values are 0..size-1.", default=None)
    edges: Sequence[float] | None = option("The edges of the cells, in place of `size`.", default=None)
    ranges: Sequence[Sequence[float]] | None = option("The ranges that are shown; None: everything.", default=None)

    def _blueprint(self) -> Blueprint:
        family = Ranges(size=self.size, edges=self.edges)
        kept = family.axis()
        shown, queries = _shown(family, self.ranges, "ranges")
        return self._present("DynamicRange", family, shown, settled=kept | {"ranges": queries})


@statistic
class LinearQueries(Dynamic):
    """Any linear queries of the items that are present, by any construction.

    `family` says what may be asked (evertally.dynamic.families: `Count`, `Points`, `Ranges`, `Boxes`, `Marginals`,
    `Queries`, `HalfSpaces`); `show` what every release shows, by name or as a list; `release.answer(query)` has every
    query of the family (with `static="matrix"` and "multiplicative-weights" those that were declared).

    `mechanism="auto"`: a linear encoder is counted by L, as in `DynamicRange` (dynamic-data 13.1 [R]); a static
    mechanism that looks at data (`static="multiplicative-weights"`) is run anew at public times, if `every` or
    `max_lifetime` is given (K, 13.3 [R]). By name: "linear" (L), "anew" (K), "subtract" (B, 6.1), "interval-tree"
    (C5, 6.2-6.9), and without deletions "tree" and "doubling" (C1, C2; with `partition` C3, C4; section 5). Each keeps
    `guarantee` under `neighbours` and `protects`, adaptive streams included (1.2). `et.plan` lists them with their
    errors. Exactness tier "exact".

    >>> import evertally as et
    >>> from evertally.dynamic.families import Boxes
    >>> places = et.LinearQueries(Boxes([8, 8]), show=[[(0, 3), (0, 3)]], guarantee=et.ZCDP(0.5), horizon=100,
    ...                           key=et.simulation(1))
    >>> release = places.step([("insert", (2, 3), "bike 1"), ("insert", (7, 7), "bike 2")])
    >>> list(release.value), places.mechanism
    (['0..3 x 0..3'], 'linear')
    """

    family: Family | Mapping[str, Any] = option("What may be asked: a family of queries.", kw_only=False)
    show: Mapping[str, Any] | Sequence[Any] | None = option(
        "The queries that are shown, by name or as a list; None: what the family shows by itself.", default=None
    )

    def _blueprint(self) -> Blueprint:
        family: Any = read_family(self.family) if isinstance(self.family, Mapping) else self.family
        if type(family) not in FAMILIES.values():
            raise ConfigurationError("family is one of evertally.dynamic.families, e.g. Ranges(size=100)")
        self.family = family
        shown, queries = _shown(family, self.show, "show")
        return self._present("LinearQueries", family, shown, settled={"family": family.written(), "show": queries})


_IN_ORDER = "in order"  # a snapshot keeps tables sorted by name


def _shown(family: Any, queries: Any, called: str) -> tuple[dict[str, Any], Any]:
    """The queries that are shown by their names, and the option as a snapshot keeps it."""
    if queries is None:
        if not family.shown:
            raise ConfigurationError("the family names no queries by itself: declare some, or say what to show")
        return family.shown, None
    if isinstance(queries, Mapping):
        pairs = queries[_IN_ORDER] if list(queries) == [_IN_ORDER] else list(queries.items())
        named = {str(name): query for name, query in pairs}
        kept: Any = {_IN_ORDER: [[name, _written(query)] for name, query in named.items()]}
    elif isinstance(queries, Sequence) and not isinstance(queries, str):
        listed = list(queries)
        named = {family.name(query): query for query in listed}
        kept = [_written(query) for query in listed]
    else:
        raise ConfigurationError(f"{called} is a list of queries, or a table of queries by name")
    if not named:
        raise ConfigurationError(f"{called} is empty: a release shows something; leave it out for what is shown anyway")
    for query in named.values():
        family.vector(query)  # refuses what is no query
    return named, kept


def _written(query: Any) -> Any:
    """A query as JSON, for the family to read again."""
    if isinstance(query, Mapping):
        return {str(name): _written(value) for name, value in query.items()}
    if isinstance(query, list | tuple | np.ndarray):
        return [_written(part) for part in query]
    if isinstance(query, np.generic):
        return query.item()
    return str(query) if isinstance(query, Fraction) else query
