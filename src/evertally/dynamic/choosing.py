"""Which noise the signed linear counter takes: from public numbers, before there are data (dynamic-data 13.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evertally.bounds.joint import of_column
from evertally.counting.choose import Choice, budgets, build, rank
from evertally.counting.path import PathProcess, Runs
from evertally.counting.process import Budget, Charge, NoiseProcess, path_bound
from evertally.counting.processes import COMPARED_AT, PROCESSES, Gram, Setting, unknown
from evertally.counting.tree import Radix
from evertally.dynamic.charges import Encoder, Relation
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource, ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, Change, Guarantee, PureDP
from evertally.ranking import Ranking, Way

PATH = "path"  # hides runs of presence only, so it is in no list that other statistics take noise from


@dataclass(frozen=True)
class Noise:
    """The noise that was chosen: its name, what it pays, what it hides, and how to make it."""

    process: str
    charge: Charge
    change: Change
    make: Callable[[ItemSource], NoiseProcess]
    ways: Ranking


@dataclass(frozen=True)
class Question:
    """What noise is asked for."""

    guarantee: Guarantee
    relation: Relation
    encoder: Encoder
    horizon: int | None
    columns: int
    memory_limit: int
    radix: Radix = "formula"

    def setting(self) -> Setting:
        """The same for the processes of ordinary counters."""
        ordered, split, loose = (
            self.relation.change(self.encoder, gram) for gram in (Gram.ORDERED, Gram.NONNEGATIVE, Gram.UNKNOWN)
        )
        return Setting(ordered, self.horizon, self.columns, self.memory_limit, self.radix, split, loose)

    def runs(self) -> Runs | None:
        """What the path process hides; None where nothing ends a run."""
        longest = self.relation.max_lifetime
        squared = self.encoder.l2_squared
        return None if longest is None else Runs(self.relation.runs(self.encoder) * squared, longest)


def choose_noise(asked: Question, process: str = "auto") -> Noise:
    """The process of least worst standard deviation for what one step of the relation moves."""
    if process not in ("auto", PATH, *PROCESSES):
        raise unknown(process, (PATH, *PROCESSES), "process")
    rows: list[Way] = []
    setting = asked.setting()
    if process != PATH:
        rows += rank(asked.guarantee, setting, process)
    if process == PATH or (process == "auto" and asked.relation.max_lifetime is not None):
        rows += [_path(asked, charge) for charge in budgets(asked.guarantee)]
    ways = Ranking(rows)
    name, charge = ways.best.name, ways.best.charge
    assert isinstance(charge, PureDP | ZCDP | ApproxDP)
    if name == PATH:
        assert isinstance(charge, ZCDP)
        return Noise(PATH, charge, setting.change, lambda source: _made(asked, charge, source), ways)
    choice, hidden = Choice(name, charge), setting.for_process(name).change
    return Noise(name, charge, hidden, lambda source: build(choice, setting, source), ways)


def _path(asked: Question, charge: Budget) -> Way:
    reason = _misfit(asked, charge)
    if reason:
        return Way(name=PATH, charge=charge, refused=f'process "{PATH}" {reason}')
    try:
        model = _made(asked, charge, ZeroNoise().source(), columns=1)
    except ConfigurationError as refusal:  # a noise scale out of range
        return Way(name=PATH, charge=charge, refused=f'process "{PATH}": {refusal}')
    at = COMPARED_AT if asked.horizon is None else None

    def error(beta: float) -> float:
        return path_bound(model, of_column(beta, asked.columns), at)

    memory = PathProcess.memory_for(asked.relation.max_lifetime or 1, asked.columns)
    return Way(
        name=PATH,
        charge=charge,
        score=model.worst().stddev,
        expect=lambda: error(0.5),
        promise=lambda: error(0.05),
        memory=memory,
    )


def _misfit(asked: Question, charge: Budget) -> str:
    longest = asked.relation.max_lifetime
    if longest is None:
        return "hides items that go again in time: declare max_lifetime"
    if isinstance(charge, PureDP):
        return "has Gaussian noise, which is never pure; use a zCDP or (epsilon, delta) guarantee"
    needed = PathProcess.memory_for(longest, asked.columns)
    if needed > asked.memory_limit:
        return f"needs {needed} bytes, above memory_limit={asked.memory_limit}; raise the limit"
    return ""


def _made(asked: Question, charge: Budget, source: ItemSource, columns: int | None = None) -> PathProcess:
    runs = asked.runs()
    assert runs is not None
    assert isinstance(charge, ZCDP)
    width = asked.columns if columns is None else columns
    return PathProcess(charge, runs, horizon=asked.horizon, columns=width, source=source)
