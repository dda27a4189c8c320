"""Two levels: segments that double, and inside each a partition of its own. parameterized-histograms 2.5 and 5.4.

For streams whose largest answer nobody can guess: Algorithms 6, 11 and 16. The outer level (doubling) never reads
anything from the inner one, and the inner one knows of the outer only what is released. Every number that the paper
computes from the true largest answer is replaced by one of the public segment index (8.6: the printed ones leak).

Privacy [R]: each level keeps half of the promise, and a tick lies in one inner piece, so the sum is the promise. The
row that closes a segment goes to no inner instance: it is already counted (slip 7, PRIV). With a delta this is proved
for oblivious streams only; the adaptive case is [U].
"""

from __future__ import annotations

import math
from dataclasses import replace

from evertally.contract.rows import Rows
from evertally.counting.process import IntArray
from evertally.errors import ConfigurationError
from evertally.noise import Source
from evertally.partition.configuration import Configuration, Terms
from evertally.partition.engine import PARTS, PartitionedRelease
from evertally.partition.ladders import bounded, doubling, noisy_ladders
from evertally.partition.lanes import Lanes
from evertally.partition.rebased import rebased
from evertally.privacy import ApproxDP, PureDP
from evertally.secret import Secret


class TwoLevelPlan:
    """The configurations of both levels, from public numbers: the outer one, and the inner one of each segment.

    >>> import numpy as np
    >>> from evertally.privacy import Change
    >>> class Maximum:
    ...     count = 1
    ...     def values(self, v):
    ...         return np.array([v.max()])
    >>> plan = TwoLevelPlan(Terms(PureDP(2.0), Change(3, 3, 1), 1000, 3, Maximum()))
    >>> plan.outer.noise.tau.scale, plan.inner(1).noise.mu.scale
    (Fraction(4, 1), Fraction(8, 1))
    """

    name = "two-level"

    def __init__(self, terms: Terms, start: int | None = None, factor: int = 1) -> None:
        promise = terms.promise
        if isinstance(promise, ApproxDP):
            if promise.adversary != "oblivious":
                raise ConfigurationError(
                    "two levels with a delta are proved for oblivious streams only; say so in the guarantee, e.g. "
                    'ApproxDP(1.0, 1e-6, adversary="oblivious"), or use a pure guarantee or "rebased"'
                )
            half: PureDP | ApproxDP = ApproxDP(
                promise.exact_epsilon / 2, promise.exact_delta / 2, adversary=promise.adversary, force=True
            )
        else:
            half = PureDP(promise.exact_epsilon / 2, adversary=promise.adversary)
        self.terms = replace(terms, promise=half, beta=terms.beta / 2)
        self.outer = doubling(self.terms.within("outer"), start)
        self._bounds = self.terms.noise_bounds(self.outer.noise, "running-sum", self.outer.intervals)
        self._K_1 = self.outer.rise(1, 0)
        self._factor = factor
        self._inner: dict[int, Configuration] = {}
        if self.outer.intervals is not None:
            # Settled now, all of them: what cannot be calibrated is refused before the stream starts.
            for segment in range(1, self.outer.intervals + 2):
                self.inner(segment)

    def inner(self, segment: int) -> Configuration:
        """The partition inside segment number `segment`, which starts from `segment - 1` draws of outer noise.

        alpha_DM(j) = alpha_mu + alpha_tau + alpha_Gamma(j - 1) + j, Delta_j = K_j + 2 alpha_DM(j) bounds the growth of
        the answer in the segment, beta_j = beta/(J + 1) (5.4 [D][R]).
        """
        if segment not in self._inner:
            self._inner[segment] = self._calibrate(segment)
        return self._inner[segment]

    def _calibrate(self, segment: int) -> Configuration:
        beta = self.terms.beta
        gamma = self._bounds.summed(beta, segment - 1)
        terms = replace(self.terms.within(f"segment-{segment}"), beta=beta * self._share(segment), base_error=gamma)
        if self.terms.horizon is None:
            return bounded(terms) if terms.queries.count == 1 else rebased(terms)
        alpha_dm = self._bounds.sparse_vector(beta) + gamma + segment * terms.growth
        most = self.terms.horizon * terms.growth
        terms = replace(terms, largest=min(self._threshold(segment) + 2 * alpha_dm, most))
        return bounded(terms) if terms.queries.count == 1 else noisy_ladders(terms)

    def _threshold(self, segment: int) -> int:
        return self._K_1 << (segment - 1)

    def _share(self, segment: int) -> float:
        J = self.outer.intervals
        return 6 / (math.pi * segment) ** 2 if J is None else 1 / (J + 1)

    def error(self, beta: float, tick: int | None = None, segment: int | None = None) -> float:
        """A bound on the error in a segment (default: the last one): that of its partition, with beta_j."""
        j = segment or self._last_segment(beta / 2, tick or 1)
        # The thresholds were made for the beta of the plan, but the noise that they start from is bounded for this one.
        inner = self.inner(j)
        inner = replace(inner, terms=replace(inner.terms, base_error=self._bounds.summed(beta / 2, j - 1)))
        return self._factor * inner.error(beta / 2 * self._share(j), tick)

    def sure_error(self, beta: float, tick: int | None = None) -> float:
        """The same: `largest` is not used, but the segments are made for answers that grow as declared."""
        return math.inf if self.terms.most is None else self.error(beta, tick)

    def segment_of(self, answer: float) -> int:
        """The segment in which an answer of this size lies, noise aside."""
        j = 1
        while self._threshold(j) < answer:
            j += 1
        return j

    def _last_segment(self, beta: float, tick: int) -> int:
        """The largest number that a segment can have: J + 1, or without a horizon what answers of that tick reach."""
        J = self.outer.intervals
        if J is not None:
            return J + 1
        j = 1
        while self._threshold(j) <= (
            tick * self.terms.growth + self._bounds.sparse_vector(beta, tick, j) + self._bounds.summed(beta, j - 1)
        ):
            j += 1
        return j


