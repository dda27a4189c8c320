"""Which rows about noise laws a mechanism gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evertally.audit.dynamic import is_dynamic
from evertally.audit.laws.counters import counters_of, has_counters, same_counters_report
from evertally.audit.laws.full_horizon import full_horizon_report
from evertally.audit.laws.one_shot import one_shot_of, one_shot_report
from evertally.audit.laws.small_copies import is_small_copy, label_report
from evertally.audit.laws.sparse_vectors import is_switching, switching_report
from evertally.audit.laws.static_laws import has_static, static_report
from evertally.audit.laws.thresholds import has_threshold, threshold_report
from evertally.audit.report import Report
from evertally.privacy import PureDP
from evertally.statistics.linear_options import Linear

_APART = "users whose ticks are apart are audited on a copy with all their ticks: one tick shows a part of them"

Row = tuple[str, Callable[[], Report]]


def horizon_rows(model: Linear, longest: int) -> list[Row]:
    """Of linear mechanisms, as they are configured. Up to `longest` ticks Gaussian noise has a closed form as it is."""
    if model.horizon is not None and model.horizon <= longest and not isinstance(model.charge, PureDP):
        return []
    if model._setting.rule is not None:
        return [("full horizon", lambda: Report.attack(model, "full horizon", False, _APART, "not here"))]
    return [("full horizon", lambda: full_horizon_report(model))]


def law_rows(model: Any) -> list[Row]:
    """Of mechanisms that are not linear."""
    if is_dynamic(model):
        return [("one-shot law", lambda: static_report(model))] if has_static(model) else []
    rows: list[Row] = []
    if one_shot_of(model) is not None:
        rows.append(("one-shot law", lambda: one_shot_report(model)))
    if has_threshold(model):
        rows.append(("threshold", lambda: threshold_report(model)))
    if is_small_copy(model):
        rows.append(("exact law", lambda: label_report(model)))
    if has_counters(model):
        rows += [("same counters", lambda: same_counters_report(model))]
        rows += [("full horizon", lambda: full_horizon_report(counters_of(model)))]
    if is_switching(model):
        rows.append(("exact law", lambda: switching_report(model)))
    return rows
