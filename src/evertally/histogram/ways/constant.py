"""No data at all: a public function of the tick, where noise would be larger than what it hides."""

from __future__ import annotations

import math
from functools import partial

from evertally.contract.in_place import InPlace
from evertally.errors import ConfigurationError
from evertally.histogram.in_place import Constant
from evertally.histogram.tasks import Task
from evertally.histogram.ways.column_way import NOBODY_SAID, ColumnWay
from evertally.noise import ItemSource
from evertally.privacy import PureDP

# No guarantee can say 0; this is as near as none is needed to be.
_NOTHING = PureDP(2.0**-1000)


def constant(task: Task) -> ColumnWay:
    """M0 (3.1 there): half of the largest answer that is expected, or the first column."""
    if math.isinf(task.ceiling):
        raise ConfigurationError("without a horizon or `largest` there is no constant to answer with")
    limit = int(task.ceiling)

    def value(t: int) -> int:
        return 0 if task.selects else min(t * task.growth, limit) // 2

    width = 1 if task.selects and task.queries.count == 1 else task.columns if task.selects else task.queries.count
    # Among one column the first is the right one.
    most = 0 if task.selects and task.columns == 1 else task.most

    def made(source: ItemSource | None = None) -> Constant:
        return Constant(width, value, most, task.horizon)

    return ColumnWay(
        name="trivial",
        charge=_NOTHING,
        score=(0.0 if most == 0 else float(limit)) if task.selects else float(limit - limit // 2),
        promise=lambda: made().error_bound(task.beta, task.ticks),
        memory=0,
        open=NOBODY_SAID if most is None else "",
        build=partial(InPlace, made),
        width=width,
        answers=not task.selects or width == 1,
    )
