"""Constructions over insertions and deletions, behind the public classes, for the conformance checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.dynamic_mechanisms import (
    APPROXIMATE,
    CONCENTRATED,
    PURE,
    RUNS_OF_BOUNDS,
    by_value,
    copies_by_value,
    dynamic,
)
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, ApproxDP, PureDP

_STALE = 1000.0  # more than the streams of the checks hold: an answer may miss what came since the last boundary


def _signed(ticks: list[Any]) -> list[dict[str, int]]:
    return copies_by_value(ticks, floor=False)


def _floored(ticks: list[Any]) -> list[dict[str, int]]:
    return copies_by_value(ticks, floor=True)


def partitioned(subject: Subject) -> Subject:
    """Its noise follows from the boundaries, and its answers are those of the last one."""
    return replace(subject, tolerance=_STALE, noise="transcript", runs=RUNS_OF_BOUNDS)


def stale(subject: Subject) -> Subject:
    """Its answers are those of the last release."""
    return replace(subject, tolerance=_STALE, runs=200)


DYNAMIC_CONSTRUCTIONS: tuple[Subject, ...] = (
    dynamic(PURE, mechanism="tree"),
    dynamic(CONCENTRATED, None, mechanism="doubling", histogram=False),
    dynamic(PURE, mechanism="subtract", max_lifetime=3, protects="event"),
    dynamic(APPROXIMATE, None, mechanism="subtract", identity="raw", protects="event", feed=by_value, truth=_signed),
    partitioned(dynamic(PureDP(8.0), mechanism="doubling", partition="infinite")),
    partitioned(
        dynamic(ApproxDP(8.0, 1e-6), mechanism="subtract", partition="finite", construction={"svt": "cumulative"})
    ),
    partitioned(
        dynamic(
            ZCDP(8.0),
            None,
            mechanism="subtract",
            partition="infinite",
            identity="value",
            protects="event",
            feed=by_value,
            truth=_floored,
        )
    ),
    dynamic(PURE, mechanism="anew", every=1),
    dynamic(CONCENTRATED, None, mechanism="anew", every=1, max_lifetime=3),
    stale(dynamic(PURE, mechanism="anew", every=3, max_items=1000)),
    stale(dynamic(PURE, None, mechanism="anew", max_items=1000)),
    partitioned(dynamic(ApproxDP(8.0, 1e-6), None, mechanism="interval-tree", partition="infinite")),
    partitioned(
        dynamic(
            PureDP(8.0),
            mechanism="interval-tree",
            partition="finite",
            identity="value",
            protects="event",
            feed=by_value,
            truth=_floored,
            construction={"allocation": "A0", "svt": "cumulative"},
        )
    ),
)
