"""Attacks on the state of every mechanism: replay, restore, beyond the horizon, records that nobody can count, and on
all that it shows beside its values.

Each of them has its row, for every kind and every unit: where users are protected, events go through the door with
their users. What cannot be played says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from evertally.applications.dashboard import Dashboard, GroupBy
from evertally.audit import at_once, attacks, questions, whitebox
from evertally.audit.active import is_active
from evertally.audit.amounts import largest_amount, of_amounts
from evertally.audit.applications import is_encoded, world_of
from evertally.audit.draws import draws_attack
from evertally.audit.dynamic import inputs_of as records_sent
from evertally.audit.dynamic import is_dynamic
from evertally.audit.faults.restores import FLOORED
from evertally.audit.game import Factory, Sent
from evertally.audit.owned import inputs_of as owned_inputs
from evertally.audit.owned import is_owned, keyed_rule
from evertally.audit.presence import is_presence
from evertally.audit.report import Report
from evertally.audit.rounding import margins_attack, restored_noise_attack, undecided_attack
from evertally.audit.shown import alike_attack, order_attack, shown_attack
from evertally.audit.sketches import inputs_of as labels_sent
from evertally.audit.sketches import is_sketch
from evertally.audit.steps import Step
from evertally.audit.values import has_allowance, has_epochs
from evertally.audit.whitebox import again, of_values, smaller
from evertally.contract.doors import by_column
from evertally.errors import ConfigurationError
from evertally.statistics import Counter
from evertally.statistics.column_options import is_question
from evertally.statistics.linear_options import Linear
from evertally.statistics.unknown import UnknownItems
from evertally.users.distinct_unknown import UnknownDistinctUsers
from evertally.users.present import PresentItems

Attacks = list[tuple[str, Callable[[], attacks.Finding]]]

_LONGEST = 2000  # ticks that are played to their end
_SHORT = 8  # ticks of a copy: long enough for every attack
_MANY = 90  # events of one tick
_ENOUGH = 3000  # of one label, beyond most thresholds


def attack_steps(model: Any, found: Attacks) -> list[Step]:
    """Attacks as parts of an audit."""

    def report(attack: Callable[[], attacks.Finding]) -> Report:
        finding = attack()
        if not finding.looked:
            return Report.not_here(model, finding.name, finding.evidence)
        return Report.attack(model, finding.name, finding.leaked, finding.evidence)

    return [Step(name, partial(report, attack)) for name, attack in found]


def not_here(model: Any, name: str, why: str) -> Step:
    """A row for what is not audited."""
    return Step(name, lambda: Report.not_here(model, name, why))


def state_steps(factory: Factory, model: Any) -> list[Step]:
    """All of them, for a mechanism of this library."""
    inputs = inputs_of(model)
    played: Attacks = [
        ("replay", lambda: attacks.replay_attack(factory, *inputs[:2])),
        ("restore", lambda: attacks.restore_attack(factory, inputs, copies=3)),
        (
            "bad record",
            lambda: attacks.bad_record_attack(factory, radii=not _is_floored(model), forms=_looks_alike(model)),
        ),
        ("all that is shown", lambda: shown_attack(factory, *_far_apart(model, inputs))),
        ("draws", lambda: draws_attack(factory, inputs[:2])),
        ("margins", lambda: margins_attack(factory, inputs[:2])),
        ("undecided", lambda: undecided_attack(factory, inputs[:2])),
        ("restored noise", lambda: restored_noise_attack(factory, inputs[:2])),
        (at_once.NAME, lambda: at_once.at_once_attack(factory, inputs)),
    ]
    if _plain_items(model):
        played.append(("order", lambda: order_attack(factory, [["one"] * _ENOUGH, ["two"] * _ENOUGH])))
    if isinstance(model, UnknownItems | UnknownDistinctUsers):
        played.append(("labels nearly alike", lambda: alike_attack(factory, _ENOUGH)))
    if is_encoded(model) and not questions.finds_words(model):
        nothing = [Sent([], [] if model.takes_users else None) for _ in inputs]
        sent = [x if isinstance(x, Sent) else Sent(x) for x in inputs]
        played.append(("shown", lambda: attacks.metadata_attack(factory, sent, nothing, "shown")))
    return [*attack_steps(model, played), _horizon_step(factory, model, inputs[1])]


def _plain_items(model: Any) -> bool:
    return isinstance(model, UnknownItems) and not model.takes_users


def _far_apart(model: Any, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Two streams that any number without noise tells apart."""
    if _plain_items(model):  # of fewer nothing is shown
        return [["one"] * _ENOUGH, []], [["one"] * (_ENOUGH - 900), []]
    return inputs[:2], [inputs[1]] * 2


def _looks_alike(model: Any) -> bool:
    """Whether all releases of a tick have one form. The labels of others are their content, and bounds around estimates
    follow what was released."""
    if is_sketch(model):
        return False
    if is_owned(model):
        return not keyed_rule(model)
    counted = is_encoded(model) and not questions.finds_words(model)
    return is_question(model) or is_dynamic(model) or counted


def _is_floored(model: Any) -> bool:
    """Whether numbers below 0 are shown as 0, with the error bar of the number below: it follows what was released."""
    return bool(model._options.get(FLOORED))


