"""One stream, one ledger: shares, refusals that change nothing, names, and what all mechanisms together promise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.errors import BudgetExceeded, ConfigurationError
from evertally.noise import ZeroNoise
from evertally.privacy import compose

GUARANTEES = [
    et.PureDP(1.0),
    et.PureDP(Fraction(1, 3)),
    et.ZCDP(0.5),
    et.ApproxDP(1.0, 1e-6),
    et.ApproxDP(0.1, 1e-9),
    et.ApproxZCDP(0.5, 1e-6),
]


def stream(guarantee: Any = GUARANTEES[0], **options: Any) -> et.Stream:
    return et.Stream("test", **({"guarantee": guarantee, "horizon": 50, "key": ZeroNoise()} | options))


def kept(s: et.Stream) -> bool:
    """Whether what was promised, and what is really paid, is covered by the stream's guarantee."""
    total = s.ledger.total()
    if total is None:
        return not s.mechanisms
    paid = et.Ledger(s.guarantee)
    for name, mechanism in s.mechanisms.items():
        assert mechanism.guarantee.covers(mechanism.charge)
        paid.promise(name, mechanism.charge)
    return s.guarantee.covers(total)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
@pytest.mark.parametrize("share", [0.1, "0.1", "1/10", Fraction(1, 10)], ids=repr)
def test_ten_tenths_fit_and_nothing_more(guarantee: Any, share: Any) -> None:
    s = stream(guarantee)
    for i in range(10):
        s.add(et.Counter, share=share, name=f"counter {i}")
        assert kept(s)
    assert s.ledger.left == 0
    for more in ("1/1000000000", 1e-9, 1):
        with pytest.raises(BudgetExceeded):
            s.add(et.Counter, share=more, name="one more")
    assert len(s.ledger.entries) == len(s.mechanisms) == 10


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
@settings(deadline=None, max_examples=15, derandomize=True)
@given(st.lists(st.floats(0.001, 1).map(lambda v: round(v, 3)), min_size=1, max_size=8))
def test_whatever_is_accepted_fits(guarantee: Any, shares: list[float]) -> None:
    s = stream(guarantee)
    spent = Fraction(0)
    for i, share in enumerate(shares):
        exact = Fraction(str(share))
        try:
            s.add(et.Counter, share=share, name=f"counter {i}", mechanism="tree")
        except BudgetExceeded:
            assert spent + exact > 1
        else:
            spent += exact
            assert spent <= 1
        assert s.ledger.left == 1 - spent
        assert kept(s)


def test_overspending_changes_nothing() -> None:
    s = stream(et.ZCDP(0.5), key=et.simulation(1))
    first = s.add(et.Counter, share="2/3")
    before = (s.ledger.table(), dict(s.mechanisms), first.snapshot())
    with pytest.raises(BudgetExceeded):
        s.add(et.Counter, share=0.34, name="second")
    assert (s.ledger.table(), dict(s.mechanisms), first.snapshot()) == before
    second = s.add(et.Counter, share="1/3", name="second")
    assert second.guarantee == et.ZCDP(Fraction(1, 6))
    assert s.ledger.left == 0


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "sqrt"},  # not pure
        {"mechanism": "nothing"},
        {"max_weight": 0},
        {"colour": "red"},
        {"guarantee": et.PureDP(5)},
        {"horizon": 3},
        {"key": et.simulation(0)},
        {"stream": "another"},
        {"neighbours": "replace"},
        {"unit": "user"},
        {"max_events_per_user": 2},
        {"name": "taken"},
        {"share": 0},
        {"share": -0.1},
        {"share": 1.5},
        {"share": "much"},
        {"share": float("nan")},
    ],
    ids=repr,
)
def test_refused_additions_change_nothing(options: dict[str, Any]) -> None:
    s = stream()
    s.add(et.Counter, share=0.2, name="taken")
    before = (s.ledger.table(), list(s.mechanisms))
    with pytest.raises((ConfigurationError, BudgetExceeded, TypeError)):
        s.add(et.Counter, **({"share": 0.1} | options))
    assert (s.ledger.table(), list(s.mechanisms)) == before
    s.add(et.Counter, share=0.8)


@pytest.mark.parametrize(
    "option", ["guarantee", "horizon", "key", "stream", "neighbours", "unit", "max_events_per_user"]
)
def test_what_belongs_to_the_stream_is_reserved(option: str) -> None:
    with pytest.raises(ConfigurationError, match=option):
        stream().add(et.Counter, share=0.1, **{option: None})


