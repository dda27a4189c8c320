"""A counter for every column: price-of-continual-release 3.2-3.4, M1-M3."""

from __future__ import annotations

from collections.abc import Iterator

from evertally.bounds.joint import of_column
from evertally.counting.choose import Choice, budgets, build, misfit, model_of
from evertally.counting.linear import JointSums
from evertally.counting.process import NoiseProcess, path_bound
from evertally.counting.processes import PROCESSES, Setting
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import Task
from evertally.histogram.ways import predict
from evertally.histogram.ways.column_way import ColumnWay
from evertally.privacy import ZCDP


def counters(task: Task, name: str) -> Iterator[ColumnWay]:
    setting = Setting(task.change, task.horizon, task.columns, task.memory_limit)
    reasons = []
    for charge in budgets(task.guarantee):
        reason = misfit(name, charge, setting)
        if reason:
            reasons.append(reason)
            continue
        yield _counter(task, Choice(name, charge), setting)
    if reasons and len(reasons) == len(budgets(task.guarantee)):
        raise ConfigurationError("; ".join(dict.fromkeys(reasons)))


def _counter(task: Task, choice: Choice, setting: Setting) -> ColumnWay:
    factor = 2 if task.selects else 1
    if choice.mechanism == "sqrt":
        assert isinstance(choice.charge, ZCDP)
        model: NoiseProcess | predict.SquareRoot = predict.SquareRoot(choice.charge, setting.change, task.ticks)
    else:
        model = model_of(choice, setting)

    def promise() -> float:
        # What the mechanism itself will say: by the law of the whole path, not tick by tick.
        path, at = model_of(choice, setting), task.ticks if task.horizon is None else None
        return factor * path_bound(path, of_column(task.beta, task.columns), at)

    return ColumnWay(
        name=choice.mechanism,
        charge=choice.charge,
        score=predict.counter_error(task, model),
        promise=promise,
        memory=PROCESSES[choice.mechanism].memory(setting),
        build=lambda source: JointSums(lambda: build(choice, setting, source), factor),
        width=task.columns,
    )
