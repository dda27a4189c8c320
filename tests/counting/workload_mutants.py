"""Planted mistakes in what workloads rest on, each with the probe that must notice it.

A probe is None where all is well, and says what is wrong otherwise. They use the integers that the program uses, on a
grid of 2^2 where laws are enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from decay_reference import losses_of_weights

from evertally.counting import bank_decay, sqrt_factor, toeplitz, toeplitz_factor, weighing, workloads
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_decay import DecayBankProcess
from evertally.counting.bank_schedule import build_bank
from evertally.counting.toeplitz import ToeplitzProcess, law_of
from evertally.counting.toeplitz_factor import ToeplitzFactor, root_factor
from evertally.counting.weighing import AgeEngine
from evertally.counting.workloads import ByAge, Decay, Toeplitz, Window
from evertally.noise import DiscreteGaussian, Law, ZeroNoise
from evertally.privacy import ZCDP, Change, Contribution, change

RHO = Fraction(1, 2)
Probe = Callable[[], str | None]


def matrix(factor: ToeplitzFactor, ticks: int) -> np.ndarray:
    """R, of the integers used."""
    r = [*factor.r.tolist(), *[0] * ticks]
    return np.array([[r[i - j] if i >= j else 0 for j in range(ticks)] for i in range(ticks)], dtype=object)


def losses(factor: ToeplitzFactor, law: Law, changes: np.ndarray) -> Fraction:
    """The largest zCDP loss |R D|^2/(2 sigma^2) of the changes D, exactly."""
    assert isinstance(law, DiscreteGaussian)
    moved = matrix(factor, changes.shape[1]) @ changes.T.astype(object)
    return Fraction(int(max((moved**2).sum(axis=0)))) / (2 * law.sigma_squared)


def user_changes(ticks: int, events: int) -> np.ndarray:
    """All ways in which a user with so many events of weight -1..1 can be there or not."""
    steps = [np.array(d) for d in product(range(-events, events + 1), repeat=ticks)]
    return np.array([d for d in steps if np.abs(d).sum() <= events])


def user_probe(workload: ByAge, ticks: int = 5, events: int = 3) -> str | None:
    """A user's several ticks, at user level, by the noise that a counter really draws."""
    contribution = Contribution(signed=True, unit="user", max_events_per_user=events)
    factor = root_factor(workload, ticks)
    law = toeplitz.law_of(ZCDP(RHO), change("add_remove", contribution, 1), factor)
    lost = losses(factor, law, user_changes(ticks, events))
    return f"a user loses {float(lost):.3f}" if lost > RHO else None


def endless_probe() -> str | None:
    """An event followed for as long as the integer factor lasts."""
    factor = toeplitz_factor.root_factor(Decay("0.9"), None)
    law = toeplitz.law_of(ZCDP(RHO), Change(1, 1, 1), factor)
    assert isinstance(law, DiscreteGaussian)
    whole = sum(int(x) ** 2 for x in toeplitz_factor._endless_coefficients(Decay("0.9")))
    lost = Fraction(whole) / (2 * law.sigma_squared)
    return f"an event loses {float(lost):.6f} in the end" if lost > RHO else None


def first_event_probe() -> str | None:
    """One event, by the integers that make the path of the release: no more than is paid, and nearly all of it."""
    factor = root_factor(Decay("0.9"), 64)
    law = toeplitz.law_of(ZCDP(RHO), Change(1, 1, 1), factor)
    lost = losses(factor, law, np.eye(64, dtype=np.int64))
    return None if RHO * Fraction(999, 1000) < lost <= RHO else f"an event loses {float(lost):.6f}"


def of_an_event_on_a_bank(ticks: int = 10) -> Fraction:
    """What one event loses by the coefficients, the scale and the weights that the program uses, in parts of 2 rho."""
    workload = Decay("0.9")
    for kept in (bank_decay._sensitivity, bank_decay._grown):
        kept.cache_clear()
    made = DecayBankProcess(ZCDP(RHO), Change(1, 1, 1), workload, horizon=ticks, columns=1, source=ZeroNoise().source())
    for kept in (bank_decay._sensitivity, bank_decay._grown):
        kept.cache_clear()
    weights = [Fraction(weight) for weight in (*workload.series().weights, *[0] * ticks)[:ticks]]
    return losses_of_weights(made.bank, weights) / Fraction(made.sigma) ** 2 / (2 * RHO)


def bank_probe() -> str | None:
    """One event on a decaying bank: no more than is paid, and nearly all of it."""
    lost = of_an_event_on_a_bank()
    return None if Fraction(999, 1000) < lost <= 1 else f"an event loses {float(lost):.6f} of what is paid"


def coarse_weights_probe() -> str | None:
    """The same with weights in quarters: they are far from powers, and what they are must be paid for."""
    workloads._powers.cache_clear()
    try:
        with mock.patch.object(workloads, "WEIGHT_BITS", 2):
            lost = of_an_event_on_a_bank()
    finally:
        workloads._powers.cache_clear()
    return None if lost <= 1 else f"an event loses {float(lost):.6f} of what is paid"


@contextmanager
def coarse_grid(bits: int = 2) -> Iterator[None]:
    """Factors with 2^bits instead of 2^16 as their unit: small enough to enumerate."""
    root_factor.cache_clear()
    with mock.patch.object(sqrt_factor, "GRID_BITS", bits), mock.patch.object(toeplitz_factor, "GRID_BITS", bits):
        try:
            yield
        finally:
            root_factor.cache_clear()


class Planted:
    """A source of given draws."""

    def __init__(self, z: list[int]) -> None:
        self._z = z

    def draws(self, lane: str, law: Law, nodes: Any, coordinates: int = 1, first: int = 0) -> np.ndarray:
        return np.array([[self._z[node - 1]] for node in nodes], dtype=np.int64)


