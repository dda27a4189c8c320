"""A counter for every column: price-of-continual-release 3.2-3.4, M1-M3."""

from __future__ import annotations

from collections.abc import Iterator

from evertally.bounds.joint import of_column
from evertally.counting.choose import Choice, build, charges, estimated, misfit, model_of, worst_of
from evertally.counting.linear import JointSums
from evertally.counting.process import path_bound
from evertally.counting.processes import PROCESSES, Setting
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import Task
from evertally.histogram.ways import predict
from evertally.histogram.ways.column_way import ColumnWay


def counters(task: Task, name: str) -> Iterator[ColumnWay]:
    setting = Setting(task.change, task.horizon, task.columns, task.memory_limit, loose=task.loose)
    reasons = []
    for charge in charges(task.guarantee, name):
        reason = misfit(name, charge, setting)
        if reason:
            reasons.append(reason)
            continue
        yield _counter(task, Choice(name, charge), setting)
    if reasons and len(reasons) == len(charges(task.guarantee, name)):
        raise ConfigurationError("; ".join(dict.fromkeys(reasons)))


def _counter(task: Task, choice: Choice, setting: Setting) -> ColumnWay:
    factor = 2 if task.selects else 1
    model = estimated(choice, setting)

    def promise() -> float:
        # What the mechanism itself will say: by the law of the whole path, not tick by tick.
        path, at = model_of(choice, setting), task.ticks if task.horizon is None else None
        return factor * path_bound(path, of_column(task.beta, task.columns), at)

    return ColumnWay(
        name=choice.mechanism,
        charge=choice.charge,
        # Selections among which nothing is mistaken all have the score 0.
        weigh=lambda: (predict.counter_error(task, model), worst_of(model)),
        promise=promise,
        memory=PROCESSES[choice.mechanism].memory(setting),
        build=lambda source: JointSums(lambda: build(choice, setting, source), factor),
        width=task.columns,
    )
