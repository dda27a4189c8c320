"""Running sums: exact without noise, allowances by the real rule, charges by exhaustion, what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.rounding import Rounder
from evertally.counting.processes import PROCESSES
from evertally.encode.owned import owned_tick
from evertally.encode.values import AmountGrid
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.privacy import Neighbours
from evertally.values.sum_doors import Allowance
from evertally.values.sums import user_change


def total(**options: Any) -> et.RunningSum:
    common: dict[str, Any] = {"upper": 10, "guarantee": et.ZCDP(0.5), "horizon": 20, "key": ZeroNoise()}
    return et.RunningSum(**(common | options))


ODD = [None, float("nan"), "seven", object(), [3], b"\xff", {"a": 1}, complex(1, 1)]


def test_without_noise_it_is_the_sum_of_bounded_amounts() -> None:
    made = total(lower=-1, resolution=0.5)
    assert made.step([2, 2.5, 99, -99, "3.5", True, *ODD]).value == 2 + 2.5 + 10 - 1 + 3.5 + 1
    assert made.step([float("inf"), float("-inf")]).value == 18 + 10 - 1
    assert made.step([]).value == 27
    assert made.run([[1], [1, 1], []]).tolist() == [28, 30, 30]
    assert made.step(np.array([0.5, np.nan])).value == 30.5
    above = total(lower=3)
    assert above.step([1, None, 5]).value == 3 + 5
    assert total(upper=-1, lower=-4).step([-2, 0, -9]).value == -2 - 1 - 4


def test_cents() -> None:
    made = total(upper=500, resolution=0.01)
    assert made.step([19.99] * 3 + [0.01]).value == 59.98
    assert made.step(["0.02"]).value == 60.0
    assert made.stddev(20) == pytest.approx(500 * et.Counter(guarantee=et.ZCDP(0.5), horizon=20).stddev(20), rel=0.02)
    assert made.error_bound() > made.stddev(20)
    for same in (Fraction(1, 100), np.float64(0.01)):
        assert total(upper=500, resolution=same, key=et.simulation(1)).noise_fingerprint == (
            total(upper=500.0, resolution=0.01, key=et.simulation(1)).noise_fingerprint
        )


def test_what_one_event_moves() -> None:
    assert total(lower=-4).sensitivity.l2_squared == 10**2
    assert total(lower=-4, neighbours="replace").sensitivity.l2_squared == 14**2
    assert total(lower=3, neighbours="replace").sensitivity.l2_squared == 10**2, "what is no number adds nothing"
    user = {"unit": "user", "max_events_per_user": 3}
    assert total(**user).sensitivity.l2_squared == 30**2
    assert total(**user, neighbours="replace").sensitivity.l2_squared == 2 * 30**2
    assert total(**user, lower=-4, neighbours="replace").sensitivity.l2_squared == 4 * 30**2
    allowed = {"unit": "user", "max_total_per_user": 25}
    assert (total(**allowed).sensitivity.l1, total(**allowed).sensitivity.l2_squared) == (25, 25**2)
    replaced = total(**allowed, neighbours="replace").sensitivity
    assert (replaced.l1, replaced.l2_squared, replaced.linf) == (50, 2 * 25**2, 50)
    assert total(**allowed, lower=-4, neighbours="replace").sensitivity.l2_squared == 4 * 25**2


def test_a_factor_of_which_nothing_is_proved_pays_for_both_signs() -> None:
    et.register_process("test-values-tree", PROCESSES["tree"].build, bounded=True, pure=True, proof="a test")
    try:
        allowed = {"unit": "user", "max_total_per_user": 25, "neighbours": "replace", "mechanism": "test-values-tree"}
        assert total(**allowed).sensitivity.l2_squared == 4 * 25**2
    finally:
        del PROCESSES["test-values-tree"]


def rule(V: int, A: int, signed: bool) -> Allowance:
    grid = AmountGrid(-A if signed else 0, A)
    return Allowance(grid, Rounder(ZeroNoise().source(), grid.low, grid.high, "random"), V, 2**40)


def paths(V: int, T: int, signed: bool) -> set[tuple[int, ...]]:
    """What a user may add, tick by tick: every stream of amounts through the real rule."""
    found = set()
    for stream in product(range(-V if signed else 0, V + 1), repeat=T):
        one, path = rule(V, V, signed), []
        for tick, amount in enumerate(stream, start=1):
            one.begin(tick - 1)
            cells = np.array([[amount]], dtype=np.float64).view(np.int64)
            path.append(int(one.admit(owned_tick(["u"], cells, tick))[0]))
        found.add(tuple(path))
    return found


def gram(T: int) -> Any:
    f = np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, T)])
    R = np.array([[f[t - s] if t >= s else 0.0 for s in range(T)] for t in range(T)])
    return R.T @ R / (f @ f)


@pytest.mark.parametrize("signed", [False, True])
def test_all_streams_of_a_user_with_an_allowance(signed: bool) -> None:
    """users-and-domains 11.1: V = 3, T = 4: 9.00 = V^2, replaced 11.27 <= 18; both signs at T = 3."""
    V, T = 3, 3 if signed else 4
    found, G = np.array(sorted(paths(V, T, signed)), dtype=float), gram(T)
    norms = np.einsum("ns,st,nt->n", found, G, found)
    assert norms.max() == pytest.approx(user_change(V, Neighbours.ADD_REMOVE, signed)[0].l2_squared)
    differences = (found[:, None] - found[None]).reshape(-1, T)
    apart = np.einsum("ns,st,nt->n", differences, G, differences).max()
    assert apart <= user_change(V, Neighbours.REPLACE, signed)[0].l2_squared * (1 + 1e-12)
    if not signed:
        assert apart == pytest.approx(11.27, abs=0.005)


def test_a_net_cap_would_cost() -> None:
    """users-and-domains 10, 11: +V, -2V, +2V, ...: 12.5 times the claim at T = 12."""
    path = np.array([1.0] + [2.0 * (-1) ** t for t in range(1, 12)])
    assert path @ gram(12) @ path == pytest.approx(12.5, abs=0.05)
    one, sent = rule(1, 2, True), []
    for tick, amount in enumerate([1, -2, 2, -2], start=1):
        one.begin(tick - 1)
        sent.append(int(one.admit(owned_tick(["u"], np.array([[amount]], float).view(np.int64), tick))[0]))
    assert sent == [1, 0, 0, 0], "what was used up stays used up"


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "b", "ä", "", None, ("x",), 7, "7"]), st.integers(-6, 6)), max_size=8),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 12),
)
def test_allowances_against_a_plain_model(ticks: Any, most: int) -> None:
    """With restarts, odd and missing users; and nobody changes what another one may add."""
    key = ZeroNoise()
    made = total(lower=-4, upper=5, unit="user", max_total_per_user=most, key=key)
    left: dict[str, int] = {}
    expected = 0
    for events in ticks:
        for user, amount in events:
            if user is None or isinstance(user, tuple):
                continue
            amount = max(-4, min(5, amount))
            taken = min(abs(amount), left.setdefault(str(user), most))
            left[str(user)] -= taken
            expected += taken if amount > 0 else -taken
        release = made.step_events([amount for _, amount in events], users=[user for user, _ in events])
        assert release.value == expected
        made = et.restore(made.snapshot(), key=key)


def test_erased_users_have_used_up_their_allowance() -> None:
    key = ZeroNoise()
    made = total(unit="user", max_total_per_user=9, key=key)
    made.step_events([4, 4], users=["ann", "bob"])
    made.erase(["ann", "never here"])
    assert b"ann" not in made.snapshot()
    for again in (made, et.restore(made.snapshot(), key=key)):
        assert again.step_events([4, 4, 4], users=["ann", "bob", "never here"]).value == 12


def test_windows_and_periods() -> None:
    made = total(max_window=3)
    made.run([[1], [2], [3], [4]])
    assert (made.last(2).value, made.last(3).value) == (7, 9)
    keyed = total(max_window=3, mechanism="tree", radix=2, key=et.simulation(1))
    keyed.run([[1], [2], [3]])
    # the last tick is one node of the tree: its own noise, and not that of two releases
    assert keyed.last(1).stddev == pytest.approx(keyed.noise.window_spread(3, 1).stddev)
    assert keyed.last(1).stddev ** 2 == pytest.approx(keyed.last(2).stddev ** 2 / 3, rel=0.01)
    days = total(every=3, horizon=None)
    assert days.run([[1], [2], [3], [4], [5], [6], [7]]).tolist() == [1, 3, 6, 4, 9, 15, 7]
    assert days.step([1]).about.count("of the current period of 3 ticks")
    one = total(horizon=3, key=et.simulation(1))
    assert total(every=3, key=et.simulation(1)).worst_stddev() == one.worst_stddev() < total().worst_stddev()
    keyed = total(every=2, horizon=8, key=et.simulation(1))
    noise = keyed.run([[]] * 8).reshape(4, 2)
    assert len({tuple(row) for row in noise.tolist()}) == 4, "every period has noise of its own"
    users = total(every=2, unit="user", max_total_per_user=5)
    steps = [users.step_events([4], users=["a"]).value for _ in range(3)]
    assert steps == [4, 5, 0], "an allowance is for life, not for a period"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_total_per_user": 5}, "unit"),
        ({"unit": "user"}, "max_events_per_user"),
        ({"unit": "user", "max_total_per_user": 5, "max_events_per_user": 2}, "not both"),
        ({"unit": "user", "max_total_per_user": 0.5}, "1 to 2"),
        ({"unit": "user", "max_total_per_user": float("inf")}, "finite"),
        ({"neighbours": "independent"}, "replace"),
        ({"rounding": "up"}, "nearest"),
        ({"lower": 10}, "lower < upper"),
        ({"resolution": Fraction(1, 3)}, "decimal"),
        ({"upper": 2**30, "horizon": 2**20}, "fit"),
        ({"every": 30}, "every"),
        ({"every": 3, "max_window": 2}, "every"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        total(**options)


def test_wrong_calls() -> None:
    allowed = total(unit="user", max_total_per_user=5)
    for call in (
        lambda: allowed.step([1]),
        lambda: allowed.step_events([1]),
        lambda: allowed.step_events([1], users=[]),
    ):
        with pytest.raises(TypeError):
            call()
    assert allowed.tick == 0
    assert allowed.step_events([1], users=["a"]).tick == 1
    stream = et.Stream("s", guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1), unit="user")
    assert stream.add(et.RunningSum, share=0.5, upper=5, max_total_per_user=9).takes_users
    with pytest.raises(ConfigurationError, match="max_events_per_user"):
        stream.add(et.RunningSum, share=0.5, upper=5, name="another")