def test_names_are_used_once() -> None:
    s = stream()
    s.add(et.Counter, share=0.1)
    with pytest.raises(ConfigurationError, match="'counter'"):
        s.add(et.Counter, share=0.1)
    s.add(et.Counter, share=0.1, name="another")
    s.add(et.Histogram, share=0.1, categories=["a"])
    assert list(s.mechanisms) == ["counter", "another", "histogram"]
    assert [entry.name for entry in s.ledger.entries] == list(s.mechanisms)


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_stream_has_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError):
        et.Stream(name, guarantee=et.PureDP(1), horizon=5)


def test_an_approximate_stream_converts_once() -> None:
    """Shares are shares of one rho, converted from the whole (epsilon, delta): not of epsilon, and not of delta."""
    guarantee = et.ApproxDP(1.0, 1e-6)
    s = stream(guarantee)
    parts = [s.add(et.Counter, share=share, name=str(share)).guarantee for share in (0.3, 0.7)]
    assert all(isinstance(part, et.ZCDP) for part in parts)
    rho = guarantee.to_zcdp().exact_rho
    assert [part.exact_rho for part in parts] == [rho * 3 / 10, rho * 7 / 10]
    total = s.ledger.total()
    assert isinstance(total, et.ApproxDP)
    assert guarantee.covers(total)
    # what each would be given if every mechanism converted for itself: (epsilon, delta) added up is far worse
    apart = guarantee.to_zcdp().share(0.3).to_approx(5e-7).exact_epsilon
    apart += guarantee.to_zcdp().share(0.7).to_approx(5e-7).exact_epsilon
    assert apart > 1.3


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_composition_agrees_with_the_ledger(guarantee: Any) -> None:
    s = stream(guarantee)
    for i, share in enumerate(("1/7", "2/7", "4/7")):
        s.add(et.Counter, share=share, name=str(i))
    assert kept(s)
    together = compose(*(m.charge for m in s.mechanisms.values()))
    assert guarantee.covers(together)


def test_one_relation_for_all() -> None:
    s = stream(neighbours="replace", unit="user", max_events_per_user=3)
    c = s.add(et.Counter, share=0.5)
    h = s.add(et.Histogram, share=0.5, categories=["a", "b"])
    for mechanism in (c, h):
        assert mechanism.neighbours is et.Neighbours.REPLACE is s.neighbours
        assert mechanism.horizon == 50
        assert (mechanism.sensitivity.l1, mechanism.sensitivity.l2_squared) == (6, 18)  # users-and-domains 1.2
    independent = stream(et.ZCDP(0.5), neighbours="independent")
    with pytest.raises(ConfigurationError, match="oblivious"):
        independent.add(et.Counter, share=1)
    assert not independent.ledger.entries
    oblivious = stream(et.ZCDP(0.5, adversary="oblivious"), neighbours="independent")
    assert oblivious.add(et.Counter, share=1).guarantee.adversary == "oblivious"
    with pytest.raises(ConfigurationError):
        oblivious.add(et.RunningMean, share=1, lower=0, upper=1)


def test_mechanisms_of_one_stream_have_independent_noise() -> None:
    s = stream(et.ZCDP(0.5), key=et.simulation(3))
    first = s.add(et.Counter, share=0.5, name="first")
    second = s.add(et.Counter, share=0.5, name="second")
    assert first.run([0] * 50).tolist() != second.run([0] * 50).tolist()
    other = et.Stream("other", guarantee=et.ZCDP(0.5), horizon=50, key=et.simulation(3))
    namesake = other.add(et.Counter, share=0.5, name="first")
    again = stream(et.ZCDP(0.5), key=et.simulation(3)).add(et.Counter, share=0.5, name="first")
    path = again.run([0] * 50).tolist()
    assert path != namesake.run([0] * 50).tolist()
    assert (
        path
        == stream(et.ZCDP(0.5), key=et.simulation(3)).add(et.Counter, share=0.5, name="first").run([0] * 50).tolist()
    )


def test_a_stream_without_key_draws_one_for_all() -> None:
    s = et.Stream("test", guarantee=et.PureDP(1), horizon=5)
    assert s.add(et.Counter, share=0.5).key is s.key is s.add(et.Counter, share=0.5, name="b").key
    assert s.key.private
    assert et.Stream("test", guarantee=et.PureDP(1), horizon=5).key.fingerprint() != s.key.fingerprint()


def test_unbounded_streams() -> None:
    s = stream(et.ApproxDP(1.0, 1e-6), horizon=None)
    c = s.add(et.Counter, share=0.4)
    h = s.add(et.Histogram, share=0.6, categories=["a", "b"])
    assert {c.mechanism, h.mechanism} == {"bank-open"}
    assert c.run([1] * 100)[-1] == 100
    assert kept(s)


