"""Every mechanism that is built, in a configuration of realistic size, to be audited. A new one is one entry here.

`tight` says whether the worst case is known and can be shown: then the audit must find nearly the whole claim. Where
it is False, `why` says what is charged and not shown. `lacks` says what no audit of this list looks at. Of those that
have neither, the audit must be able to say that they hold.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from evertally import statistics
from evertally.audit.audited_active import ACTIVE
from evertally.audit.audited_applications import APPLICATIONS
from evertally.audit.audited_presence import PRESENCE
from evertally.audit.audited_users import USERS
from evertally.audit.audited_value_quantiles import VALUE_QUANTILES
from evertally.audit.audited_values import VALUES
from evertally.audit.entries import Audited
from evertally.counting import workloads
from evertally.dynamic import families
from evertally.histogram import expressions
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

_REFINED = "charged for all nodes, and the refined estimates show less than the nodes"
_RATIO = "the two sums are audited; their ratio is post-processing"
_ALL_COLUMNS = "an event in all columns shows most in H, and one in all but one most in the test"
_ONE_COLUMN = "an event moves the only count by the same while its interval waits and when it closes"
_MARGIN = "the thresholds climb with a margin, so that their noise decides little"
_LEVELS = "each level is shown against its half, and no transcript is at the thresholds of both"
_SEPARATE = "with a delta, closes and Gaussian noise of H are shown apart"
_ROTATES = "a mean hardly moves when an event is replaced"
_NOTHING = "it does not look at data, and loses nothing"
_COMES_AND_GOES = "what comes and what goes share noise, so one item shows less than two updates"
_TWO_LIVES = "charged for two lives, or two items, that show most at different ticks"
_SAME_NODES = "what comes and what goes share nodes, so one item shows less than two updates"
_ROUNDS = "charged for all levels and rounds of a node, of which one item meets a part"
_TESTS = "the scales of the test are those of the paper, which charge twice"
_TWO_TICKS = "two users show most in two ticks, which exact laws and games do not change at once"
_OTHER_BLOCKS = "charged for the worst of every two ticks or blocks, which no one path has all of"
_STATIC = "the noise of the static mechanism inside is audited in tests/dynamic, and taken for granted here"
_VECTORS = "sparse vectors are charged as in the paper, many times what they lose"


def _query(
    kind: str,
    guarantee: Guarantee,
    horizon: int | None,
    mechanism: str | None,
    section: str,
    why: str = "",
    first: Any = None,
    lacks: str = "",
    **options: Any,
) -> Audited:
    """A class of `evertally.statistics`. `mechanism` is None where its own default is meant; `first` is the first
    argument, if there is one that is not a keyword."""
    shown = (f"{name}={len(value) if isinstance(value, list) else value}" for name, value in options.items())
    words = [*(str(word) for word in (first, mechanism) if word is not None), repr(guarantee), f"T={horizon}", *shown]
    arguments = [] if first is None else [first]
    named = options if mechanism is None else options | {"mechanism": mechanism}
    return Audited(
        f"{kind}({', '.join(words)})",
        lambda key: getattr(statistics, kind)(*arguments, guarantee=guarantee, horizon=horizon, key=key, **named),
        section,
        tight=not why,
        why=why,
        ticks=127 if horizon is None else None,
        lacks=lacks,
    )


_counter = partial(_query, "Counter")
_construction = partial(_query, lacks=_STATIC)

_TREE, _SQRT = "streaming-selection 3.1, price-of-continual-release 3.2", "factorization-counting 4 and 11"
_TABLE = "factorization-counting 6.3"
_BY_AGES = "factorization-counting 6.10, additions 11"
_LABELS = ["a", "b", "c", "d", "e"]
_COUNTERS, _RECOMPUTE = "price-of-continual-release 3.2-3.4", "price-of-continual-release 3.5-3.7"
_PARTITION, _VARIANT = "parameterized-histograms 2.2, 4", "parameterized-histograms 2.2, 7.2"
_META, _SWITCHES, _BASE = "streaming-selection 5", "streaming-selection 6", "streaming-selection 3.4"
_USERS, _TRIVIAL = "price-of-continual-release 9.5", "price-of-continual-release 3.1"
_WEIGHTS, _INDEPENDENT = "factorization-counting 2.4", "parameterized-histograms 1.2"
_ONE_WAY = "parameterized-histograms 2.2, additions 7"
_TWO, _UNKNOWN = "parameterized-histograms 2.5, 5.4", "streaming-selection 4 and 7.2"
_LIMITED = "streaming-selection 7.2 and 7.5"
_OBLIVIOUS, _FIXED = ApproxDP(4.0, 1e-6, adversary="oblivious"), ZCDP(0.5, adversary="oblivious")
# One of five columns, replaced: then the change of a row can make up for both noises of a test.
_ONE: dict[str, Any] = {"columns": 5, "max_per_event": 1, "neighbours": "replace"}
_BUSY: dict[str, Any] = _ONE | {"largest": 10_000, "max_events_per_tick": 100}
_CROWD: dict[str, Any] = {"largest": 2400, "max_events_per_tick": 100}
_USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 2}
_WEEKLY: dict[str, Any] = {"unit": "user", "max_ticks_per_user": 3, "min_separation": 5}
_REPLACED, _APART = "users-and-domains 1.2", "users-and-domains 1.3"
_COUNTED, _EXPIRING, _ANEW = "dynamic-data 13.1", "dynamic-data 13.2", "dynamic-data 13.3"
_INSERTED, _SUBTRACTED, _INTERVALS = "dynamic-data 5", "dynamic-data 6.1", "dynamic-data 6.2-6.10"
_WARDS: dict[str, Any] = {"categories": _LABELS}
_EVENT: dict[str, Any] = {"protects": "event"}
_CLOSE: dict[str, Any] = {"construction": {"svt": "cumulative"}}
_MANY = families.Queries({"x": [1, 0, 1, 0], "y": [0, 1, 1, 0], "z": [0.5, 0.5, 0, 1]}, ["p", "q", "r", "s"])
_SELECTED: dict[str, Any] = {"first": 2, "columns": _LABELS, "switches": 3}

AUDITED: tuple[Audited, ...] = (
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
    _counter(CONCENTRATED, 365, "bank", "optimal-counting 2.2 and 2.4"),
    _counter(CONCENTRATED, 2, "bank", "optimal-counting 2.2 and 2.4"),
    _query("VectorCounter", CONCENTRATED, 100, "bank", "optimal-counting 2.3", columns=2, neighbours="replace"),
    _counter(CONCENTRATED, None, "bank-open", "optimal-counting 2.2 and 5"),
    _query("VectorCounter", CONCENTRATED, None, "bank-open", "optimal-counting 2.3", columns=2, neighbours="replace"),
    _counter(PURE, 128, "pure-blocks", "optimal-counting 6"),
    _counter(PURE, 4096, "pure-blocks", "optimal-counting 6"),
    _query("VectorCounter", PURE, 64, "pure-blocks", "optimal-counting 6", columns=2, neighbours="replace"),
    _counter(PURE, None, "epoch-blocks", "optimal-counting 6"),
    _counter(APPROXIMATE, 365, "auto", "optimal-counting 2.2, exact curve"),
    _query("VectorCounter", APPROXIMATE, 100, "bank", "optimal-counting 2.2, exact curve", columns=2),
    _query("Histogram", CONCENTRATED, 100, "sqrt", _TABLE, categories=_LABELS),
    _query("VectorCounter", CONCENTRATED, 100, "sqrt", _SQRT, columns=3),
    # weights by age
    _counter(CONCENTRATED, 100, "root", _BY_AGES, workload=workloads.Decay("0.9")),
    _counter(CONCENTRATED, 100, "bank", _BY_AGES, workload=workloads.Decay("0.99")),
    _counter(PURE, None, "input", _BY_AGES, workload=workloads.Window(3)),
    # what one event, or one user, can change
    _counter(CONCENTRATED, 100, "auto", _WEIGHTS, max_weight=10, neighbours="replace"),
    _counter(PURE, 100, "auto", _WEIGHTS, max_weight=3, signed=True, neighbours="replace"),
    _counter(CONCENTRATED, 100, "auto", _USERS, unit="user", max_events_per_user=4),
    _counter(CONCENTRATED, 24, "tree", _REPLACED, neighbours="replace", radix=2, why=_TWO_TICKS, **_USER),
    _query("RunningMean", CONCENTRATED, 24, None, _REPLACED, lower=0, upper=10, neighbours="replace", **_USER),
    _counter(CONCENTRATED, 24, "banded", _APART, **_WEEKLY),
    _counter(CONCENTRATED, 24, "sqrt", _APART, why=_OTHER_BLOCKS, calendar=True, first_block=3, **_WEEKLY),
    _query("Histogram", CONCENTRATED, 24, None, _APART, categories=_LABELS, neighbours="replace", **_WEEKLY),
    _query("Histogram", PURE, 365, None, _TABLE, categories=_LABELS),
    _query("Histogram", CONCENTRATED, 365, None, _TABLE, categories=_LABELS, max_per_event=3),
    _query("Histogram", CONCENTRATED, 100, None, _TABLE, categories=_LABELS, max_per_event=2, neighbours="replace"),
    _query(
        "Histogram", PURE, 100, None, _TABLE, categories=_LABELS, max_per_event=2, protects="item", neighbours="replace"
    ),
    _query("Histogram", CONCENTRATED, 100, None, _TABLE, categories=_LABELS, other="rest"),
    _query("Histogram", CONCENTRATED, 100, None, _USERS, categories=_LABELS, neighbours="replace", **_USER),
    _query("VectorCounter", _FIXED, 100, None, _INDEPENDENT, columns=3, max_per_event=3, neighbours="independent"),
    _query("VectorCounter", CONCENTRATED, 250, "tree", _TREE, columns=3, memory_limit=60),
    _query("VectorCounter", PURE, 100, None, _TABLE, columns=3, max_weight=2, signed=True, neighbours="replace"),
    _query("RunningMean", CONCENTRATED, 100, None, "factorization-counting 6.2", lower=0, upper=10),
    _query("RunningMean", PURE, 100, None, "factorization-counting 6.2", lower=0, upper=10, neighbours="replace"),
    # questions about column sums: counters
    _query("MaxSum", PURE, 365, "tree", _COUNTERS, **_ONE),
    _query("MaxSum", CONCENTRATED, 365, "sqrt", _COUNTERS, **_ONE),
    _query("MaxSum", PURE, None, "epoch-tree", _COUNTERS, **_ONE),
    _query("MaxSum", PURE, None, "epoch-blocks", _COUNTERS, **_ONE),
    _query("MaxSum", PURE, 100, "pure-blocks", _COUNTERS, **_ONE),
    _query("MaxSum", CONCENTRATED, 100, "bank", _COUNTERS, **_ONE),
    _query("MaxSum", CONCENTRATED, None, "bank-open", _COUNTERS, **_ONE),
    _query("TopKSelect", CONCENTRATED, 100, "bank", _COUNTERS, first=2, columns=3, max_per_event=1),
    _query("MaxSum", _FIXED, 100, "tree", _INDEPENDENT, columns=3, neighbours="independent"),
    _query("SumSelect", PURE, 100, "tree", _COUNTERS, columns=3, **_USER),
    _query("TopKSelect", CONCENTRATED, 100, "sqrt", _COUNTERS, first=2, columns=3, max_per_event=1),
    # partitions: every rule, with every law that it takes
    _query("MaxSum", PURE, 1000, "rebased", _VARIANT, **_BUSY),
    _query("MaxSum", PURE, 1000, "rebased", _ONE_WAY, **(_BUSY | {"neighbours": "add_remove"})),
    _query("MaxSum", PURE, 1000, "doubling", _ONE_WAY, **(_BUSY | {"neighbours": "add_remove"})),
    _query("MaxSum", APPROXIMATE, None, "rebased", _VARIANT, why=_SEPARATE, **(_BUSY | {"largest": 100_000})),
    _query("MaxSum", ApproxDP(20.0, 1e-6), None, "rebased", _VARIANT, why=_SEPARATE, columns=4, **_CROWD),
    _query("MaxSum", CONCENTRATED, 1000, "rebased", _VARIANT, **_BUSY),
    _query("MaxSum", PURE, 1000, "bounded", _PARTITION, **_BUSY),
    _query("MaxSum", PURE, 1000, "bounded", _ONE_WAY, why=_ALL_COLUMNS, columns=5, **_USER),
    _query("MaxSum", PURE, 1000, "noisy-ladders", _PARTITION, why=_MARGIN, **_BUSY),
    _query("MaxSum", APPROXIMATE, 1000, "noisy-ladders", _PARTITION, why=_SEPARATE, **_BUSY),
    _query("MaxSum", PURE, 1000, "doubling", "parameterized-histograms 2.2, 5.1", **_BUSY),
    _query("MaxSum", PureDP(4.0), 1000, "two-level", _TWO, why=_LEVELS, **_BUSY),
    _query("MaxSum", _OBLIVIOUS, 1000, "two-level", _TWO, why=_SEPARATE, **_BUSY),
    _query("MinSum", PURE, 1000, "rebased", _VARIANT, **_BUSY),
    _query("SumQuantile", PURE, 1000, "rebased", _VARIANT, first="1/2", **_BUSY),
    _query("TopK", PURE, 1000, "rebased", _VARIANT, first=2, **_BUSY),
    _query("TopK", PURE, 1000, "noisy-ladders", _PARTITION, why=_MARGIN, first=2, **_BUSY),
    _query("TopK", PureDP(4.0), 1000, "two-level", _TWO, why=_LEVELS, first=2, **_BUSY),
    _query("SumSelect", PURE, 1000, "rebased", _VARIANT, **_BUSY),
    _query("SumSelect", PureDP(4.0), 1000, "two-level", _TWO, why=_LEVELS, **_BUSY),
    _query("TopKSelect", PURE, 1000, "rebased", _VARIANT, first=2, **_BUSY),
    _query("TopKSelect", PURE, 1000, "intervals", _VARIANT, first=2, **_BUSY),
    _query("TopKSelect", PURE, 1000, "noisy-ladders", _PARTITION, why=_MARGIN, first=2, **_BUSY),
    _query("TopKSelect", PURE, 1000, "doubling", "parameterized-histograms 2.2, 5.1", first=2, **_BUSY),
    _query("MonotoneQuery", PURE, 1000, "intervals", _VARIANT, why=_ROTATES, first=expressions.Mean(), **_BUSY),
    _query("MonotoneQuery", PURE, 1000, "rebased", _VARIANT, first=expressions.Maximum(), **_BUSY),
    _query("Counter", PURE, 1000, "sparse", "parameterized-histograms 4.5", why=_ONE_COLUMN, largest=10_000),
    _query("Histogram", PURE, 1000, "sparse", _VARIANT, categories=_LABELS, largest=1000, neighbours="replace"),
    # recomputation and constants
    _query("MaxSum", PURE, 100, "recompute", _RECOMPUTE, **_ONE),
    _query("TopK", CONCENTRATED, 100, "recompute", _RECOMPUTE, first=2, columns=5),
    _query("SumSelect", PURE, 100, "recompute", _RECOMPUTE, **_ONE),
    _query("SumSelect", CONCENTRATED, 100, "recompute", _RECOMPUTE, **_ONE),
    _query("SumSelect", PURE, 100, "recompute", "additions 7", columns=5, max_per_event=1),
    _query("SumSelect", CONCENTRATED, 100, "recompute", "additions 7", columns=5, max_per_event=1),
    _query("MaxSum", PURE, 100, "trivial", _TRIVIAL, why=_NOTHING, largest=50, columns=5),
    _query("SumSelect", PURE, 100, "trivial", _TRIVIAL, why=_NOTHING, largest=50, columns=5),
    # labels
    _query("UnknownHistogram", APPROXIMATE, 365, "tree", _UNKNOWN),
    _query("UnknownHistogram", APPROXIMATE, 365, "tree", _LIMITED, max_labels=20_000),
    _query("UnknownHistogram", APPROXIMATE, 100, "meta", "streaming-selection 5 and 7"),
    _query("UnknownTopK", APPROXIMATE, 365, "tree", _UNKNOWN, first=2),
    _query("UnknownTopK", APPROXIMATE, 100, "meta", "streaming-selection 5 and 7", first=2),
    _query("StreamingTopK", APPROXIMATE, 100, "sparse-gumbel", _SWITCHES, **_SELECTED),
    _query("StreamingTopK", _FIXED, 100, "sparse-gumbel", "streaming-selection 6.2", why=_VECTORS, **_SELECTED),
    _query("StreamingTopK", CONCENTRATED, 100, "meta", _META, first=2, columns=_LABELS),
    _query("StreamingTopK", CONCENTRATED, 100, "meta-gauss", _META, first=2, columns=3),
    _query("StreamingTopK", CONCENTRATED, 100, "tree", _BASE, first=2, columns=3),
    _query("StreamingTopK", CONCENTRATED, 100, "bank", _BASE, first=2, columns=3),
    _query("StreamingTopK", PURE, 100, "pure-blocks", _BASE, first=2, columns=3, max_per_event=1),
    _query("StreamingTopK", PURE, 100, "tree", _BASE, first=2, columns=3, max_per_event=1),
    # what is present now: counted
    _query("DynamicCount", CONCENTRATED, 365, "linear", _COUNTED, why=_COMES_AND_GOES),
    _query("DynamicCount", PURE, 365, "linear", _COUNTED, why=_COMES_AND_GOES),
    _query("DynamicCount", APPROXIMATE, None, "linear", _COUNTED, why=_COMES_AND_GOES, **_EVENT),
    _query("DynamicCount", CONCENTRATED, None, "linear", _EXPIRING, max_lifetime=168),
    _query("DynamicHistogram", PURE, None, "linear", _COUNTED, process="epoch-tree", identity="token", **_WARDS),
    _query(
        "DynamicHistogram", PURE, None, "linear", _COUNTED, process="epoch-tree", identity="token", **_EVENT, **_WARDS
    ),
    _query(
        "DynamicHistogram", PURE, None, "linear", _COUNTED, process="epoch-tree", identity="value", **_EVENT, **_WARDS
    ),
    _query("DynamicHistogram", CONCENTRATED, 100, "linear", _COUNTED, identity="raw", **_EVENT, **_WARDS),
    _query("DynamicHistogram", CONCENTRATED, 100, "linear", _COUNTED, why=_TWO_LIVES, **_EVENT, **_WARDS),
    _query("DynamicHistogram", PURE, None, "linear", _COUNTED, why=_TWO_LIVES, lifetimes=2, **_WARDS),
    _query("DynamicHistogram", CONCENTRATED, 100, "linear", _COUNTED, why=_TWO_LIVES, neighbours="replace", **_WARDS),
    _query("DynamicRange", PURE, None, "linear", _COUNTED, process="epoch-tree", size=16),
    _query("DynamicRange", CONCENTRATED, 100, "linear", _COUNTED, why=_COMES_AND_GOES, size=16),
    _query("LinearQueries", PURE, None, "linear", _COUNTED, process="epoch-tree", first=families.Boxes([4, 4])),
    _query("LinearQueries", CONCENTRATED, 100, "linear", _COUNTED, why=_COMES_AND_GOES, first=_MANY),
    # what is present now: constructions
    _construction("DynamicHistogram", PURE, 100, "anew", _ANEW, every=10, **_WARDS),
    _construction("DynamicHistogram", CONCENTRATED, None, "anew", _ANEW, every=10, max_lifetime=30, **_WARDS),
    _construction(
        "LinearQueries",
        PURE,
        None,
        "anew",
        _ANEW,
        first=_MANY,
        static="multiplicative-weights",
        every=5,
        max_lifetime=9,
    ),
    _construction("DynamicHistogram", PURE, 100, "tree", _INSERTED, why=_SAME_NODES, **_WARDS),
    _construction("DynamicCount", CONCENTRATED, None, "doubling", _INSERTED, deletions=False),
    _construction(
        "DynamicHistogram", PURE, 100, "doubling", _INSERTED, partition="finite", deletions=False, **_CLOSE, **_WARDS
    ),
    _construction("DynamicCount", PURE, None, "doubling", _INSERTED, why=_TESTS, partition="infinite", deletions=False),
    _construction("DynamicHistogram", PURE, 100, "subtract", _SUBTRACTED, **_WARDS),
    _construction("DynamicHistogram", ZCDP(8.0), None, "subtract", _SUBTRACTED, identity="raw", **_EVENT, **_WARDS),
    _construction(
        "DynamicHistogram", APPROXIMATE, 100, "subtract", _SUBTRACTED, why=_TESTS, partition="finite", **_WARDS
    ),
    _construction("DynamicHistogram", PURE, 100, "interval-tree", _INTERVALS, why=_ROUNDS, **_WARDS),
    _construction("DynamicHistogram", CONCENTRATED, None, "interval-tree", _INTERVALS, why=_ROUNDS, **_WARDS),
    _construction(
        "DynamicHistogram",
        ApproxDP(8.0, 1e-6),
        None,
        "interval-tree",
        _INTERVALS,
        why=_ROUNDS,
        partition="infinite",
        **_WARDS,
    ),
    *APPLICATIONS,
    *ACTIVE,
    *USERS,
    *PRESENCE,
    *VALUES,
    *VALUE_QUANTILES,
)
