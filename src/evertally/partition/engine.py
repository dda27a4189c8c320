"""The one partition engine: parameterized-histograms 2.1.

Time is cut into intervals. While an interval is open nothing new is released; it closes when a noisy query passes a
noisy threshold, and then its exact counts go into a histogram mechanism H, whose output is released. So the error grows
with the number of closes, hence with the answer, and not with the length of the stream.

Core lemma (2.2, [P] for fixed thresholds, [R] for thresholds that follow the transcript): with tau ~ Lap(1/eps_tau)
per interval, mu ~ Lap(2/eps_mu) fresh at every tick and an H that is adaptively (eps_H, delta_H)-DP, all close times
and all released histograms together are (eps_tau + eps_mu + eps_H, e^(eps_tau + eps_mu) delta_H)-DP, whatever the
thresholds, the bounds and the number of intervals; 2.3 adds an extra release at a close. Where neighbours move one way
Lap(1/eps_mu) is enough for mu (additions 7). The rows may be chosen by
someone who sees the releases. Closes that are forced at public ticks cost nothing [R].

What must stay inside: `s`, `c` and every query of them between closes, mu, tau, the margin of the test, which query
fired (section 8, "What must never leave").
"""

from __future__ import annotations

import numpy as np

from evertally.contract.rows import Rows, from_bytes, to_bytes, total
from evertally.counting.process import IntArray, NoiseProcess, go_to, remembered
from evertally.noise import DiscreteLaplace, Source
from evertally.partition.rules import Rule
from evertally.secret import Secret

_ALWAYS = 2**62  # above any slack
_FIRST_LOOK = 64  # ticks that are looked at together right after a close; doubled while nothing happens


