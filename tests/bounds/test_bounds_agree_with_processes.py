"""The processes of the product know their own error; the formulas of this room were written apart from them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from benchmarks import formulas
from evertally.counting.choose import Choice, build
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import Setting
from evertally.counting.tree import TreeProcess, choose_radix
from evertally.noise import ZeroNoise
from evertally.privacy import ZCDP, Change, PureDP

UNIT = 1000  # 1/sqrt(2 rho) and 1/epsilon: so large that laws on the integers have the variances of continuous ones
GAUSS = ZCDP(Fraction(1, 2 * UNIT**2))
PURE = PureDP(Fraction(1, UNIT))


def process(name: str, charge: ZCDP | PureDP, horizon: int | None, **options: object) -> NoiseProcess:
    setting = Setting(Change(1, 1, 1), horizon, 1, 2**30, **options)  # type: ignore[arg-type]
    return build(Choice(name, charge), setting, ZeroNoise().source())


def agree(noise: NoiseProcess, formula: formulas.Formula, ticks: list[int], rel: float = 1e-6) -> None:
    for t in ticks:
        assert math.sqrt(noise.spread(t).variance) / UNIT == pytest.approx(formula.stddev(t), rel=rel), t


CASES = [(name, charge) for name in ("tree", "honaker") for charge in (GAUSS, PURE)] + [("sqrt", GAUSS)]


@pytest.mark.parametrize("horizon", [1, 2, 3, 100, 256, 1000, 4096])
@pytest.mark.parametrize(("name", "charge"), CASES)
def test_with_a_horizon(name, charge, horizon):
    pure = charge is PURE
    noise = process(name, charge, horizon)
    formula: formulas.Formula
    if name == "tree":
        assert isinstance(noise, TreeProcess)
        formula = formulas.TreeFormula(horizon, noise.radix, pure)
    else:
        formula = formulas.HonakerFormula(horizon, pure) if name == "honaker" else formulas.SqrtFormula(horizon)
    agree(noise, formula, sorted({1, 2, 3, 7, horizon // 2, horizon - 1, horizon} & set(range(1, horizon + 1))))
    assert math.sqrt(noise.worst().variance) / UNIT == pytest.approx(formula.worst, rel=1e-6)
    worst = max(noise.spread(t).variance for t in range(1, horizon + 1))
    assert noise.worst().variance == pytest.approx(worst)


@pytest.mark.parametrize("horizon", [1, 2, 3, 100, 256, 1000, 4096, 65535, 65536, 10**6, 2**31])
@pytest.mark.parametrize("pure", [True, False])
def test_radix(horizon, pure):
    exact = choose_radix(horizon, "exact", pure)
    assert exact == formulas.best_radix(horizon, pure)
    rule = choose_radix(horizon, "formula", pure)
    assert formulas.TreeFormula(horizon, exact, pure).worst <= formulas.TreeFormula(horizon, rule, pure).worst
    assert choose_radix(horizon, 2, pure) == 2


EPOCH_TICKS = [1, 2, 3, 4, 6, 7, 8, 14, 100, 254, 255, 256, 1000, 2046, 2047, 2048]


@pytest.mark.parametrize("charge", [GAUSS, PURE])
def test_epoch_tree(charge):
    agree(
        process("epoch-tree", charge, None),
        formulas.EpochTreeFormula(2048, charge is PURE),
        [*EPOCH_TICKS, 10**6, 2**32 - 2],
    )


def test_rounding_is_a_twelfth():
    noise = process("sqrt", ZCDP(Fraction(1, 2)), 4096)
    assert noise.worst().stddev ** 2 == pytest.approx(formulas.SqrtFormula(4096).worst ** 2 + 1 / 12, rel=1e-6)
