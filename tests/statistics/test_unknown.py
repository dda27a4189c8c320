"""UnkBase: noise by item and block, thresholds, what is shown and what never is, the delta event, the contract.

Statistics use fixed seeds; each has a false-alarm rate below 1e-6 over the choice of the seed.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta as beta_law
from scipy.stats import norm

import evertally as et
from conformance.hostile import GARBAGE
from evertally.bounds.selection import Threshold
from evertally.checks import CHECKS, Subject, check
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused
from evertally.noise import DiscreteGaussian, Recording, ZeroNoise, item_addresses, simulation
from evertally.privacy import Change
from evertally.selection.item_engine import charge_of
from evertally.selection.item_index import grown
from evertally.selection.item_tree import ItemTree
from evertally.statistics import UnknownHistogram, UnknownTopK

UNIT = et.ApproxZCDP(Fraction(1, 2), 1e-6)  # tau = 1 for events of one item


def unknown(**options: Any) -> UnknownHistogram:
    common: dict[str, Any] = {"guarantee": UNIT, "horizon": 30, "key": simulation(1)}
    return UnknownHistogram(**(common | options))


def column(names: list[str], times: int) -> pa.Array:
    """Each name so many times, as a column of plain labels."""
    return pa.DictionaryArray.from_arrays(pa.array(np.repeat(np.arange(len(names)), times)), pa.array(names))


def without_threshold(u: UnknownHistogram, at: int = 0) -> UnknownHistogram:
    u._engine.worker.threshold = SimpleNamespace(at=lambda t: at)  # type: ignore[assignment]
    return u


# -- noise ------------------------------------------------------------------------------------------------------------


def cells(t: int, r: int, L: int) -> list[tuple[int, int]]:
    """I_t as streaming-selection 3.1 writes it."""
    found, rest = [], t
    for i in range(L):
        digit, q = t // r**i % r, rest // r**i
        found += [(i, index) for index in range(q - digit + 1, q + 1)]
        rest -= digit * r**i
    return found


@pytest.mark.parametrize(("T", "r"), [(20, 2), (27, 3), (26, 3), (30, 5), (9, 9)])
def test_noise_is_the_sum_over_all_blocks_of_the_tiling_also_for_late_items(T: int, r: int) -> None:
    u = without_threshold(unknown(horizon=T, radix=r), at=-(10**6))
    L = len(u._engine.worker.tree._latest)
    law, source = u._engine.worker.tree.law, u._source
    names = [f"item {i}" for i in range(12)]
    addresses = item_addresses(source, names)
    z = {
        cell: source.item_draws("items", law, cell[1] * r ** cell[0], addresses)
        for t in range(1, T + 1)
        for cell in cells(t, r, L)
    }
    assert len(z) == T  # exactly T cells are ever used
    counts = Counter[str]()
    for t in range(1, T + 1):
        events = [name for i, name in enumerate(names) if t % (i + 2) == 0 or (t == 1 and i < 3)]
        counts.update(events)
        if t == T // 2:
            u = without_threshold(et.restore(u.snapshot(), key=simulation(1)), at=-(10**6))
        noise = sum(z[cell] for cell in cells(t, r, L))
        expected = {name: counts[name] + int(noise[i]) for i, name in enumerate(names) if counts[name]}
        assert u.step(events).value == expected


def test_a_late_item_has_the_noise_of_one_known_from_the_start() -> None:
    """streaming-selection 11.4 (4): from the later occurrence on, two worlds differ by the event and nothing else."""

    def values(first: list[list[str]], later: int) -> list[dict[str, int]]:
        u = unknown(horizon=200, radix=4)
        return u.run([first] + [[]] * (later - 2) + [["fresh"] * 500] + [[]] * 20)[later - 1 :]

    for later in (2, 5, 16, 17, 64, 100):
        with_event, without = values([["fresh"]], later), values([], later)
        assert [v["fresh"] for v in with_event] == [v["fresh"] + 1 for v in without]


def test_an_item_without_the_noise_of_earlier_blocks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def join(self: ItemTree, addresses: Any) -> None:
        self._items = len(addresses)
        self._latest = grown(self._latest, self._items, axis=1)

    monkeypatch.setattr(ItemTree, "_join", join)
    with pytest.raises(AssertionError):
        test_a_late_item_has_the_noise_of_one_known_from_the_start()


def test_blocks_keep_their_noise() -> None:
    u = without_threshold(unknown(horizon=30, radix=2), at=-(10**6))
    values = [0, *(v["a"] for v in u.run([["a"]] * 30))]
    noise = [value - t for t, value in enumerate(values)]
    draw = {
        t: int(u._source.item_draws("items", u._engine.worker.tree.law, t, item_addresses(u._source, ["a"]))[0])
        for t in range(31)
    }
    assert noise[7] - noise[6] == draw[7]
    assert noise[12] - noise[8] == draw[12]
    assert noise[16] == draw[16]


def test_no_draw_is_made_twice_and_a_late_item_draws_its_whole_tiling() -> None:
    recording = Recording(simulation(3))
    u = unknown(key=recording, horizon=30, radix=3)
    seen = set()
    for t in range(1, 31):
        before = len(recording.draws)
        u.step(["early"] if t != 14 else ["early", "late", "later"])
        new = recording.draws[before:]
        drawn = [(node, item) for entry in new for node in entry.nodes for item in entry.items or ()]
        assert {entry.law for entry in new} == {u._engine.worker.tree.law}
        assert not seen & set(drawn)
        assert len(set(drawn)) == len(drawn)
        seen |= set(drawn)
        expected = 1 if t < 14 else 3 if t > 14 else 1 + 2 * (1 + 1 + 2)  # 14 = 112 in base 3
        assert len(drawn) == expected


def test_variance_and_covariance_of_every_tick() -> None:
    N, T, r = 4000, 14, 3
    u = without_threshold(unknown(horizon=T, radix=r, guarantee=et.ApproxZCDP(Fraction(1, 8), 1e-6)), at=-(10**9))
    names, late = [f"n{i}" for i in range(N)], [f"late{i}" for i in range(N)]
    releases = u.run([column(names, 3)] + [[]] * 7 + [column(late, 2)] + [[]] * (T - 9))
    noise = np.array([[release[name] - 3 for name in names] for release in releases], dtype=float)
    noise_late = np.array([[release[name] - 2 for name in late] for release in releases[8:]], dtype=float)
    variance, L = 3 * 4, 3
    slack = 6 * math.sqrt(2 / N)
    shared = [[len(set(cells(s, r, L)) & set(cells(t, r, L))) for t in range(1, T + 1)] for s in range(1, T + 1)]
    sample = noise @ noise.T / N
    scale = np.sqrt(np.outer(np.diag(shared), np.diag(shared)))
    assert np.all(np.abs(sample / variance - shared) < slack * scale)
    sample_late = noise_late @ noise_late.T / N
    assert np.all(np.abs(sample_late / variance - np.array(shared)[8:, 8:]) < slack * scale[8:, 8:])
    across = (noise[:, ::2] * noise[:, 1::2]).mean(axis=1) / (variance * np.diag(shared))
    assert np.all(np.abs(across) < 6 / math.sqrt(N / 2))
    for t in range(1, T + 1):
        assert u.stddev(t) == pytest.approx(math.sqrt(variance * sum(shared[t - 1][t - 1 : t])))


# -- thresholds and charges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("T", "r", "tau", "delta", "chernoff"),  # the table of streaming-selection 7.2
    [
        (1000, 2, 1, 1e-6, 65.379),
        (1000, 4, 1, 1e-6, 56.754),
        (1000, 4, 10, 1e-6, 558.538),
        (10**4, 5, 1, 1e-6, 82.434),
        (10**6, 4, 1, 1e-9, 144.956),
        (1000, 4, 1, 0.05, 39.542),
    ],
)
def test_the_papers_threshold(T: int, r: int, tau: int, delta: float, chernoff: float) -> None:
    guarantee = et.ApproxZCDP(Fraction(1, 2 * tau * tau), delta, force=True)
    u = unknown(guarantee=guarantee, horizon=T, radix=r, threshold="paper")
    assert u.threshold_at(1) == u.threshold_at(T) == math.floor(chernoff)
    assert unknown(guarantee=guarantee, horizon=T, radix="formula").threshold_at(1) <= u.threshold_at(1) or r == 2


def test_the_lower_thresholds() -> None:
    by_sum = unknown(horizon=1000, radix=4, threshold="sum")
    assert by_sum.threshold_at(1) == by_sum.threshold_at(1000) == 48  # 48.169 in streaming-selection 10.4
    per_tick = unknown(horizon=1000, radix=4, threshold="per_tick")
    for t in (1, 3, 15, 255, 256, 1000):
        digits = sum(t // 4**i % 4 for i in range(5))
        assert per_tick.threshold_at(t) == math.floor(1 + math.sqrt(2 * 5 * digits * math.log(1000 / 1e-6)))
    assert unknown(horizon=1000, radix=4).threshold_at(7) == 48, "the default is the sum"


@pytest.mark.parametrize(
    ("options", "moved", "at_risk"),
    [
        ({}, Change(3, 3, 1), 3),
        ({"max_weight": 4}, Change(12, 48, 4), 3),
        ({"neighbours": "replace"}, Change(6, 6, 1), 6),
        ({"neighbours": "replace", "max_weight": 4}, Change(24, 96, 4), 6),
        ({"unit": "user", "max_events_per_user": 5}, Change(15, 75, 5), 15),
        ({"unit": "user", "max_events_per_user": 5, "max_weight": 2}, Change(30, 300, 10), 15),
    ],
)
def test_noise_margin_and_items_at_risk_follow_the_change(options: Any, moved: Change, at_risk: int) -> None:
    """streaming-selection 1.3: rho doubles under replacement and grows with g^2 for users; the margin is g weights."""
    u = unknown(max_per_event=3, horizon=100, radix=5, **options)
    assert u.sensitivity == moved
    assert u.charge == UNIT
    assert u._engine.worker.tree.law == DiscreteGaussian(moved.l2_squared * 3)  # l2^2 L / (2 rho)
    assert u._engine.worker.threshold == Threshold(
        "sum", 100, 5, Fraction(3 * moved.l2_squared), UNIT.exact_delta / at_risk, moved.linf
    )


def test_users_that_are_replaced_pay_at_least_what_is_proved() -> None:
    u = unknown(unit="user", max_events_per_user=3, neighbours="replace", max_per_event=2)
    assert u.sensitivity.l2_squared >= 2 * 2 * 3**2  # |a - b|^2 <= |a|^2 + |b|^2 for two users a, b
    assert u._engine.worker.threshold.move >= 3
    assert u._engine.worker.threshold.delta <= UNIT.exact_delta / (2 * 3 * 2)


def test_calibration_for_epsilon_and_delta() -> None:
    """streaming-selection 7.2: half of delta for the conversion, half for the items; checked by what it promises."""
    promise = et.ApproxDP(1.0, 1e-6)
    u = unknown(guarantee=promise, max_per_event=5, horizon=1000)
    assert isinstance(u.charge, et.ApproxZCDP)
    assert u.charge.exact_delta == promise.exact_delta / 2
    assert u._engine.worker.threshold.delta == promise.exact_delta / 10
    assert promise.covers(u.charge)
    assert u.charge.to_approx(promise.exact_delta).exact_epsilon <= promise.exact_epsilon * (1 + Fraction(1, 10**12))
    more = et.ApproxZCDP(u.charge.exact_rho * (1 + Fraction(1, 10**9)), u.charge.exact_delta)
    assert not promise.covers(more), "nothing is given away"
    tau_squared = Fraction(5) / (2 * u.charge.exact_rho)
    L = len(u._engine.worker.tree._latest)
    assert L * tau_squared <= u._engine.worker.tree.law.sigma_squared <= L * tau_squared * (1 + Fraction(1, 2**38))
    assert charge_of(UNIT) is UNIT
    oblivious = et.ApproxDP(1.0, 1e-6, adversary="oblivious")
    assert oblivious.covers(unknown(guarantee=oblivious).charge)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guarantee": et.PureDP(1.0)}, "no delta"),
        ({"guarantee": et.ZCDP(1.0)}, "ApproxDP"),
        ({"guarantee": 1.0}, "guarantee"),
        ({"horizon": None}, "horizon"),
        ({"horizon": 1}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"neighbours": "independent"}, "add_remove"),
        ({"threshold": "lower"}, "threshold"),
        ({"mechanism": "sqrt"}, "tree"),
        ({"radix": 1}, "radix"),
        ({"radix": 31}, "radix"),
        ({"horizon": 5000, "radix": 2000}, "radix"),
        ({"max_per_event": 0}, "max_per_event"),
        ({"max_per_event": None}, "max_per_event"),
        ({"max_weight": 0}, "max_weight"),
        ({"unit": "user"}, "max_events_per_user"),
        ({"max_events_per_user": 3}, "unit"),
        ({"stream": 5}, "stream"),
        ({"guarantee": et.ApproxZCDP(10**6, 1e-6)}, "variance"),
    ],
    ids=str,
)
def test_refused_at_construction(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        unknown(**options)


# -- the delta event --------------------------------------------------------------------------------------------------


def upper_confidence(successes: int, trials: int, failure: float = 1e-6) -> float:
    """Clopper-Pearson."""
    return float(beta_law.ppf(1 - failure, successes + 1, trials - successes)) if successes < trials else 1.0


def ever_shown(u: UnknownHistogram, start: int, first: Any) -> set[str]:
    """Labels that are shown at any tick, when all of them occur in tick `start` and never again."""
    u.run([[]] * (start - 1))
    shown = set(u.step(first).value)
    return shown.union(*u.run([[]] * (u.horizon - start)))


@pytest.mark.parametrize(
    ("kind", "delta", "start"),
    [*product(["paper", "sum", "per_tick"], [0.05, 0.2], [1]), ("sum", 0.2, 23), ("per_tick", 0.2, 23)],
)
def test_an_item_of_one_event_shows_with_probability_at_most_delta(kind: Any, delta: float, start: int) -> None:
    """streaming-selection 11.4 (4). Items have independent noise, so each of N singletons is a trial."""
    N = 6000
    u = unknown(
        guarantee=et.ApproxZCDP(Fraction(1, 2), delta, force=True), horizon=50, threshold=kind, key=simulation(7)
    )
    shown = len(ever_shown(u, start, column([f"n{i}" for i in range(N)], 1)))
    assert upper_confidence(shown, N) <= delta
    assert shown or kind == "paper", "a threshold that nothing reaches is no evidence"


def test_an_event_of_several_fresh_labels() -> None:
    N, delta = 3000, 0.2
    guarantee = et.ApproxZCDP(Fraction(1, 2), delta, force=True)
    u = unknown(guarantee=guarantee, max_per_event=3, horizon=40, threshold="per_tick", key=simulation(8))
    shown = ever_shown(u, 6, [[f"{i} {j}" for j in range(3)] for i in range(N)])
    events = len({label.split()[0] for label in shown})
    assert events > 0
    assert upper_confidence(events, N) <= delta


@pytest.mark.parametrize(
    "options",
    [{"max_weight": 6}, {"unit": "user", "max_events_per_user": 6}, {"max_weight": 3, "neighbours": "replace"}],
    ids=str,
)
def test_the_margin_covers_what_one_event_or_user_adds(options: dict[str, Any]) -> None:
    """With the margin of a plain event the same labels show far too often: the control that must fail."""
    N, delta = 3000, 0.1
    names = [f"n{i}" for i in range(N)]
    guarantee = et.ApproxZCDP(50, delta, force=True)

    def share(margin: int | None) -> float:
        u = unknown(guarantee=guarantee, horizon=20, key=simulation(9), **options)
        if margin is not None:
            t = u._engine.worker.threshold
            u._engine.worker.threshold = Threshold(t.kind, t.T, t.r, t.variance / 36, t.delta, margin)
        if u._users is None:
            shown = set(u.step([{name: 6} for name in names]).value).union(*u.run([[]] * 19))
        else:
            users = [name for name in names for _ in range(6)]
            shown = set(u.step_events(users, users=users).value)
            shown = shown.union(*(u.step_events([], users=[]).value for _ in range(19)))
        return upper_confidence(len(shown), N)

    assert share(None) <= delta
    assert share(1) > delta


# -- utility ----------------------------------------------------------------------------------------------------------


def law_of_sum(variance: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Support and probabilities of a sum of n discrete Gaussians."""
    reach = math.ceil(12 * math.sqrt(variance)) + 1
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    one /= one.sum()
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, one)
    return np.arange(law.size) - n * reach, law


