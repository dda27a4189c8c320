"""Quantiles and histograms of values, to be audited: a part of the list."""

from __future__ import annotations

from typing import Any

from evertally.audit.entries import Audited
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics import Histogram
from evertally.values.histograms import ValueHistogram
from evertally.values.quantiles import ValueQuantile

_OTHER_TICKS = "charged for an old and a new user at different ticks; those of one tick share cells"
_LARGE = "which nodes are read follows from releases; what they may differ by is tried in the tests"
_EDGES = [0, 1, 2, 4, 8, 16]
_SECTION = "users-and-domains 4"


def _made(kind: Any, guarantee: Guarantee, horizon: int | None, why: str = "", **options: Any) -> Audited:
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    return Audited(
        f"{kind.__name__}({guarantee!r}, T={horizon}{', ' if shown else ''}{shown})",
        lambda key: kind(**({"edges": _EDGES} | options), guarantee=guarantee, horizon=horizon, key=key),
        _SECTION,
        tight=not why,
        why=why,
    )


_USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 2}

VALUE_QUANTILES: tuple[Audited, ...] = (
    _made(ValueQuantile, ZCDP(0.5), 24),
    _made(ValueQuantile, ZCDP(0.5), 24, mechanism="sqrt", neighbours="replace"),
    _made(ValueQuantile, PureDP(1.0), 24),
    _made(ValueQuantile, PureDP(1.0), 24, neighbours="replace", outside="cells", mechanism="tree"),
    _made(ValueQuantile, ApproxDP(1.0, 1e-6), 24, **_USER),
    _made(ValueQuantile, ZCDP(0.5), 24, why=_OTHER_TICKS, mechanism="tree", neighbours="replace", **_USER),
    _made(ValueQuantile, ZCDP(0.5), None, every=20),
    _made(ValueQuantile, ZCDP(0.5), 24, why=_LARGE, edges=None, bits=8, fanout=16),
    _made(ValueHistogram, ZCDP(0.5), 24, neighbours="replace"),
    _made(Histogram, PureDP(1.0), 24, neighbours="replace"),
)
