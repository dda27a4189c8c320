"""Streaming selection, for the checks: unknown items and leading columns, every engine, relation, unit and threshold.

Budgets are large, so that noise and thresholds are small beside a handful of events a tick. The items that errors are
measured on are far above every threshold from the first tick on; beside them are items that come once, that come late,
and that stay near the threshold. Sixteen ticks in base 2 end with one block that holds the whole stream; a tick earlier
there are four.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.noise import NoiseKey
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee, PureDP
from evertally.statistics import StreamingTopK, UnknownHistogram, UnknownTopK
from long import LONG

APPROXIMATE, CONCENTRATED, PURE = ApproxDP(20.0, 1e-6), ZCDP(20.0), PureDP(4.0)
LARGE = ApproxDP(80.0, 1e-6)  # for thresholds that every block must pass
WITH_BAD_EVENT, LARGE_WITH_BAD_EVENT = ApproxZCDP(4.0, 1e-6), ApproxZCDP(60.0, 1e-6)
OBLIVIOUS = ZCDP(20.0, adversary="oblivious")
USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 2}

_TICKS = 16
_RUNS = 60 if LONG else 40  # Binomial(., 0.1) is above its mean by six standard deviations with probability 8e-7
_RUNS_OF_ITEMS = 50  # Binomial(50, 0.1): as much

# -- unknown items -----------------------------------------------------------------------------------------------------

_FREQUENT = [f"item {j}" for j in range(20)]  # with 50 runs as many squares as a counter has in 1000


def words(n: int) -> list[list[Any]]:
    """Every frequent item 50 times in the first tick, then 10 to 16 times; others once, late, or now and then."""
    ticks: list[list[Any]] = []
    for t in range(n):
        events = [label for j, label in enumerate(_FREQUENT) for _ in range(10 + (3 * t * t + j * t) % 7 if t else 50)]
        late = [f"late {j}" for j in range(9)] * 4 if t >= 8 else []  # several: a noise may be 0
        ticks.append([*events, f"only at {t}", "seldom", *["wavering"] * (0 if t else 9), *late])
    return ticks


def baskets(n: int) -> list[list[Any]]:
    """The same words in pairs of different ones."""
    return [[list(pair) for pair in zip(events, events[len(events) // 2 :], strict=False)] for events in words(n)]


def weighted(n: int) -> list[list[Any]]:
    """The same words, each with a weight of up to 3."""
    return [[{label: 1 + i % 3} for i, label in enumerate(events)] for events in words(n)]


def crowds(n: int) -> list[list[Any]]:
    """Three items far ahead, in events of any size."""
    ticks: list[list[Any]] = []
    for t in range(n):
        large = [[*_FREQUENT[:3], *(f"word {(9 * i + j) % 90}" for j in range(9))] for i in range(60 + (5 * t) % 7)]
        ticks.append([*large, *[["late"]] * (5 if t >= 8 else 0)])
    return ticks


def totals(inputs: list[list[Any]]) -> list[dict[str, int]]:
    """Exact counts so far, tick by tick; every event here is legal."""
    sums: dict[str, int] = {}
    exact = []
    for events in inputs:
        for event in events:
            pairs = event.items() if isinstance(event, dict) else [(x, 1) for x in _collection(event)]
            for label, weight in pairs:
                sums[label] = sums.get(label, 0) + weight
        exact.append(dict(sums))
    return exact


def _collection(event: Any) -> list[str]:
    return [event] if isinstance(event, str) else event


def _seen(_mechanism: Any, inputs: list[Any]) -> set[str]:
    return set(totals(inputs)[-1])


def unknown(
    kind: Callable[..., Any],
    guarantee: Guarantee,
    feed: Callable[[int], list[Any]] = words,
    judged: int = len(_FREQUENT),
    **options: Any,
) -> Subject:
    """Items that nobody listed; errors are those of the first `judged` frequent ones."""
    named = _FREQUENT[:judged]

    def make(key: NoiseKey) -> Any:
        return kind(guarantee=guarantee, horizon=_TICKS, radix=2, key=key, **options)

    def error(value: dict[str, int], exact: dict[str, int]) -> NDArray[np.float64]:
        return np.array([value[label] - exact[label] for label in named], dtype=np.float64)

    def bound(mechanism: Any, beta: float, t: int | None) -> float:
        return float(mechanism.error_bound(beta=beta, t=t, items=judged))

    name = kind.func.__name__ if isinstance(kind, partial) else kind.__name__
    shown = [repr(guarantee), feed.__name__, *(f"{k}={v}" for k, v in options.items())]
    return Subject(
        name=f"{name}: {', '.join(shown)}",
        make=make,
        feed=feed,
        truth=totals,
        garbage=GARBAGE,
        wrong_calls=["abc", 7, 1.5, None, {"a": 1}, {"a"}],
        ticks=_TICKS,
        error=error,
        bound=bound,
        noise="items in blocks" if options.get("mechanism") == "meta" else "items",
        labels=_seen,
        users="unit" in options,
        runs=_RUNS_OF_ITEMS if judged == len(_FREQUENT) else _RUNS,
        growth=2500 if "mechanism" in options else 500,  # the labels of a block with 16 bytes each, or ten new items
    )


UNKNOWN: tuple[Subject, ...] = (
    unknown(UnknownHistogram, APPROXIMATE),
    unknown(UnknownHistogram, WITH_BAD_EVENT, threshold="per_tick"),
    unknown(UnknownHistogram, WITH_BAD_EVENT, threshold="paper"),
    unknown(UnknownHistogram, APPROXIMATE, sticky=True),
    unknown(UnknownHistogram, APPROXIMATE, max_labels=200),
    unknown(UnknownHistogram, APPROXIMATE, baskets, max_per_event=2, neighbours="replace"),
    unknown(UnknownHistogram, APPROXIMATE, weighted, max_weight=3),
    unknown(UnknownHistogram, APPROXIMATE, **USER),
    unknown(UnknownHistogram, LARGE, mechanism="meta"),
    unknown(UnknownHistogram, LARGE, baskets, mechanism="meta", max_per_event=2, neighbours="replace"),
    unknown(UnknownHistogram, LARGE, mechanism="meta", kbar=50, **USER),
    unknown(partial(UnknownTopK, 3), LARGE, crowds, 3, max_per_event=12),
    unknown(partial(UnknownTopK, 3), LARGE, crowds, 3, mechanism="meta"),
    unknown(partial(UnknownTopK, 3), LARGE_WITH_BAD_EVENT, crowds, 3, mechanism="meta", neighbours="replace", kbar=200),
)

# -- leading columns ---------------------------------------------------------------------------------------------------

_LABELS = ["a", "b", "c", "d"]


def steady(n: int) -> list[list[int]]:
    """Two columns lead in every block."""
    return [[900 + 7 * (t % 3), 700, 40, 30 + t % 2] for t in range(n)]


def race(n: int) -> list[list[int]]:
    """Two columns lead for four ticks, then the other two overtake them."""
    return [[400, 380, 30, 30 + t % 2] if t < 4 else [0, 20, 500, 480] for t in range(n)]


def _named_errors(value: dict[str, int], sums: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.array([count - sums[_LABELS.index(label)] for label, count in value.items()], dtype=np.float64)


def leading(
    guarantee: Guarantee,
    mechanism: str,
    feed: Callable[[int], list[Any]],
    noise: Literal["fixed", "switches", "blocks"],
    **options: Any,
) -> Subject:
    """The two leading columns of four, and their counts."""

    def make(key: NoiseKey) -> Any:
        return StreamingTopK(
            2, columns=_LABELS, guarantee=guarantee, horizon=_TICKS, mechanism=mechanism, key=key, **options
        )

    shown = [mechanism, repr(guarantee), *(f"{k}={v}" for k, v in options.items())]
    return Subject(
        name=f"StreamingTopK(2): {', '.join(shown)}",
        make=make,
        feed=feed,
        truth=lambda inputs: list(np.cumsum(np.array(inputs), axis=0)),
        garbage=GARBAGE,
        wrong_calls=["abc", 1.5, [1] * 5, [0.5] * 4, None],
        ticks=_TICKS,
        error=_named_errors,
        noise=noise,
        labels=lambda top, _inputs: set(top.columns),
        users="unit" in options,
        runs=_RUNS,
        growth=200,  # one more block with two labels and counts
    )


LEADING: tuple[Subject, ...] = (
    leading(APPROXIMATE, "sparse-gumbel", race, "switches", switches=3),
    leading(APPROXIMATE, "sparse-gumbel", race, "switches", switches=3, neighbours="replace", eta=20),
    leading(ApproxDP(40.0, 1e-6), "sparse-gumbel", race, "switches", switches=2, **USER),
    leading(OBLIVIOUS, "sparse-gumbel", race, "switches", switches=3),
    leading(OBLIVIOUS, "sparse-gumbel", race, "switches", switches=2, accounting="standard", reuse=True),
    leading(OBLIVIOUS, "sparse-gumbel", race, "switches", switches=3, accounting="monotone", max_weight=3),
    leading(CONCENTRATED, "meta", steady, "blocks", max_events_per_tick=1000),
    leading(APPROXIMATE, "meta", steady, "blocks", neighbours="replace"),
    leading(APPROXIMATE, "meta", steady, "blocks", **USER),
    leading(CONCENTRATED, "bank", race, "fixed"),
    leading(PURE, "pure-blocks", race, "fixed", max_per_event=1),
    leading(CONCENTRATED, "meta-gauss", race, "fixed"),
    leading(CONCENTRATED, "meta-gauss", race, "fixed", max_per_event=1, max_weight=2, neighbours="replace"),
    leading(CONCENTRATED, "tree", race, "fixed"),
    leading(PURE, "tree", race, "fixed", max_per_event=1),
)

SELECTION_MECHANISMS: tuple[Subject, ...] = (*UNKNOWN, *LEADING)
