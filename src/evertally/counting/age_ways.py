"""Which noise for sums that weigh inputs by age: decided from public parameters before the stream starts.

"root" is the workload's own factorization, "input" noise on every input; a decay over a known horizon has a bank of its
own; a window is also the difference of two running totals, by every process that a running total takes. "auto" takes
the least worst standard deviation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from evertally.bounds.joint import of_column
from evertally.counting.bank import LONGEST_BANK
from evertally.counting.bank_decay import DecayBankProcess, nearest
from evertally.counting.bank_decay_schedule import states_for_decay
from evertally.counting.choose import Choice, budgets, charges, misfit
from evertally.counting.choose import build as build_total
from evertally.counting.process import Charge, NoiseProcess, path_bound
from evertally.counting.processes import COMPARED_AT, OURS, PROCESSES, Gram, Setting
from evertally.counting.toeplitz import ToeplitzProcess, lagged
from evertally.counting.toeplitz_factor import input_factor, root_factor
from evertally.counting.workloads import ByAge, Decay, Window
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.ranking import Ranking, Way

_FACTORS = {"root": root_factor, "input": input_factor}


def names_for(workload: ByAge) -> tuple[str, ...]:
    """The mechanisms that a workload takes."""
    if isinstance(workload, Decay):
        return (*_FACTORS, "bank")
    return (*_FACTORS, *(OURS if isinstance(workload, Window) else ()))


def rank(guarantee: Guarantee, setting: Setting, workload: ByAge, mechanism: str = "auto") -> Ranking:
    """Every mechanism (or the named one) with each budget that keeps the promise, least worst standard deviation first.

    Bounds hold with probability 95 %; without a horizon errors are those of tick 2^16.
    """
    names = names_for(workload)
    if mechanism != "auto" and mechanism not in names:
        raise ConfigurationError(f'mechanism {mechanism!r} is not for this workload; use "auto" or {", ".join(names)}')
    wanted = names if mechanism == "auto" else (mechanism,)
    return Ranking([_way(name, charge, setting, workload) for name in wanted for charge in _charges(guarantee, name)])


def _charges(guarantee: Guarantee, name: str) -> list[Charge]:
    return [*budgets(guarantee)] if name in _FACTORS else charges(guarantee, name)


def choose(guarantee: Guarantee, setting: Setting, workload: ByAge, mechanism: str = "auto") -> Choice:
    """The mechanism and what it pays."""
    best = rank(guarantee, setting, workload, mechanism).best
    assert isinstance(best.charge, PureDP | ZCDP | ApproxDP)
    return Choice(best.name, best.charge)


def setting_for(name: str, setting: Setting, workload: ByAge) -> Setting:
    """What a mechanism has to hide. The root of a window changes its sign; of a decay's bank nothing more is proved
    than that changes of several ticks add up (S2)."""
    if name in _FACTORS:
        never_negative = bool((_FACTORS[name](workload, setting.horizon).r >= 0).all())
        return setting.proved(Gram.NONNEGATIVE if never_negative else Gram.UNKNOWN)
    return setting.proved(Gram.UNKNOWN) if isinstance(workload, Decay) else setting.for_process(name)


def build(choice: Choice, setting: Setting, workload: ByAge, source: Source) -> NoiseProcess:
    setting = setting_for(choice.mechanism, setting, workload)
    if choice.mechanism in _FACTORS:
        factor = _FACTORS[choice.mechanism](workload, setting.horizon)
        assert isinstance(choice.charge, PureDP | ZCDP)
        return ToeplitzProcess(
            choice.charge,
            setting.change,
            factor,
            horizon=setting.horizon,
            columns=setting.columns,
            source=source,
            lane=f"{choice.mechanism}-by-age",
        )
    if isinstance(workload, Decay):
        assert isinstance(choice.charge, ZCDP | ApproxDP)
        assert setting.horizon is not None
        return DecayBankProcess(
            choice.charge,
            setting.change,
            workload,
            horizon=setting.horizon,
            columns=setting.columns,
            source=source,
        )
    assert isinstance(workload, Window)
    return lagged(partial(build_total, choice, setting, source), workload.ticks)


def _way(name: str, charge: Charge, setting: Setting, workload: ByAge) -> Way:
    reason = _misfit(name, charge, setting, workload)
    if reason is not None:
        return Way(name=name, charge=charge, refused=reason)
    alone = replace(setting, columns=1, memory_limit=max(1, setting.memory_limit // setting.columns))
    try:
        model = build(Choice(name, charge), alone, workload, ZeroNoise().source())
        memory = _memory(name, setting, workload)
    except ConfigurationError as refusal:
        text = str(refusal)
        return Way(name=name, charge=charge, refused=text if f'"{name}"' in text else f'mechanism "{name}": {text}')
    if memory > setting.memory_limit:
        needs = f'mechanism "{name}" needs {memory} bytes, above memory_limit={setting.memory_limit}; raise the limit'
        return Way(name=name, charge=charge, refused=needs)
    step, at = float(workload.series().step), COMPARED_AT if setting.horizon is None else None

    def error(beta: float) -> float:
        return path_bound(model, of_column(beta, setting.columns), at) * step

    return Way(
        name=name,
        charge=charge,
        score=(model.worst() if name in _FACTORS or at is None else model.spread(at)).stddev * step,
        expect=lambda: error(0.5),
        promise=lambda: error(0.05),
        memory=memory,
    )


def _misfit(name: str, charge: Charge, setting: Setting, workload: ByAge) -> str | None:
    decaying = name == "bank" and isinstance(workload, Decay)
    if (name == "root" or decaying) and isinstance(charge, PureDP):
        return f'mechanism "{name}" has Gaussian noise, which is never pure; use a zCDP or (epsilon, delta) guarantee'
    if decaying and setting.horizon is None:
        return 'mechanism "bank" needs a horizon; without one use "root"'
    if decaying and (setting.horizon or 0) > LONGEST_BANK:
        return f'mechanism "bank" takes horizons up to {LONGEST_BANK}; use "root" or "input"'
    if decaying:
        return None
    return None if name in _FACTORS else misfit(name, charge, setting)


def _memory(name: str, setting: Setting, workload: ByAge) -> int:
    """Noise made ahead, and the inputs that still weigh something."""
    kept = len(workload.series().weights[: setting.horizon])
    if isinstance(workload, Decay) and name == "bank":
        assert setting.horizon is not None
        return 8 * setting.columns * (states_for_decay(setting.horizon, nearest(workload)) + kept)
    if name in _FACTORS:
        return 8 * setting.columns * (_FACTORS[name](workload, setting.horizon).inverse.size + kept)
    return 2 * PROCESSES[name].memory(setting) + 8 * setting.columns * kept
