"""Laws of differences of noise against the matrices that make the noise, every pair of ticks of a short stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from evertally.bounds.tails import Spread
from evertally.counting.centred import CentredPath, active_laws, white_laws
from evertally.counting.epochs import EpochProcess
from evertally.counting.path import PathProcess, Runs
from evertally.counting.process import NoiseProcess
from evertally.counting.runs import Presence
from evertally.counting.side_by_side import SideBySide
from evertally.counting.tree import TreeProcess, blocks
from evertally.noise import ZeroNoise
from evertally.privacy import ZCDP, Change, PureDP

SOURCE = ZeroNoise().source()
T = 20


def windows() -> Iterator[tuple[int, int]]:
    return ((before, tick) for tick in range(1, T + 1) for before in range(tick))


def recursive(r: tuple[int, ...]) -> np.ndarray:
    """R^-1 by the definition, a row for each tick 0 .. T."""
    R = sum(np.diag(np.full(T - k, float(x)), -k) for k, x in enumerate(r[:T]))
    return np.concatenate([np.zeros((1, T)), np.linalg.inv(R)])


@pytest.mark.parametrize("horizon", [None, T])
def test_paths_of_presence(horizon: int | None) -> None:
    noise = PathProcess(ZCDP(0.5), Runs(1, 7), horizon=horizon, columns=1, source=SOURCE)
    rows = recursive(noise.coefficients)
    for before, tick in windows():
        expected = float(np.sum((rows[tick] - rows[before]) ** 2)) * noise.law.stddev() ** 2
        assert noise.window_spread(tick, tick - before).variance == pytest.approx(expected, rel=1e-9)


def test_a_series_that_has_ended_still_has_windows() -> None:
    noise = PathProcess(ZCDP(0.5), Runs(1, 1), horizon=None, columns=1, source=SOURCE)
    far = noise.window_spread(10**6, 10**5)
    assert far.variance == pytest.approx(2 * noise.worst().variance, rel=1e-9)
    assert noise.window_spread(10**6, 1).variance < far.variance * 1.5


@pytest.mark.parametrize(
    "laws", [active_laws(ZCDP(0.1), Presence.windows(T, 7)), white_laws(PureDP(1), T), white_laws(ZCDP(0.5), T)]
)
def test_what_is_shared_falls_out(laws: Any) -> None:
    noise = CentredPath(laws, horizon=T, columns=1, source=SOURCE)
    fresh = recursive(noise.coefficients) * laws.fresh.stddev()
    shared = np.full((T + 1, 1), 0.0 if laws.shared is None else laws.shared.stddev() / 2)
    shared[0] = 0.0
    rows = np.concatenate([fresh, shared], axis=1)
    for before, tick in windows():
        spread = noise.window_spread(tick, tick - before)
        assert spread.variance == pytest.approx(float(np.sum((rows[tick] - rows[before]) ** 2)), rel=1e-9)
        assert spread.law == noise.spread(1).law


def epochs(radix: int) -> EpochProcess:
    def inner(k: int, columns: int) -> NoiseProcess:
        return TreeProcess(
            PureDP(1),
            Change(1, 1, 1),
            horizon=2**k,
            columns=columns,
            source=SOURCE,
            radix=min(radix, 2**k) if k else "formula",
        )

    return EpochProcess(inner, columns=1)


@pytest.mark.parametrize("radix", [2, 3])
def test_epochs_keep_the_last_block_of_each(radix: int) -> None:
    noise = epochs(radix)

    def drawn(tick: int) -> dict[tuple[int, int], float]:
        """The variances of the draws that a tick has, by epoch and block."""
        last = tick.bit_length() - 1
        inside = [(k, 2**k if k < last else tick + 1 - 2**k) for k in range(last + 1)]
        return {(k, b): noise._model(k).spread(1).variance for k, t in inside for b in blocks(t, noise._model(k).radix)}

    assert noise.exact_windows
    for before, tick in windows():
        now, then = drawn(tick), drawn(before)
        different = sum(variance for place, variance in (now | then).items() if (place in now) != (place in then))
        assert noise.window_spread(tick, tick - before).variance == pytest.approx(different)


def test_several_laws_side_by_side_say_nothing_about_sums() -> None:
    make: Callable[[int], Any] = lambda W: PathProcess(  # noqa: E731
        ZCDP(0.5), Runs(1, W), horizon=T, columns=1, source=SOURCE
    )
    alone, both = SideBySide([make(7)]), SideBySide([make(7), make(3)])
    assert alone.exact_windows
    assert not both.exact_windows
    widest: Spread = max((part.window_spread(9, 2) for part in both.parts), key=lambda spread: spread.stddev)
    assert both.window_spread(9, 2) == widest
