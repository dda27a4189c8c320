"""Ladders: thresholds that do not follow what was released (parameterized-histograms 4 and 5)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from evertally.errors import ConfigurationError
from evertally.partition.budget import Split
from evertally.partition.configuration import Configuration, Terms
from evertally.partition.noise_bounds import NoiseBounds
from evertally.partition.rebased import at_one_tick, moving_rise
from evertally.partition.rules import Ladder, NoisyLadders

_MOST_INTERVALS = 2**30
_TREE = "binary-tree"  # how H is made where the number of inserts is known


def bounded(terms: Terms) -> Configuration:
    """Algorithms 2, 3 and 7: a ladder of equal steps K = 3 alpha, alpha = err + alpha_mu + alpha_tau (4.2, 5.3).

    n is the smallest number of closes that suffices for `largest`, each interval growing by at least alpha - 1
    (calibration of 4.2 [D][R]). Error at most K + 2 alpha_SV + 3 err <= 2K. Without `largest` or a horizon the steps
    grow with the public tick and the number of the interval, and H is an epoch tree (5.5 [D][R]). One query only: a
    column that is not the largest can grow unseen (7.1).
    """
    if terms.queries.count > 1:
        raise ConfigurationError('one ladder watches one query; for several use "rebased" or "noisy-ladders"')
    noise, beta = terms.noise(Split.halves()), terms.beta

    def alpha(bounds: NoiseBounds, j: int | None = None, t: int | None = None) -> int:
        return max(3, bounds.histogram(beta, j) + terms.base_error + bounds.sparse_vector(beta, t, j))

    if terms.unlimited:
        bounds = terms.noise_bounds(noise, "epoch-tree", None)
        moving = moving_rise(lambda j, t: 3 * alpha(bounds, j, t))
        rule = lambda: Ladder(terms.queries, moving)  # noqa: E731
        return Configuration("bounded", terms, noise, "epoch-tree", None, rule, at_one_tick(moving), (2, 3, 0))
    settle = terms.settle
    n = settle("n", lambda: _fewest(lambda n: n * (alpha(terms.noise_bounds(noise, _TREE, n)) - 1) >= terms.guess))
    step = settle("K", lambda: 3 * alpha(terms.noise_bounds(noise, _TREE, n)))
    rule = lambda: Ladder(terms.queries, lambda j, ticks: step)  # noqa: E731
    return Configuration("bounded", terms, noise, _TREE, n, rule, lambda j, t: step, (2, 3, 0), covers=terms.guess)


def noisy_ladders(terms: Terms) -> Configuration:
    """Algorithms 8, 12, 13 and 17: a ladder for each query, steps K = 3 (C + err), C = alpha_SV + alpha_U (4.3, 4.4).

    n as in the calibration of 4.3 [D][R]. Error at most K + C + 3 err + alpha_SV + alpha_U <= 2K + 1: the threshold in
    force was set by a look that found the query above K_old - C - alpha_U - err, and no close means that it is below
    K_old + K + alpha_SV + err.
    """
    noise, beta = terms.noise(Split.thirds()), terms.beta
    law = noise.update
    if law is None:
        raise ConfigurationError("noisy ladders pay for updates, and a split of three parts has none; leave it out")
    if terms.unlimited:
        raise ConfigurationError('noisy ladders need a horizon and `largest`; without them use "rebased"')

    def parts(n: int) -> tuple[int, int, int]:
        bounds = terms.noise_bounds(noise, _TREE, n)
        return bounds.sparse_vector(beta), bounds.update(beta), bounds.histogram(beta) + terms.base_error

    def enough(n: int) -> bool:
        sparse, _, histogram = parts(n)
        return n * (max(3, sparse + histogram) - 1) >= terms.queries.count * terms.guess

    settle = terms.settle
    n = settle("n", lambda: _fewest(enough))
    sparse, update, histogram = parts(n)
    C = settle("C", lambda: sparse + update)
    K = settle("K", lambda: 3 * (C + histogram))
    rule = lambda: NoisyLadders(terms.queries, K, C, law)  # noqa: E731
    return Configuration(
        "noisy-ladders", terms, noise, _TREE, n, rule, lambda j, t: K + C, (1, 3, 1), covers=terms.guess
    )


def doubling(terms: Terms, start: int | None = None) -> Configuration:
    """Algorithms 5, 10 and 15: thresholds K_1, 2 K_1, 4 K_1, ... and noise that adds up (5.1, 5.2).

    `start` is K_1; None takes alpha_mu + alpha_tau, below which every close is noise (5.1 [D][R]). The answer is
    repeated between closes, so its error is of the size of the answer itself: this is the outer level of the two-level
    scheme. J = ceil(log2(T/K_1)) + 1 closes, so that the last threshold is as large as any answer; no limit without a
    horizon.
    """
    noise = terms.noise(Split.halves())
    most = None if terms.horizon is None else terms.horizon * terms.growth
    J = None if most is None else (most - 1).bit_length() + 1

    def above_noise() -> int:
        return max(1, terms.noise_bounds(noise, "running-sum", J).sparse_vector(terms.beta, 1, 1))

    K_1 = terms.settle("K_1", above_noise) if start is None else start
    if most is not None:
        J = (-(-most // K_1) - 1).bit_length() + 1

    def step(j: int) -> int:
        return K_1 if j == 1 else K_1 << (j - 2)  # K_j - K_(j-1)

    def growth(j: int, t: int) -> int:
        # Only the largest query is watched: another one may have grown from 0 to K_j.
        return step(j) if terms.queries.count == 1 else K_1 << (j - 1)

    rule = lambda: Ladder(terms.queries, lambda j, ticks: step(j))  # noqa: E731
    return Configuration("doubling", terms, noise, "running-sum", J, rule, growth, (2, 3, 0), covers=most)


def _fewest(enough: Callable[[int], bool]) -> int:
    """The smallest n that is enough; enough stays enough."""
    high = 1
    while not enough(high):
        high *= 2
        if high > _MOST_INTERVALS:
            raise ConfigurationError("more than 2^30 intervals would be needed: `largest` is too large")
    candidates = range(high // 2 + 1, high + 1)
    return candidates[bisect_left(candidates, True, key=enough)]
