"""The numbers that docs/theory had wrong (its "Corrections"), computed again from definitions and not by the product's
formulas; and that texts and product now agree with them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from evertally.counting.sqrt_factor import coefficients, sqrt_factor
from evertally.histogram.expressions import HIndex
from evertally.privacy import ApproxDP, Contribution, change

THEORY = Path(__file__).parents[2] / "docs" / "theory"


def says(text: str, *words: str) -> None:
    whole = (THEORY / f"{text}.md").read_text(encoding="utf-8")
    for word in words:
        assert word in whole, f"{text}: {word}"


@pytest.mark.parametrize(("signed", "l1", "l2_squared"), [(False, 5, 9), (True, 8, 32)])
def test_one_of_several_items_that_merge(signed, l1, l2_squared):
    """factorization-counting 6.3: three columns, weights of at most 2, two columns kept; items of any weight."""
    d, b, w = 3, 2, 2
    raw = (-4, -2, -1, 1, 2, 4) if signed else (1, 2, 4)
    items = list(itertools.product(range(d), raw))

    def row(event):
        sums = [sum(x for column, x in event if column == c) for c in range(d)]
        clipped = [max(-w, min(w, s)) for s in sums]
        kept = [c for c in range(d) if clipped[c]][:b]
        return np.array([clipped[c] if c in kept else 0 for c in range(d)])

    most = [0, 0]
    for n in range(4):
        for others in itertools.combinations_with_replacement(items, n):
            rows = {tuple(row((*others, item))) for item in items}
            for left, right in itertools.combinations(rows, 2):
                moved = np.abs(np.subtract(left, right))
                most = [max(most[0], int(moved.sum())), max(most[1], int((moved**2).sum()))]
    assert most == [l1, l2_squared]
    charged = change("replace", Contribution(max_per_event=b, max_weight=w, signed=signed, protects="item"), d)
    assert (charged.l1, charged.l2_squared) == (l1, l2_squared)
    says("factorization-counting", "(w = 2: 9, not 8)", "**8w² (4w)**")


def test_the_integer_factor():
    """factorization-counting 11, step 2: N/(2^32 S_T) - 1, S_T from 200 binary digits."""
    digits, marks = 200, {2**12: "-1.8e-06", 2**16: "-2.8e-07", 2**20: "-3.7e-06"}
    r = coefficients(2**20)
    norms = np.cumsum(r * r)
    f, S, worse = 1 << digits, 0, {}
    for k in range(2**20):
        S += (f * f) >> digits
        if k + 1 in marks:
            loss = Fraction(int(norms[k]), 2**32) / Fraction(S, 2**digits) - 1
            assert f"{float(loss):.1e}" == marks[k + 1]
            if k + 1 < 2**20:  # both norms: what the error grows by
                factor = sqrt_factor(k + 1)
                product = math.sqrt(factor.column_norm_squared * float(np.sum(factor.inverse**2)) / 2**32)
                worse[k + 1] = f"{product / (S / 2**digits) - 1:.1e}"
        f = f * (2 * k + 1) // (2 * k + 2)
    assert worse == {2**12: "2.1e-08", 2**16: "2.8e-07"}
    says("factorization-counting", "is -1.8e-6 at T=2^12, -2.8e-7 at 2^16, -3.7e-6 at 2^20")


@pytest.mark.parametrize(
    ("k", "both", "tau_only"), [(5, "0.83", "0.7301"), (20, "3.33", "0.9998"), (100, "16.64", "1.0000")]
)
def test_thresholds_of_their_own(k, both, tau_only):
    """parameterized-histograms 8.8: tau of scale 6 and mu of scale 12, twelve rows at the threshold; an interval that
    never closes is worst."""
    z = np.arange(-1500, 1501)
    tau, mu = (weights / weights.sum() for weights in (np.exp(-np.abs(z) / scale) for scale in (6, 12)))
    below = np.cumsum(mu)

    def stays(moved):  # P(mu <= tau - moved), for every tau
        return np.concatenate([np.zeros(moved), below[: len(z) - moved]])

    at_least = np.append(np.cumsum(tau[::-1])[::-1], 0.0)
    smallest = at_least[:-1] ** k - at_least[1:] ** k

    def never_closes(moved):
        return (tau @ stays(moved) ** 12) ** k, smallest @ stays(moved) ** 12

    found = [math.log(p / q) for p, q in zip(never_closes(0), never_closes(1), strict=True)]
    assert f"{found[0]:.2f}" == both
    assert f"{found[1]:.4f}" == tau_only
    says("parameterized-histograms", f"k = {k}: {tau_only[:4] if k == 5 else tau_only}")


def test_the_bounds_of_r3_are_those_of_section_5_4():
    # The numbers themselves: tests/bounds/test_bounds_partition.py.
    says("parameterized-histograms", "bound 14987", "bound 6389")


def test_the_h_index_is_lipschitz_on_integers():
    h = HIndex()
    for d in (1, 2, 3):
        values = {v: h.ceiling(list(v)) for v in itertools.product(range(5), repeat=d)}
        for (v, left), (w, right) in itertools.combinations(values.items(), 2):
            assert abs(left - right) <= max(abs(x - y) for x, y in zip(v, w, strict=True))
    says("parameterized-histograms", "**on integers** it is 1-Lipschitz")


def test_one_conversion_is_used_both_ways():
    """price-of-continual-release 2.1: the optimised one; for any a > 1 rho_a keeps the promise, the best is taken."""
    epsilon, delta = 1.0, 1e-6
    orders = np.linspace(1.5, 80, 20000)
    best = max((epsilon + np.log(orders * delta) / (orders - 1) - np.log1p(-1 / orders)) / orders)
    made = ApproxDP(epsilon, delta).to_zcdp()
    assert made.rho == pytest.approx(best, rel=1e-6)
    assert made.to_approx(delta).epsilon == pytest.approx(epsilon, rel=1e-9)
    inverse = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    assert made.rho > 1.3 * inverse
    says("price-of-continual-release", "**default, used everywhere** (both ways)")
    says("streaming-selection", "by the optimised conversion of price-of-continual-release 2.1 everywhere")


def test_a_letter_that_goes_to_another_user():
    """factorization-counting 6.7: all streams of four records of two users, the episode "ab" by its definition."""

    def ends(text):
        """One a tick: whether a minimal occurrence ends there; "." is a letter of somebody else."""
        return [
            text[t] == "b" and "b" not in (before := text[:t]).rpartition("a")[2] and "a" in before for t in range(4)
        ]

    def counts(stream):
        return sum(np.array(ends("".join(x if u == user else "." for u, x in stream)), int) for user in (1, 2))

    records = list(itertools.product((1, 2), "ab"))
    most = {"user kept": [0, 0], "user included": [0, 0]}
    for stream in itertools.product(records, repeat=4):
        for t, other in itertools.product(range(4), records):
            moved = counts(stream) - counts((*stream[:t], other, *stream[t + 1 :]))
            found = most["user kept" if other[0] == stream[t][0] else "user included"]
            found[0] = max(found[0], int(np.abs(moved).sum()))
            # in one factor, changes of one sign meet (S3)
            found[1] = max(found[1], int(moved.clip(0).sum()) ** 2 + int((-moved).clip(0).sum()) ** 2)
    assert most == {"user kept": [2, 2], "user included": [3, 5]}
    says(
        "factorization-counting", "`1a 1b 1b 2b` against `1a 2a 1b 2b` has norm² 5 S_T (l1 3)", "user included: 4 x ADD"
    )
