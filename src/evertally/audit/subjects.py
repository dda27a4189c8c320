"""Every mechanism that is built, in a configuration of realistic size, to be audited. A new one is one entry here.

`tight` says whether the worst case is known and can be shown: then the audit must find nearly the whole claim. Where
it is False, `why` says what is charged and not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from typing import Any

from evertally.audit.game import Factory
from evertally.audit.report import Progress, Report
from evertally.audit.suite import Effort, audit_mechanism
from evertally.counting import Counter, RunningMean, VectorCounter
from evertally.histogram import Histogram
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

_REFINED = "charged for all nodes, and the refined estimates show less than the nodes"
_HYBRID = "its outer process is charged for 2^32 ticks and never shown alone"
_RATIO = "the two sums are audited; their ratio is post-processing"


@dataclass(frozen=True)
class Subject:
    """A mechanism to audit, and where its claim is proved."""

    name: str
    make: Factory
    section: str
    tight: bool = True
    why: str = ""
    ticks: int | None = None


def _counter(
    guarantee: Guarantee, horizon: int | None, mechanism: str, section: str, why: str = "", **options: Any
) -> Subject:
    words = [mechanism, repr(guarantee), f"T={horizon}", *(f"{name}={value}" for name, value in options.items())]
    return Subject(
        f"Counter({', '.join(words)})",
        lambda key: Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=key, **options),
        section,
        tight=not why,
        why=why,
        ticks=127 if horizon is None else None,
    )


def _other(
    kind: Callable[..., Any], guarantee: Guarantee, horizon: int, section: str, why: str = "", **options: Any
) -> Subject:
    shown = {k: len(v) if isinstance(v, list) else v for k, v in options.items()}
    words = [repr(guarantee), f"T={horizon}", *(f"{name}={value}" for name, value in shown.items())]
    return Subject(
        f"{kind.__name__}({', '.join(words)})",
        lambda key: kind(guarantee=guarantee, horizon=horizon, key=key, **options),
        section,
        tight=not why,
        why=why,
    )


_TREE, _SQRT = "streaming-selection 3.1, price-of-continual-release 3.2", "factorization-counting 4 and 11"
_TABLE = "factorization-counting 6.3"
_LABELS = ["a", "b", "c", "d", "e"]

SUBJECTS: tuple[Subject, ...] = (
    # every process, with every law that it takes
    _counter(PURE, 1, "tree", _TREE),
    _counter(PURE, 1000, "tree", _TREE),
    _counter(PURE, 16, "tree", _TREE, radix=2),
    _counter(CONCENTRATED, 1000, "tree", _TREE),
    _counter(CONCENTRATED, 1024, "tree", _TREE, radix=2),
    _counter(CONCENTRATED, 243, "tree", _TREE, radix=3),
    _counter(PURE, 250, "honaker", "factorization-counting 8.3", why=_REFINED),
    _counter(CONCENTRATED, 250, "honaker", "factorization-counting 8.3", why=_REFINED),
    _counter(CONCENTRATED, 1, "sqrt", _SQRT),
    _counter(CONCENTRATED, 1024, "sqrt", _SQRT),
    _counter(ZCDP(0.1), 365, "sqrt", _SQRT),
    _counter(PURE, None, "epoch-tree", "price-of-continual-release 9.1"),
    _counter(CONCENTRATED, None, "epoch-tree", "price-of-continual-release 9.1"),
    _counter(CONCENTRATED, None, "epoch-hybrid", "factorization-counting 10.1", why=_HYBRID),
    _counter(APPROXIMATE, 365, "auto", _SQRT),
    # what one event, or one user, can change
    _counter(CONCENTRATED, 100, "auto", "factorization-counting 2.4", max_weight=10, neighbours="replace"),
    _counter(PURE, 100, "auto", "factorization-counting 2.4", max_weight=3, signed=True, neighbours="replace"),
    _counter(CONCENTRATED, 100, "auto", "price-of-continual-release 9.5", unit="user", max_events_per_user=4),
    _other(Histogram, PURE, 365, _TABLE, categories=_LABELS),
    _other(Histogram, CONCENTRATED, 365, _TABLE, categories=_LABELS, max_per_event=3),
    _other(Histogram, CONCENTRATED, 100, _TABLE, categories=_LABELS, max_per_event=2, neighbours="replace"),
    _other(Histogram, PURE, 100, _TABLE, categories=_LABELS, max_per_event=2, protects="item", neighbours="replace"),
    _other(Histogram, CONCENTRATED, 100, _TABLE, categories=_LABELS, other="rest"),
    _other(
        Histogram,
        CONCENTRATED,
        100,
        "price-of-continual-release 9.5",
        categories=_LABELS,
        neighbours="replace",
        unit="user",
        max_events_per_user=2,
    ),
    _other(
        VectorCounter,
        ZCDP(0.5, adversary="oblivious"),
        100,
        "parameterized-histograms 1.2",
        columns=3,
        max_per_event=3,
        neighbours="independent",
    ),
    _other(VectorCounter, CONCENTRATED, 250, _TREE, columns=3, mechanism="tree", memory_limit=60),
    _other(VectorCounter, PURE, 100, _TABLE, columns=3, max_weight=2, signed=True, neighbours="replace"),
    _other(RunningMean, CONCENTRATED, 100, "factorization-counting 6.2", lower=0, upper=10),
    _other(RunningMean, PURE, 100, "factorization-counting 6.2", lower=0, upper=10, neighbours="replace"),
)


def audit_all(
    effort: Effort = "short", *, seed: int = 0, jobs: int = 1, progress: Progress | None = None
) -> dict[str, list[Report]]:
    """Audits every mechanism; the reports by the name of the subject, without their scores. `make audit` is the long
    version; `jobs` processes share the work."""
    names = [subject.name for subject in SUBJECTS]
    if jobs == 1:
        done = map(_audited, range(len(SUBJECTS)), repeat(effort), repeat(seed))
        return _collected(names, done, progress)
    # Spawned, not forked: a forked child would inherit compiled code and threads in an unknown state.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return _collected(names, pool.map(_audited, range(len(SUBJECTS)), repeat(effort), repeat(seed)), progress)


def _audited(number: int, effort: Effort, seed: int) -> list[Report]:
    subject = SUBJECTS[number]
    return [replace(r, scores=None) for r in audit_mechanism(subject.make, effort, ticks=subject.ticks, seed=seed)]


def _collected(names: list[str], done: Iterable[list[Report]], progress: Progress | None) -> dict[str, list[Report]]:
    found: dict[str, list[Report]] = {}
    for number, (name, reports) in enumerate(zip(names, done, strict=True), start=1):
        found[name] = reports
        if progress:
            progress(name, number, len(names))
    return found
