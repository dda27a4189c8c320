"""Coins of events: no bias, no other event in them, and one event moves a sum by one bounded amount (additions 12)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import evertally as et
from evertally.contract.rounding import Rounder
from evertally.encode.texts import Texts
from evertally.encode.values import AmountGrid, as_written
from evertally.errors import ConfigurationError
from evertally.noise import simulation


def rounder(seed: int = 1, low: int = -5, high: int = 5) -> Rounder:
    return Rounder(simulation(seed).source("test"), low, high, "random")


def test_one_event_moves_a_sum_by_one_amount_whatever_the_coins_are() -> None:
    """All functions s(class, number) with two values, all batches of two classes: the lemma, by exhaustion."""
    most = 3
    for coins in product((0, 1), repeat=2 * (most + 1)):
        s = {(c, i): coins[c * (most + 1) + i] for c in (0, 1) for i in range(most + 1)}

        def total(batch: tuple[int, ...], s: dict[tuple[int, int], int] = s) -> int:
            return sum(s[c, batch[:place].count(c)] for place, c in enumerate(batch))

        for batch in product((0, 1), repeat=most):
            for place in range(most):
                without = batch[:place] + batch[place + 1 :]
                assert total(batch) - total(without) == s[batch[place], without.count(batch[place])]
                other = (*batch[:place], 1 - batch[place], *batch[place + 1 :])
                assert abs(total(batch) - total(other)) <= 1


def test_by_place_in_the_batch_all_coins_move() -> None:
    """What the lemma forbids: words by place, and amounts of one and of three quarters."""
    words, amounts = [0.9, 0.5] * 10, [0.25, 0.75] * 10
    up = [sum(word < amount for word, amount in zip(words, batch, strict=False)) for batch in (amounts, amounts[1:])]
    assert up == [10, 0], "one event of at most 1 moved the sum by 10"


@pytest.mark.parametrize("seed", range(5))
def test_the_product_keeps_the_lemma(seed: int) -> None:
    made, random = rounder(seed), np.random.default_rng(seed)
    for tick in range(20):
        places = random.choice([0.25, 0.5, -1.75, 3.0, 7.5, np.nan], size=30)
        total = made.steps(places, tick).sum()
        assert made.steps(random.permutation(places), tick).sum() == total, "the order of events is no part of it"
        for place in range(len(places)):
            low, high = np.floor(np.clip(places[place], -5, 5)), np.ceil(np.clip(places[place], -5, 5))
            moved = total - made.steps(np.delete(places, place), tick).sum()
            assert (np.isnan(places[place]) and moved == 0) or low <= moved <= high


def test_users_have_coins_of_their_own() -> None:
    made = rounder()
    names, codes = Texts.of(["ann", "bob"]), np.array([0, 1] * 20)
    places = np.full(40, 0.5)
    both = made.steps(places, 3, codes, names)
    assert (
        both[codes == 1].tolist()
        == made.steps(places[:20], 3, np.zeros(20, dtype=np.int64), Texts.of(["bob"])).tolist()
    )
    assert both[codes == 0].tolist() != both[codes == 1].tolist()


def test_there_is_no_bias() -> None:
    made = rounder(7)
    for part in (0.01, 0.25, 0.5, 0.9):
        ups = sum(int(made.steps(np.full(2000, 1 + part), tick).sum()) - 2000 for tick in range(5))
        # 10000 coins, five standard deviations: false alarms below 1e-6
        assert abs(ups - 10_000 * part) <= 5 * (10_000 * part * (1 - part)) ** 0.5
    alike = [made.steps(np.full(1, 0.5), tick)[0] for tick in range(200)]
    assert 60 < sum(alike) < 140, "ticks have coins of their own"


def test_bounds_come_last_and_in_integers() -> None:
    made = rounder(low=0, high=3)
    steps = made.steps(np.array([np.nan, np.inf, -np.inf, 1e300, -2.5, 2.5]), 1)
    assert steps[:5].tolist() == [0, 3, 0, 3, 0]
    assert steps[5] in (2, 3)
    nearest = Rounder(simulation(1).source("test"), 0, 3, "nearest")
    assert nearest.steps(np.array([0.5, 0.49, 2.5, 9.0, np.nan]), 1).tolist() == [1, 0, 3, 3, 0]


def test_a_grid_is_read_as_it_is_written() -> None:
    grid = AmountGrid(-0.3, 19.99, 0.1)
    assert (grid.low, grid.high, grid.most, grid.signed) == (-3, 200, 200, True)
    hundredths = np.arange(100_000) / 100
    assert (AmountGrid(0, 1000, 0.01).places(hundredths) == np.arange(100_000)).all(), "cents are whole"
    assert as_written(np.float64(0.1)) == as_written(0.1)
    for wrong in ((1, 1, 1), (0, 1, 0), (0, 1, -1), (0, float("inf"), 1), (0, 1, float("nan")), (0, 2**41, 1)):
        with pytest.raises(ConfigurationError):
            AmountGrid(*wrong)


def test_a_restart_finds_the_same_sums() -> None:
    key = simulation(3)
    made = et.RunningSum(upper=1, guarantee=et.ZCDP(0.5), horizon=4, key=key)
    batch = np.random.default_rng(0).uniform(0, 1, 1000)
    first = made.step(batch)
    again = et.restore(made.snapshot(), key=key)
    assert again.step(batch[::-1], tick=1).value == first.value
    assert (
        again.step(batch).value
        == et.RunningSum(upper=1, guarantee=et.ZCDP(0.5), horizon=4, key=key).run([batch, batch])[1]
    )
