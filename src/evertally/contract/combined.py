"""Weighted sums of several releases: how far they may be off, by the laws of single releases and of windows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.tails import Spread
from evertally.contract.parts import Accuracy
from evertally.errors import ConfigurationError

FloatArray = NDArray[np.float64]


def combined(engine: Any, weights: Mapping[int, float]) -> Accuracy:
    """The law of sum_i w_i noise(t_i), of one column.

    Noise is a weighted sum of independent draws. Its variance is a quadratic form, so that of any combination follows
    from those of single ticks and of pairwise differences: sum_i w_i^2 V_i + sum_{i<j} w_i w_j (V_i + V_j - D_ij).
    The same holds for `proxy`, the quadratic form that tails are bounded by. Where an engine bounds its windows from
    above only, so would this bound be wrong: then, and where there is no variance at all, errors are added up.
    """
    ticks = sorted(weights)
    if len(ticks) == 1 and weights[ticks[0]] == 1:
        return engine.accuracy(ticks[0])  # type: ignore[no-any-return]
    known = getattr(engine, "combined", None)
    law = None if known is None or not ticks else known(weights)
    if law is not None and law.law == "laplace":  # the tail of a Gaussian follows from its variance alone
        return law  # type: ignore[no-any-return]
    single = {t: engine.accuracy(t) for t in ticks}
    pairs = {(s, t): engine.window(t, t - s) for s, t in combinations(ticks, 2)}
    laws = [*single.values(), *pairs.values()]
    if not ticks or not all(isinstance(law, Spread) for law in laws) or not _exact(engine):
        return AddedUp([(abs(weights[t]), single[t]) for t in ticks])
    variance, proxy = (_form(name, weights, single, pairs) for name in ("variance", "proxy"))
    # A draw's weight in the sum is at most the sum of its weights in the parts; draws are no finer than the finest. A
    # hair above, so that the tail of one single draw, which the sum need not be, is never taken.
    peak = min(math.sqrt(proxy), sum(abs(weights[t]) * law.peak for t, law in single.items())) * (1 + 1e-9)
    first = laws[0]
    return Spread(
        first.law,
        variance,
        proxy,
        peak,
        min(law.finest for law in laws) if _whole(weights) else 0.0,
        sum(abs(weights[t]) * law.roundings for t, law in single.items()),
        sum(weights[t] ** 2 * law.rounded for t, law in single.items()),
    )


def covariances(engine: Any, ticks: Sequence[int]) -> FloatArray:
    """Cov(noise(s), noise(t)) of one column for increasing ticks, by 2 cov(s, t) = V(s) + V(t) - V(t - s); what
    rounding adds is taken for independent from tick to tick. Only where windows are exact.

    Time: one law for every pair of ticks, less where a process knows its own covariances.
    """
    single = [engine.accuracy(t) for t in ticks]
    if not all(isinstance(law, Spread) for law in single) or not _exact(engine):
        raise ConfigurationError("how the releases of this mechanism depend on each other is not known exactly")
    known = getattr(getattr(engine, "noise", None), "covariances", None)
    found: FloatArray | None = None if known is None else known(ticks)
    if found is None:
        found = np.zeros((len(ticks), len(ticks)))
        for (i, s), (j, t) in combinations(enumerate(ticks), 2):
            shared = (single[i].variance + single[j].variance - engine.window(t, t - s).variance) / 2
            found[i, j] = found[j, i] = shared
    found[np.diag_indices(len(ticks))] = [law.stddev**2 for law in single]
    return found


def _exact(engine: Any) -> bool:
    return bool(getattr(engine, "exact_windows", False))


def _whole(weights: Mapping[int, float]) -> bool:
    """Whether the combination lies on the lattice that its draws lie on, and on no coarser one."""
    parts = [float(weight) for weight in weights.values()]
    return all(part.is_integer() for part in parts) and math.gcd(*(int(part) for part in parts)) == 1


def _form(name: str, weights: Mapping[int, float], single: Mapping[int, Any], pairs: Mapping[Any, Any]) -> float:
    total = sum(weights[t] ** 2 * getattr(law, name) for t, law in single.items())
    for (s, t), law in pairs.items():
        twice = getattr(single[s], name) + getattr(single[t], name) - getattr(law, name)
        total += weights[s] * weights[t] * twice
    # Cancels to nothing where the combination does; floats may leave a little below 0.
    return max(0.0, float(total))


class AddedUp:
    """Several errors, each within its own radius."""

    stddev = None

    def __init__(self, parts: list[tuple[float, Accuracy]]) -> None:
        self._parts = parts

    def radius(self, beta: float) -> float:
        return sum(weight * law.radius(beta / len(self._parts)) for weight, law in self._parts)
