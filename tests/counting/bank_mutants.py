"""Planted bugs of banks and blocks (optimal-counting 9, B1-B13), each with the probe that finds it.

A probe returns what it found, in words; nothing, where nothing is wrong.

>>> clamped = next(mutant for mutant in BANK_MUTANTS if mutant.name.startswith("B6"))
>>> clamped.probe()
''
>>> with clamped.patch():
...     clamped.probe()
'a tail is not where its bits say'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from block_costs import costs, in_levels
from flint import arb
from planted_ties import planted_tie

import evertally as et
from evertally.audit.whitebox import closed_form_report
from evertally.balls import at_precision
from evertally.counting import bank, bank_kernels, bank_path, block_level, pure_blocks
from evertally.counting.bank import BankProcess
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.errors import HorizonExceeded
from evertally.noise import compiled, simulation, source
from evertally.noise.reals import RealLaw, Reals
from evertally.privacy import ZCDP, Change

ONE = Change(1, 1, 1)
Bug = AbstractContextManager[None]


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Callable[[], Bug]
    probe: Callable[[], str]


BANK_MUTANTS: list[Mutant] = []


def plant(probe: Callable[[], str]) -> Callable[[Callable[[], Bug]], Callable[[], Bug]]:
    """Registers the patch of a bug; its docstring is the name."""

    def register(patch: Callable[[], Bug]) -> Callable[[], Bug]:
        BANK_MUTANTS.append(Mutant(patch.__doc__ or "", patch, probe))
        return patch

    return register


@contextmanager
def replaced(target: Any, **attributes: Any) -> Iterator[None]:
    with mock.patch.multiple(target, **attributes):
        yield


def process(T: int = 12, rho: float = 0.005, bank: Bank | None = None) -> BankProcess:
    return BankProcess(
        ZCDP(rho), ONE, horizon=T, columns=2, source=simulation(1).source("probe"), bank=bank or build_bank(T, 3)
    )


# -- probes ------------------------------------------------------------------------------------------------------------


def separation() -> str:
    """The most powerful test against one event, from the noise matrix of the program."""
    counter = et.Counter(guarantee=et.ZCDP(0.005), horizon=40, mechanism="bank", key=et.simulation(0))
    report = closed_form_report(counter, 40)
    return "" if report.passed else "an event shows more than is claimed"


def separation_of_two_columns() -> str:
    """One unit goes from one column to another."""
    counter = et.VectorCounter(
        2,
        guarantee=et.ZCDP(0.005),
        horizon=12,
        mechanism="bank",
        max_per_event=1,
        neighbours="replace",
        key=et.simulation(0),
    )
    return "" if closed_form_report(counter, 12).passed else "a replacement shows more than is claimed"


def scale() -> str:
    """The certificate again, from the coefficients that the noise is made of."""
    made = process(300, bank=build_bank(300))
    needed = Fraction(certified(made.bank)) / (2 * ZCDP(0.005).exact_rho)
    return "" if Fraction(made.sigma) ** 2 >= needed else "the scale is not that of these coefficients"


class Impulses:
    """An impulse at tick j in column j."""

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> Any:
        from evertally.noise.reals import KnownReals

        values = np.zeros((len(nodes), coordinates))
        for i, node in enumerate(nodes):
            if first <= node - 1 < first + coordinates:
                values[i, node - 1 - first] = 2.0**20
        return KnownReals(values)


def filter_of_the_noise() -> str:
    """L by impulses; R = L^-1 A must have the certified norm, and L must be that of the coefficients."""
    T = 12
    impulses: Any = Impulses()
    made = BankProcess(ZCDP(0.005), ONE, horizon=T, columns=T, source=impulses, bank=build_bank(T, 3))
    L = made.advance(T) / 2.0**20 / made.sigma
    norms = (np.linalg.solve(L, np.tri(T)) ** 2).sum(axis=0)
    if norms.max() > certified(made.bank) * (1 + 1e-5):
        return "the noise has another filter than the certified one, and an event shows more"
    claimed = [made.spread(t).variance / made.sigma**2 for t in range(1, T + 1)]
    return "" if np.allclose((L**2).sum(axis=1), claimed, rtol=1e-5) else "the noise has another filter"


def near_ties() -> str:
    for side in (1, -1):
        got, true = planted_tie(60, side)
        if got != true:
            return "a tick that floats leave open was rounded wrongly"
    return ""


def tails() -> str:
    for octave in (38, 45, 52):
        words = np.array([[[1 << (63 - octave), 12345]]], dtype=np.uint64)
        drawn = Reals("normal", words, lambda i, j, r: (0, 0))
        ball, value, radius = drawn.refine(0, 0, 127), float(drawn.value[0, 0]), float(drawn.radius[0])
        if not at_precision(200, lambda b=ball, v=value, r=radius: abs(b - arb(v)) <= arb(r)):  # type: ignore[misc]
            return "a tail is not where its bits say"
    return ""


def further_bits() -> str:
    drawn = simulation(1).source("probe").reals("lane", RealLaw("normal", "probe"), range(1, 3), 2)
    same = drawn.refine(0, 0, 512).overlaps(drawn.refine(0, 0, 512))
    return "" if same else "more bits of an address are other bits each time"


def restored_bounds() -> str:
    kept, again = process(40), process(40)
    kept.advance(40)
    again.recall(40, kept.memory())
    bounds = zip(again._path._blocks, kept._path._blocks, strict=True)
    return "" if all((a.err >= b.err).all() for a, b in bounds) else "a restored path has forgotten its error"


def past_the_horizon() -> str:
    try:
        process(12).advance(13)
    except HorizonExceeded:
        return ""
    except AssertionError:
        pass
    return "ticks past the horizon are not refused"


def two_scales() -> str:
    shared = simulation(1).source("probe")
    try:
        for rho in (0.5, 2.0):
            BankProcess(ZCDP(rho), ONE, horizon=12, columns=1, source=shared, bank=build_bank(12, 3)).advance(12)
    except AssertionError:
        return ""
    return "the same bits were drawn at two scales"


def block_columns() -> str:
    with in_levels(16, 16):
        charged, wrong = costs(40)
    if max(charged) > 1:
        return "a column of a table has a norm above 1"
    return "" if wrong < 1e-9 else "no shift of the draws hides an event"


# -- bugs --------------------------------------------------------------------------------------------------------------


@plant(separation)
def smaller_scale() -> Bug:
    """B1 sigma from S/1.05"""
    return replaced(bank, _sensitivity=lambda coefficients: certified(coefficients) / 1.05)


@plant(scale)
def unheld_sensitivity() -> Bug:
    """B2 S of the schedule before it is held, noise of the held one"""

    def unheld(held: Bank) -> float:
        from evertally.counting import bank_schedule

        with replaced(bank_schedule, segments=lambda horizon: np.ones(horizon, dtype=np.int64)):
            fine = bank_schedule.build_bank.__wrapped__(held.horizon)
        # the factor of the one with the variances of the other
        T = held.horizon
        return certified(fine) * moments_of(fine).widest(T) / moments_of(held).widest(T)

    return replaced(bank, _sensitivity=unheld)


def edited(old: str, new: str) -> Bug:
    """The kernels with another line."""

    def changed(name: str) -> Any:
        text = inspect.getsource(getattr(bank_kernels, name))
        assert old in text
        scope = dict(vars(bank_kernels))
        exec(text.replace(old, new), scope)
        return scope[name]

    original = bank_kernels.compiled
    return replaced(
        bank_kernels, compiled=lambda name: changed(name) if name.startswith("filtered") else original(name)
    )


@plant(filter_of_the_noise)
def missing_state() -> Bug:
    """B3 one state missing in x only"""
    return edited("acc[i] += p", "acc[i] += p if k else 0.0")


@plant(filter_of_the_noise)
def scaled_gains() -> Bug:
    """B4 K scaled by 1.01 after certification"""

    class Scaled(bank_path.BankPath):
        def __init__(self, coefficients: Bank, *rest: Any) -> None:
            super().__init__(replace(coefficients, K=coefficients.K * 1.01), *rest)

    return replaced(bank, BankPath=Scaled)


@plant(near_ties)
def lower_integer() -> Bug:
    """B5 undecided ticks take the lower integer"""
    return edited("if abs(y) < MOST and low == np.floor(y + 0.5 + d):", "if True:")


@plant(tails)
def clamped_tail() -> Bug:
    """B6 V below 2^-40 clamped"""
    original = compiled.fill_reals

    def clamped(words: Any, *rest: Any) -> int:
        least = np.array(words)
        least[:, :, 0] = np.maximum(least[:, :, 0], np.uint64(1 << 24))
        return int(original(least, *rest))

    return replaced(compiled, fill_reals=clamped)


@plant(further_bits)
def fresh_bits() -> Bug:
    """B7 the next round drawn from a fresh address"""
    original, calls = source._two_words, [0]

    def fresh(stream: Any, node: int, coordinate: int, round_: int) -> tuple[int, int]:
        calls[0] += 1
        return original(stream, node + 1000 * calls[0], coordinate, round_)

    return replaced(source, _two_words=fresh)


@plant(restored_bounds)
def forgotten_error() -> Bug:
    """B8 a restart restores e but err = 0"""
    original = bank_path.BankPath.recall

    def recall(self: Any, tick: int, memory: bytes) -> None:
        original(self, tick, memory)
        for block in self._blocks:
            block.err[:] = 0

    return replaced(bank_path.BankPath, recall=recall)


@plant(past_the_horizon)
def beyond() -> Bug:
    """B9 coefficients used past their horizon"""
    return replaced(bank, check_horizon=lambda *_: None)


@plant(separation_of_two_columns)
def replacement_as_one() -> Bug:
    """B10 replace charged with l2_squared 1"""
    original = bank.FilteredNoise.__init__

    def init(self: Any, charge: ZCDP, change: Change, **rest: Any) -> None:
        original(self, charge, Change(change.l1, 1, change.linf), **rest)

    return replaced(bank.FilteredNoise, __init__=init)


@plant(two_scales)
def one_law_for_all() -> Bug:
    """B11 the same lane at two scales"""
    return replaced(bank, RealLaw=lambda kind, feeds: RealLaw(kind, "bank"))


@plant(block_columns)
def rescaled_table() -> Bug:
    """B12 a table rescaled after its norms were checked"""
    original = pure_blocks.block_table

    def rescaled(n: int) -> Any:
        table = replace(original(n))
        object.__setattr__(table, "d", table.d + 100)
        return table

    return replaced(pure_blocks, block_table=rescaled)


@plant(block_columns)
def last_row_too() -> Bug:
    """B13 at the end of a block level 1 adds its last row as well"""
    original = block_level.BlockLevel.rows

    def rows(self: Any, tick: int, count: int) -> Any:
        centre, radius = original(self, tick, count)
        n = self.table.n
        for i in range(count):
            if self.above is not None and tick + i and (tick + i) % n == 0:
                centre[i] += self._walked((tick + i) // n - 1, n, 1)[0][0]
        return centre, radius

    return replaced(block_level.BlockLevel, rows=rows)