def play(workload: ByAge, x: list[int], z: list[int]) -> list[int]:
    """What the engine releases for given inputs and given draws."""
    factor, ticks = root_factor(workload, len(x)), len(x)

    def make() -> ToeplitzProcess:
        source: Any = Planted(z)
        return ToeplitzProcess(ZCDP(RHO), Change(1, 1, 1), factor, horizon=ticks, columns=1, source=source)

    engine = AgeEngine(make, workload.series(), ticks)
    rows = engine.play(np.array(x, dtype=np.int64)[:, None], engine.start()).rows
    return [int(value) for value in rows[:, 0]]


def function_of_y_probe() -> str | None:
    """All small inputs and draws: one y, one release, and that is the correctly rounded one, half up."""
    workload, ticks = Toeplitz([1, "1/2", "1/3"]), 3
    with coarse_grid():
        factor, series = root_factor(workload, ticks), workload.series()
        R = matrix(factor, ticks)
        A = [[Fraction(series.weights[i - j], series.unit) if 0 <= i - j < len(series.weights) else Fraction(0)
              for j in range(ticks)] for i in range(ticks)]  # fmt: skip
        inverse = exact_inverse(R)
        seen: dict[tuple[int, ...], list[int]] = {}
        for x in product((0, 1, 3), repeat=ticks):
            for z in product((-5, -2, 0, 1, 2), repeat=ticks):
                y = tuple(int(v) for v in R @ np.array(x, dtype=object) + np.array(z, dtype=object))
                released = play(workload, list(x), list(z))
                if seen.setdefault(y, released) != released:
                    return f"two releases for one y = {y}"
                ideal = [sum(A[t][k] * sum(inverse[k][j] * y[j] for j in range(ticks)) for k in range(ticks))
                         for t in range(ticks)]  # fmt: skip
                if released != [(value + Fraction(1, 2)).__floor__() for value in ideal]:
                    return f"{released} is not {ideal}, rounded"
    return None


def exact_inverse(R: np.ndarray) -> list[list[Fraction]]:
    n = len(R)
    inverse = [[Fraction(0)] * n for _ in range(n)]
    for j in range(n):
        for i in range(j, n):
            rest = Fraction(int(i == j)) - sum(int(R[i][k]) * inverse[k][j] for k in range(j, i))
            inverse[i][j] = rest / int(R[i][i])
    return inverse


# -- mistakes ----------------------------------------------------------------------------------------------------------


def l2_over_time() -> Any:
    """A user's ticks charged by their l2 norm over time (factorization-counting E6)."""

    def law(charge: Any, moved: Change, factor: Any) -> Law:
        events = moved.linf
        return law_of(charge, Change(moved.l1, moved.l2_squared // events, moved.linf), factor)

    return mock.patch.object(toeplitz, "law_of", law)


def norm_of_the_running_total() -> Any:
    """A decay charged by S_T of the running total: private, and far too much noise."""

    def law(charge: Any, moved: Change, factor: Any) -> Law:
        return law_of(
            charge, moved, replace(factor, column_norm_squared=sqrt_factor.sqrt_factor(64).column_norm_squared)
        )

    return mock.patch.object(toeplitz, "law_of", law)


def norm_of_a_steeper_decay() -> Any:
    """A decay charged by the norm of another factor."""

    def law(charge: Any, moved: Change, factor: Any) -> Law:
        return law_of(charge, moved, root_factor(Decay("0.81"), 64))

    return mock.patch.object(toeplitz, "law_of", law)


def truncated_norm() -> Any:
    """An endless stream charged by the norm of its first ticks, which is below S_inf."""

    def law(charge: Any, moved: Change, factor: Any) -> Law:
        first = int(sum(int(x) ** 2 for x in factor.r[:16]))
        return law_of(charge, moved, replace(factor, column_norm_squared=first))

    return mock.patch.object(toeplitz, "law_of", law)


def sum_rounded_first() -> Any:
    """The exact sum rounded by itself, and the noise by itself (optimal-counting 7)."""

    def play(self: Any, batch: Any, state: Any) -> Any:
        inputs = np.concatenate([state, weighing.dense(batch)])
        sums = self._sums(inputs)
        rounded = (2 * sums + self._unit) // (2 * self._unit)
        return weighing.Played(rounded + self.noise.advance(len(sums)), None, inputs[len(sums) :].copy())

    return mock.patch.object(AgeEngine, "play", play)


def rests_forgotten_in_ties() -> Any:
    """The slow way rounds the noise alone."""
    right = ToeplitzFactor.rounded
    return mock.patch.object(ToeplitzFactor, "rounded", lambda self, z, rest=0, cut=False: right(self, z, 0, cut))


def sensitivity_without_decay() -> Any:
    """A decaying bank with the noise for the columns of the bank of a running total (optimal-counting 7)."""
    return mock.patch.object(bank_decay, "certified", lambda bank, lam: certified(build_bank(bank.horizon)))


def weights_taken_for_powers() -> Any:
    """A decaying bank charged as if its weights were the powers of lambda (additions 11: sum |h_k|)."""
    return mock.patch.object(bank_decay, "spill", return_value=Fraction(1))


MUTANTS: list[tuple[Callable[[], Any], Probe]] = [
    (l2_over_time, lambda: user_probe(Window(3))),
    (norm_of_the_running_total, first_event_probe),
    (norm_of_a_steeper_decay, first_event_probe),
    (truncated_norm, endless_probe),
    (sum_rounded_first, function_of_y_probe),
    (rests_forgotten_in_ties, function_of_y_probe),
    (sensitivity_without_decay, bank_probe),
    (weights_taken_for_powers, coarse_weights_probe),
]
