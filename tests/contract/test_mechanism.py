"""The corners of the contract: refusals before the stream starts, silent bounding afterwards, addresses of noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.inputs import as_integers
from evertally.contract.ticks import LAST_TICK
from evertally.counting.processes import COMPARED_AT, OURS
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused
from evertally.noise import ZeroNoise

ZC, PURE = et.ZCDP(0.5), et.PureDP(1.0)


def counter(**options: Any) -> et.Counter:
    return et.Counter(**({"guarantee": ZC, "horizon": 10, "key": ZeroNoise()} | options))


def vector(columns: Any = 3, **options: Any) -> et.VectorCounter:
    return et.VectorCounter(columns, **({"guarantee": ZC, "horizon": 10, "key": ZeroNoise()} | options))


# -- refused at construction -------------------------------------------------------------------------------------------

REFUSED = [
    {"horizon": 0},
    {"horizon": -1},
    {"horizon": 1.5},
    {"horizon": "10"},
    {"horizon": True},
    {"horizon": 2**40 + 1},
    {"mechanism": "binary"},
    {"mechanism": "Tree"},
    {"guarantee": PURE, "mechanism": "sqrt"},
    {"guarantee": PURE, "mechanism": "bank"},
    {"guarantee": PURE, "horizon": None, "mechanism": "bank-open"},
    {"mechanism": "pure-blocks"},
    {"horizon": None, "mechanism": "epoch-hybrid"},  # of an earlier version
    {"horizon": None, "mechanism": "bank"},
    {"horizon": None, "mechanism": "tree"},
    {"horizon": None, "mechanism": "honaker"},
    {"horizon": None, "mechanism": "sqrt"},
    {"horizon": 10, "mechanism": "epoch-tree"},
    {"horizon": 10, "mechanism": "bank-open"},
    {"horizon": 2**22 + 1, "mechanism": "sqrt", "memory_limit": 2**40},
    {"horizon": 1000, "mechanism": "sqrt", "memory_limit": 7999},
    {"horizon": 1000, "mechanism": "honaker", "memory_limit": 639},
    {"mechanism": "tree", "memory_limit": 7},
    {"horizon": None, "mechanism": "bank-open", "memory_limit": 79},
    {"memory_limit": 0},
    {"memory_limit": 1.5},
    {"mechanism": "tree", "radix": 1},
    {"mechanism": "tree", "radix": 11},
    {"mechanism": "tree", "radix": "fast"},
    {"neighbours": "swap"},
    {"neighbours": "independent"},
    {"guarantee": PURE, "neighbours": "independent"},
    {"guarantee": 1.0},
    {"guarantee": "PureDP"},
    {"max_weight": 0},
    {"max_weight": 1.5},
    {"max_weight": 2**41},
    {"horizon": None, "max_weight": 2**30},
    {"horizon": 2**40, "max_weight": 2**22},
    {"unit": "person"},
    {"unit": "user"},
    {"max_events_per_user": 3},
    {"unit": "user", "max_events_per_user": 0},
    {"max_window": -1},
    {"max_window": 2.5},
    # noise scales outside of [0.1, 2^40] on the integers, noise beyond 2^50 on the reals
    {"guarantee": et.PureDP(1000), "horizon": 1, "mechanism": "tree"},
    {"guarantee": et.PureDP(Fraction(1, 2**41)), "mechanism": "tree"},
    {"guarantee": et.PureDP(Fraction(1, 2**50))},
    {"guarantee": et.ZCDP(10**6), "mechanism": "tree"},
    {"guarantee": et.ZCDP(Fraction(1, 2**90)), "mechanism": "tree"},
    {"guarantee": et.ZCDP(Fraction(1, 2**100))},
    {"guarantee": et.ZCDP(Fraction(1, 2**60)), "mechanism": "sqrt"},
]


@pytest.mark.parametrize("options", REFUSED, ids=repr)
def test_refused_before_the_stream_starts(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        counter(**options)


@pytest.mark.parametrize("options", [{"colour": 1}, {"max_per_event": 2}])
def test_unknown_options_are_mistakes_in_the_call(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        counter(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": 0},
        {"columns": -1},
        {"columns": []},
        {"columns": "abc"},
        {"columns": ["a", "a"]},
        {"columns": ["a", "b"], "other": "a"},
        {"columns": ["e\u0301", "\u00e9"]},
        {"columns": ["a", None]},
        {"max_per_event": 0},
        {"protects": "user"},
        {"protects": "item", "unit": "user", "max_events_per_user": 2},
        {"neighbours": "independent", "guarantee": et.ZCDP(1, adversary="oblivious"), "max_per_event": 2},
    ],
    ids=repr,
)
def test_refused_columns(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        vector(**options)


@pytest.mark.parametrize("beta", [0, 1, -0.1, 1.5, float("nan"), float("inf")])
def test_beta_is_a_probability(beta: float) -> None:
    c = counter(key=et.simulation(0))
    mean = et.RunningMean(lower=0, upper=1, guarantee=ZC, horizon=5, key=et.simulation(0))
    for call in (
        lambda: c.error_bound(beta),
        lambda: c.error_bound(beta, t=3),
        lambda: c.step(1).interval(beta),
        lambda: mean.error_bound(beta),
        lambda: mean.step([1.0]).interval(beta),
        lambda: counter(horizon=None).error_bound(beta, t=1),
    ):
        with pytest.raises(ConfigurationError):
            call()


@pytest.mark.parametrize("t", [0, -1, 11, 2.0, "3", True])
def test_ticks_outside_of_the_stream_have_no_error(t: Any) -> None:
    with pytest.raises(ConfigurationError):
        counter().stddev(t)
    with pytest.raises(ConfigurationError):
        counter().error_bound(0.1, t=t)


@pytest.mark.parametrize("guarantee", [PURE, ZC, et.ApproxDP(1, 1e-6)], ids=repr)
@pytest.mark.parametrize("horizon", [1, 2, 3, 10, None])
def test_auto_takes_the_smallest_deviation(guarantee: Any, horizon: int | None) -> None:
    def worst(c: et.Counter) -> float:
        deviation = c.stddev(2 * COMPARED_AT - 1) if horizon is None else c.noise.worst().stddev
        assert deviation is not None
        return deviation

    chosen = counter(guarantee=guarantee, horizon=horizon)
    assert chosen.mechanism in OURS
    for name in OURS:
        try:
            other = counter(guarantee=guarantee, horizon=horizon, mechanism=name)
        except ConfigurationError:
            continue
        assert worst(chosen) <= worst(other)


def test_auto_passes_over_processes_whose_scale_is_out_of_range() -> None:
    """The square root works on a grid of 2^-16: its variance is out of range long before that of a tree, or in range
    long after. A bank is refused where its whole path might leave the range of exact numbers."""
    wide = {"guarantee": et.ZCDP(0.01), "horizon": 1000, "max_weight": 2**23}
    with pytest.raises(ConfigurationError):
        counter(mechanism="sqrt", **wide)
    assert counter(**wide).mechanism == "bank"
    wider = {"guarantee": et.ZCDP(Fraction(1, 2**27)), "horizon": 2**14, "max_weight": 2**25}
    for name in ("sqrt", "bank"):
        with pytest.raises(ConfigurationError):
            counter(mechanism=name, **wider)
    assert counter(**wider).mechanism in ("tree", "honaker")
    narrow = {"guarantee": et.ZCDP(1000), "horizon": 100}
    with pytest.raises(ConfigurationError):
        counter(mechanism="tree", **narrow)
    assert counter(**narrow).mechanism == "bank"


def test_auto_falls_back_to_trees_where_memory_ends() -> None:
    assert counter(horizon=10**4, memory_limit=48).mechanism == "bank"
    assert counter(horizon=10**4, memory_limit=47).mechanism == "tree"
    assert counter(horizon=None, memory_limit=80).mechanism == "bank-open"
    assert counter(horizon=None, memory_limit=79).mechanism == "epoch-tree"
    assert counter(guarantee=PURE, horizon=10**4).mechanism == "pure-blocks"
    assert counter(guarantee=PURE, horizon=10**4, memory_limit=100).mechanism == "tree"
    assert not len(counter(horizon=10**4, memory_limit=20).noise._latest), "noise is drawn again, not kept"


# -- bounded silently --------------------------------------------------------------------------------------------------

LIMIT = 2**61 // 10  # totals of a tick for horizon 10

TOTALS = [
    (0, 0),
    (7, 7),
    (True, 1),
    (np.int8(-3), 0),
    (np.uint64(2**64 - 1), LIMIT),
    (np.array(5), 5),
    (-1, 0),
    (-(10**30), 0),
    (10**30, LIMIT),
    (2**63, LIMIT),
    (2**62, LIMIT),
    (LIMIT, LIMIT),
    (LIMIT + 1, LIMIT),
]


@pytest.mark.parametrize(("total", "counted"), TOTALS, ids=repr)
def test_totals_out_of_range_are_clipped(total: Any, counted: int) -> None:
    assert counter().step(total).value == counted
    assert counter(signed=True).step(total).value == (
        counted if counted or int(total) >= 0 else max(-LIMIT, int(total))
    )
    assert vector(1).step([total]).value.tolist() == [counted]
    assert vector(["a"]).step({"a": total}).value.tolist() == [counted]


def test_the_running_sum_stays_in_range() -> None:
    c = counter(signed=True)
    assert c.run([10**30] * 10)[-1] == 10 * LIMIT < 2**61
    c = counter(signed=True)
    assert c.run([-(10**30)] * 10)[-1] == -10 * LIMIT
    v = vector(["a"], other="rest", horizon=1)
    assert v.step({f"label {i}": 2**62 for i in range(9)}).value.tolist() == [0, 2**61], "no wrap-around in `other`"


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.lists(st.one_of(st.integers(-5, 5), st.integers(-(2**70), 2**70), st.booleans()), min_size=1, max_size=10))
def test_run_takes_any_integers_like_step(x: list[int]) -> None:
    """Among others [2**63, -1], which numpy would turn into floats."""
    for signed in (False, True):
        one, many = counter(signed=signed), counter(signed=signed)
        assert many.run(x).tolist() == [one.step(value).value for value in x]
        columns = vector(2, signed=signed)
        assert columns.run([[value, -int(value)] for value in x]).shape == (len(x), 2)


def test_integers_of_every_type() -> None:
    for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"):
        assert as_integers(np.array([1, 0, 1], dtype=kind)).tolist() == [1, 0, 1]
    assert as_integers([np.uint64(2**63), np.int64(-1)]).tolist() == [2**62, -1]
    assert as_integers(np.array([1, 10**40, -(10**40)], dtype=object)).tolist() == [1, 2**62, -(2**62)]
    assert as_integers([]).dtype == np.int64
    assert counter().run([]).shape == (0,)
    assert vector().run(np.empty((0, 3), dtype=int)).shape == (0, 3)
    assert counter().run(np.array([3, 200], dtype=np.uint8)).tolist() == [3, 203], "never add in the row's type"


WRONG = [
    "7",
    b"7",
    1.5,
    2.0,
    None,
    float("nan"),
    [1],
    [1, 2],
    {"a": 1},
    (),
    object(),
    1j,
    np.array([1.0]),
    np.float64(3),
]


@pytest.mark.parametrize("x", WRONG, ids=lambda x: type(x).__name__)
def test_wrong_types_use_no_tick(x: Any) -> None:
    c = counter(key=et.simulation(1))
    before = c.snapshot()
    with pytest.raises(TypeError):
        c.step(x)
    assert c.snapshot() == before


@pytest.mark.parametrize("x", [7, "abc", [[1, 2], [3]], [[1.0]], [None], [[1]], np.zeros((2, 2)), {"a": [1]}], ids=repr)
def test_wrong_runs_use_no_tick(x: Any) -> None:
    c = counter(key=et.simulation(1))
    before = c.snapshot()
    with pytest.raises(TypeError):
        c.run(x)
    assert c.snapshot() == before
    v = vector(key=et.simulation(1))
    with pytest.raises(TypeError):
        v.run(x)
    assert v.tick == 0


@pytest.mark.parametrize("x", [[1, 2], [1, 2, 3, 4], [1, 2, 0.5], 3, "abc", None, {"0": 1.5}, {"0": None}], ids=repr)
def test_wrong_rows_use_no_tick(x: Any) -> None:
    v = vector(key=et.simulation(1))
    before = v.snapshot()
    with pytest.raises(TypeError):
        v.step(x)
    assert v.snapshot() == before


@pytest.mark.parametrize("events", [5, "abc", b"ab", {"a": 1}, {1, 2}, None, np.zeros((2, 2)), (i for i in range(3))])
def test_wrong_containers_use_no_tick(events: Any) -> None:
    for mechanism in (counter(key=et.simulation(1)), vector(key=et.simulation(1))):
        before = mechanism.snapshot()
        with pytest.raises(TypeError):
            mechanism.step_events(events)
        assert mechanism.snapshot() == before
    mean = et.RunningMean(lower=0, upper=1, guarantee=ZC, horizon=5, key=et.simulation(1))
    with pytest.raises(TypeError):
        mean.step(events)
    assert mean.tick == 0


def test_errors_do_not_repeat_the_content() -> None:
    for call in (
        lambda: counter().step("secret"),
        lambda: counter().step([1, 424242]),
        lambda: vector().step({"0": "secret"}),
        lambda: vector().step({"secret": 0.424242}),
        lambda: vector().run([[424242, 1]]),
        lambda: counter().step_events("secret"),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert "secret" not in str(caught.value)
        assert "424242" not in str(caught.value)


def test_replay_compares_what_was_counted() -> None:
    c = counter(key=et.simulation(1))
    first = c.step(-5, tick=1)
    assert c.step(-7, tick=1) == first, "both totals count as 0"
    with pytest.raises(ReplayRefused):
        c.step(1, tick=1)
    assert c.step_events([], tick=1) == first
    with pytest.raises(ReplayRefused):
        c.step_events([1], tick=1)
    assert c.tick == 1


@pytest.mark.parametrize("tick", [1.0, "1", True, [1], np.float64(1)], ids=repr)
def test_a_tick_is_a_whole_number(tick: Any) -> None:
    c = counter(key=et.simulation(1), unit="user", max_events_per_user=1)
    plain = counter(key=et.simulation(1))
    before = c.snapshot()
    for call in (lambda: plain.step(1, tick=tick), lambda: c.step_events([1], users=["ann"], tick=tick)):
        with pytest.raises(TypeError, match="tick"):
            call()
    assert c.snapshot() == before
    assert c.step_events([1], users=["ann"], tick=np.int64(1)).tick == 1
    assert et.restore(c.snapshot(), key=et.simulation(1)).tick == 1


def test_the_end_of_an_unbounded_stream() -> None:
    c = counter(horizon=None, mechanism="epoch-tree")
    c.noise.seek(LAST_TICK - 1)
    c._kept = replace(c._kept, tick=LAST_TICK - 1)
    c._engine_tick = LAST_TICK - 1
    with pytest.raises(HorizonExceeded):
        c.run([0, 0])
    assert c.step(0).tick == LAST_TICK
    with pytest.raises(HorizonExceeded):
        c.step(0)
    with pytest.raises(HorizonExceeded):
        c.run([0])


# -- the door ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50, derandomize=True)
@given(
    st.lists(
        st.lists(st.one_of(st.integers(-3, 20), st.none(), st.floats(), st.text(max_size=2)), max_size=8), max_size=8
    )
)
def test_step_events_is_step_of_the_bounded_total(ticks: list[list[Any]]) -> None:
    def bounded(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            return 0
        return max(0, min(5, int(value)))

    options: dict[str, Any] = {"max_weight": 5, "key": et.simulation(2)}
    door, plain = counter(**options), counter(**options)
    for events in ticks:
        assert door.step_events(events).value == plain.step(sum(bounded(e) for e in events)).value
    assert door.snapshot() == plain.snapshot()


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "zebra", None]), max_size=8), max_size=8))
def test_step_events_of_labels_is_step_of_their_counts(ticks: list[list[Any]]) -> None:
    options: dict[str, Any] = {"other": "rest", "key": et.simulation(2)}
    door, plain = vector(["a", "b", "c"], **options), vector(["a", "b", "c"], **options)
    for events in ticks:
        row = [events.count(label) for label in ("a", "b", "c", "zebra")]
        assert door.step_events(events).value.tolist() == plain.step(row).value.tolist()
    arrow = vector(["a", "b", "c"], **options)
    for events in ticks:
        arrow.step_events(pa.array(events, type=pa.string()))
    assert door.snapshot() == plain.snapshot() == arrow.snapshot()


# -- addresses ---------------------------------------------------------------------------------------------------------


def path(**options: Any) -> tuple[int, ...]:
    """The noise of the first ticks: a stream of nothing."""
    made = counter(**({"key": et.simulation(9)} | options))
    if "unit" in options:
        return tuple(made.step_events([], users=[]).value for _ in range(10))
    return tuple(made.run([0] * 10).tolist())


def test_any_public_parameter_changes_the_noise() -> None:
    """Same key, other parameters: independent noise (design decision 1). Ten ticks of deviation 2 and more agree by
    chance with probability far below 1e-6."""
    changes: list[dict[str, Any]] = [
        {},
        {"key": et.simulation(10)},
        {"key": et.simulation(9).derive("x")},
        {"stream": "another"},
        {"name": "another"},
        {"stream": "counter", "name": "stream"},
        {"horizon": 11},
        {"horizon": None},
        {"guarantee": et.ZCDP(0.25)},
        {"guarantee": et.ZCDP(Fraction(1, 2) + Fraction(1, 2**80))},
        {"guarantee": et.ZCDP(0.5, adversary="oblivious")},
        {"guarantee": et.PureDP(1.0)},
        {"guarantee": et.ApproxDP(1.0, 1e-6)},
        {"guarantee": et.ApproxZCDP(0.5, 1e-6)},
        {"mechanism": "tree"},
        {"mechanism": "tree", "radix": 2},
        {"mechanism": "honaker"},
        {"neighbours": "replace"},
        {"max_weight": 2},
        {"signed": True},
        {"unit": "user", "max_events_per_user": 1},
        {"unit": "user", "max_events_per_user": 2},
        {"memory_limit": 2**29},
        {"max_window": 3},
        {"radix": 2},
    ]
    paths = [path(**change) for change in changes]
    for (a, first), (b, second) in combinations(zip(changes, paths, strict=True), 2):
        assert first != second, f"the same noise for {a} and {b}"
    assert path() == path(), "and the same parameters give the same noise"
    assert path(mechanism=counter().mechanism) == path(), "naming what auto chose changes nothing"


def test_classes_and_columns_have_their_own_noise() -> None:
    common: dict[str, Any] = {"guarantee": ZC, "horizon": 10, "key": et.simulation(9), "name": "one"}
    zeros = [0] * 10
    paths = [
        et.Counter(**common).run(zeros).tolist(),
        et.VectorCounter(1, **common).run([[0]] * 10)[:, 0].tolist(),
        et.VectorCounter(2, **common).run([[0, 0]] * 10)[:, 0].tolist(),
        et.VectorCounter(2, **common).run([[0, 0]] * 10)[:, 1].tolist(),
        et.VectorCounter(["a", "b"], **common).run([[0, 0]] * 10)[:, 0].tolist(),
        et.VectorCounter(["b", "a"], **common).run([[0, 0]] * 10)[:, 0].tolist(),
        et.VectorCounter(["a"], other="b", **common).run([[0, 0]] * 10)[:, 0].tolist(),
        et.VectorCounter(2, max_per_event=2, **common).run([[0, 0]] * 10)[:, 0].tolist(),
        et.VectorCounter(2, protects="item", **common).run([[0, 0]] * 10)[:, 0].tolist(),
        et.Histogram(categories=["a", "b"], **common).run([[0, 0]] * 10)[:, 0].tolist(),
    ]
    for first, second in combinations(paths, 2):
        assert first != second


def test_means_have_their_own_noise_for_every_range() -> None:
    common: dict[str, Any] = {"guarantee": ZC, "horizon": 10, "key": et.simulation(9)}
    ranges = [(0, 1, None), (0, 2, None), (-1, 1, None), (0, 1, 0.01), (0, 1, 0.02)]
    sums = []
    for lower, upper, resolution in ranges:
        mean = et.RunningMean(lower=lower, upper=upper, resolution=resolution, **common)
        mean.run([[]] * 10)
        sums.append(tuple(mean._kept.played.recent[-1].tolist()))
    assert len(set(sums)) == len(ranges)


def test_no_key_means_a_fresh_key_each_time() -> None:
    paths = {tuple(counter(key=None).run([0] * 10).tolist()) for _ in range(5)}
    assert len(paths) == 5
    assert counter(key=None).step(0).private
    drawn = counter(key=None)
    again = et.restore(drawn.snapshot(), key=drawn.key, allow_copy=True)
    assert drawn.run([1] * 10).tolist() == again.run([1] * 10).tolist()


# -- releases ----------------------------------------------------------------------------------------------------------


def test_full_runs_show_what_steps_show() -> None:
    for make in (
        lambda: counter(key=et.simulation(4)),
        lambda: counter(key=et.simulation(4), guarantee=PURE, horizon=None),
        lambda: vector(["x", "y"], key=et.simulation(4)),
    ):
        wide = hasattr(make(), "columns")
        x = [[1, 2]] * 8 if wide else [3] * 8
        table = make().run(x, full=True).to_pylist()
        stepped = make()
        rows = []
        for total in x:
            release = stepped.step(total)
            low, high = release.interval()
            if wide:
                for j, label in enumerate(stepped.columns):
                    rows.append((release.tick, label, int(release.value[j]), int(low[j]), int(high[j])))
            else:
                rows.append((release.tick, release.value, low, high))
        assert [tuple(row.values()) for row in table] == rows
    assert counter().run([], full=True).num_rows == 0


@pytest.mark.parametrize("mechanism", ["tree", "honaker", "sqrt"])
def test_a_process_fails_closed_at_its_horizon(mechanism: str) -> None:
    """The engine refuses first; a process that is asked all the same must not invent noise, loop or write elsewhere."""
    noise = counter(horizon=10, mechanism=mechanism, guarantee=ZC).noise
    noise.advance(9)
    with pytest.raises(et.HorizonExceeded):
        noise.advance(2)
    assert noise.advance(1).shape == (1, 1)
    with pytest.raises(et.HorizonExceeded):
        noise.advance(1)


def test_the_last_tick_of_a_run_is_replayed_as_it_was_counted() -> None:
    """Totals out of range are clipped before they are remembered: the same call again is the same input."""
    c = counter(horizon=10, key=et.simulation(3))
    values = c.run([1, -5])
    assert c.step(-5, tick=2).value == values[-1]
    assert c.step(0, tick=2).value == values[-1]
    with pytest.raises(ReplayRefused):
        c.step(1, tick=2)
