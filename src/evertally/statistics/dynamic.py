"""What is present now: counts of items that are inserted and deleted."""

from __future__ import annotations

from collections.abc import Sequence

from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.dynamic.families import Count, Points
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

    Error: standard deviation sqrt(2) times that of a `Counter` (item), e.g. 25.3 for epsilon 1, delta 1e-6 and 8760
    ticks; it does not grow with the number of updates. Exactness tier "exact". Time O(1) for an update and one step of
    the noise process for a tick; memory O(items present), with identity="id" O(names ever seen).

    >>> import evertally as et
    >>> beds = et.DynamicCount(guarantee=et.ApproxDP(1.0, 1e-6), horizon=8760, key=et.simulation(1))
    >>> release = beds.step_events(["ann", "bob", "eve"], deleted=["bob"])
    >>> beds.mechanism, beds.process, round(beds.stddev(8760), 1)
    ('linear', 'sqrt', 25.3)
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
    other: str | None = option(
        "A further category for labels that are not declared; None: they are dropped.", default=None
    )

    def _blueprint(self) -> Blueprint:
        if isinstance(self.categories, int | str):
            raise ConfigurationError("categories is a list of labels")
        family = Points(self.categories, self.other)
        self.categories = family.categories
        return self._present("DynamicHistogram", family, family.shown, settled={"categories": list(family.categories)})
