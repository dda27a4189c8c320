"""The building blocks H of parameterized-histograms 3: noise for the inserts of a partition, from the counting room.

An insert is the exact count vector of one interval, any vector of N^d; one event moves one insert. Each process is
private for adaptively chosen inserts (1.4 there), which the core lemma needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evertally.counting.choose import build
from evertally.counting.epochs import EpochProcess
from evertally.counting.process import Budget, NoiseProcess
from evertally.counting.processes import Setting
from evertally.counting.tree import TreeProcess
from evertally.noise import Source
from evertally.partition.blocks import BlockProcess
from evertally.partition.fittest import MEMORY, best_before_banks, fittest, make, summing
from evertally.partition.lanes import Lanes
from evertally.partition.optimal_blocks import OptimalBlocks
from evertally.privacy import Change, PureDP

# How H is made where it is never full, by name: what streams settle. Streams begun before there was a choice have the
# first.
BLOCKS, OPTIMAL = IN_BLOCKS = ("blocks", "optimal-blocks")


def _summed(charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int) -> NoiseProcess:
    return summing(charge, change, n, width, source)


def _binary_tree(
    charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int
) -> NoiseProcess:
    assert n is not None
    return TreeProcess(charge, change, horizon=n, columns=width, source=source, radix=2)


def _best(charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int) -> NoiseProcess:
    assert n is not None
    setting = Setting(change, n, columns, MEMORY, "exact")
    return build(best_before_banks(charge, setting), replace(setting, columns=width), source)


def _epoch_tree(
    charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int
) -> NoiseProcess:
    def inner(k: int, width: int) -> NoiseProcess:
        lane = f"epoch-{k}"
        return TreeProcess(charge, change, horizon=2**k, columns=width, source=source, radix=2, lane=lane)

    return EpochProcess(inner, columns=width)


def _blocks(charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int) -> NoiseProcess:
    assert n is not None

    def inner(k: int, length: int, width: int) -> NoiseProcess:
        fitting = fittest(isinstance(charge, PureDP), length, columns)
        return make(fitting, charge, change, length, width, Lanes(source, f"block-{k}"))

    return BlockProcess(inner, first=n, columns=width)


def _optimal_blocks(
    charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int
) -> NoiseProcess:
    assert n is not None
    return OptimalBlocks(charge, change, first=n, columns=width, source=source, fit_for=columns)


HISTOGRAMS: dict[str, Callable[[Budget, Change, int | None, int, Source, int], NoiseProcess]] = {
    "running-sum": _summed,  # H0: any number of inserts, error grows with its square root
    "binary-tree": _binary_tree,  # H1 with Laplace noise, H2 with Gaussian noise
    "best": _best,  # for n inserts the best of H1-H3, trees of other radix among them
    "epoch-tree": _epoch_tree,  # H4: any number of inserts
    BLOCKS: _blocks,  # any number of inserts, and the best of H0-H3 for the first n
    OPTIMAL: _optimal_blocks,  # the same, from banks and blocks of pure noise
}


def make_histogram(
    kind: str, charge: Budget, change: Change, n: int | None, columns: int, source: Source, *, width: int | None = None
) -> NoiseProcess:
    """The noise of H for at most n inserts (None: no limit), each moved by at most `change`.

    `width`: a model of the process that `columns` columns get, with fewer of them (which of the processes fits in
    memory depends on the number of columns).

    >>> from evertally.noise import ZeroNoise
    >>> make_histogram("running-sum", PureDP(1), Change(3, 3, 1), None, 3, ZeroNoise().source()).law.scale
    Fraction(3, 1)
    """
    return HISTOGRAMS[kind](charge, change, n, columns, source, columns if width is None else width)