class TwoLevelRelease(Secret):
    """Both engines together: what they release is either a new segment's histogram or the inner partition's."""

    def __init__(self, plan: TwoLevelPlan, source: Source) -> None:
        self._plan = plan
        self._source = source
        self._outer = plan.outer.engine(Lanes(source, "outer"))
        self._inner = self._start(1, self._outer.released)

    def _start(self, segment: int, base: IntArray) -> PartitionedRelease:
        return self._plan.inner(segment).engine(Lanes(self._source, f"segment-{segment}"), base=base)

    @property
    def closes(self) -> int:
        return self._outer.closes

    @property
    def released(self) -> IntArray:
        return self._inner.released

    @property
    def exhausted(self) -> bool:
        """Whether the inner level takes no more intervals: the answer is frozen, at least until the next segment."""
        return self._inner.exhausted

    def play(self, rows: Rows, first: int) -> list[tuple[int, IntArray]]:
        """Plays ticks first, first + 1, ...; gives the ticks at which something was released, and what."""
        releases: list[tuple[int, IntArray]] = []
        start, segment = 0, self._outer.closes + 1
        # The outer level runs ahead of the inner one: it depends on nothing that the inner one does.
        for tick, released in self._outer.play(rows, first):
            releases += self._inner.play(rows[start : tick - first], first + start)
            segment += 1
            self._inner = self._start(segment, released)
            releases.append((tick, released))
            start = tick - first + 1
        return releases + self._inner.play(rows[start:], first + start)

    def state(self) -> list[bytes]:
        return self._outer.state() + self._inner.state()

    def load(self, parts: list[bytes]) -> None:
        self._outer.load(parts[:PARTS])
        self._inner = self._start(self._outer.closes + 1, self._outer.released)
        self._inner.load(parts[PARTS:])
