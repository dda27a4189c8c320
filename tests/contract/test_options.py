"""Signatures that people can read: full keyword lists, described parameters, hints, one meaning for an option."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally import statistics
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.counting.processes import PROCESSES
from evertally.integers import own_integer, whole

CLASSES = [getattr(statistics, name) for name in statistics.__all__]
EACH = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@EACH
def test_a_signature_lists_every_option(cls: type) -> None:
    parameters = inspect.signature(cls).parameters.values()
    assert {p.kind for p in parameters} <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    assert {"guarantee", "horizon", "mechanism", "neighbours", "unit", "key", "stream", "name"} <= {
        p.name for p in parameters
    }
    shown = pydoc.plain(pydoc.render_doc(cls))
    for p in parameters:
        assert f"        {p.name}: " in (cls.__doc__ or ""), "described in the docstring"
        assert p.name in shown


def test_an_option_has_one_description_and_one_default() -> None:
    """Where a statistic needs another default, its words say which: those are listed, so that none comes by chance."""
    told: dict[str, set[tuple[str, str]]] = {}
    for cls in CLASSES:
        for p in inspect.signature(cls).parameters.values():
            [line] = [x for x in (cls.__doc__ or "").splitlines() if x.startswith(f"        {p.name}: ")]
            told.setdefault(p.name, set()).add((line, repr(p.default)))
    several = {name for name, words in told.items() if len(words) > 1}
    # How much of an event is counted, and of what: columns, categories, items. An item of dynamic data is no part of an
    # event, but everything that names one thing: there the item is protected by default. A `Histogram` may do without
    # categories (it has edges) and without edges; a resolution that is left out is none, a part of the range, or 1.
    known = {"max_per_event", "max_weight", "max_events_per_tick", "protects"}
    assert several <= known | {"categories", "edges", "resolution"}
    assert {default for _, default in told["max_weight"]} == {"1"}
    assert {default for _, default in told["max_events_per_tick"]} == {"None"}


@EACH
def test_a_misspelt_option_is_met_with_a_hint(cls: type) -> None:
    with pytest.raises(TypeError, match=f"{cls.__name__} has no option 'neighbors'; did you mean 'neighbours'"):
        cls(neighbors="replace")
    with pytest.raises(TypeError, match="it has guarantee"):
        cls(zzzzzz=1)


def test_a_shown_mechanism_says_what_it_is_and_nothing_else() -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(1))
    counter.step(123456)
    assert repr(counter) == "<Counter 'counter' of stream 'stream': pure-blocks, PureDP(epsilon=1.0), tick 1 of 9>"
    assert "not made" in repr(object.__new__(et.Counter))


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (et.Counter, {"horizon": 16, "max_weight": 3, "max_window": 2, "memory_limit": 4096}),
        (et.VectorCounter, {"columns": 3, "horizon": 16, "max_per_event": 2}),
        (et.TopK, {"k": 2, "columns": 3, "horizon": 16, "largest": 100, "max_events_per_tick": 9}),
        (et.StreamingTopK, {"k": 1, "switches": 2, "columns": 3, "horizon": 16, "eta": 3}),
        (et.UnknownTopK, {"k": 2, "horizon": 16, "max_per_event": 2}),
        (et.Counter, {"horizon": 16, "unit": "user", "max_events_per_user": 2}),
    ],
)
def test_numpy_integers_are_integers(make: Any, options: dict[str, Any]) -> None:
    guarantee = et.ApproxDP(4.0, 1e-6)
    one = make(guarantee=guarantee, key=et.simulation(1), **options)
    numpys = {name: np.int64(value) if isinstance(value, int) else value for name, value in options.items()}
    other = make(guarantee=guarantee, key=et.simulation(1), **numpys)
    assert one.noise_fingerprint == other.noise_fingerprint
    assert other.snapshot() == one.snapshot()


class Liar(int):
    """Says that it is small."""

    def __lt__(self, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


def test_one_validator_that_no_number_talks_into_anything() -> None:
    assert (own_integer(Liar(7)), type(own_integer(Liar(7)))) == (7, int)
    for bad in (Liar(-5), Liar(11), True, 3.0, "3", None, np.bool_(True), np.float64(3)):
        with pytest.raises(et.ConfigurationError, match="k must be an integer from 0 to 10"):
            whole("k", bad, 0, 10)
    with pytest.raises(et.ConfigurationError, match="at least 1"):
        whole("k", 0, 1)


def test_t_is_short_for_tick() -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=9)
    assert counter.stddev(t=3) == counter.stddev(tick=3) == counter.stddev(3)
    assert counter.error_bound(0.1, t=3) == counter.error_bound(0.1, tick=3)
    with pytest.raises(TypeError, match="the same"):
        counter.stddev(t=3, tick=3)


def test_two_statistics_of_one_name_are_not_restored_as_each_other() -> None:
    @statistic
    class Ledger(et.Counter):
        """One."""

    first = Ledger(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(1))

    def another() -> None:
        @statistic
        class Ledger(et.Counter):
            """Another one."""

            extra: int = option("More.", default=1)

    with pytest.raises(et.ConfigurationError, match="Ledger"):
        another()
    assert type(et.restore(first.snapshot(), key=et.simulation(1))) is Ledger
    assert issubclass(Ledger, Mechanism)


class Fickle(list[Any]):
    """True when it is asked first, and false afterwards."""

    asked = 0

    def __bool__(self) -> bool:
        self.asked += 1
        return self.asked == 1


class Anything(str):
    """Equal to whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


