"""Exact laws: they sum to one, agree with closed forms and with other ways to compute the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb

import evertally as et
from evertally.audit import exact_loss
from evertally.audit.exact import combinations_of, exact_columns
from evertally.balls import precision
from evertally.errors import ConfigurationError
from evertally.privacy import delta_of_rho

KEY = et.simulation(0)


def counter(guarantee, horizon, mechanism="tree", **options):
    if mechanism == "tree":
        options.setdefault("radix", 2)
    return et.Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=KEY, **options)


@pytest.mark.parametrize(("epsilon", "ticks"), [(0.5, 1), (1.0, 1), (3.0, 1), (0.5, 2), (1.0, 2), (3.0, 2), (3.0, 3)])
def test_a_laplace_tree_loses_its_epsilon_and_no_more(epsilon, ticks):
    loss = exact_loss(counter(et.PureDP(epsilon), ticks), [1] + [0] * (ticks - 1), [0] * ticks, tail=1e-6)
    assert 0.999 * epsilon < loss.epsilon <= epsilon * (1 + 1e-12)


def test_what_lies_in_fewer_blocks_loses_less():
    tree = counter(et.PureDP(1.0), 2)
    first, second = (exact_loss(tree, stream, [0, 0]).epsilon for stream in ([1, 0], [0, 1]))
    assert first == pytest.approx(1.0, abs=1e-6)
    assert second == pytest.approx(0.5, abs=1e-6)


def test_the_law_is_a_law():
    loss = exact_loss(counter(et.PureDP(1.0), 2), [1, 0], [0, 0])
    for side in (loss.left, loss.right):
        assert 1 - 1e-9 <= math.fsum(side.values()) <= 1 + 1e-12
    assert max(loss.right, key=loss.right.get) == (0, 0)
    assert max(loss.left, key=loss.left.get) == (1, 1)


def test_one_tick_against_the_formulas():
    """Discrete Laplace of scale 1: P(z) = tanh(1/2) e^-|z|, and its hockey-stick divergence summed by hand."""
    loss = exact_loss(counter(et.PureDP(1.0), 1), [1], [0], tail=1e-12)
    for z in range(-5, 6):
        assert loss.right[(z,)] == pytest.approx(math.tanh(0.5) * math.exp(-abs(z)), rel=1e-10)
    p = {z: math.tanh(0.5) * math.exp(-abs(z)) for z in range(-40, 41)}
    for epsilon in (0.0, 0.3, 0.9):
        direct = sum(max(0.0, p.get(z - 1, 0.0) - math.exp(epsilon) * p[z]) for z in p)
        assert loss.delta(epsilon) == pytest.approx(direct, abs=1e-10)
    assert loss.delta(1.0) == 0.0


@pytest.mark.parametrize("order", [1.5, 2, 4, 8])
@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_gaussian_renyi_divergence_is_at_most_order_times_rho_and_close_to_it(order, rho):
    loss = exact_loss(counter(et.ZCDP(rho), 2), [1, 0], [0, 0], tail=1e-25)
    assert 0.97 * order * rho < loss.renyi(order) <= order * rho * (1 + 1e-12)


def gaussian_renyi(sigma_squared: int, shift: int, order: int) -> float:
    """Renyi divergence between a discrete Gaussian and its shift, summed in ball arithmetic (an upper value)."""
    with precision(160):
        s2 = 2 * arb(str(sigma_squared))
        reach = int(12 * math.sqrt(float(sigma_squared)) * math.sqrt(order + 1)) + abs(shift) * (order + 2) + 12
        weight = {z: (-arb(z * z) / s2).exp() for z in range(-reach - abs(shift), reach + abs(shift) + 1)}
        total = sum(weight.values(), arb(0))
        moment = sum((weight[z] ** order * weight[z - shift] ** (1 - order) for z in range(-reach, reach + 1)), arb(0))
        return float(((moment / total).log() / (order - 1)).upper())


def test_gaussian_renyi_divergence_against_ball_arithmetic():
    loss = exact_loss(counter(et.ZCDP(0.5), 1), [1], [0], tail=1e-15)
    for order in (2, 3):
        assert loss.renyi(order) == pytest.approx(gaussian_renyi(1, 1, order), abs=1e-3)
        assert loss.renyi(order) <= gaussian_renyi(1, 1, order)


def test_gaussian_delta_is_within_the_conversion():
    loss = exact_loss(counter(et.ZCDP(0.5), 2), [1, 0], [0, 0], tail=1e-12)
    for epsilon in (0.5, 1.0, 2.0):
        assert 0 < loss.delta(epsilon) < float(delta_of_rho(0.5, epsilon))


def test_numbers_never_exceed_the_truth_however_large_the_tail():
    """The box leaves out mass; everything must come out smaller for it, not larger."""
    tree, gauss = counter(et.PureDP(1.0), 2), counter(et.ZCDP(0.5), 2)
    for tail in (0.2, 1e-2, 1e-4):
        assert exact_loss(tree, [1, 0], [0, 0], tail).epsilon <= 1.0
        rough, fine = (exact_loss(gauss, [1, 0], [0, 0], t) for t in (tail, 1e-12))
        for order in (1.5, 2, 8, 32):
            assert rough.renyi(order) <= fine.renyi(order) + 1e-9
        assert rough.delta(0.7) <= fine.delta(0.7) + 1e-9


@pytest.mark.parametrize("mechanism", ["honaker", "tree"])
def test_refined_trees_stay_below_their_claim(mechanism):
    loss = exact_loss(counter(et.PureDP(1.0), 2, mechanism), [1, 0], [0, 0], tail=1e-6)
    assert 0.99 < loss.epsilon <= 1.0


def test_epochs():
    mechanism = counter(et.PureDP(1.0), None, "epoch-tree")
    losses = [exact_loss(mechanism, row, [0, 0, 0], tail=1e-6).epsilon for row in np.eye(3, dtype=int).tolist()]
    assert losses == pytest.approx([1.0, 1.0, 0.5], abs=1e-3)
    assert max(losses) <= 1.0


# -- columns ---------------------------------------------------------------------------------------------------------


def test_columns_add_up():
    histogram = et.Histogram(
        categories=["a", "b", "c"],
        max_per_event=2,
        guarantee=et.PureDP(1.0),
        horizon=2,
        mechanism="tree",
        radix=2,
        key=KEY,
    )
    one = exact_columns(histogram, [[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]])
    two = exact_columns(histogram, [[1, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]])
    assert len(one.columns) == 1
    assert one.epsilon == pytest.approx(0.5, abs=1e-5)
    assert two.epsilon == pytest.approx(1.0, abs=1e-5)
    assert two.epsilon <= 1.0
    assert two.renyi(2) == pytest.approx(2 * one.renyi(2))


def test_columns_that_agree_lose_nothing():
    vector = et.VectorCounter(2, guarantee=et.PureDP(1.0), horizon=1, key=KEY)
    assert exact_columns(vector, [[3, 4]], [[3, 4]]).epsilon == 0.0


def test_joint_loss_against_the_law_of_both_columns():
    """The product law of two columns, outcome by outcome."""
    vector = et.VectorCounter(2, guarantee=et.PureDP(1.0), max_per_event=2, horizon=1, neighbours="replace", key=KEY)
    joint = exact_columns(vector, [[1, 0]], [[0, 1]], tail=1e-10)
    a, b = joint.columns
    largest = max(
        abs(math.log(a.left[x] * b.left[y] / a.right[x] / b.right[y]))
        for x in a.left.keys() & a.right.keys()
        for y in b.left.keys() & b.right.keys()
        if -5 <= x[0] <= 5 and -5 <= y[0] <= 5
    )
    assert joint.epsilon == pytest.approx(largest, abs=1e-6)
    assert joint.epsilon == pytest.approx(1.0, abs=1e-6)


# -- refusals --------------------------------------------------------------------------------------------------------


def test_what_is_too_large_is_refused():
    sqrt = counter(et.ZCDP(0.5), 2, "sqrt")
    with pytest.raises(ConfigurationError, match="too many"):
        exact_loss(sqrt, [1, 0], [0, 0])
    assert combinations_of(sqrt, 2) > 10**9


def test_streams_must_fit():
    with pytest.raises(ConfigurationError, match="several columns"):
        exact_loss(et.VectorCounter(2, guarantee=et.PureDP(1.0), horizon=1, key=KEY), [1], [0])
    with pytest.raises((ConfigurationError, ValueError)):
        exact_columns(counter(et.PureDP(1.0), 2), [[1], [0]], [[0]])
