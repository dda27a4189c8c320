"""Linear noise at the configured horizon: what a unit of change loses in the releases of telling ticks together.

Nothing is shrunk: the process is made for its own horizon, up to 2^30 ticks or without an end, and goes to each telling
tick by `seek`. Which draws are in a release, with which laws, is read by impulses. Releases at some ticks lose no more
than all of them, so what is found is a bound from below: mu^2 = c' C^-1 c for normal draws, for Laplace draws the least
|u|_1 that hides the change (`audit.laplace`), where c is the change of the sums at these ticks.

Where a release has as many draws as ticks went by (banks, square roots), a shift that hides the change is tried in the
program instead (`audit.laws.solved`). The refined tree mixes all draws so far into a release and has no such shift: its
first ticks alone are read, which the row says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evertally.audit.adversaries import worst_pair
from evertally.audit.gaussian import AnyLaw, ImpulseSource, claim_of, is_gaussian, sigma_squared, widened
from evertally.audit.laplace import READING, hiding
from evertally.audit.laws.solved import solved
from evertally.audit.laws.telling import OPEN_ENDED, nested, spread_over, telling_for
from evertally.audit.report import Report
from evertally.counting.bank import FilteredNoise
from evertally.counting.block_epochs import BlockEpochs
from evertally.counting.choose import build
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import FloatArray, IntArray, NoiseProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace
from evertally.privacy import PureDP
from evertally.statistics.linear_options import Linear

_LONGEST_SOLVED = 2**18  # ticks of a bank
_LONGEST_SQRT = 2**12  # it needs 8 d T bytes, and balls for planted numbers
_FIRST_TICKS = 2**8  # of the refined tree, which has two draws for each
_FIRST_BLOCKS = 2**12  # ticks of epochs of blocks
_MOST_TICKS = 160  # that are looked at together
_SILENT = "a combination of releases that carries no noise"


@dataclass(frozen=True)
class Seen:
    """The loss of a unit change of a tick in some releases; `instance` says in which."""

    loss: float
    tick: int
    instance: str


def full_horizon_report(model: Linear) -> Report:
    """What the largest change of a tick loses at the configured horizon, against the charge.

    >>> import evertally as et
    >>> tree = et.Counter(guarantee=et.ZCDP(0.5), horizon=2**30, mechanism="tree", key=et.simulation(0))
    >>> report = full_horizon_report(tree)
    >>> report.aspect, report.verdict, round(report.fraction, 3)
    ('noise', 'holds (tight)', 1.0)
    """
    left, right = worst_pair(model)
    moved = np.abs(left - right).astype(np.float64)
    # Columns have draws of their own: what a change of several of them loses adds up.
    norm = float(moved.sum()) if isinstance(model.charge, PureDP) else float(np.linalg.norm(moved))
    try:
        seen = max(_seen(model), key=lambda one: one.loss)
        adversary, audited = f"full horizon, change of tick {seen.tick}, {seen.instance}", seen.loss * norm
    except np.linalg.LinAlgError:
        adversary, audited = f"full horizon, {_SILENT}", math.inf
    except IndexError:
        # Made for fewer levels or ticks than it has to reach: what it charges is not what it does.
        return Report.attack(model, "full horizon", True, "the noise of a tick within the horizon cannot be made")
    unit, claimed = claim_of(model.charge)
    return replace(Report.computed(model, adversary, "closed form", unit, claimed, audited), aspect="noise")


def _seen(model: Linear) -> list[Seen]:
    process = model.noise
    if isinstance(process, FilteredNoise | SqrtProcess):
        longest = _LONGEST_SQRT if isinstance(process, SqrtProcess) else _LONGEST_SOLVED
        ticks = min(model.horizon or OPEN_ENDED, longest)
        found = solved(model, ticks, sorted({1, ticks // 2}))
        if found is not None:
            instance = f"all of the first {ticks} releases of {_horizon(model)}"
            return [Seen(one.mu, one.tick, instance) for one in found]
        return [_read(model, 1, list(range(1, min(ticks, _MOST_TICKS) + 1)))]
    if isinstance(process, HonakerProcess):
        ticks = min(model.horizon or 0, _FIRST_TICKS)
        return [_read(model, 1, nested(ticks))]
    horizon = model.horizon or (_FIRST_BLOCKS if isinstance(process, BlockEpochs) else OPEN_ENDED)
    tried = [1] if isinstance(process, PureBlocksProcess | BlockEpochs) else spread_over(horizon)
    return [_read(model, tick, telling_for(process, tick, horizon)) for tick in tried]


def _read(model: Linear, tick: int, ticks: list[int]) -> Seen:
    """The loss of a change of a tick in the releases of some ticks, none but the last few of which are walked to."""
    if len(ticks) > _MOST_TICKS:
        ticks = sorted({*ticks[:: -(-len(ticks) // _MOST_TICKS)], tick, ticks[-1]})
    W, laws, two = read_laws(model, ticks)
    change = (np.array(ticks) >= tick).astype(np.float64)
    instance = f"{len(ticks)} releases up to tick {ticks[-1]} of {_horizon(model)}"
    if two:
        return Seen(math.inf, tick, f"lane {two!r} drawn with two laws")
    return Seen(loss_of(W, laws, change, float(model.noise.spread(ticks[-1]).roundings)), tick, instance)


def _horizon(model: Linear) -> str:
    return "a stream without end" if model.horizon is None else f"{model.horizon}"


def loss_of(W: FloatArray, laws: Sequence[AnyLaw], change: FloatArray, roundings: float) -> float:
    """mu, or epsilon, of a change of releases with this noise; at most what it is."""
    if is_gaussian(laws):
        variances = np.array([sigma_squared(law) for law in laws])
        covariance = (W * variances) @ W.T + roundings / 12 * np.eye(len(W))
        if np.linalg.matrix_rank(covariance, hermitian=True) < len(W):
            return _of_silent(covariance, change)
        return math.sqrt(float(change @ np.linalg.solve(covariance, change)))
    scales = np.array([float(law.scale) if isinstance(law, DiscreteLaplace) else 1.0 for law in laws])
    return float(hiding(W * scales, change[None], max(roundings, READING)).lower[0])


def _of_silent(covariance: FloatArray, change: FloatArray) -> float:
    """Some combination of releases carries no noise: infinite if the change shows in it."""
    direction = np.linalg.lstsq(covariance, change, rcond=1e-10)[0]
    if not np.allclose(covariance @ direction, change, atol=1e-6):
        return math.inf
    return math.sqrt(float(change @ direction))


class _Lanes(ImpulseSource):
    """Impulses; it notes a lane that is drawn with two laws."""

    def __init__(self) -> None:
        super().__init__()
        self.two: str = ""

    def draws(self, lane: str, law: AnyLaw, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        if self.laws.setdefault(lane, law) != law:
            self.two = lane
        return super().draws(lane, law, nodes, coordinates, first)


Made = Callable[[Any, int], NoiseProcess]  # makes a process that draws from a source, with so many columns


def read_laws(model: Linear, ticks: list[int]) -> tuple[FloatArray, list[AnyLaw], str]:
    """W of the releases of some ticks, to each of which the process goes by `seek`; the law of each draw; and a lane
    that has two laws, if there is one."""
    return read_process(lambda source, columns: build(model._choice, widened(model._setting, columns), source), ticks)


def read_process(make: Made, ticks: list[int]) -> tuple[FloatArray, list[AnyLaw], str]:
    """The same for a process of which only this is known: how it is made."""
    columns = 4 * len(ticks) + 64
    for _ in range(8):
        source = _Lanes()
        process, rows = make(source, columns), []
        for tick in ticks:
            if process.tick != tick - 1:
                process.seek(tick - 1)
            rows.append(process.advance(1))
        if len(source.columns) <= columns:
            return *source.read(np.concatenate(rows)), source.two
        columns = len(source.columns)  # a block that is begun is drawn whole
    raise ConfigurationError("noise that asks for other draws whenever it has more columns")