PURE: dict[str, Any] = {"guarantee": et.PureDP(1.0), "horizon": 50}


@pytest.mark.parametrize("switch", [Fickle(), "no", "", None, 1, [1]])
def test_a_switch_is_true_or_false(switch: Any) -> None:
    with pytest.raises(et.ConfigurationError, match="signed is True or False"):
        et.Counter(**PURE, signed=switch)
    assert et.Counter(**PURE, signed=np.True_).contribution.signed is True


def test_texts_are_copied_before_they_are_asked() -> None:
    counter = et.Counter(**PURE, mechanism=Anything("tree"), name=Anything("visits"))
    assert (counter.mechanism, type(counter.mechanism), type(counter.name)) == ("tree", str, str)
    with pytest.raises(et.ConfigurationError, match="a name"):
        et.Counter(**PURE, mechanism=["tree"])  # type: ignore[arg-type]


def test_refusals_that_help() -> None:
    with pytest.raises(et.ConfigurationError, match="beta"):
        et.MaxSum(3, **PURE, beta="0.05")  # type: ignore[arg-type]
    with pytest.raises(et.ConfigurationError, match="memory_limit"):
        et.Counter(**PURE, max_window=10**12)
    for calibration in ({}, {"charge": "x"}, {"charge": {"kind": "PureDP", "adversary": "adaptive", "epsilon": "x"}}):
        with pytest.raises(et.ConfigurationError, match="calibration"):
            et.MaxSum(3, **PURE, calibration=calibration, mechanism="rebased")
    for error in (0, None, "5"):
        with pytest.raises(et.ConfigurationError, match="above 0"):
            et.plan(et.Counter, **PURE).guarantee_for(error)


@pytest.mark.parametrize("horizon", [1, 2, 100, None])
@pytest.mark.parametrize("guarantee", [et.PureDP(1.0), et.ZCDP(0.3)], ids=repr)
def test_the_plan_promises_what_the_class_promises(horizon: int | None, guarantee: Any) -> None:
    tick = 2**16 if horizon is None else None
    for cls in (et.MaxSum, et.SumSelect):
        for way in et.plan(cls, 6, guarantee=guarantee, horizon=horizon, max_events_per_tick=9).fitting:
            if way.name in PROCESSES:
                made = cls(6, guarantee=guarantee, horizon=horizon, mechanism=way.name, key=et.simulation(1))
                assert way.bound == pytest.approx(made.error_bound(0.05, tick))


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: et.VectorCounter(3, **options),
        lambda **options: et.VectorCounter(2, other="rest", **options),
        lambda **options: et.Histogram(categories=["a", "b", "c"], **options),
        lambda **options: et.Histogram(categories=["a", "b", "c"], mechanism="sparse", **options),
        lambda **options: et.MaxSum(3, **options),
        lambda **options: et.TopK(2, 3, **options),
    ],
)
def test_no_limit_on_the_columns_of_an_event_means_all_of_them(make: Any) -> None:
    """One meaning; who counts categories has 1 by default, who asks about column sums all."""
    unlimited = make(**PURE, max_per_event=None, key=et.simulation(1))
    assert unlimited.sensitivity == make(**PURE, max_per_event=3, key=et.simulation(1)).sensitivity
    assert unlimited.contribution.max_per_event == 3
    again = et.restore(unlimited.snapshot(), key=et.simulation(1))
    assert again.step([1, 2, 3]).tick == 1
    assert again.noise_fingerprint == unlimited.noise_fingerprint
