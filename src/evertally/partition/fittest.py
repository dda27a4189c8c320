"""Which process a block of H gets: decided from public numbers, by rules that stay what they are under their names.

A stream keeps the rule that it began with (its name is settled, see calibration.py), so a rule is never changed: a
better one gets another name. The process in force, and its coefficients, are in the memory of "optimal-blocks"; other
coefficients in the same lane are refused by the laws that a snapshot keeps.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.bank import LONGEST_BANK, BankProcess
from evertally.counting.choose import Choice, build, misfit, model_of
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import Budget, NoiseProcess
from evertally.counting.processes import Setting
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.tree import Radix, TreeProcess
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.privacy import ZCDP, Change, PureDP

MEMORY = 2**30
SUMMED = "running-sum"
_LONGEST_SQRT = 2**12  # beyond this many inserts a square-root factor takes longer to prepare than it is worth
_BEFORE_BANKS = ("sqrt", "tree", "honaker")

Fitting = tuple[str, Radix]  # a process by name, and the radix of its tree


def best_before_banks(charge: Budget, setting: Setting) -> Choice:
    """The rule of "best" and of "blocks": the least worst standard deviation among three processes."""
    assert setting.horizon is not None
    found: list[tuple[float, str]] = []
    reasons = []
    for name in _BEFORE_BANKS if setting.horizon <= _LONGEST_SQRT else ("tree",):
        reason = misfit(name, charge, setting)
        if reason is None:
            try:
                found.append((model_of(Choice(name, charge), setting).worst().stddev, name))
                continue
            except ConfigurationError as refusal:  # a noise scale out of range; another process may have one in range
                reason = str(refusal)
        reasons.append(reason)
    if not found:
        raise ConfigurationError("; ".join(reasons))
    return Choice(min(found, key=lambda way: way[0])[1], charge)


@lru_cache(maxsize=4096)
def _judged(pure: bool, n: int, columns: int) -> tuple[Fitting, float]:
    """The rule of "blocks": running sums, or the best of before; and its worst standard deviation.

    The same at any scale: judged at a large one, where rounding is nothing.
    """
    charge, setting = _at_scale(pure, n, columns)
    best = best_before_banks(charge, setting)
    process = build(best, replace(setting, columns=1), ZeroNoise().source())
    summed, width = summing(charge, setting.change, n, 1, ZeroNoise().source()).worst().stddev, process.worst().stddev
    if summed <= width:
        return (SUMMED, "exact"), summed
    return (best.mechanism, process.radix if isinstance(process, TreeProcess) else "exact"), width


def _at_scale(pure: bool, n: int, columns: int) -> tuple[Budget, Setting]:
    charge: Budget = PureDP(2.0**-10) if pure else ZCDP(2.0**-21)
    return charge, Setting(Change(1, 1, 1), n, columns, MEMORY, "exact")


def fittest(pure: bool, n: int, columns: int) -> Fitting:
    """The rule of "blocks": the process for n inserts with the least error, and the radix of its tree."""
    return _judged(pure, n, columns)[0]


@lru_cache(maxsize=4096)
def optimal(pure: bool, n: int, columns: int) -> Fitting:
    """The rule of "optimal-blocks": a bank for two inserts and more, or blocks of pure noise where they have the
    smaller error; else that of "blocks". A bank is the best of all for any number of inserts, so none is made for it.

    >>> [optimal(True, n, 1)[0] for n in (1, 7, 8, 1000)], [optimal(False, n, 1)[0] for n in (1, 2, 2**25)]
    (['running-sum', 'running-sum', 'pure-blocks', 'pure-blocks'], ['running-sum', 'bank', 'tree'])
    """
    charge, setting = _at_scale(pure, n, columns)
    name = "pure-blocks" if pure else "bank"
    if not 1 < n <= LONGEST_BANK or misfit(name, charge, setting) is not None:
        return fittest(pure, n, columns)
    fitting, width = _judged(pure, n, columns) if pure else ((name, "exact"), math.inf)
    wins = not pure or model_of(Choice(name, charge), setting).worst().stddev < width
    return (name, "exact") if wins else fitting


def same_as_before(pure: bool, n: int) -> bool:
    """Whether both rules give n inserts the same process (in one column: a model)."""
    return optimal(pure, n, 1) == fittest(pure, n, 1)


def make(fitting: Fitting, charge: Budget, change: Change, n: int, columns: int, source: Source) -> NoiseProcess:
    """The process of a block."""
    name, radix = fitting
    if name == SUMMED:
        return summing(charge, change, n, columns, source)
    return build(Choice(name, charge), Setting(change, n, columns, MEMORY, radix), source)


_TYPES: dict[type, str] = {
    AccumulatingProcess: SUMMED,
    TreeProcess: "tree",
    HonakerProcess: "honaker",
    SqrtProcess: "sqrt",
    BankProcess: "bank",
    PureBlocksProcess: "pure-blocks",
}


def fitting_of(process: NoiseProcess) -> Fitting:
    """What a process was made by."""
    return _TYPES[type(process)], process.radix if isinstance(process, TreeProcess) else "exact"


def known(name: str) -> bool:
    return name in _TYPES.values()


def summing(charge: Budget, change: Change, n: int | None, columns: int, source: Source) -> NoiseProcess:
    return AccumulatingProcess(charge, change, horizon=n, columns=columns, source=source)