class PartitionedRelease(Secret):
    """The engine: rows in, a released histogram out whenever an interval closes.

    `process` is the noise of H (its horizon is n, the largest number of closes; None: no limit), `base` the released
    vector that it starts from, `forced` a period of ticks that always close.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.partition.rules import Rebased
    >>> from evertally.privacy import Change, PureDP
    >>> class Maximum:
    ...     count = 1
    ...     def values(self, v):
    ...         return np.array([v.max()])
    >>> source = ZeroNoise().source()
    >>> H = TreeProcess(PureDP(1), Change(2, 2, 1), horizon=9, columns=2, source=source, radix=2)
    >>> rule = Rebased(Maximum(), lambda j, t: 2)
    >>> engine = PartitionedRelease(DiscreteLaplace(4), DiscreteLaplace(8), H, rule, source)
    >>> [(tick, released.tolist()) for tick, released in engine.play(np.array([[1, 0]] * 7), first=1)]
    [(3, [3, 0]), (6, [6, 0])]
    """

    def __init__(
        self,
        tau: DiscreteLaplace,
        mu: DiscreteLaplace,
        process: NoiseProcess,
        rule: Rule,
        source: Source,
        *,
        base: IntArray | None = None,
        forced: int | None = None,
    ) -> None:
        self._tau_law, self._mu_law = tau, mu
        self._process, self._rule, self._source, self._forced = process, rule, source, forced
        self._base = np.zeros(process.columns, dtype=np.int64) if base is None else base
        self.closes = 0
        self.released = project(self._base)
        self._inserted = np.zeros(process.columns, dtype=np.int64)
        self._c = np.zeros(process.columns, dtype=np.int64)
        self._tau = self._draw_tau()
        rule.start(self.released)

    @property
    def exhausted(self) -> bool:
        """Whether H takes no more intervals: public, a function of the number of closes."""
        return self._process.horizon is not None and self.closes >= self._process.horizon

    def play(self, rows: Rows, first: int) -> list[tuple[int, IntArray]]:
        """Plays ticks first, first + 1, ...; gives the ticks at which an interval closed, and what was released."""
        closes: list[tuple[int, IntArray]] = []
        start = 0
        mu = self._draw_mu(first, len(rows))
        while start < len(rows):
            at = self._next_close(rows, start, first, mu)
            if at is None:
                self._c += total(rows[start:])
                break
            self._c += total(rows[start : at + 1])
            self._close(first + at)
            closes.append((first + at, self.released))
            start = at + 1
        return closes

    def _close(self, tick: int) -> None:
        interval = self.closes + 1
        self._extra_release(interval)
        self._inserted = self._inserted + self._c
        self._c = np.zeros_like(self._c)
        # H's own state keeps its sign; only the released copy is projected (8.4, slip 13)
        self.released = project(self._base + self._inserted + self._process.advance(1)[0])
        self.closes = interval
        self._rule.closed(self.released, interval, tick)
        self._tau = self._draw_tau()

    def _extra_release(self, interval: int) -> None:
        law = self._rule.update_law
        if law is not None:
            noise = self._source.draws("update", law, [interval], self._rule.queries.count)[0]
            self._rule.fire(self.released + self._c, noise)

    def _next_close(self, rows: Rows, start: int, first: int, mu: IntArray) -> int | None:
        """The next tick that closes the interval, as an offset into `rows`.

        A tick closes iff mu - tau - rise > slack(s). The slack never rises within an interval (queries are monotone and
        rows are not negative), so a stretch of ticks has no close if its largest left side is at most the slack at its
        end. That decides most ticks without looking at them one by one, and gives the same answer. A query that can
        fall would break more than accuracy here: a tick would be judged by later rows of the same call.
        """
        if self.exhausted:
            return None
        size, c = _FIRST_LOOK, self._c
        while start < len(rows):
            stop = min(len(rows), start + size)
            ticks = np.arange(first + start, first + stop, dtype=np.int64)
            left = mu[start:stop] - self._tau - self._rule.rise(self.closes + 1, ticks)
            if self._forced is not None:
                left = np.where(ticks % self._forced == 0, _ALWAYS, left)
            after = c + total(rows[start:stop])
            found = self._search(rows, start, left, c, self._slack(after))
            if found is not None:
                return found
            start, size, c = stop, 2 * size, after
        return None

    def _search(self, rows: Rows, start: int, left: IntArray, c: IntArray, slack: int) -> int | None:
        """The first close among len(left) ticks from `start` on, given the counts before and the slack after."""
        if left.max() <= slack:
            return None
        if len(left) == 1:
            return start
        half = len(left) // 2
        middle = c + total(rows[start : start + half])
        found = self._search(rows, start, left[:half], c, self._slack(middle))
        # The second half ends where the whole does: the slack there is known.
        return found if found is not None else self._search(rows, start + half, left[half:], middle, slack)

    def _slack(self, c: IntArray) -> int:
        return self._rule.slack(c if self._rule.on_interval else self.released + c)

    def _draw_tau(self) -> int:
        return int(self._source.draws("tau", self._tau_law, [self.closes + 1])[0, 0])

    def _draw_mu(self, first: int, count: int) -> IntArray:
        # Fresh at every tick, also far below the threshold. Once H is full there is no test, and no noise for one.
        if self.exhausted:
            return np.zeros(count, dtype=np.int64)
        return self._source.draws("mu", self._mu_law, range(first, first + count))[:, 0]

    def state(self) -> list[bytes]:
        """Secret bytes. tau, mu and the noise of H follow from the key; H may have coefficients that it must keep."""
        arrays = (np.array([self.closes]), self._base, self._inserted, self._c, self.released, self._rule.floors)
        return [*(to_bytes(array) for array in arrays), *remembered(self._process)]

    def load(self, parts: list[bytes]) -> None:
        arrays = map(from_bytes, parts[:PARTS])
        closes, self._base, self._inserted, self._c, self.released, self._rule.floors = arrays
        self.closes = int(closes[0])
        go_to(self._process, self.closes, parts[PARTS:])
        self._tau = self._draw_tau()


PARTS = 6  # byte strings in a state, besides those of H


def project(s: IntArray) -> IntArray:
    """Integers of at least 0: the domain that the certificate of a query covers (1.5)."""
    return np.maximum(s, 0)
