"""Streams without a horizon: epoch borders, what closed epochs hold, variances, restarts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.contract.ticks import LAST_TICK
from evertally.counting.choose import build, choose
from evertally.counting.epochs import EPOCHS, EpochProcess
from evertally.counting.processes import Setting
from evertally.errors import ConfigurationError
from evertally.noise import Recording, ZeroNoise, simulation
from evertally.privacy import Change

CASES = [  # mechanism, budget, bytes of memory for each column
    ("epoch-tree", et.PureDP(1), 2**20),
    ("epoch-tree", et.ZCDP(0.5), 2**20),
    ("epoch-tree", et.ZCDP(0.5), 30),  # noise drawn again, not kept
]


def process(case: tuple[str, Any, int], columns: int = 1, seed: int = 0) -> EpochProcess:
    name, budget, memory = case
    setting = Setting(Change(1, 1, 1), None, columns, memory * columns)
    made = build(choose(budget, setting, name), setting, simulation(seed).source("epochs", name))
    assert isinstance(made, EpochProcess)
    return made


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_across_borders(case: tuple[str, Any, int]) -> None:
    whole = process(case).advance(300)
    for start in (1, 2, 3, 4, 62, 63, 64, 126, 127, 128, 254, 255, 256):
        mover = process(case)
        mover.seek(start)
        assert mover.tick == start
        assert np.array_equal(mover.advance(300 - start), whole[start:])
        mover.seek(start - 1)
        assert np.array_equal(mover.advance(2), whole[start - 1 : start + 1])


@pytest.mark.parametrize("tick", [0, 1, 2, 62, 63, 64, 200])
def test_going_to_a_tick_draws_every_block_once(tick: int) -> None:
    """One block of each closed epoch, and those that tile the prefix of the open one."""
    setting, recording = Setting(Change(1, 1, 1), None, 1, 2**20), Recording(simulation(0))
    made = build(choose(et.ZCDP(0.5), setting, "epoch-tree"), setting, recording.source("epochs"))
    made.seek(tick)
    k = (tick + 1).bit_length() - 1
    assert sum(len(call.nodes) for call in recording.draws) == k + (tick + 1 - 2**k).bit_count()


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_epoch_tree_is_the_sum_of_roots_and_a_prefix(case: tuple[str, Any, int]) -> None:
    """price-of-continual-release 9.1, from the draws themselves."""
    p = process(case)
    path = p.advance(255)[:, 0]
    held = 0
    for k in range(8):
        law = p._model(k).law  # type: ignore[attr-defined]
        scale = (k + 1) / 1 if isinstance(case[1], et.PureDP) else (k + 1) / (2 * 0.5)
        assert float(getattr(law, "scale", None) or law.sigma_squared) == pytest.approx(scale)

        def z(i: int, k: int = k, law: Any = law) -> int:
            return int(p._process_of(k, 1)._source.draws(f"epoch-{k}", law, [i])[0, 0])  # type: ignore[attr-defined]

        for i in range(1, 2**k + 1):
            prefix, rest = 0, i
            while rest:
                prefix += z(rest)
                rest &= rest - 1
            assert path[2**k - 1 + i - 1] == held + prefix
        held += z(2**k)


@pytest.mark.parametrize("case", CASES[:2], ids=repr)
def test_variance_of_the_epoch_tree(case: tuple[str, Any, int]) -> None:
    """sum over closed epochs of sigma_e'^2, plus popcount sigma_e^2."""
    p = process(case)

    def square(k: int) -> float:
        return float(p._model(k).law.stddev() ** 2)  # type: ignore[attr-defined]

    for t in [1, 2, 3, 4, 7, 8, 100, 127, 128, 1000, 2**20, LAST_TICK]:
        k = t.bit_length() - 1
        expected = sum(square(e) for e in range(k)) + (t + 1 - 2**k).bit_count() * square(k)
        assert p.spread(t).variance == pytest.approx(expected)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_worst_tick_of_every_epoch(case: tuple[str, Any, int]) -> None:
    """Not its last: that one closes the epoch's tree and has a single node."""
    p = process(case)
    for k in range(10):
        assert p.worst_in(k).variance == max(p.spread(t).variance for t in range(2**k, 2 ** (k + 1)))
    widest = [p.worst_in(k).variance for k in range(EPOCHS)]
    assert widest == sorted(widest), "later epochs are wider, so the last one holds the worst tick"


