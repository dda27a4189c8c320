"""Which noise the signed linear counter takes: decided from public numbers, before there are data (dynamic-data 13.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evertally.counting.choose import Choice, build, rank
from evertally.counting.process import Budget, NoiseProcess
from evertally.counting.processes import OURS, PROCESSES, Setting
from evertally.counting.tree import Radix
from evertally.dynamic.charges import Encoder, Relation
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.privacy import Change, Guarantee, PureDP
from evertally.ranking import Ranking, Way


@dataclass(frozen=True)
class Noise:
    """The noise that was chosen: its name, what it pays, what it hides, and how to make it."""

    process: str
    charge: Budget
    change: Change
    make: Callable[[ItemSource], NoiseProcess]
    ways: Ranking


def choose_noise(
    guarantee: Guarantee,
    relation: Relation,
    encoder: Encoder,
    *,
    horizon: int | None,
    columns: int,
    memory_limit: int,
    radix: Radix = "formula",
    process: str = "auto",
) -> Noise:
    """The process of least worst standard deviation for what one step of the relation moves."""
    if process != "auto" and process not in PROCESSES:
        raise ConfigurationError(f'unknown process {process!r}; choose "auto" or one of {", ".join(PROCESSES)}')
    # Of somebody else's process nobody here knows the Gram matrix.
    change = relation.change(encoder, ours=process == "auto" or process in OURS)
    setting = Setting(change, horizon, columns, memory_limit, radix)
    ways = rank(guarantee, setting, process)
    best: Way = ways.best
    assert not isinstance(best.charge, type(None))
    charge = best.charge
    assert isinstance(charge, PureDP) or hasattr(charge, "exact_rho")
    choice = Choice(best.name, charge)  # type: ignore[arg-type]
    return Noise(best.name, choice.charge, change, lambda source: build(choice, setting, source), ways)
