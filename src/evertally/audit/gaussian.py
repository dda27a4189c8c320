"""The white-box audit of linear mechanisms: their noise, read off the program, and the most powerful test.

A linear mechanism releases prefix sums plus W Z with independent draws Z. `impulse_response` finds W by feeding the
product's own process a planted source in which every draw is an impulse in a column of its own; so it sees what the
program does, not what a formula says. With C the covariance of the noise path, the change of tick j by a unit shifts
the path by A e_j, and the most powerful test is <C^-1 A e_j, path>, normal with separation
mu_j = sqrt((A e_j)' C^-1 (A e_j)). The claim is mu <= sqrt(2 rho)/|v| for every j; by the exact
curve where an (epsilon, delta) promise is paid as it stands.

With Laplace noise and as many draws as ticks, W^-1 gives the draws themselves back, and the test adds up their
log-likelihood ratios (`node_form`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from flint import arb

from evertally.balls import at_precision
from evertally.counting.choose import build
from evertally.counting.process import FloatArray, IntArray, NoiseProcess, go_to, remembered
from evertally.counting.processes import Setting
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace
from evertally.noise.reals import KnownReals, RealLaw
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.statistics.linear_options import Linear

AnyLaw = Any  # of integers, or of real variates
P = ParamSpec("P")
R = TypeVar("R")

_HEIGHT = 2**34  # of an impulse: rounding to integers then disturbs the response by less than 1e-10
REAL_HEIGHT = 2**24  # of one that is filtered in floats: larger numbers are left to balls, tick by tick
BLOCK_HEIGHT = 2**20  # in blocks all columns share the error bound of the loudest
_HALVINGS = (0, 8, 16, 20)  # the lowest impulse of real draws is 1, as large as they are
_WIDE = 2**12  # columns for which no process makes noise ahead: a memory of an earlier tick would show less


class ImpulseSource:
    """Gives each new (lane, node) a column of its own and an impulse in it."""

    def __init__(self) -> None:
        self.columns: dict[tuple[str, int], int] = {}
        self.laws: dict[str, AnyLaw] = {}
        self._asked: dict[tuple[str, range | tuple[int, ...]], IntArray] = {}  # what comes again and again: its columns

    def draws(self, lane: str, law: AnyLaw, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        self.laws.setdefault(lane, law)
        columns = self._columns_of(lane, nodes if isinstance(nodes, range) else tuple(nodes)) - first
        out = np.zeros((len(columns), coordinates), dtype=np.int64)
        shown = np.flatnonzero((columns >= 0) & (columns < coordinates))
        out[shown, columns[shown]] = height_of(law)
        return out

    def _columns_of(self, lane: str, nodes: range | tuple[int, ...]) -> IntArray:
        found = self._asked.get((lane, nodes))
        if found is None:
            places = [self.columns.setdefault((lane, int(node)), len(self.columns)) for node in nodes]
            found = self._asked[lane, nodes] = np.array(places, dtype=np.int64)
        return found

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return KnownReals(self.draws(lane, law, nodes, coordinates, first).astype(np.float64))

    def response(self, process: NoiseProcess, ticks: int) -> tuple[FloatArray, list[AnyLaw]]:
        """W (ticks x draws) of a process that draws from here, and the law of each draw."""
        return self.read(process.advance(ticks))

    def read(self, response: IntArray) -> tuple[FloatArray, list[AnyLaw]]:
        """The same from what a process made, in as many columns as it drew or more."""
        laws = self.drawn
        return response[:, : len(laws)] / np.array([height_of(law) for law in laws]), laws

    @property
    def drawn(self) -> list[AnyLaw]:
        """The law of each draw."""
        return [self.laws[lane] for lane, _ in self.columns]

    def order(self, message: bytes) -> bytes:
        return message


_halved: ContextVar[int] = ContextVar("halved", default=0)  # how often the impulses of a reading are


def height_of(law: AnyLaw) -> int:
    """Of the impulse of a draw."""
    if not isinstance(law, RealLaw):
        return _HEIGHT >> _halved.get()
    return (REAL_HEIGHT if law.kind == "normal" else BLOCK_HEIGHT) >> _halved.get()


def fitting(read: Callable[P, R]) -> Callable[P, R]:
    """A reading whose impulses fit. They are far larger than draws ever are, so behind large weights, or noise as wide
    as tiny budgets need, they may leave 64 bits; lower ones are read as well there, because what they move is large."""

    @wraps(read)
    def again(*arguments: P.args, **options: P.kwargs) -> R:
        for halved in _HALVINGS:
            token = _halved.set(halved)
            try:
                with np.errstate(invalid="ignore"):  # what does not fit ends in an error, not in a warning
                    return read(*arguments, **options)
            except OverflowError:
                if halved == _HALVINGS[-1]:
                    raise
            finally:
                _halved.reset(token)
        raise AssertionError("the last reading returns or raises")

    return again


def widened(setting: Setting, columns: int) -> Setting:
    """The same configuration with more columns. The memory limit grows along, since processes decide by it."""
    memory = setting.memory_limit * columns // setting.columns
    return replace(setting, columns=columns, memory_limit=memory)


def impulse_response(mechanism: Linear, ticks: int, restart: int = 0) -> tuple[FloatArray, list[AnyLaw]]:
    """W (ticks x draws), and the law of each draw; with `restart`, of a process that is restored after that tick."""
    return read_at(mechanism, range(1, ticks + 1), restart)


@fitting
def read_at(mechanism: Linear, ticks: Sequence[int], restart: int = 0) -> tuple[FloatArray, list[AnyLaw]]:
    """The same for some ticks, in order."""
    columns = max(2 * len(ticks) + 64, _WIDE if restart else 0)
    while True:
        source, wide = ImpulseSource(), widened(mechanism._setting, columns)
        process, parts = build(mechanism._choice, wide, source), []
        for first, last in _runs(ticks, restart):
            if first - 1 == restart > 0:
                kept = remembered(process)
                process = build(mechanism._choice, wide, source)
                go_to(process, restart, kept)
            elif process.tick != first - 1:
                process.seek(first - 1)
            parts.append(process.advance(last - first + 1))
        if len(source.columns) <= columns:
            return source.read(np.concatenate(parts))
        columns = len(source.columns)  # a block that is begun is drawn whole


def _runs(ticks: Sequence[int], restart: int) -> list[tuple[int, int]]:
    """Ticks that follow each other, first and last; a run ends where the process is restored."""
    runs: list[tuple[int, int]] = []
    for tick in ticks:
        if runs and runs[-1][1] == tick - 1 != restart:
            runs[-1] = runs[-1][0], tick
        else:
            runs.append((tick, tick))
    return runs


@dataclass(frozen=True)
class ClosedForm:
    """The separation of the most powerful test for a unit change of each tick, and its directions."""

    mu: FloatArray  # (ticks,): mu[j-1] for a change of tick j
    directions: FloatArray  # (ticks, ticks): column j-1 is C^-1 A e_j

    @property
    def worst_tick(self) -> int:
        return int(np.argmax(self.mu)) + 1

    def log_ratio(self, paths: FloatArray, tick: int, shift: IntArray) -> FloatArray:
        """ln P(changed)/P(not changed) for each of the paths (trials, ticks, columns); `shift` is (trials, columns)."""
        projected = np.einsum("ntc,t->nc", paths, self.directions[:, tick - 1])
        return np.asarray((projected * shift).sum(axis=1) - self.mu[tick - 1] ** 2 * (shift**2).sum(axis=1) / 2)


def closed_form(mechanism: Linear, ticks: int | None = None, restart: int = 0) -> ClosedForm:
    """The closed form for Gaussian noise; with `restart`, of a mechanism that is restored after that tick.

    >>> import evertally as et
    >>> audit = closed_form(et.Counter(guarantee=et.ZCDP(0.5), horizon=64, key=et.simulation(0)))
    >>> audit.worst_tick, bool(0.97 < audit.mu.max() <= 1.0)  # the claim is sqrt(2 rho) = 1; rounding hides a little
    (1, True)
    """
    T = int(ticks or mechanism.horizon or 0)
    return form_of(*impulse_response(mechanism, T, restart), mechanism.noise.spread(T).roundings)


def form_of(W: FloatArray, laws: list[AnyLaw], roundings: float, sums: FloatArray | None = None) -> ClosedForm:
    """The closed form of a response, each of whose releases is rounded so often; of running totals, or other `sums`."""
    variances = np.array([sigma_squared(law) for law in laws])
    C = (W * variances) @ W.T + roundings / 12 * np.eye(len(W))
    A = np.tril(np.ones((len(W), len(W)))) if sums is None else sums
    directions = np.linalg.solve(C, A)
    return ClosedForm(np.sqrt(np.einsum("ij,ij->j", A, directions)), directions)


@dataclass(frozen=True)
class NodeForm:
    """Draws from paths: z = inverse @ path; a unit change of tick j moves z by moved[:, j-1]; `scales` of the draws."""

    inverse: FloatArray
    moved: FloatArray
    scales: FloatArray

    def log_ratio(self, paths: FloatArray, tick: int, shift: IntArray) -> FloatArray:
        """ln P(changed)/P(not changed) for each of the paths (trials, ticks, columns); `shift` is (trials, columns)."""
        touched = np.flatnonzero(self.moved[:, tick - 1])
        z = np.rint(np.einsum("it,ntc->nic", self.inverse[touched], paths, optimize=True))
        ratio = np.abs(z) - np.abs(z - self.moved[touched, tick - 1][:, None] * shift[:, None, :])
        return np.asarray(np.einsum("nic,i->n", ratio, 1 / self.scales[touched]))


def node_form(mechanism: Linear, ticks: int) -> NodeForm | None:
    """The draws behind a path of Laplace noise, if the path determines them: trees do, refined trees do not."""
    W, laws = impulse_response(mechanism, ticks)
    if W.shape[1] != ticks or not all(isinstance(law, DiscreteLaplace) for law in laws):
        return None
    try:
        inverse: FloatArray = np.linalg.inv(W).astype(np.float64)
    except np.linalg.LinAlgError:  # some draw is not there; a trained score will find out
        return None
    return NodeForm(inverse, np.rint(inverse @ np.tril(np.ones((ticks, ticks)))), laplace_scales(laws))


def laplace_scales(laws: list[AnyLaw]) -> FloatArray:
    return np.array([float(law.scale) for law in laws if isinstance(law, DiscreteLaplace)])


def is_gaussian(laws: Iterable[AnyLaw]) -> bool:
    """Whether all draws are normal, or discrete normal."""
    return all(isinstance(law, DiscreteGaussian) or (isinstance(law, RealLaw) and law.kind == "normal") for law in laws)


def sigma_squared(law: AnyLaw) -> float:
    # The parameter, not the variance (which is a little smaller for narrow discrete laws): the loss is a matter of it.
    if isinstance(law, RealLaw) and law.kind == "normal":
        return 1.0
    if not isinstance(law, DiscreteGaussian):
        raise ValueError("the closed form is for Gaussian noise")
    return float(law.sigma_squared)


def claim_of(charge: Guarantee) -> tuple[str, float]:
    """In what the loss of linear noise is told, and how much of it is claimed.

    >>> claim_of(PureDP(1.5)), claim_of(ZCDP(0.5))
    (('epsilon', 1.5), ('mu', 1.0))
    """
    return ("epsilon", charge.epsilon) if isinstance(charge, PureDP) else ("mu", claimed_mu(charge))


def claimed_mu(charge: Guarantee) -> float:
    """The separation that a Gaussian mechanism with this charge may show."""
    return math.sqrt(2 * concentrated(charge).rho)


def concentrated(charge: Guarantee) -> ZCDP:
    """What Gaussian noise pays, in rho: mu^2/2 where it pays in epsilon and delta, mu the most that these allow.

    The curve is written down here once more, delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu): what
    the noise was calibrated with is not asked.

    >>> from evertally.privacy import ApproxDP
    >>> round(claimed_mu(ApproxDP(1.0, 1e-6)), 6)
    0.236704
    """
    if isinstance(charge, ZCDP):
        return charge
    if not isinstance(charge, ApproxDP):
        raise ConfigurationError(f"{charge} is no charge of Gaussian noise")
    low, high = Fraction(0), Fraction(1)
    while delta_of_mu(high, charge.exact_epsilon) <= float(charge.exact_delta):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if delta_of_mu(middle, charge.exact_epsilon) <= float(charge.exact_delta):
            low = middle
        else:
            high = middle
    return ZCDP(low**2 / 2, adversary=charge.adversary)


def delta_of_mu(mu: Fraction | float, epsilon: Fraction | float) -> float:
    """The exact delta, at an epsilon, of two normal laws at distance mu."""

    def delta() -> float:
        m, e = (arb(part.numerator) / part.denominator for part in (Fraction(mu), Fraction(epsilon)))
        root = arb(2).sqrt()
        return float(((e / m - m / 2) / root).erfc() / 2 - e.exp() * ((e / m + m / 2) / root).erfc() / 2)

    return at_precision(256, delta)
