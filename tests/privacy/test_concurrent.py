"""Concurrent composition (additions 1): random interactive mechanisms against the best of all interleaving strategies.

A mechanism answers twice; how, depends on its world, on the messages and on its first answer. A strategy chooses after
every answer of either mechanism which one to ask next, and what. Everything is enumerated: best strategies are found
backwards from the end, which is exact because what they maximise is a sum over transcripts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

MESSAGES, ANSWERS, ROUNDS = 2, 2, 2

Own = tuple[tuple[int, int], ...]  # (message, answer), in order; answer 2 + b betrays the world
Kernel = Callable[[int, Own, int], dict[int, float]]  # world, own history, message -> law of the answer


@dataclass
class Interactive:
    """A pair A_0, A_1, a weight of the own transcript, and the worst M that it dominates: it betrays the rest."""

    kernels: dict[tuple[int, Own, int], np.ndarray]
    weights: dict[Own, float]

    @classmethod
    def random(cls, rng: np.random.Generator) -> Interactive:
        kernels, weights = {}, {}
        for history in histories(ROUNDS - 1):
            for message in range(MESSAGES):
                base = rng.dirichlet(np.ones(ANSWERS))
                for world in (0, 1):
                    tilted = base * np.exp(rng.uniform(-1, 1, ANSWERS))
                    kernels[world, history, message] = tilted / tilted.sum()
        for history in histories(ROUNDS):
            if len(history) == ROUNDS:
                weights[history] = float(rng.choice([1.0, 1.0, rng.uniform(), 0.0]))
        return cls(kernels, weights)

    def good(self, world: int, history: Own, message: int) -> dict[int, float]:
        return dict(enumerate(self.kernels[world, history, message].tolist()))

    def real(self, world: int, history: Own, message: int) -> dict[int, float]:
        law = self.good(world, history, message)
        if len(history) + 1 == ROUNDS:
            law = {y: mass * self.weights[(*history, (message, y))] for y, mass in law.items()}
            law[2 + world] = 1 - math.fsum(law.values())
        return law


def histories(rounds: int) -> Iterator[Own]:
    grown: list[Own] = [()]
    for _ in range(rounds + 1):
        yield from grown
        grown = [(*h, (m, y)) for h in grown for m in range(MESSAGES) for y in range(ANSWERS)]


def best(
    kernels: tuple[Kernel, ...], end: Callable[[tuple[Own, ...], float, float], float], *, longest: bool = False
) -> float:
    """The largest sum of `end(transcript, P_0, P_1)` over transcripts, over all strategies that may stop at any time
    (`longest`: that ask until there is nothing left to ask)."""

    def value(transcript: tuple[Own, ...], p0: float, p1: float) -> float:
        ways = []
        for j, kernel in enumerate(kernels):
            own = transcript[j]
            if len(own) == ROUNDS:
                continue
            for message in range(MESSAGES):
                laws = kernel(0, own, message), kernel(1, own, message)
                ways.append(
                    math.fsum(
                        value(
                            (*transcript[:j], (*own, (message, y)), *transcript[j + 1 :]),
                            p0 * laws[0].get(y, 0.0),
                            p1 * laws[1].get(y, 0.0),
                        )
                        for y in laws[0].keys() | laws[1].keys()
                    )
                )
        if ways and longest:
            return max(ways)
        return max([end(transcript, p0, p1), *ways])

    return value(((),) * len(kernels), 1.0, 1.0)


def renyi(order: float) -> Callable[[tuple[Own, ...], float, float], float]:
    return lambda transcript, p0, p1: p0**order * p1 ** (1 - order) if p0 else 0.0


def excess(epsilon: float) -> Callable[[tuple[Own, ...], float, float], float]:
    return lambda transcript, p0, p1: max(0.0, p0 - math.exp(epsilon) * p1)


def missing(*mechanisms: Interactive) -> Callable[[tuple[Own, ...], float, float], float]:
    """1 - w, the product of all weights, under A_0."""
    return lambda transcript, p0, p1: (
        p0 * (1 - math.prod(m.weights[own] for m, own in zip(mechanisms, transcript, strict=True)))
    )


@pytest.mark.parametrize("seed", range(8))
def test_interleaving_gains_nothing(seed):
    rng = np.random.default_rng(seed)
    one, two = Interactive.random(rng), Interactive.random(rng)
    both = (one.good, two.good)
    for order in (1.5, 2.0, 8.0):
        apart = [best((m.good,), renyi(order)) for m in (one, two)]
        # Not below either: a strategy may speak to one after the other.
        assert best(both, renyi(order)) == pytest.approx(math.prod(apart), rel=1e-12)
    deltas = [best((m.good,), missing(m), longest=True) for m in (one, two)]
    together = best(both, missing(one, two), longest=True)
    assert max(deltas) - 1e-12 <= together <= sum(deltas) + 1e-12
    for epsilon in (0.0, 0.5, 1.5):
        found = best((one.real, two.real), excess(epsilon))
        assert found <= best(both, excess(epsilon)) + sum(deltas) + 1e-12
        assert found > best(both, excess(epsilon)) + 1e-3, "the bad mass is really there"
