"""How long a draw takes, and on what that depends: a measurement, not a promise.

Timing of library calls is outside the promise (docs/privacy.md): whoever publishes at fixed wall times hides it. What
there is to see, and is measured here: a draw that its first 63 bits do not decide goes through ball arithmetic and
takes many times longer, and a table walk is one step longer for some values than for others. Neither looks at data
(noise is drawn without it), but both depend on the noise.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law
from evertally.noise.keystream import Keystream
from evertally.noise.sampler import ThresholdSampler, sampler, settle


@dataclass(frozen=True)
class Timing:
    """Medians in nanoseconds over `draws` single draws of one law, and the steps of the table walk."""

    law: Law
    draws: int
    fast: float  # the first word decides
    slow: float  # the same draws by ball arithmetic, the path of the rare draws that the first word does not decide
    walks: dict[int, tuple[int, float]]  # steps of the table walk -> how many draws, median time

    def __str__(self) -> str:
        lines = [
            f"{self.law}: median of {self.draws} draws {self.fast:.0f} ns on the fast path, {self.slow:.0f} ns on the "
            f"slow path ({self.slow / self.fast:.0f} times as long)"
        ]
        lines += [f"  table walk of {steps} steps: {n} draws, {ns:.0f} ns" for steps, (n, ns) in self.walks.items()]
        return "\n".join(lines)


def time_sampler(law: Law, draws: int = 1000) -> Timing:
    """Times `draws` draws of one law, one by one.

    >>> timing = time_sampler(DiscreteGaussian(16), draws=100)
    >>> timing.slow > timing.fast > 0
    True
    """
    words = Keystream(bytes(32), "timing", "none").words(list(range(draws)), 0, 1).reshape(-1, 2).tolist()
    one = sampler(law).one  # type: ignore[arg-type]
    fast, slow, values = np.empty(draws), np.empty(draws), []
    for i, (first, second) in enumerate(words):
        start = time.perf_counter_ns()
        value = one(first)
        fast[i] = time.perf_counter_ns() - start
        start = time.perf_counter_ns()
        settled = settle(law, (first, second), lambda _: (0, 0))
        slow[i] = time.perf_counter_ns() - start
        values.append(settled if value is None else value)
    walks = {}
    steps = _walks(law, [first for first, _ in words], values)
    for length in sorted(set(steps)):
        chosen = np.array(steps) == length
        walks[length] = int(chosen.sum()), float(np.median(fast[chosen]))
    return Timing(law, draws, float(np.median(fast)), float(np.median(slow)), walks)


def _walks(law: Law, words: list[int], values: list[int]) -> list[int]:
    """How many table entries each draw stepped over; none where the law has no table of thresholds."""
    table = sampler(law)  # type: ignore[arg-type]
    if not isinstance(table, ThresholdSampler):
        return []
    return [table._guide_list[(word >> 1) >> table._shift] - abs(v) for word, v in zip(words, values, strict=True)]


if __name__ == "__main__":
    for one_law in (DiscreteGaussian(16), DiscreteGaussian(2**40), DiscreteLaplace(10)):
        print(time_sampler(one_law))
