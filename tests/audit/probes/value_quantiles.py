"""Probes of quantiles of values: what one value moves along the whole line of cells, and blocks that begin anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from audit.probes.probing import KEY, Verdict, length, probe, separation, shift
from evertally.audit.game import Factory
from evertally.privacy import ZCDP
from evertally.values.quantiles import ValueQuantile

_CELLS = 16


def _quantiles(**options: Any) -> Factory:
    return lambda key: ValueQuantile(
        edges=range(_CELLS + 1), guarantee=ZCDP(0.5), mechanism="tree", radix=2, key=key, **({"horizon": 4} | options)
    )


@probe("closed form", "one value, in any cell")
def _() -> Verdict:
    make = _quantiles()
    return separation(make, 0.5, max(length(shift(make, [cell + 0.5], [])) for cell in range(_CELLS)))


@probe("closed form", "one value in place of another")
def _() -> Verdict:
    make = _quantiles(neighbours="replace")
    others = [[], *([cell + 0.5] for cell in range(1, _CELLS))]
    return separation(make, 0.5, max(length(shift(make, [0.5], other)) for other in others))


@probe("attack", "two blocks of quantiles side by side")
def _() -> Verdict:
    quantiles = _quantiles(every=2, horizon=6)(KEY)
    rows = []
    for _ in range(6):
        quantiles.step([])
        rows.append(quantiles._kept.played.recent[-1])
    same = any(np.array_equal(rows[t], rows[t + 2]) for t in range(4))
    return same, "two blocks without a value release the same noise: their difference is exact"
