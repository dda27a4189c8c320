"""Which process, with which budget: decided from public parameters before the stream starts.

The processes by name. `"auto"` takes the one with the smallest worst standard deviation among those that fit the
guarantee, the horizon and the memory limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from evertally.bounds.joint import of_column
from evertally.counting.epochs import EPOCHS, EpochProcess
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import Budget, NoiseProcess, path_bound
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.sqrt_factor import sqrt_factor
from evertally.counting.tree import Radix, TreeProcess, choose_radix, levels
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, Change, Guarantee, PureDP
from evertally.ranking import Ranking, Way

# Beyond this the square-root factor takes long to prepare (a few seconds at 2^20, proportional to T).
LONGEST_SQRT = 2**22
# The epoch hybrid divides its budget for the best error at this many ticks, and goes over to trees after 2^20.
HYBRID_TARGET = 2**16
HYBRID_LONGEST_SQRT = 20


@dataclass(frozen=True)
class Setting:
    """The public parameters of a process."""

    change: Change
    horizon: int | None
    columns: int
    memory_limit: int
    radix: Radix = "formula"


@dataclass(frozen=True)
class Choice:
    """A process by name and the budget it pays."""

    mechanism: str
    charge: Budget


Build = Callable[[Budget, Setting, Source], NoiseProcess]


@dataclass(frozen=True)
class Kind:
    """One way to make noise: what it needs, and how to build it."""

    bounded: bool  # needs a horizon
    pure: bool  # can pay with a pure budget
    memory: Callable[[Setting], int]
    build: Build


def _horizon(setting: Setting) -> int:
    assert setting.horizon is not None
    return setting.horizon


def _tree(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    T = _horizon(setting)
    depth = levels(T, choose_radix(T, setting.radix, isinstance(charge, PureDP)))
    keep = 8 * setting.columns * (depth + 1) <= setting.memory_limit
    return TreeProcess(
        charge,
        setting.change,
        horizon=T,
        columns=setting.columns,
        source=source,
        radix=setting.radix,
        keep=keep,
    )


def _honaker(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    return HonakerProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.columns, source=source)


def _sqrt(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    return SqrtProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.columns, source=source)


def _epoch_tree(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    def inner(k: int, columns: int) -> NoiseProcess:
        return TreeProcess(
            charge,
            setting.change,
            horizon=2**k,
            columns=columns,
            source=source,
            radix=2,
            keep=8 * setting.columns * (k + 2) <= setting.memory_limit,
            lane=f"epoch-{k}",
        )

    return EpochProcess(inner, None, columns=setting.columns)


def _epoch_hybrid(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    rho_inner, rho_outer = hybrid_shares(charge.exact_rho)

    def inner(k: int, columns: int) -> NoiseProcess:
        if k <= HYBRID_LONGEST_SQRT and 8 * setting.columns * 2**k <= setting.memory_limit // 2:
            return SqrtProcess(
                ZCDP(rho_inner),
                setting.change,
                horizon=2**k,
                columns=columns,
                source=source,
                lane=f"epoch-{k}",
            )
        return TreeProcess(
            ZCDP(rho_inner),
            setting.change,
            horizon=2**k,
            columns=columns,
            source=source,
            radix="exact",
            lane=f"epoch-{k}",
        )

    outer = SqrtProcess(
        ZCDP(rho_outer), setting.change, horizon=EPOCHS, columns=setting.columns, source=source, lane="outer"
    )
    return EpochProcess(inner, outer, columns=setting.columns)


def hybrid_shares(rho: Fraction) -> tuple[Fraction, Fraction]:
    """rho_inner : rho_outer = S_target : S_K (factorization-counting 10.1), in fractions that add up to rho.

    >>> inner, outer = hybrid_shares(Fraction(1, 2))
    >>> inner + outer, round(float(inner / outer), 2)
    (Fraction(1, 2), 2.12)
    """
    inner, outer = (sqrt_factor(T).column_norm_squared for T in (HYBRID_TARGET, EPOCHS))
    share = Fraction(inner, inner + outer).limit_denominator(1000)
    return rho * share, rho * (1 - share)


KINDS: dict[str, Kind] = {
    # the noise made ahead; the factor and its transforms take about 250 T bytes of work space besides
    "sqrt": Kind(True, False, lambda s: 8 * s.columns * _horizon(s), _sqrt),
    "tree": Kind(True, True, lambda s: 8 * s.columns, _tree),
    "honaker": Kind(True, True, lambda s: 64 * s.columns * _horizon(s).bit_length(), _honaker),
    "epoch-hybrid": Kind(False, False, lambda s: 8 * s.columns * (EPOCHS + HYBRID_LONGEST_SQRT), _epoch_hybrid),
    "epoch-tree": Kind(False, True, lambda s: 8 * s.columns, _epoch_tree),
}


def budgets(guarantee: Guarantee) -> list[Budget]:
    """The budgets that keep the promise: an (eps, delta) promise can be kept by Gaussian or by Laplace noise."""
    if isinstance(guarantee, PureDP | ZCDP):
        return [guarantee]
    if isinstance(guarantee, ApproxDP):
        return [guarantee.to_zcdp(), PureDP(guarantee.exact_epsilon, adversary=guarantee.adversary)]
    return [ZCDP(guarantee.exact_rho, adversary=guarantee.adversary)]


def rank(guarantee: Guarantee, setting: Setting, mechanism: str = "auto", beta: float = 0.05) -> Ranking:
    """Every process (or the named one) with each budget that keeps the promise, least worst standard deviation first.

    Without a horizon errors are those of tick 2^16.
    """
    if mechanism != "auto" and mechanism not in KINDS:
        raise ConfigurationError(f'unknown mechanism {mechanism!r}; choose "auto" or one of {", ".join(KINDS)}')
    names = list(KINDS) if mechanism == "auto" else [mechanism]
    return Ranking([_way(name, charge, setting, beta) for charge in budgets(guarantee) for name in names])


def _way(name: str, charge: Budget, setting: Setting, beta: float) -> Way:
    reason = misfit(name, charge, setting)
    if reason is not None:
        return Way(name=name, charge=charge, refused=reason)
    try:
        model = model_of(Choice(name, charge), setting)
    except ConfigurationError as refusal:  # a noise scale out of range; another process may have one in range
        return Way(name=name, charge=charge, refused=f'mechanism "{name}": {refusal}')
    at = HYBRID_TARGET if setting.horizon is None else None

    def error(beta: float) -> float:
        return path_bound(model, of_column(beta, setting.columns), at)

    return Way(
        name=name,
        charge=charge,
        score=_worst(model),
        expect=lambda: error(0.5),
        promise=lambda: error(beta),
        memory=KINDS[name].memory(setting),
    )


def choose(guarantee: Guarantee, setting: Setting, mechanism: str = "auto") -> Choice:
    """The mechanism and the budget it pays."""
    best = rank(guarantee, setting, mechanism).best
    assert isinstance(best.charge, PureDP | ZCDP)
    return Choice(best.name, best.charge)


def build(choice: Choice, setting: Setting, source: Source) -> NoiseProcess:
    """The process itself."""
    return KINDS[choice.mechanism].build(choice.charge, setting, source)


def misfit(name: str, charge: Budget, setting: Setting) -> str | None:
    """Why a process cannot be used, or None."""
    kind = KINDS[name]
    if kind.bounded and setting.horizon is None:
        return f'mechanism "{name}" needs a horizon; without one use "epoch-tree" or "epoch-hybrid"'
    if not kind.bounded and setting.horizon is not None:
        return f'mechanism "{name}" is for streams without a horizon; with one use "tree", "honaker" or "sqrt"'
    if not kind.pure and isinstance(charge, PureDP):
        return f'mechanism "{name}" has Gaussian noise, which is never pure; use a zCDP or (epsilon, delta) guarantee'
    if name == "sqrt" and _horizon(setting) > LONGEST_SQRT:
        return f'mechanism "sqrt" takes horizons up to {LONGEST_SQRT}; use "tree"'
    needed = kind.memory(setting)
    if needed > setting.memory_limit:
        return (
            f'mechanism "{name}" needs {needed} bytes, above memory_limit={setting.memory_limit}; '
            f'raise the limit or use "{"tree" if kind.bounded else "epoch-tree"}"'
        )
    return None


def model_of(choice: Choice, setting: Setting) -> NoiseProcess:
    """A process that makes no noise, to ask for spreads: one column, whose part of the memory leads to the same."""
    memory = max(1, setting.memory_limit // setting.columns)
    return build(choice, replace(setting, columns=1, memory_limit=memory), ZeroNoise().source())


def _worst(model: NoiseProcess) -> float:
    if isinstance(model, EpochProcess):
        return model.worst_in_epoch(HYBRID_TARGET.bit_length() - 1).stddev
    return model.worst().stddev
