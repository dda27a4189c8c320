"""Exact laws of static mechanisms, for tests: probabilities of a draw, and places whose outcomes are scripted."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from evertally.noise import DiscreteLaplace


def log_probability(law, z):
    """ln P(Z = z), up to the constant that two neighbours share."""
    if isinstance(law, DiscreteLaplace):
        return -abs(z) / float(law.scale)
    return -z * z / (2 * float(law.sigma_squared))


@dataclass
class Script:
    """Forces a transcript on multiplicative weights: which queries are selected, what is measured.

    As a place it gives the noise that leads to the measurements; as a selection it takes the scripted query and notes
    what the exponential mechanism would have had to say about it.
    """

    static: object
    data: np.ndarray
    chosen: list
    measured: list
    losses: list = field(default_factory=list)  # ln of the probability of every step

    def draws(self, law, count, part=""):
        exact = [int(self.static._table[c] @ self.data) for c in self.chosen]
        noises = [m - e for m, e in zip(self.measured, exact, strict=True)]
        self.losses += [log_probability(law, z) for z in noises]
        assert count == len(noises)
        return np.array(noises, dtype=np.int64)

    def variates(self, kind, count, part, step, steps):
        assert kind == "gumbel"
        return step

    def select(self, scores, scale, step):
        exponents = (scores - scores.max()) / float(Fraction(scale))
        self.losses.append(float(exponents[self.chosen[step]] - np.log(np.exp(exponents).sum())))
        return [self.chosen[step]]


def played(static, data, budget, hint, chosen, measured, patch):
    """The released row and the log-probability of a transcript, by the mechanism's own code."""
    script = Script(static, data, chosen, measured)
    patch.setattr("evertally.dynamic.static.weights_update.noisy_argmax", script.select)
    row = static.fit(data, budget, script, size_hint=hint)
    return row, math.fsum(script.losses)
