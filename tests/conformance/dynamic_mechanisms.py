"""Statistics of what is present, for the conformance checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.dynamic.families import Boxes, Queries
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics import DynamicCount, DynamicHistogram, DynamicRange, LinearQueries
from long import LONG

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)
_LABELS = ("a", "b", "c")
_WRONG = ["abc", 7, None, {"insert": 1}, 1.5]
_TICKS = 20
# Where no variance is compared: Binomial(60, 0.1) is above its mean by six standard deviations with probability 8e-7.
RUNS_OF_BOUNDS = 200 if LONG else 60


def by_name(n: int) -> list[list[Any]]:
    """Insertions and deletions by name, with repeats, unknown names and labels, and names that come back."""
    ticks: list[list[Any]] = []
    for t in range(n):
        records: list[Any] = [("insert", _LABELS[(t + i) % 3], f"{t}/{i}") for i in range(t % 4)]
        records += [("delete", None, f"{t - 1}/{i}") for i in range(t % 3)]
        records += [(True, "nowhere", f"x{t}"), (-1, None, "nobody"), ("insert", "a", f"{max(0, t - 5)}/1")]
        ticks.append(records)
    return ticks


def by_value(n: int) -> list[list[Any]]:
    """Insertions and deletions by value, some of which find nothing."""
    ticks = []
    for t in range(n):
        records: list[Any] = [("insert", _LABELS[(t + i) % 3]) for i in range(t % 4)]
        ticks.append([*records, *[(False, _LABELS[(t + 1) % 3])] * ((t * t) % 3), ("delete", "nowhere")])
    return ticks


def present_by_name(
    ticks: list[list[Any]], lifetimes: int = 1, longest: int | None = None
) -> list[dict[str, tuple[str, int]]]:
    """What is present after each tick: name -> (label, tick of insertion). A plain model."""
    living: dict[str, tuple[str, int]] = {}
    used: dict[str, int] = {}
    seen = []
    for t, records in enumerate(ticks, start=1):
        living = {name: life for name, life in living.items() if longest is None or t - life[1] < longest}
        for action, label, name in records:
            if action in ("insert", True) and label in _LABELS:
                if name not in living and used.get(name, 0) < lifetimes:
                    living[name], used[name] = (label, t), used.get(name, 0) + 1
            elif action in ("delete", -1):
                living.pop(name, None)
        seen.append(dict(living))
    return seen


def copies_by_value(ticks: list[list[Any]], floor: bool) -> list[dict[str, int]]:
    """Multiplicities after each tick."""
    copies = dict.fromkeys(_LABELS, 0)
    seen = []
    for records in ticks:
        for action, label in records:
            if label in copies:
                step = 1 if action == "insert" else -1
                copies[label] = max(0, copies[label] + step) if floor else copies[label] + step
        seen.append(dict(copies))
    return seen


def _histograms(ticks: list[list[Any]], **rule: Any) -> list[dict[str, int]]:
    return [
        {label: sum(life[0] == label for life in living.values()) for label in _LABELS}
        for living in present_by_name(ticks, **rule)
    ]


def dynamic(
    guarantee: Guarantee,
    horizon: int | None = _TICKS,
    *,
    histogram: bool = True,
    feed: Callable[[int], list[Any]] = by_name,
    truth: Callable[[list[Any]], list[dict[str, int]]] | None = None,
    users: bool = False,
    **options: Any,
) -> Subject:
    """A histogram, or its sum, of what is present."""
    rule: dict[str, Any] = {
        name: options[option]
        for name, option in (("lifetimes", "lifetimes"), ("longest", "max_lifetime"))
        if option in options
    }

    def make(key: Any) -> Any:
        common = {"guarantee": guarantee, "horizon": horizon, "key": key} | options
        if users:
            common |= {"unit": "user", "max_events_per_user": 3, "protects": "event"}
        return DynamicHistogram(categories=_LABELS, **common) if histogram else DynamicCount(**common)

    def exact(ticks: list[Any]) -> list[Any]:
        tables = truth(ticks) if truth is not None else _histograms(ticks, **rule)
        return tables if histogram else [sum(table.values()) for table in tables]

    def known(n: int) -> list[Any]:
        """A count has no labels that are unknown."""
        return feed(n) if histogram else [[r for r in records if r[1] != "nowhere"] for records in feed(n)]

    words = [repr(guarantee), f"T={horizon}", *(f"{k}={v}" for k, v in options.items()), *(["users"] if users else [])]
    return Subject(
        name=f"Dynamic{'Histogram' if histogram else 'Count'}({', '.join(words)})",
        make=make,
        feed=known,
        truth=exact,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        growth=1024,  # names that live, or have lived
        users=users,
        # The law of every draw is compared with its charge elsewhere (tests/statistics/test_dynamic.py, tests/dynamic).
        runs=300,
    )


def numbered(n: int) -> list[list[Any]]:
    """The same as `by_name`, with whole numbers for values; some lie outside."""
    return [
        [(action, None if label is None else (7 * t + i) % 17, name) for i, (action, label, name) in enumerate(records)]
        for t, records in enumerate(by_name(n))
    ]


def _values_present(ticks: list[list[Any]], size: int) -> list[list[int]]:
    living: dict[str, int] = {}
    used: set[str] = set()
    seen = []
    for records in ticks:
        for action, value, name in records:
            if action in ("insert", True) and 0 <= value < size:
                if name not in used:
                    living[name] = value
                    used.add(name)
            elif action in ("delete", -1):
                living.pop(name, None)
        seen.append(list(living.values()))
    return seen


_RANGES = [(0, 3), (2, 9)]


def ranges(guarantee: Guarantee, shown: list[tuple[int, int]] = _RANGES, **options: Any) -> Subject:
    """Ranges over 16 cells."""

    def truth(ticks: list[list[Any]]) -> list[Any]:
        return [
            {f"{low}..{high}": sum(low <= value <= high for value in living) for low, high in shown}
            for living in _values_present(ticks, 16)
        ]

    words = [repr(guarantee), *(f"{k}={v}" for k, v in options.items())]
    return Subject(
        name=f"DynamicRange({', '.join(words)}, {len(shown)} shown)",
        make=lambda key: DynamicRange(size=16, ranges=shown, guarantee=guarantee, horizon=_TICKS, key=key, **options),
        feed=numbered,
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        growth=1024,
        independent_numbers=len(shown) == 1,
        runs=200 if len(shown) == 1 else RUNS_OF_BOUNDS,
    )


def _pairs(n: int) -> list[list[Any]]:
    return [[(a, None if v is None else (v % 4, v // 5), name) for a, v, name in tick] for tick in numbered(n)]


def _in_boxes(ticks: list[list[Any]]) -> list[Any]:
    flat = [[(a, None if v is None or v[1] > 2 else 3 * v[0] + v[1], name) for a, v, name in tick] for tick in ticks]
    kept = [[record for record in tick if record[0] in ("delete", -1) or record[1] is not None] for tick in flat]
    return [
        {"0..1 x 0..2": sum(cell < 6 for cell in cells), "all x 1": sum(cell % 3 == 1 for cell in cells)}
        for cells in _values_present(kept, 12)
    ]


BOXES = Subject(
    name="LinearQueries(boxes, linear)",
    make=lambda key: LinearQueries(
        Boxes([4, 3]), show=[[(0, 1), None], [None, (1, 1)]], guarantee=PURE, horizon=_TICKS, key=key
    ),
    feed=_pairs,
    truth=lambda ticks: [{"0..1 x all": row["0..1 x 0..2"], "all x 1": row["all x 1"]} for row in _in_boxes(ticks)],
    garbage=GARBAGE,
    wrong_calls=_WRONG,
    growth=1024,
    independent_numbers=False,
    runs=RUNS_OF_BOUNDS,
)
_MOOD = Queries({"good": [1, 0.5, 0], "any": [1, 1, 1]}, _LABELS)
MOODS = Subject(
    name="LinearQueries(queries, matrix)",
    make=lambda key: LinearQueries(
        _MOOD, static="matrix", show={"well": "good", "so far": "any"}, guarantee=CONCENTRATED, horizon=None, key=key
    ),
    feed=by_name,
    truth=lambda ticks: [
        {"well": row["a"] + row["b"] / 2, "so far": float(sum(row.values()))} for row in _histograms(ticks)
    ],
    garbage=GARBAGE,
    wrong_calls=_WRONG,
    tolerance=1e-6,
    growth=1024,
    independent_numbers=False,
    runs=RUNS_OF_BOUNDS,
)


def unnamed(n: int) -> list[list[Any]]:
    """Insertions that are given tokens, which nobody uses: they go when their time is over."""
    return [[("insert", _LABELS[(t + i) % 3]) for i in range(t % 5)] for t in range(n)]


def _last_three(ticks: list[Any]) -> list[dict[str, int]]:
    return [
        {label: sum(r[1] == label for tick in ticks[max(0, t - 2) : t + 1] for r in tick) for label in _LABELS}
        for t in range(len(ticks))
    ]


def _floored(ticks: list[Any]) -> list[dict[str, int]]:
    return copies_by_value(ticks, floor=True)


def _signed(ticks: list[Any]) -> list[dict[str, int]]:
    return copies_by_value(ticks, floor=False)


DYNAMIC_MECHANISMS: tuple[Subject, ...] = (
    dynamic(PURE),
    dynamic(CONCENTRATED, histogram=False),
    dynamic(APPROXIMATE, None, histogram=False, protects="event"),
    dynamic(CONCENTRATED, None, lifetimes=3),
    dynamic(CONCENTRATED, max_lifetime=3, process="sqrt"),
    dynamic(CONCENTRATED, max_lifetime=5, process="path"),
    dynamic(APPROXIMATE, None, max_lifetime=1, process="path", histogram=False),
    dynamic(APPROXIMATE, None, max_lifetime=4, lifetimes=2, protects="event", histogram=False),
    dynamic(PURE, neighbours="replace", process="honaker"),
    dynamic(PURE, feed=by_value, truth=_floored, identity="value", protects="event"),
    dynamic(CONCENTRATED, feed=by_value, truth=_signed, identity="raw", protects="event"),
    dynamic(CONCENTRATED, feed=by_value, truth=_signed, identity="raw", unique_deletions=True, histogram=False),
    dynamic(CONCENTRATED, users=True, histogram=False),
    dynamic(CONCENTRATED, feed=unnamed, truth=_last_three, identity="token", max_lifetime=3, protects="event"),
    dynamic(PURE, None, feed=unnamed, truth=_last_three, identity="token", max_lifetime=3, histogram=False),
    ranges(PURE),
    ranges(CONCENTRATED, static="square-root"),
    ranges(CONCENTRATED, [(2, 9)], static="hierarchy", process="tree"),
    ranges(CONCENTRATED, [(2, 9)], max_lifetime=30, process="path"),
    BOXES,
    MOODS,
    dynamic(CONCENTRATED, mechanism="subtract"),
    dynamic(PURE, mechanism="interval-tree"),
    dynamic(
        APPROXIMATE,
        None,
        mechanism="interval-tree",
        lifetimes=2,
        max_lifetime=4,
        protects="event",
        construction={"max_rounds": 1},
    ),
    dynamic(
        CONCENTRATED,
        feed=by_value,
        truth=_floored,
        identity="value",
        protects="event",
        mechanism="interval-tree",
        construction={"max_segments": 31},
    ),
)
