"""Numbers by bin: how many values lie between neighbouring edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evertally.contract.doors import Bins
from evertally.contract.forms import LabelledForm
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.encode.cells import Cells, Outside, read_edges
from evertally.errors import ConfigurationError
from evertally.privacy import Neighbours, change
from evertally.statistics.linear_options import Linear


@statistic
class ValueHistogram(Linear):
    """How many values so far lie in each bin: above its lower edge and at most its upper one.

    `edges` are public and fixed, as for `ValueQuantile`; values beyond them count in the first and last bin, or in two
    bins of their own (`outside="cells"`); what is no number counts nowhere. Every bin is released at every tick.

    Theorem (factorization-counting 6.3, users-and-domains 1.2 and 4): a value is in one bin, so l2_squared = 1, or 2
    where it is replaced; a user with w events w^2, or twice that. Bins are counted one by one: a single bin, and a
    range of a few, has less noise so than as the difference of two prefix counts. For wider ranges and quantiles take
    `ValueQuantile`, whose releases have a `histogram` too; for workloads, sparse streams and ticks of users that are
    apart `Histogram(edges=...)`, which is the same otherwise.

    Exactness tier "exact"; error of each count: `stddev`; time O(values + bins) a tick; memory as `Histogram`.

    >>> import evertally as et
    >>> ages = et.ValueHistogram(edges=[0, 18, 65, 120], guarantee=et.ZCDP(0.5), horizon=12, key=et.simulation(1))
    >>> release = ages.step([4, 18, 30, 50, 70, None])
    >>> list(release.value), round(release.stddev, 2)
    (['0 to 18', '18 to 65', '65 to 120'], 1.65)
    """

    edges: Sequence[float] | Mapping[str, float] = option(
        'Where bins begin and end: increasing numbers, or {"from": 0.1, "to": 1000, "ratio": 1.02}.'
    )
    outside: Outside = option(
        'What becomes of values beyond the edges: counted in the bins at the "ends", or in two "cells" of their own.',
        default="ends",
    )

    def _blueprint(self) -> Blueprint:
        edges = read_edges(self.edges)
        self.edges = tuple(edges)
        cells = Cells(edges, self.outside)
        if Neighbours.parse(self.neighbours) is Neighbours.INDEPENDENT:
            raise ConfigurationError('a value lies in one bin: use "add_remove" or "replace"')
        contribution = self._contributing()
        return self._linear(
            "ValueHistogram",
            cells.count,
            change(self.neighbours, contribution, cells.count),
            contribution,
            {"edges": edges} | self._given("outside", "unit", "max_events_per_user"),
            lambda source, limit: Bins(cells, limit),
            LabelledForm(cells.labels()),
            settled={"edges": edges},
            loose=change(self.neighbours, contribution, cells.count, cancels=False),
        )