def test_the_whole_of_an_approximate_promise_is_no_share() -> None:
    """Alone, real Gaussian noise pays in epsilon and delta, by the exact curve; with a share it pays rho."""
    options: dict[str, Any] = {"columns": 8, "max_per_event": 8}
    whole = stream(et.ApproxDP(1.0, 1e-6))
    alone = whole.add(et.VectorCounter, share=1, **options)
    assert (alone.mechanism, alone.charge, alone.guarantee) == ("bank", whole.guarantee, whole.guarantee)
    assert kept(whole)
    assert whole.ledger.left == 0
    for kind in (et.Counter, et.RunningMean):
        with pytest.raises(BudgetExceeded):
            whole.add(kind, share="1/1000000000", **({"lower": 0, "upper": 1} if kind is et.RunningMean else {}))
    shared = stream(et.ApproxDP(1.0, 1e-6))
    halves = [shared.add(et.VectorCounter, share=0.5, name=name, **options) for name in ("one", "other")]
    assert all(half.mechanism == "bank" and isinstance(half.charge, et.ZCDP) for half in halves)
    assert kept(shared)
    assert 1.06 < halves[0].stddev(50) / (2**0.5 * alone.stddev(50)) < 1.09  # optimal-counting 2.2: 6.8 %


@pytest.mark.parametrize("guarantee", [1.0, None, "PureDP"])
def test_a_stream_has_a_guarantee(guarantee: Any) -> None:
    with pytest.raises(ConfigurationError):
        stream(guarantee)


def test_repr_says_what_is_public() -> None:
    s = stream()
    c = s.add(et.Counter, share=0.5)
    c.step(424242)
    assert "424242" not in repr(s) + repr(s.ledger) + s.ledger.table() + repr(c)


def test_what_is_hidden_is_one_thing_for_all() -> None:
    """An event that a counter counts by itself may be half of an item of another mechanism: no promise covers both."""
    stream = et.Stream("clinic", guarantee=et.ZCDP(1), horizon=10, key=et.simulation(1))
    stream.add(et.DynamicCount, share="1/4", name="beds")
    with pytest.raises(ConfigurationError, match="hide"):
        stream.add(et.Counter, share="1/4")
    with pytest.raises(ConfigurationError, match="hide"):
        stream.add(et.DynamicCount, share="1/4", name="minted", identity="token")
    stream.add(et.DynamicCount, share="1/4", name="more beds")
    events = et.Stream("events", guarantee=et.ZCDP(1), horizon=10, key=et.simulation(1))
    events.add(et.Counter, share="1/2")
    events.add(et.DynamicCount, share="1/2", protects="event")


def test_one_item_of_an_event_is_less_than_the_event() -> None:
    stream = et.Stream("orders", guarantee=et.ZCDP(1), horizon=9, key=et.simulation(1))
    stream.add(et.Histogram, share="1/2", categories=["a", "b"], max_per_event=2, protects="item")
    with pytest.raises(et.ConfigurationError, match="no promise would cover both"):
        stream.add(et.Counter, share="1/4")
    stream.add(et.VectorCounter, share="1/4", columns=3, max_per_event=2, protects="item")


def test_statistics_of_one_block_share_a_stream() -> None:
    stream = et.Stream("s", guarantee=et.ZCDP(1), horizon=20, key=et.simulation(1), unit="user-period", period=4)
    stream.add(et.ActiveUsers, share=0.3, windows=[2])
    stream.add(et.DistinctUsers, share=0.3)
    stream.add(et.Counter, share=0.3, calendar=True, min_separation=2)
    assert {made.protected_unit for made in stream.mechanisms.values()} == {"user-period"}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (et.Counter, {}),
        (et.Histogram, {"categories": ["a", "b"]}),
        (et.ValueHistogram, {"edges": [0, 1, 2]}),
        (et.RunningSum, {"upper": 1}),
    ],
)
def test_a_replaced_user_costs_more_where_nothing_is_proved_of_the_noise(kind: Any, options: dict[str, Any]) -> None:
    """users-and-domains 1.2: twice a removed user where no entry of the Gram matrix is negative, else four times."""
    users = {"unit": "user", "max_events_per_user": 3, "neighbours": "replace"}
    made = kind(guarantee=et.ZCDP(1), horizon=9, key=et.simulation(1), **users, **options)
    assert made._setting.loose.l2_squared == 2 * made.sensitivity.l2_squared
