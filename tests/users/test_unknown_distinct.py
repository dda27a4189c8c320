"""Items that nobody listed, by their users: plain sets, and the exact game of two ticks (users-and-domains 2.2).

In the game the user has two labels: one that others have, or nobody, at tick 1; at tick 2, chosen after seeing the
first release, one that only this user has, or one that others have.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit.label_noise import item_table
from evertally.noise import ZeroNoise
from evertally.privacy import delta_of_rho
from evertally.users.distinct_unknown import UnknownDistinctUsers

Law = dict[Any, float]
HIDDEN = None


def made(key: Any, **options: Any) -> UnknownDistinctUsers:
    return UnknownDistinctUsers(horizon=2, radix=2, max_categories=2, key=key, **options)


def transcripts(counts: tuple[int, int], W: Any, laws: Any, thresholds: list[int]) -> Law:
    """The exact law of what two ticks show of one label: its noisy number, or nothing. A count of 0: no such label."""
    support = range(-14, 15)
    masses = [np.array([math.exp(-z * z / (2 * float(law.sigma_squared))) for z in support]) for law in laws]
    masses = [mass / mass.sum() for mass in masses]
    found: Law = defaultdict(float)
    for draws in product(range(len(support)), repeat=len(laws)):
        mass = math.prod(m[i] for m, i in zip(masses, draws, strict=True))
        noise = W @ np.array([support[i] for i in draws])
        shown = [
            round(count + float(e)) if count and count + e > threshold else HIDDEN
            for count, e, threshold in zip(counts, noise, thresholds, strict=True)
        ]
        found[tuple(shown)] += mass
    return found


def hockey(one: Law, other: Law, epsilon: float, choices: list[tuple[Law, Law]]) -> float:
    """The largest delta at epsilon, over which of the choices follows each first release."""
    scale = math.exp(epsilon)
    by_first: dict[Any, list[float]] = defaultdict(lambda: [0.0] * len(choices))
    for told in {*one, *other}:
        for number, (left, right) in enumerate(choices):
            by_first[told[0]][number] += sum(
                max(0.0, one.get(told, 0.0) * left.get(t, 0.0) - scale * other.get(told, 0.0) * right.get(t, 0.0))
                for t in {*left, *right}
            )
    return sum(max(sums) for sums in by_first.values())


def small(law: Law) -> Law:
    """The same law with values above the threshold merged where they are many: post-processing, for speed."""
    merged: Law = defaultdict(float)
    for told, mass in law.items():
        merged[told] += mass
    return {told: mass for told, mass in merged.items() if mass > 1e-13}


@pytest.mark.parametrize("delta", [0.02, 0.002])
def test_the_game_of_two_ticks(delta: float) -> None:
    promise = et.ApproxZCDP(1.0, delta, force=True)
    mechanism = made(et.simulation(0), guarantee=promise)
    W, laws = item_table(lambda key: made(key, guarantee=promise), [1, 0])
    thresholds = [mechanism.threshold_at(t) for t in (1, 2)]
    others = thresholds[0]
    law = {
        counts: small(transcripts(counts, W, laws, thresholds))
        for counts in ((1, 1), (0, 1), (0, 0), (others, others), (others + 1, others + 1), (others, others + 1))
    }
    # One label that only this user has shows with at most half of delta: there are two of them.
    alone = 1 - law[1, 1][HIDDEN, HIDDEN]
    assert alone <= delta / 2
    lower = [threshold - 2 for threshold in thresholds]
    assert 1 - transcripts((1, 1), W, laws, lower)[HIDDEN, HIDDEN] > delta / 2
    firsts = [(law[1, 1], law[0, 0]), (law[others + 1, others + 1], law[others, others])]
    seconds = [(law[0, 1], law[0, 0]), (law[others, others + 1], law[others, others])]
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        claimed = float(delta_of_rho(promise.rho, epsilon)) + delta
        for left, right in firsts:
            assert hockey(left, right, epsilon, seconds) <= claimed
            assert hockey(right, left, epsilon, [(b, a) for a, b in seconds]) <= claimed


def plain(value: Any) -> str | None:
    """The one spelling of a name."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return None if value != value else str(int(value))
    if isinstance(value, bytes):
        return value.decode()
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else None


def test_against_plain_sets() -> None:
    """Random events with odd users and labels, restored now and then: the first two labels of each user, each once."""
    generator = np.random.default_rng(7)
    users = ["ann", "bob", "Ann", 7, "7", 7.0, None, float("nan"), ["x"], True, b"bob", "\u00e9", "e\u0301"]
    labels = ["home", "cart", "pay", 1, "1", None, ("home",), {"home": 1}, "x" * 2000, "\u00e9", "e\u0301"]
    key = ZeroNoise()
    statistic = UnknownDistinctUsers(horizon=40, max_categories=2, guarantee=et.ApproxDP(1.0, 1e-6), key=key)
    kept: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for tick in range(1, 31):
        events = [(labels[i], users[j]) for i, j in generator.integers(0, (len(labels), len(users)), size=(6, 2))]
        for label, user in events:
            name, text = plain(user), plain(label)
            if name is None or text is None or len(text) > 1024:
                continue
            mine = kept.setdefault(name, [])
            if text not in mine and len(mine) < 2:
                mine.append(text)
                counts[text] = counts.get(text, 0) + 1
        statistic.step_events([label for label, _ in events], users=[user for _, user in events])
        table = statistic._worker().table
        assert dict(zip(table.labels.take(np.arange(len(table))).list(), table.counts.tolist(), strict=True)) == counts
        if tick % 7 == 0:
            statistic = et.restore(statistic.snapshot(), key=key)


def test_a_user_is_an_event_of_m_items() -> None:
    """The noise and threshold are those of one event of m items; users of m events would cost a group of m."""
    promise = et.ApproxDP(1.0, 1e-6)
    for m in (1, 3, 10):
        users = UnknownDistinctUsers(max_categories=m, guarantee=promise, horizon=365, key=et.simulation(1))
        event = et.UnknownHistogram(max_per_event=m, guarantee=promise, horizon=365, key=et.simulation(1))
        group = et.UnknownHistogram(
            unit="user", max_events_per_user=m, guarantee=promise, horizon=365, key=et.simulation(1)
        )
        assert users.threshold_at(9) == event.threshold_at(9) <= group.threshold_at(9)
        assert users.stddev(9) == event.stddev(9)
        assert group.stddev(9) / users.stddev(9) == pytest.approx(m**0.5, rel=1e-3)
        replaced = UnknownDistinctUsers(
            max_categories=m, neighbours="replace", guarantee=promise, horizon=365, key=et.simulation(1)
        )
        assert replaced.stddev(9) / users.stddev(9) == pytest.approx(2**0.5, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "event"},
        {"max_events_per_user": 3},
        {"mechanism": "meta"},
        {"horizon": None},
        {"guarantee": et.PureDP(1.0)},
        {"neighbours": "independent"},
        {"max_categories": 0},
    ],
)
def test_what_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(et.ConfigurationError):
        UnknownDistinctUsers(**({"guarantee": et.ApproxDP(1.0, 1e-6), "horizon": 9} | options))
