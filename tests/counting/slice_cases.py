"""Every process that can be cut into slices, with every kind of budget that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evertally as et
from evertally.counting.processes import OURS, SEPARATED
from evertally.noise import NoiseKey
from evertally.privacy import Guarantee

PURE, GAUSSIAN, APPROXIMATE = et.PureDP(1.0), et.ZCDP(0.5), et.ApproxDP(1.0, 1e-6)


@dataclass(frozen=True)
class Case:
    """A process under a budget; `horizon` is None for those without one."""

    mechanism: str
    guarantee: Guarantee
    horizon: int | None = 90
    apart: bool = False  # users whose ticks are apart

    def __str__(self) -> str:
        return f"{self.mechanism}-{type(self.guarantee).__name__}"


CASES = [
    Case("tree", PURE),
    Case("tree", GAUSSIAN),
    Case("honaker", PURE),
    Case("honaker", GAUSSIAN),
    Case("sqrt", GAUSSIAN),
    Case("bank", GAUSSIAN),
    Case("bank", APPROXIMATE),
    Case("banded", GAUSSIAN, apart=True),
    Case("pure-blocks", PURE),
    Case("bank-open", GAUSSIAN, None),
    Case("epoch-tree", PURE, None),
    Case("epoch-tree", GAUSSIAN, None),
    Case("epoch-blocks", PURE, None),
]
assert {case.mechanism for case in CASES} == {*OURS, *SEPARATED}, "every process is cut in the tests"


def whole(case: Case, columns: int, key: NoiseKey, *, by_label: bool = False, **options: Any) -> Any:
    """The mechanism that slices are held against."""
    rule = {"unit": "user", "max_ticks_per_user": 5, "min_separation": 7, "band": 7} if case.apart else {}
    common = {"guarantee": case.guarantee, "horizon": case.horizon, "mechanism": case.mechanism, "key": key} | rule
    if by_label:
        return et.Histogram(categories=[f"c{i}" for i in range(columns)], **common, **options)
    return et.VectorCounter(columns=columns, **common, **options)


def released(mechanism: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """What it releases for rows of totals; where users are protected each event is somebody else's."""
    if mechanism.unit == "event":
        return np.asarray(mechanism.run(rows))
    out = []
    for tick, row in enumerate(rows):
        events = [mechanism.labels[j] for j in np.repeat(np.arange(row.size), row)]
        users = [f"{tick} {i}" for i in range(len(events))]
        value = mechanism.step_events(events, users=users).value
        out.append(list(value.values()) if isinstance(value, dict) else value)
    return np.array(out)
