"""Which process, with which budget: decided from public parameters before the stream starts.

`"auto"` takes the process with the smallest worst standard deviation among those that fit the guarantee, the horizon
and the memory limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from evertally.bounds.joint import of_column
from evertally.counting.bank import LONGEST_BANK
from evertally.counting.participation import toeplitz_reach
from evertally.counting.process import Budget, Charge, NoiseProcess, WithoutEnd, path_bound
from evertally.counting.processes import COMPARED_AT, LONGEST_SQRT, OURS, PROCESSES, SEPARATED, Setting, unknown
from evertally.counting.sqrt_estimate import SquareRoot
from evertally.counting.sqrt_factor import coefficients
from evertally.counting.survey import survey
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.ranking import Ranking, Way, chosen


@dataclass(frozen=True)
class Choice:
    """A process by name and what it pays."""

    mechanism: str
    charge: Charge


def budgets(guarantee: Guarantee) -> list[Budget]:
    """The budgets that keep the promise: an (eps, delta) promise can be kept by Gaussian or by Laplace noise."""
    if isinstance(guarantee, PureDP | ZCDP):
        return [guarantee]
    if isinstance(guarantee, ApproxDP):
        return [guarantee.to_zcdp(), PureDP(guarantee.exact_epsilon, adversary=guarantee.adversary)]
    return [ZCDP(guarantee.exact_rho, adversary=guarantee.adversary)]


def charges(guarantee: Guarantee, name: str) -> list[Charge]:
    """What a process pays to keep the promise alone: real Gaussian noise pays an (eps, delta) promise as it stands, by
    the exact curve. Where others share the promise, shares of it are zCDP, and so is what is paid."""
    both: list[Charge] = [*budgets(guarantee)]
    if isinstance(guarantee, ApproxDP) and PROCESSES[name].gaussian:
        both[0] = guarantee
    return both


def rank(guarantee: Guarantee, setting: Setting, mechanism: str = "auto", beta: float = 0.05) -> Ranking:
    """Every process (or the named one) with each budget that keeps the promise, least worst standard deviation first.

    Without a horizon errors are those of tick 2^16.
    """
    if mechanism != "auto" and mechanism not in PROCESSES:
        raise unknown(mechanism, PROCESSES)
    ours = OURS if setting.rule is None else (*SEPARATED, *OURS)
    names = list(ours) if mechanism == "auto" else [mechanism]
    return Ranking([_way(name, charge, setting, beta) for name in names for charge in charges(guarantee, name)])


def _way(name: str, charge: Charge, setting: Setting, beta: float) -> Way:
    reason = misfit(name, charge, setting)
    if reason is not None:
        return Way(name=name, charge=charge, refused=reason, nearly=_unfit(name, charge, setting) is None)
    choice, at = Choice(name, charge), COMPARED_AT if setting.horizon is None else None
    try:
        model = estimated(choice, setting)
    except ConfigurationError as refusal:  # a noise scale out of range; another process may have one in range
        return Way(name=name, charge=charge, refused=f'mechanism "{name}": {refusal}', nearly=True)

    def error(beta: float) -> float:
        return path_bound(model_of(choice, setting), of_column(beta, setting.columns), at)

    return Way(
        name=name,
        charge=charge,
        score=worst_of(model),
        expect=lambda: error(0.5),
        promise=lambda: error(beta),
        memory=PROCESSES[name].memory(setting),
        survey=lambda: survey(model_of(Choice(name, charge), setting), setting.horizon or at or 1),
    )


def choose(guarantee: Guarantee, setting: Setting, mechanism: str = "auto") -> Choice:
    """The mechanism and what it pays."""
    return chosen((guarantee, setting, mechanism), lambda: _chosen(guarantee, setting, mechanism))


def _chosen(guarantee: Guarantee, setting: Setting, mechanism: str) -> Choice:
    best = rank(guarantee, setting, mechanism).best
    assert isinstance(best.charge, PureDP | ZCDP | ApproxDP)
    return Choice(best.name, best.charge)


def build(choice: Choice, setting: Setting, source: Source, columns: int | None = None) -> NoiseProcess:
    """The process; with `columns` that of a slice, so many columns wide. What is drawn follows from the setting, which
    is that of the whole: a slice chooses nothing."""
    name = choice.mechanism
    process = PROCESSES[name]
    if columns is not None:
        if process.proof:
            raise ConfigurationError(
                f'mechanism "{name}" is not ours, and nobody said how it is cut into slices; use "tree"'
            )
        setting = replace(setting, slice_width=columns)
    return process.build(choice.charge, setting.for_process(name), source)


def _unfit(name: str, charge: Charge, setting: Setting) -> str | None:
    """Why a process is not for this horizon or this budget, or None."""
    process = PROCESSES[name]
    if process.bounded and setting.horizon is None:
        other = "epoch-blocks" if isinstance(charge, PureDP) else "bank-open"
        return f'mechanism "{name}" needs a horizon; without one use "{other}" or "epoch-tree"'
    if not process.bounded and setting.horizon is not None:
        told = "pure-blocks" if isinstance(charge, PureDP) else "bank"
        return f'mechanism "{name}" is for streams without a horizon; with one use "{told}" or "tree"'
    if not process.pure and isinstance(charge, PureDP):
        return f'mechanism "{name}" has Gaussian noise, which is never pure; use a zCDP or (epsilon, delta) guarantee'
    if name == "pure-blocks" and isinstance(charge, ZCDP):
        return 'mechanism "pure-blocks" has Laplace noise, for pure budgets; with this one use "bank"'
    if name == "epoch-blocks" and isinstance(charge, ZCDP):
        return 'mechanism "epoch-blocks" has Laplace noise, for pure budgets; with this one use "bank-open"'
    if name in SEPARATED and setting.rule is None:
        return f'mechanism "{name}" is for users with max_ticks_per_user or min_separation; use "bank"'
    if name in ("sqrt", "banded") and (setting.horizon or 0) > LONGEST_SQRT:
        return f'mechanism "{name}" takes horizons up to {LONGEST_SQRT}; use "bank" or "honaker"'
    if name == "bank" and (setting.horizon or 0) > LONGEST_BANK:
        return f'mechanism "bank" takes horizons up to {LONGEST_BANK}; use "honaker"'
    return None


def misfit(name: str, charge: Charge, setting: Setting) -> str | None:
    """Why a process cannot be used, or None."""
    unfit = _unfit(name, charge, setting)
    if unfit is not None:
        return unfit
    process = PROCESSES[name]
    needed = process.memory(setting)
    if needed > setting.memory_limit:
        least = "tree" if process.bounded else "epoch-tree"
        instead = "" if name == least else f' or use "{least}"'
        return (
            f'mechanism "{name}" needs {needed} bytes, above memory_limit={setting.memory_limit}; '
            f"raise the limit{instead}"
        )
    return None


def model_of(choice: Choice, setting: Setting) -> NoiseProcess:
    """A process that makes no noise, to ask for spreads: one column, whose part of the memory leads to the same."""
    memory = max(1, setting.memory_limit // setting.columns)
    return build(choice, replace(setting, columns=1, memory_limit=memory), ZeroNoise().source())


def estimated(choice: Choice, setting: Setting) -> NoiseProcess | SquareRoot:
    """What spreads are asked for to compare: the square root by formula, since its factor takes seconds to prepare."""
    if choice.mechanism != "sqrt":
        return model_of(choice, setting)
    assert isinstance(choice.charge, ZCDP)
    T = setting.horizon or 1
    squared: int | Fraction = setting.for_process("sqrt").change.l2_squared
    if setting.rule is not None:
        r = coefficients(T)
        squared = Fraction(toeplitz_reach(r, T, setting.rule), sum(int(x) ** 2 for x in r))
    return SquareRoot(choice.charge, squared, T)


def worst_of(model: NoiseProcess | SquareRoot) -> float:
    """The largest standard deviation of any tick; without a horizon of those around tick 2^16."""
    if isinstance(model, WithoutEnd):
        return model.worst_in(COMPARED_AT.bit_length() - 1).stddev
    return model.worst().stddev
