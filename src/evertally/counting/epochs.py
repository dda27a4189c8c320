"""Unknown horizon: epochs of 1, 2, 4, ... ticks, each with a process of its own.

Epoch k covers the ticks 2^k .. 2^(k+1) - 1. The reading at a tick is (what closed epochs hold) + (inner process).
Two ways to hold closed epochs:

* epoch tree (price-of-continual-release 9.1 [R], parameterized-histograms 3.5 [R]): the last noise of each closed epoch
  stays. An event lies in one epoch, hence in at most k + 1 nodes of one tree: the whole budget for every epoch.
* epoch hybrid (factorization-counting 10.1 [R]): an outer process over epoch totals. An event moves one inner process
  and one epoch total: rho = rho_inner + rho_outer. The noise of closed epochs does not pile up.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from evertally.bounds.joint import GridLaw
from evertally.bounds.tails import Spread
from evertally.contract.ticks import LAST_TICK
from evertally.counting.process import IntArray, NoiseProcess, kind_and_scale, window_bound
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.tree import TreeProcess
from evertally.secret import Secret

# After this many epochs the stream ends: 2^32 - 1 ticks, 136 years of seconds.
EPOCHS = LAST_TICK.bit_length()


class EpochProcess(Secret):
    """Noise of a counter without a horizon.

    >>> from evertally.counting.tree import TreeProcess
    >>> from evertally.noise import simulation
    >>> from evertally.privacy import Change, PureDP
    >>> source = simulation(0).source("demo")
    >>> def inner(k, columns):
    ...     return TreeProcess(PureDP(1.0), Change(1, 1, 1), horizon=2**k, columns=columns, source=source, radix=2,
    ...                        lane=f"epoch-{k}")
    >>> EpochProcess(inner, None, columns=1).advance(10).shape
    (10, 1)
    """

    horizon: int | None = None

    def __init__(self, inner: Callable[[int, int], NoiseProcess], outer: NoiseProcess | None, *, columns: int) -> None:
        self.columns = columns
        self._make_inner = inner
        self._outer = outer
        self._models: dict[int, NoiseProcess] = {}  # one-column processes, to ask for spreads
        self.seek(0)

    def advance(self, count: int = 1) -> IntArray:
        out = np.empty((count, self.columns), dtype=np.int64)
        done = 0
        while done < count:
            left = 2**self._epoch - (self.tick + 1 - 2**self._epoch)
            part = min(left, count - done)
            noise = self._inner.advance(part)
            out[done : done + part] = noise + self._held
            self.tick += part
            done += part
            if part == left:
                self._close(noise[-1])
        return out

    def seek(self, tick: int) -> None:
        self._epoch = (tick + 1).bit_length() - 1
        self.tick = tick
        self._held = np.zeros(self.columns, dtype=np.int64)
        if self._outer is None:
            for k in range(self._epoch):
                closed = self._make_inner(k, self.columns)
                closed.seek(2**k - 1)
                self._held = self._held + closed.advance(1)[0]
        elif self._epoch > 0:
            self._outer.seek(self._epoch - 1)
            self._held = self._outer.advance(1)[0]
        else:
            self._outer.seek(0)
        self._inner = self._make_inner(self._epoch, self.columns)
        self._inner.seek(tick + 1 - 2**self._epoch)

    def spread(self, tick: int) -> Spread:
        k = tick.bit_length() - 1
        return self._with_held(self._model(k).spread(tick + 1 - 2**k), k)

    def worst(self) -> Spread:
        return self.worst_in_epoch(EPOCHS - 1)

    def worst_in_epoch(self, k: int) -> Spread:
        """The widest spread over the ticks of epoch k."""
        return self._with_held(self._model(k).worst(), k)

    def _with_held(self, spread: Spread, k: int) -> Spread:
        """An inner spread of epoch k plus that of what the closed epochs hold."""
        if self._outer is not None:
            return spread + self._outer.spread(k) if k > 0 else spread
        for closed in range(k):
            spread = spread + self._model(closed).spread(2**closed)
        return spread

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        """All ticks of the epoch of `tick` at once; epoch k gets the part 6/(pi (k + 1))^2 of beta."""
        assert tick is not None
        k = tick.bit_length() - 1
        return self._in_epoch(6 * beta / (math.pi * (k + 1)) ** 2, k)

    def _in_epoch(self, beta: float, k: int) -> float:
        inner = self._model(k)
        union = self.worst_in_epoch(k).radius(beta / 2**k)
        if isinstance(inner, SqrtProcess):
            held = self._outer.spread(k).proxy if self._outer is not None and k > 0 else 0.0
            largest = inner.path(held).radius(beta / 2, union + 1)
            # Two roundings, of the epoch and of what is held; what is held is smoothed like the rest.
            return min(union, float(math.ceil(largest + 2 * inner.smoothing())))
        if isinstance(inner, TreeProcess) and self._outer is None:
            law = inner.maximum(self.worst_in_epoch(k).radius(1e-9 / 2**k))
            for closed in range(k):
                model = self._model(closed)
                assert isinstance(model, TreeProcess)
                # A closed epoch is one block, its last; nothing more of it is left.
                law = law.moved(GridLaw.draw(*kind_and_scale(model.law), law.step))
            return min(union, law.radius(beta / 2))
        return union

    def window_spread(self, tick: int, window: int) -> Spread:
        return window_bound(self, tick, window)

    def _model(self, k: int) -> NoiseProcess:
        if k not in self._models:
            self._models[k] = self._make_inner(k, 1)
        return self._models[k]

    def _close(self, last: IntArray) -> None:
        self._epoch += 1
        self._held = self._held + last if self._outer is None else self._outer.advance(1)[0]
        self._inner = self._make_inner(self._epoch, self.columns)
