"""The noise that each way to answer really draws, as a table for docs/column-queries.md.

Nothing here is a formula: mechanisms are made as a caller makes them, run on a stream in which everything happens, and
the laws that they ask their source for are written down. `python -m benchmarks.noise_table` prints the tables,
and with the page as its argument writes them into it; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from evertally.counting.sqrt_factor import GRID_BITS
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise
from evertally.noise.reals import RealLaw
from evertally.partition import Configuration, TwoLevelPlan
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.selection import ExponentialMechanism, PermuteAndFlip
from evertally.statistics import Counter, Histogram, MaxSum, SumSelect, TopK

SETTING = (
    "epsilon = 1 (and delta = 1e-6 where it says so), 4 columns, all of which an event may touch once, 1000 ticks, "
    "`largest=1000`, `max_events_per_tick=1`"
)
_OPTIONS: dict[str, Any] = {"horizon": 1000, "largest": 1000, "max_events_per_tick": 1}
_COLUMNS = 4
_PURE, _APPROXIMATE = PureDP(1), ApproxDP(1, 1e-6)
_OBLIVIOUS = ApproxDP(1, 1e-6, adversary="oblivious")

BEGIN, END = "<!-- noise tables: begin -->\n", "\n<!-- noise tables: end -->"
HEADING = ("`mechanism=`", "algorithm", "add/remove: tau, mu", "replace: tau, mu", "update", "histogram H")


@dataclass(frozen=True)
class _Subject:
    name: str
    algorithm: str
    make: Callable[..., Any]
    guarantee: Guarantee = _PURE


def _query(kind: Callable[..., Any], mechanism: str, *first: Any) -> Callable[..., Any]:
    return lambda **options: kind(*first, _COLUMNS, mechanism=mechanism, **(_OPTIONS | options))


def _histogram(**options: Any) -> Histogram:
    names = [str(j) for j in range(_COLUMNS)]
    return Histogram(categories=names, max_per_event=_COLUMNS, **({"mechanism": "sparse"} | _OPTIONS | options))


def _counter(**options: Any) -> Counter:
    return Counter(**({"mechanism": "sparse"} | _OPTIONS | options))


_SUBJECTS = (
    _Subject("`bounded`", "2, 3, 7", _query(MaxSum, "bounded")),
    _Subject("`bounded`, delta", "2, 3, 7", _query(MaxSum, "bounded"), _APPROXIMATE),
    _Subject("`noisy-ladders`, 2 queries", "8, 12", _query(TopK, "noisy-ladders", 2)),
    _Subject("`noisy-ladders`, 2 queries, delta", "13, 17", _query(TopK, "noisy-ladders", 2), _APPROXIMATE),
    _Subject("`doubling`", "5, 10", _query(MaxSum, "doubling")),
    _Subject("`doubling`, delta", "15", _query(MaxSum, "doubling"), _APPROXIMATE),
    _Subject("`two-level`", "6, 7", _query(MaxSum, "two-level")),
    _Subject("`two-level`, 2 queries", "11, 12", _query(TopK, "two-level", 2)),
    _Subject("`two-level`, 2 queries, delta", "16, 17", _query(TopK, "two-level", 2), _OBLIVIOUS),
    _Subject("`rebased`, tuned", "V1", _query(MaxSum, "rebased")),
    _Subject("`rebased`, tuned, delta", "V4", _query(MaxSum, "rebased"), _APPROXIMATE),
    _Subject("`intervals`, tuned", "V2", _histogram),
    _Subject("`Counter`, `sparse`", "DNRR 2015", _counter),
)


def laws(made: Any) -> dict[str, Any]:
    """The law of every lane that a mechanism draws from when everything happens."""
    recording = Recording(ZeroNoise())
    copy = made(recording)
    rows = np.full((200, copy._task.columns), 10**6)
    copy.run(rows[:, 0] if isinstance(copy, Counter) else rows)
    return {draw.lane: draw.law for draw in recording.draws}


def _law(law: Any, lane: str = "") -> str:
    if isinstance(law, DiscreteLaplace):
        return f"Lap({_short(law.scale)})"
    if isinstance(law, RealLaw):  # a standard variate; the name of the filter behind it has the scale
        scale = Fraction(float.fromhex(law.feeds.split()[1]))
        return f"bank of N({_short(scale**2)})" if law.kind == "normal" else f"table of Lap({_short(scale)})"
    assert isinstance(law, DiscreteGaussian)
    # the square-root counter draws on a finer grid than counts
    unit = 4**GRID_BITS if lane.endswith("sqrt") else 1
    return f"N({_short(law.sigma_squared / unit)})"


def _short(number: Fraction) -> str:
    return f"{float(number):.4g}"


def _levels(subject: _Subject, neighbours: str) -> list[tuple[Configuration, dict[str, str]]]:
    """The configuration of each level, and its laws: tau, mu, update, and H's first."""

    def make(key: Any) -> Any:
        return subject.make(guarantee=subject.guarantee, neighbours=neighbours, key=key)

    drawn, plan = laws(make), make(ZeroNoise())._engine.worker._formula
    levels = {"": plan}
    if isinstance(plan, TwoLevelPlan):
        last = (plan.outer.intervals or 0) + 1  # where answers are so large that the inner level closes as well
        levels = {"outer/": plan.outer, f"segment-{last}/": plan.inner(last)}
    found = []
    for prefix, level in levels.items():
        own = {lane[len(prefix) :]: law for lane, law in drawn.items() if lane.startswith(prefix)}
        shown = {lane: _law(law) for lane, law in own.items() if lane in ("tau", "mu", "update")}
        shown["H"] = next(_law(law, lane) for lane, law in own.items() if lane not in shown)
        found.append((level, shown))
    return found


