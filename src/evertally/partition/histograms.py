"""The building blocks H of parameterized-histograms 3: noise for the inserts of a partition, from the counting room.

An insert is the exact count vector of one interval, any vector of N^d; one event moves one insert. Each process is
private for adaptively chosen inserts (1.4 there), which the core lemma needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.choose import Choice, build, choose
from evertally.counting.epochs import EpochProcess
from evertally.counting.process import Budget, NoiseProcess
from evertally.counting.processes import Setting
from evertally.counting.tree import Radix, TreeProcess
from evertally.noise import Source, ZeroNoise
from evertally.partition.blocks import BlockProcess
from evertally.partition.lanes import Lanes
from evertally.privacy import ZCDP, Change, PureDP

_MEMORY = 2**30
_LONGEST_SQRT = 2**12  # beyond this many inserts a square-root factor takes longer to prepare than it is worth


def _summed(charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int) -> NoiseProcess:
    return AccumulatingProcess(charge, change, horizon=n, columns=width, source=source)


def _binary_tree(
    charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int
) -> NoiseProcess:
    assert n is not None
    return TreeProcess(charge, change, horizon=n, columns=width, source=source, radix=2)


def _best(charge: Budget, change: Change, n: int | None, columns: int, source: Source, width: int) -> NoiseProcess:
    assert n is not None
    setting = Setting(change, n, columns, _MEMORY, "exact")
    choice = choose(charge, setting, "auto" if n <= _LONGEST_SQRT else "tree")
    return build(choice, replace(setting, columns=width), source)


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
        (kind, radix), lanes = _fittest(isinstance(charge, PureDP), length, columns), Lanes(source, f"block-{k}")
        if kind == "running-sum":
            return _summed(charge, change, length, columns, lanes, width)
        return build(Choice(kind, charge), Setting(change, length, width, _MEMORY, radix), lanes)

    return BlockProcess(inner, first=n, columns=width)


@lru_cache(maxsize=4096)
def _fittest(pure: bool, n: int, columns: int) -> tuple[str, Radix]:
    """The process with the least error for n inserts, and the radix of its tree.

    The same at any scale: judged at a large one, where rounding is nothing.
    """
    charge: Budget = PureDP(2.0**-10) if pure else ZCDP(2.0**-21)
    setting = Setting(Change(1, 1, 1), n, columns, _MEMORY, "exact")
    best = choose(charge, setting, "auto" if n <= _LONGEST_SQRT else "tree")
    process = build(best, replace(setting, columns=1), ZeroNoise().source())
    summed = _summed(charge, setting.change, n, columns, ZeroNoise().source(), 1)
    if summed.worst().stddev <= process.worst().stddev:
        return "running-sum", "exact"
    return best.mechanism, process.radix if isinstance(process, TreeProcess) else "exact"


HISTOGRAMS: dict[str, Callable[[Budget, Change, int | None, int, Source, int], NoiseProcess]] = {
    "running-sum": _summed,  # H0: any number of inserts, error grows with its square root
    "binary-tree": _binary_tree,  # H1 with Laplace noise, H2 with Gaussian noise
    "best": _best,  # for n inserts the best of H1-H3, trees of other radix among them
    "epoch-tree": _epoch_tree,  # H4: any number of inserts
    "blocks": _blocks,  # any number of inserts, and the best of H0-H3 for the first n
}


def make_histogram(
    kind: str, charge: Budget, change: Change, n: int | None, columns: int, source: Source, *, width: int | None = None
) -> NoiseProcess:
    """The noise of H for at most n inserts (None: no limit), each moved by at most `change`.

    `width`: a model of the process that `columns` columns get, with fewer of them (which of the processes fits in
    memory depends on the number of columns).

    >>> make_histogram("running-sum", PureDP(1), Change(3, 3, 1), None, 3, ZeroNoise().source()).law.scale
    Fraction(3, 1)
    """
    return HISTOGRAMS[kind](charge, change, n, columns, source, columns if width is None else width)
