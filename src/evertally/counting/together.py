"""How the noise of one process at many ticks hangs together, all pairs of ticks at once.

Two ticks share draws. A covariance is the variance of a draw times what both weigh it, added up: here for blocks of a
tree, for the nodes of a refined tree, and for weights by age. The same as by `spread` and `window_spread`, which take
some microseconds for every pair: half a minute for 2,048 ticks. Of a tick with itself it is its variance, which whoever
asks knows: here that may be left at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evertally.counting.process import FloatArray, IntArray

_LONGEST = 2**13  # ticks that are walked one by one


def shared_blocks(ticks: Sequence[int], radix: int) -> FloatArray:
    """How many blocks of a tree both of two ticks have: those of their common leading digits, and of the first digit in
    which they differ as many as the smaller one has.

    >>> shared = [float(shared_blocks(ticks, radix)[0, 1]) for ticks, radix in (([7, 11], 3), ([6, 7], 2))]
    >>> shared[0], len({7, 6, 3} & {11, 10, 9}), shared[1]
    (0.0, 0, 2.0)
    """
    rest = np.array(ticks, dtype=np.int64)
    found = np.zeros((len(ticks), len(ticks)))
    while rest.any():
        rest, digit = np.divmod(rest, radix)
        found += (rest[:, None] == rest) * np.minimum(digit[:, None], digit)
    return found


def refined_nodes(ticks: Sequence[int], weight: Callable[[int], float]) -> FloatArray:
    """The same for a refined binary tree, whose nodes of height h weigh weight(h), and those inside of another one less
    (`HonakerProcess.window_spread`)."""
    given = np.array(ticks, dtype=np.int64)
    unlike = given[:, None] ^ given
    found, levels = np.zeros((len(ticks), len(ticks))), int(given.max(initial=0)).bit_length()
    own = np.zeros((levels + 1, len(ticks)))  # of the bits below each height
    for h in range(levels):
        own[h + 1] = own[h] + weight(h) * (given >> h & 1)
    for h in range(levels):
        inside = np.minimum.outer(given, given) % 2**h / (2.0 ** (h + 1) - 1.0)
        above = own[levels] - own[h]
        found = np.where(unlike >> h == 1, (above[:, None] + above - weight(h)) / 2 + inside, found)
    return found


def by_age(series: FloatArray, ticks: Sequence[int]) -> FloatArray | None:
    """sum_k l_k l_(k + t - s) over the draws up to the earlier tick s, with l_k = 0 where the series ends: along the
    diagonals, from tick to tick. None where that is a long way.

    >>> by_age(np.array([1.0, 0.5]), [1, 2]).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    last = max(ticks, default=0)
    if last > _LONGEST:
        return None
    given: IntArray = np.array(ticks, dtype=np.int64)
    weights = np.zeros(2 * last + 1)
    weights[: min(series.size, last)] = series[:last]
    sums, done = np.zeros(last + 1), 0  # by how far the later tick is away
    found = np.zeros((len(ticks), len(ticks)))
    for i, tick in enumerate(ticks):
        for k in range(done, tick):
            sums += weights[k] * weights[k : k + last + 1]
        done = tick
        found[i, i + 1 :] = sums[given[i + 1 :] - tick]
    return found + found.T