def rows() -> list[tuple[str, ...]]:
    """The table, without its heading."""
    table = []
    for subject in _SUBJECTS:
        sides = [_levels(subject, neighbours) for neighbours in ("add_remove", "replace")]
        for number, ((level, one), (_, other)) in enumerate(zip(*sides, strict=True)):
            name = subject.name if len(sides[0]) == 1 else f"{subject.name}: {('outer', 'inner')[number]}"
            tests = [f"{laws['tau']}, {laws['mu']}" for laws in (one, other)]
            inserts = f"{level.histogram} of {level.intervals}: {one['H']}"
            table.append((name, subject.algorithm, *tests, one.get("update", ""), inserts))
    return table


def recompute_rows() -> list[tuple[str, ...]]:
    """Recomputation: how often, and the noise of each release."""
    table = []
    for guarantee in (_PURE, _PURE.to_zcdp()):
        for kind, algorithm in ((MaxSum, "M4"), (SumSelect, "M6")):
            cells = [_recomputed(kind, guarantee, neighbours) for neighbours in ("add_remove", "replace")]
            table.append((f"`recompute` of `{kind.__name__}`, {guarantee}", algorithm, *cells))
    return table


def _recomputed(kind: Callable[..., Any], guarantee: PureDP | ZCDP, neighbours: str) -> str:
    def make(key: Any) -> Any:
        return _query(kind, "recompute")(guarantee=guarantee, neighbours=neighbours, key=key)

    made, (law,) = make(ZeroNoise()), set(laws(make).values())
    if not made._task.selects:
        return f"{made._engine.worker.releases} times {_law(law)}"
    select = PermuteAndFlip if law == "exponential" else ExponentialMechanism
    share = guarantee.share(f"1/{made._engine.worker.releases}")
    scale = select.within(share, made.sensitivity.linf, one_way=made._task.one_way).scale
    return f"{made._engine.worker.releases} times {law}({_short(scale)})"


def markdown() -> str:
    """Both tables as they stand on the page."""
    lines = [f"For {SETTING}:", "", *_lines(HEADING, rows()), ""]
    return "\n".join([*lines, *_lines(("`mechanism=`", "algorithm", "add/remove", "replace"), recompute_rows())])


def _lines(heading: tuple[str, ...], table: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (heading, ("---",) * len(heading), *table)]


def written(page: str) -> str:
    """The page with the tables in it, between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise ValueError(f"the page has no place for the tables: {BEGIN.strip()} ... {END.strip()}")
    return f"{before}{BEGIN}{markdown()}{END}{after}"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(markdown())
    for name in sys.argv[1:]:
        Path(name).write_text(written(Path(name).read_text()))
