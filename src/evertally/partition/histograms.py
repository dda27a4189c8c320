"""The building blocks H of parameterized-histograms 3: noise for the inserts of a partition, from the counting room.

An insert is the exact count vector of one interval, any vector of N^d; one event moves one insert. Each process is
private for adaptively chosen inserts (1.4 there), which the core lemma needs.
"""

from __future__ import annotations

from collections.abc import Callable

from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.choose import Setting, build, choose
from evertally.counting.epochs import EpochProcess
from evertally.counting.process import Budget, NoiseProcess
from evertally.counting.tree import TreeProcess
from evertally.noise import Source
from evertally.privacy import Change

_MEMORY = 2**30
_LONGEST_SQRT = 2**12  # beyond this many inserts a square-root factor takes longer to prepare than it is worth


def _pile(charge: Budget, change: Change, n: int | None, columns: int, source: Source) -> NoiseProcess:
    return AccumulatingProcess(charge, change, horizon=n, columns=columns, source=source)


def _binary_tree(charge: Budget, change: Change, n: int | None, columns: int, source: Source) -> NoiseProcess:
    assert n is not None
    return TreeProcess(charge, change, horizon=n, columns=columns, source=source, radix=2)


def _best(charge: Budget, change: Change, n: int | None, columns: int, source: Source) -> NoiseProcess:
    assert n is not None
    setting = Setting(change, n, columns, _MEMORY, "exact")
    return build(choose(charge, setting, "auto" if n <= _LONGEST_SQRT else "tree"), setting, source)


def _epoch_tree(charge: Budget, change: Change, n: int | None, columns: int, source: Source) -> NoiseProcess:
    def inner(k: int, width: int) -> NoiseProcess:
        lane = f"epoch-{k}"
        return TreeProcess(charge, change, horizon=2**k, columns=width, source=source, radix=2, lane=lane)

    return EpochProcess(inner, None, columns=columns)


HISTOGRAMS: dict[str, Callable[[Budget, Change, int | None, int, Source], NoiseProcess]] = {
    "pile": _pile,  # H0: any number of inserts, error grows with its square root
    "binary-tree": _binary_tree,  # H1 with Laplace noise, H2 with Gaussian noise
    "best": _best,  # for n inserts the best of H1-H3, trees of other radix among them
    "epoch-tree": _epoch_tree,  # H4: any number of inserts
}


def make_histogram(
    kind: str, charge: Budget, change: Change, n: int | None, columns: int, source: Source
) -> NoiseProcess:
    """The noise of H for at most n inserts (None: no limit), each moved by at most `change`.

    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import PureDP
    >>> make_histogram("pile", PureDP(1), Change(3, 3, 1), None, 3, ZeroNoise().source()).law.scale
    Fraction(3, 1)
    """
    return HISTOGRAMS[kind](charge, change, n, columns, source)
