"""Leaders among counters (`StreamingTopK` by "tree", "bank" or "pure-blocks"): post-processing of a counter for every
column, which is audited in its place, once it is seen that it makes the same requests for noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.audit.laws.tap import Tap
from evertally.audit.report import Report
from evertally.audit.whitebox import again
from evertally.counting.choose import build
from evertally.noise import simulation
from evertally.selection.top_k_engines import EveryColumn
from evertally.statistics import VectorCounter

_TICKS = 24


def has_counters(model: Any) -> bool:
    """Whether it shows the leaders of a vector of counters."""
    return isinstance(model._engine, EveryColumn)


def counters_of(model: Any) -> VectorCounter:
    """The counters whose leaders are shown.

    >>> import evertally as et
    >>> from evertally.statistics import StreamingTopK
    >>> top = StreamingTopK(1, columns=["a", "b"], mechanism="tree", guarantee=et.ZCDP(0.5), horizon=9,
    ...                     key=et.simulation(0))
    >>> counters_of(top).mechanism, same_counters_report(top).passed
    ('tree', True)
    """
    bounds = model.contribution
    users = {"unit": "user", "max_events_per_user": bounds.max_events_per_user} if model.unit == "user" else {}
    return VectorCounter(
        len(model.columns),
        guarantee=model.charge,
        horizon=model.horizon,
        mechanism=model.mechanism,
        max_per_event=min(int(bounds.max_per_event), len(model.columns)),
        max_weight=bounds.max_weight,
        neighbours=model.neighbours,
        radix=model.radix,
        key=simulation(0),
        **users,
    )


def same_counters_report(model: Any) -> Report:
    """That both ask for the same draws, of the same laws, in their first ticks."""
    ticks, twin = min(model.horizon, _TICKS), counters_of(model)
    taps = Tap(), Tap()
    shown = again(model)(taps[0].key)
    shown.run(np.ones((ticks, len(model.columns)), dtype=np.int64))
    build(twin._choice, twin._setting, taps[1]).advance(ticks)
    asked = [{(one.lane, one.node, one.place, str(one.law)) for one in tap.drawn} for tap in taps]
    same = asked[0] == asked[1]
    told = f"the same {len(asked[0])} draws" if same else "its noise is not that of the counters"
    return Report.attack(model, "same counters", not same, told)