def test_discovery_has_the_probability_of_lemma_7_5_and_errors_that_of_lemma_7_6() -> None:
    """Equality forms, at ticks of different digit sums: exactly by convolution, and near Phi as the paper writes."""
    N, T, r, tau = 6000, 30, 4, 3
    guarantee = et.ApproxZCDP(Fraction(1, 2 * tau * tau), 1e-3)
    u = unknown(guarantee=guarantee, horizon=T, radix=r, key=simulation(11))
    m, c, L = u.threshold_at(1), 4, 3
    h = m + c * tau
    releases = u.run([column([f"n{i}" for i in range(N)], h)] + [[]] * 14)
    for t in (1, 2, 5, 15):
        digits = sum(t // r**i % r for i in range(L))
        support, law = law_of_sum(L * tau * tau, digits)
        probability = float(law[support > m - h].sum())
        found = releases[t - 1]
        assert abs(len(found) / N - probability) < 5.5 * math.sqrt(probability * (1 - probability) / N)
        assert probability == pytest.approx(norm.cdf((c * tau - 0.5) / (tau * math.sqrt(digits * L))), abs=2e-3)
        assert probability >= norm.cdf(c / (math.sqrt(r - 1) * L))
        eta = 5 * tau
        tail = float(law[(support > m - h) & (np.abs(support) >= eta)].sum()) / probability
        far = sum(abs(value - h) >= eta for value in found.values()) / len(found)
        assert abs(far - tail) < 5.5 * math.sqrt(tail * (1 - tail) / len(found)) + 1e-9


def test_error_bound_and_intervals() -> None:
    u = unknown(horizon=30, radix=4)
    spread = u._engine.worker.tree.spread(15)
    assert u.error_bound(0.1, t=15) == spread.radius(0.1 / 30)
    assert u.error_bound(0.1, t=15, items=1000) == spread.radius(0.1 / 30_000) > u.error_bound(0.1, t=15)
    assert u.error_bound(0.1) == max(u.error_bound(0.1, t=t) for t in range(1, 31))
    release = u.step(["a"] * 400 + ["b"] * 300)
    assert release.stddev == u.stddev(1)
    lower, upper = release.interval(0.01)
    radius = math.floor(u._engine.worker.tree.spread(1).radius(0.01))
    for label, value in release.value.items():
        assert (lower[label], upper[label]) == (value - radius, value + radius)
    for wrong in (0, 31, 1.5):
        for ask in (u.stddev, u.threshold_at, lambda t: u.error_bound(0.1, t)):
            with pytest.raises(ConfigurationError):
                ask(wrong)
    with pytest.raises(ConfigurationError):
        u.error_bound(1.0)
    with pytest.raises(ConfigurationError):
        u.error_bound(0.1, items=0)


# -- exact counts, and what is shown ----------------------------------------------------------------------------------

words = st.sampled_from(["a", "b", "c", "d", "é", "e\u0301", 7, None])
streams = st.lists(st.lists(st.one_of(words, st.lists(words, max_size=3)), max_size=6), min_size=1, max_size=10)


@settings(deadline=None, max_examples=60)
@given(streams)
def test_without_noise_and_threshold_the_counts_of_all_items_seen(stream: list[list[Any]]) -> None:
    u = without_threshold(unknown(key=ZeroNoise(), max_per_event=8))
    exact = Counter[str]()
    for events in stream:
        for event in events:
            items = {u._door._items._item(item) for item in (event if isinstance(event, list) else [event])}
            exact.update(item for item in items if item is not None)
        value = u.step(events).value
        assert value == dict(exact)
        assert list(value) == sorted(value, key=lambda label: (-value[label], label))


def test_strictly_above_the_threshold() -> None:
    u = unknown(key=ZeroNoise())
    m = u.threshold_at(1)
    assert u.step(["at"] * m + ["above"] * (m + 1) + ["below"] * (m - 1)).value == {"above": m + 1}


def test_no_item_is_ever_forgotten() -> None:
    """Items that were small for long are still there: nothing is evicted by its count (7.1, the two-place table)."""
    u = unknown(key=ZeroNoise(), horizon=100)
    u.step(["z"])
    for i in range(80):
        u.step(["a" if i % 2 else "b", *(f"other {i} {j}" for j in range(50))])
    m = u.threshold_at(1)
    assert u.step(["z"] * m).value["z"] == m + 1


def test_items_leave_and_return_unless_they_are_sticky() -> None:
    m = unknown().threshold_at(1)
    streams, left = [["x"] * (m + 2) + ["y"] * (m - 4)] + [[]] * 29, 0
    for seed in range(20):
        plain = unknown(key=simulation(seed)).run(streams)
        u = unknown(key=simulation(seed), sticky=True)
        everything = without_threshold(unknown(key=simulation(seed), sticky=True), at=-(10**6)).run(streams)
        released: set[str] = set()
        for t, value in enumerate(u.run(streams), start=1):
            released |= {label for label, count in everything[t - 1].items() if count > u.threshold_at(t)}
            assert value == {label: count for label, count in everything[t - 1].items() if label in released}
        left += any(set(before) - set(after) for before, after in pairwise(plain))
    assert left > 5, "without sticky an item may leave"


def test_order_form_and_spelling_of_the_input_play_no_part() -> None:
    generator = random.Random(5)
    stream = [[generator.choices("abcdef", k=generator.randint(1, 4)) for _ in range(200)] for _ in range(12)]
    expected = unknown(max_per_event=2).run(stream)
    assert all(expected)
    shuffled = [[generator.sample(event, len(event)) for event in generator.sample(t, len(t))] for t in stream]
    doubled = [[event * 2 for event in t] for t in stream]
    for other in (
        shuffled,
        doubled,
        [[set(event) for event in t] for t in stream],
        [[dict.fromkeys(event, 1) for event in t] for t in stream],
        [[[letter.encode() for letter in event] for event in t] for t in stream],
        [pa.array(t) for t in stream],
        [
            pa.chunked_array(
                [pa.array(t[:9]), pa.array(t[9:]).cast(pa.list_(pa.large_string())).cast(pa.list_(pa.string()))]
            )
            for t in stream
        ],
    ):
        assert unknown(max_per_event=2).run(other) == expected


def test_what_is_not_released_leaves_no_trace_in_what_is() -> None:
    """streaming-selection 11.4 (10): neighbours with equal released sets give equal bytes, under the same noise."""
    generator = random.Random(6)
    stream = [["big"] * 300 + ["huge"] * 500 for _ in range(10)]
    more = [[*t, "secret-label", f"secret-{generator.random()}"] for t in stream]
    more = [generator.sample(t, len(t)) for t in more]
    plain, crowded = unknown(), unknown()
    for a, b in zip(stream, more, strict=True):
        x, y = plain.step(a), crowded.step(b)
        assert json.dumps(x.value) == json.dumps(y.value)
        assert (repr(x), x.interval()) == (repr(y), y.interval())
    assert plain.run(stream, full=True) == crowded.run(more, full=True)
    for shown in (repr(crowded), str(crowded), repr(crowded.run([["secret-label"]]))):
        assert "secret" not in shown
    assert not hasattr(crowded, "__len__")
    public = [name for name in dir(crowded) if not name.startswith("_")]
    for name in public:
        assert "secret" not in repr(getattr(crowded, name))
    with pytest.raises(ReplayRefused) as refusal:
        crowded.step(["another secret"], tick=crowded.tick)
    assert "secret" not in str(refusal.value)


# -- the contract -----------------------------------------------------------------------------------------------------


def _feed(n: int) -> list[Any]:
    return [["a"] * (160 + t % 3) + ["b"] * (100 + t % 5) + ["c"] * (50 + t % 2) for t in range(n)]


def _truth(inputs: list[Any]) -> list[dict[str, int]]:
    counts, result = Counter[str](), []
    for events in inputs:
        counts.update(events)
        result.append({label: counts[label] for label in "abc"})
    return result


@pytest.mark.parametrize(
    "make",
    [
        lambda key: unknown(key=key, horizon=20),
        lambda key: unknown(key=key, horizon=20, threshold="per_tick", sticky=True, radix=2),
        lambda key: UnknownTopK(3, guarantee=et.ApproxDP(4.0, 1e-4), horizon=20, key=key),
    ],
    ids=["histogram", "sticky", "top-k"],
)
def test_conformance(make: Any) -> None:
    wrong = ["abc", 7, None, {"a": 1}, {"a"}, np.zeros((2, 2))]
    subject = Subject("unknown", make, _feed, _truth, GARBAGE, wrong, runs=100)
    assert check(subject) == len(CHECKS)


def test_snapshots_in_the_middle_of_discovery() -> None:
    generator = random.Random(3)
    stream = [
        generator.choices([f"w{i}" for i in range(40)], weights=[3**-i + 0.01 for i in range(40)], k=60)
        for _ in range(25)
    ]
    for sticky in (False, True):
        u = unknown(horizon=25, sticky=sticky)
        snapshots, values = [u.snapshot()], []
        for events in stream:
            values.append(u.step(events).value)
            snapshots.append(u.snapshot())
        assert len({tuple(value) for value in values}) > 3
        for tick, blob in enumerate(snapshots):
            again = et.restore(blob, key=simulation(1))
            if tick:
                assert again.step(stream[tick - 1], tick=tick).value == values[tick - 1]
            assert again.run(stream[tick:]) == values[tick:]
            assert again.snapshot() == snapshots[-1]


def test_a_tick_is_replayed_for_the_same_totals_only() -> None:
    u = unknown(max_per_event=1)
    events = [["a", "b"], ["b"], ["c", "a", "d"]] * 50
    first = u.step(events, tick=1)
    before = u.snapshot()
    for same in (events, events[::-1], pa.array(events), [set(e) for e in events]):
        assert u.step(same, tick=1) == first
        assert u.step_events(same, tick=1) == first
    swapped = [[{"a": "b", "b": "a"}.get(label, label) for label in event] for event in events]
    for other in (events[1:], [*events, "a"], [*events, "never seen"], [], swapped):
        with pytest.raises(ReplayRefused):
            u.step(other, tick=1)
    assert u.snapshot() == before, "a refused input left a trace"
    with pytest.raises(ReplayRefused):
        u.step([], tick=3)


def test_step_and_step_events_are_the_same() -> None:
    stream = [[["a", "b", "c"]] * 60, [{"a": 5, "b": 2}, "a", None], [], [["b"]] * 90]
    for u, v in ((unknown(max_weight=3), unknown(max_weight=3)),):
        assert [u.step(events) for events in stream] == [v.step_events(events) for events in stream]


def test_runs() -> None:
    stream = [["a"] * 200 + ["b"] * 100] * 30
    values = unknown().run(stream)
    assert isinstance(values, list)
    assert unknown().run(stream, at=[2, 30]) == [values[1], values[29]]
    assert unknown().run(tuple(stream)) == values
    assert unknown().run([pa.array(t) for t in stream]) == values
    assert unknown().run(pa.array(stream)) == values
    table = unknown().run(stream, full=True, at=[1, 2])
    assert table.column_names == ["tick", "column", "value", "lower", "upper"]
    assert table["column"].to_pylist() == ["a", "b"] * 2
    assert table["tick"].to_pylist() == [1, 1, 2, 2]
    assert table["value"].to_pylist() == [count for value in values[:2] for count in value.values()]
    lower, upper = unknown().step(stream[0]).interval(0.05)
    assert table["lower"].to_pylist()[:2] == list(lower.values())
    assert table["upper"].to_pylist()[:2] == list(upper.values())
    empty = unknown().run([[], ["x"]], full=True)
    assert empty.num_rows == 0
    assert empty.schema == table.schema
    assert unknown().run([]) == []
    u = unknown()
    for wrong in ("abc", 7, None, {"a": 1}, [["a"], "abc"], [["a"], 7], [{"a": 1}]):
        with pytest.raises(TypeError):
            u.run(wrong)
    with pytest.raises(HorizonExceeded):
        u.run([[]] * 31)
    assert u.tick == 0


def test_labels_that_are_no_text_elsewhere() -> None:
    u = unknown(key=ZeroNoise())
    release = u.step([b"\xff\xfe", "\ud800", 7, "tab\t"] * 100)
    assert list(release.value) == sorted(release.value)
    assert set(release.value) == {"\udcff\udcfe", "\ud800", "7", "tab\t"}
    again = et.restore(u.snapshot(), key=ZeroNoise())
    assert again.step([]).value == release.value
    assert len(set(unknown(key=ZeroNoise()).run([[b"\xff", "\ud800"] * 100], full=True)["column"].to_pylist())) == 2


def test_users_are_capped() -> None:
    u = unknown(key=ZeroNoise(), unit="user", max_events_per_user=2, max_per_event=2)
    without_threshold(u)
    assert u.step_events([["a"], ["a", "b"], ["c"]], users=["ann"] * 3).value == {"a": 2, "b": 1}
    u = without_threshold(et.restore(u.snapshot(), key=ZeroNoise()))
    assert u.step_events(pa.array([["a"], ["c"]]), users=["ann", "bob"]).value == {"a": 2, "b": 1, "c": 1}
    before = u.snapshot()
    for call in (lambda: u.step_events([["a"]]), lambda: u.step([["a"]] * 4999), lambda: u.run([[["a"]] * 4999])):
        with pytest.raises(TypeError, match="user"):
            call()
    assert u.snapshot() == before


def test_on_a_stream_with_one_ledger() -> None:
    stream = et.Stream("words", guarantee=et.ApproxZCDP(0.5, 1e-6), horizon=50, key=simulation(1))
    u = stream.add(UnknownHistogram, share=0.6, max_per_event=2)
    stream.add(et.Counter, share=0.4)
    assert u.charge == et.ApproxZCDP(Fraction(3, 10), Fraction(6, 10) * Fraction(1e-6))
    assert stream.ledger.left == 0
    with pytest.raises(ConfigurationError, match="ApproxZCDP"):
        et.Stream("words", guarantee=et.ApproxDP(1, 1e-6), horizon=50).add(UnknownHistogram, share=0.6)


def test_noise_depends_on_key_names_and_parameters() -> None:
    events = [["a"] * 3000]

    def value(**options: Any) -> int:
        u = unknown(**({"guarantee": et.ApproxZCDP(Fraction(1, 20_000), 1e-6)} | options))
        return int(u.run(events)[0]["a"])

    base = value()
    assert value() == base
    others = [
        {"key": simulation(2)},
        {"name": "x"},
        {"stream": "x"},
        {"horizon": 31},
        {"max_weight": 1, "sticky": True},
    ]
    assert len({base, *(value(**options) for options in others)}) > 3


# -- the k largest ----------------------------------------------------------------------------------------------------


def test_the_k_largest_of_what_is_released() -> None:
    counts = {"a": 500, "b": 400, "c": 400, "d": 300, "e": 1}
    events = [label for label, count in counts.items() for _ in range(count)]
    for k in range(1, 7):
        top = UnknownTopK(k, guarantee=UNIT, horizon=30, key=ZeroNoise())
        assert list(top.step(events).value.items()) == list(counts.items())[: min(k, 4)]
        assert list(et.restore(top.snapshot(), key=ZeroNoise()).step([]).value) == list(counts)[: min(k, 4)]
    noisy = UnknownTopK(3, guarantee=UNIT, horizon=30, key=simulation(4), sticky=True)
    everything = UnknownTopK(100, guarantee=UNIT, horizon=30, key=simulation(4), sticky=True)
    assert noisy.charge == everything.charge == UNIT
    value = noisy.step(events).value
    assert list(value) == sorted(value, key=lambda label: (-value[label], label))
    with pytest.raises(ConfigurationError, match="k must"):
        UnknownTopK(0, guarantee=UNIT, horizon=30)
    with pytest.raises(ConfigurationError, match="tree"):
        UnknownTopK(3, guarantee=UNIT, horizon=30, mechanism="nothing")