def _horizon_step(factory: Factory, model: Any, nothing: Any) -> Step:
    if model.horizon is None:
        return not_here(model, "horizon", "there is no horizon that a call could go beyond")
    if model.horizon > _LONGEST:
        try:
            short = smaller(model, _SHORT)
        except (ConfigurationError, TypeError):
            return not_here(model, "horizon", f"{model.horizon} ticks are not played, and there is no shorter copy")
        return attack_steps(short, [("horizon", lambda: attacks.horizon_attack(again(short), nothing))])[0]
    return attack_steps(model, [("horizon", lambda: attacks.horizon_attack(factory, nothing))])[0]


def linear_state_steps(factory: Factory, model: Linear) -> list[Step]:
    """The same for sums with noise: on a short copy, with many restored ones, and column by column."""
    copy = model if model.horizon is None else smaller(model, _SHORT)
    short = factory if model.horizon is None else again(copy)
    numbers = (3, 1, 2, 0, 1, 2)
    inputs = [_owned(model, tick, n) if model.takes_users else _totals(model, n) for tick, n in enumerate(numbers)]
    # A mean, or a value, may be any number; of counts all releases have one form.
    alike = not of_values(model) and not whitebox.takes_values(model)
    found: Attacks = [
        ("replay", lambda: attacks.replay_attack(short, inputs[1], inputs[3])),
        ("restore", lambda: attacks.restore_attack(short, inputs)),
        ("bad record", lambda: attacks.bad_record_attack(short, radii=not _is_floored(model), forms=alike)),
        ("all that is shown", lambda: shown_attack(short, inputs[:2], [inputs[3]] * 2)),
        ("draws", lambda: draws_attack(factory, inputs[:2])),
        ("margins", lambda: margins_attack(factory, inputs[:2])),
        ("undecided", lambda: undecided_attack(factory, inputs[:2])),
        ("restored noise", lambda: restored_noise_attack(factory, inputs[:2])),
        (at_once.NAME, lambda: at_once.at_once_attack(short, inputs)),
    ]
    steps = [*attack_steps(copy, found), _horizon_step(short, copy, inputs[3])]
    return steps + column_steps(short, copy)


def column_steps(factory: Factory, model: Any) -> list[Step]:
    """What is played where noise is drawn for each column; nothing elsewhere."""
    if not by_column(model):
        return []
    found: Attacks = [
        ("unknown item", lambda: attacks.unknown_item_attack(factory)),
        ("columns", lambda: attacks.column_attack(factory)),
    ]
    return attack_steps(model, found)


def inputs_of(model: Any) -> list[Any]:
    """Some inputs of a tick, the first two of them different; with their users where those are protected."""
    if is_owned(model):
        return [Sent(*pair) for pair in owned_inputs(model)]
    if isinstance(model, PresentItems):
        return [[("insert", None, f"{tick}/{i}") for i in range(n)] for tick, n in enumerate((3, 0, _MANY, 1))]
    if is_active(model) or is_presence(model):
        names = [[f"{tick}/{i}" for i in range(n)] for tick, n in enumerate((3, 0, _MANY, 1))]
        labels = getattr(model, "by", None)
        return [Sent(users) if labels is None else Sent([next(iter(labels))] * len(users), users) for users in names]
    if model.takes_users:
        return [_owned(model, tick, n) for tick, n in enumerate((3, 0, _MANY, 1))]
    if is_dynamic(model) or is_encoded(model) or is_sketch(model):
        return _records(model)
    if isinstance(model, Counter):
        return [3, 0, 900, 1]
    if by_column(model):
        return [np.full(len(model.columns), n) for n in (3, 0, 900, 1)]
    return [[_event(model)] * n for n in (3, 0, 900, 1)]


def _records(model: Any) -> list[Any]:
    if is_dynamic(model):
        return records_sent(model)
    if is_sketch(model):
        return labels_sent(model)
    known = world_of(model, 2).known
    ticks = [[sent.record for sent in stream if sent is not None] for stream in known[:3]]
    return [ticks[0], [], *ticks[1:]]


def _owned(model: Any, tick: int, n: int) -> Sent:
    """Every second event is of one busy user, whom a cap stops sooner or later: a copy that has forgotten it would go
    on. The others come once."""
    if is_dynamic(model) or is_encoded(model) or is_sketch(model):
        events = list(_records(model)[min(tick, 3)] if n else [])
    else:
        events = [_event(model)] * n
    return Sent(events, [f"{tick}/{i}" if i % 2 else "busy" for i in range(len(events))])


def _event(model: Any) -> Any:
    """One that counts."""
    if of_values(model) or has_epochs(model) or has_allowance(model):
        return model.upper
    if whitebox.takes_values(model):
        return whitebox.largest_value(model)
    if of_amounts(model):
        return largest_amount(model)
    if isinstance(model, Dashboard | GroupBy):
        return model.each_type[0]
    if isinstance(model, Counter):
        return 1
    return model.labels[0] if by_column(model) else "one"


def _totals(model: Linear, n: int) -> Any:
    """An input of `step`, another one for each n."""
    if of_values(model):
        return [model.lower + (model.upper - model.lower) * n / 3]
    if whitebox.takes_values(model):
        return [whitebox.largest_value(model)] * n
    if of_amounts(model):
        return [largest_amount(model, n / 3)]
    if isinstance(model, Dashboard | GroupBy):
        return np.full(len(model.each_type), n)
    columns = model._setting.columns
    return n if columns == 1 and not by_column(model) else np.full(columns, n)