def test_the_worst_tick_of_all_is_in_the_last_epoch() -> None:
    p = process(CASES[0])
    assert p.worst() == p.worst_in(EPOCHS - 1)
    assert p.worst().variance > p.spread(LAST_TICK).variance


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_deviation_agrees_with_simulation(case: tuple[str, Any, int]) -> None:
    """2000 independent columns, relative deviation of a mean square at most sqrt(5/2000) = 0.05; 0.3 is six of them."""
    p = process(case, columns=2000, seed=3)
    paths = p.advance(130).astype(float)
    for t in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 130):
        assert abs(float(np.mean(paths[t - 1] ** 2)) / p.spread(t).stddev ** 2 - 1) < 0.3, t


def test_exact_without_noise_across_borders() -> None:
    for name, guarantee in (("epoch-tree", et.PureDP(1)), ("bank-open", et.ZCDP(0.5))):
        c = et.Counter(guarantee=guarantee, horizon=None, mechanism=name, key=ZeroNoise())
        assert c.run(np.arange(600)).tolist() == np.cumsum(np.arange(600)).tolist()
        again = et.restore(c.snapshot(), key=ZeroNoise())
        assert again.step(1).value == c.step(1).value == 600 * 599 // 2 + 1


def test_error_bound_needs_a_tick_and_shares_beta_among_all() -> None:
    c = et.Counter(guarantee=et.ZCDP(0.5), horizon=None, mechanism="epoch-tree", key=et.simulation(0))
    with pytest.raises(ConfigurationError, match="tick="):
        c.error_bound(0.1)
    bounds = [c.error_bound(0.1, t=t) for t in (1, 10, 100, 1000)]
    assert bounds == sorted(bounds)
    # the shares 6/(pi (k + 1))^2 of the epochs, and 6/(pi t)^2 of the ticks, add up to one each: none may get more
    for t in (1, 7, 1000):
        k = t.bit_length() - 1
        epoch = c.noise._in_epoch(0.95 * 6 * 0.1 / (math.pi * (k + 1)) ** 2, k)
        alone = c.noise.spread(t).radius((1 - 0.95) * 6 * 0.1 / (math.pi * t) ** 2)
        assert c.error_bound(0.1, t=t) == min(epoch, alone)
    for t in (0, LAST_TICK + 1):
        with pytest.raises(ConfigurationError):
            c.error_bound(0.1, t=t)


@pytest.mark.parametrize("case", CASES[:2], ids=repr)
def test_error_bound_holds_for_all_ticks_at_once(case: tuple[str, Any, int]) -> None:
    """400 columns as runs of their own, 63 ticks, beta = 0.2: Binomial(400, 0.2) above its mean by 6 deviations has
    probability below 1e-6."""
    columns, beta = 400, 0.2
    c = et.Counter(guarantee=case[1], horizon=None, mechanism=case[0], key=et.simulation(1))
    bound = np.array([c.error_bound(beta, t=t) for t in range(1, 64)])
    paths = np.abs(process(case, columns=columns, seed=8).advance(63))
    failures = int(np.sum(np.any(paths > bound[:, None], axis=0)))
    assert failures <= beta * columns + 6 * math.sqrt(columns * beta * (1 - beta))


def test_the_last_epoch() -> None:
    """2^32 - 1 ticks, then nothing; going there takes no time."""
    assert LAST_TICK == 2**EPOCHS - 1
    for case in (CASES[0], CASES[2]):
        p = process(case)
        p.seek(LAST_TICK - 3)
        assert p.advance(3).shape == (3, 1)
        assert p.tick == LAST_TICK


@pytest.mark.parametrize("charge", [et.PureDP(1), et.ZCDP(0.1)], ids=str)
@pytest.mark.parametrize("tick", [1, 6])
def test_beyond_the_reach_of_the_joint_law_the_union_holds(charge: Any, tick: int) -> None:
    """The law of the maximum is cut where 1e-9 is left; for a smaller beta the union over the epoch has an answer."""
    setting = Setting(Change(1, 1, 1), None, 1, 2**30)
    process = build(choose(charge, setting, "epoch-tree"), setting, ZeroNoise().source())
    assert isinstance(process, EpochProcess)
    k = tick.bit_length() - 1
    for beta in (0.1, 1e-9, 1e-12, 1e-15):
        union = process.worst_in(k).radius(6 * beta / (math.pi * (k + 1)) ** 2 / 2**k)
        assert process.joint_radius(beta, tick) <= union < math.inf


@pytest.mark.parametrize("guarantee", [et.PureDP(Fraction(1, 2**38)), et.ZCDP(Fraction(1, 2**79))])
def test_noise_that_a_late_epoch_could_not_draw_is_refused_before_the_stream_begins(
    guarantee: et.PureDP | et.ZCDP,
) -> None:
    with pytest.raises(ConfigurationError, match="outside"):
        et.Counter(guarantee=guarantee, horizon=None, mechanism="epoch-tree", key=simulation(0))
    et.Counter(guarantee=guarantee, horizon=1, mechanism="tree", key=simulation(0))  # its first epoch could
