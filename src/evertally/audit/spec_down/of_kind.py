"""A mechanism by kind and options, as the only query of a stream that somebody might have written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evertally.audit.report import Report
from evertally.audit.spec_down.rows import content_steps
from evertally.audit.steps import Step
from evertally.audit.suite import Effort
from evertally.errors import ConfigurationError
from evertally.kinds import Kind
from evertally.noise import simulation
from evertally.runtime.mechanisms import build
from evertally.runtime.table.given import spec_from

_BUSY = 1000  # events of a tick at most: some kinds want to know, for their error; privacy does not rest on it
_STREAM = ("neighbours", "max_events_per_user")


def kind_steps(
    kind: Kind, promise: tuple[float | None, float | None, float | None], horizon: int | None, table: Mapping[str, Any],
    made: Any, effort: Effort = "short", seed: int = 0,
) -> list[Step]:  # fmt: skip
    """The rows of a spec with this one query; `promise` is epsilon, delta and rho, `made` makes the mechanism."""
    guarantee = {
        name: said for name, said in zip(("epsilon", "delta", "rho"), promise, strict=True) if said is not None
    }
    if "delta" in guarantee:
        guarantee["force"] = True  # a claim that is put to the test promises nobody anything
    stream = {option: table[option] for option in _STREAM if option in table} | {"name": kind.name}
    if "max_events_per_user" in stream:
        stream |= {"unit": "user", "user_column": "user"}
    if horizon is not None:
        stream["horizon"] = horizon
    if kind.rests_on_rate(table.get("mechanism")):
        stream["max_events_per_tick"] = _BUSY
    column = {"column": "column"} if kind.options.model_fields["column"].is_required() else {}
    own = {option: value for option, value in table.items() if option not in _STREAM}
    content: dict[str, Any] = {"stream": stream, "guarantee": guarantee, "clock": {"start": 0, "tick": 1}}
    content["query"] = [{"name": kind.name, "kind": kind.name, **column, **own}]
    try:
        spec = spec_from(content)
        return content_steps(content, spec, build(spec, None), effort, seed)[kind.name]
    except ConfigurationError as refusal:
        why = f"no stream can be written with it: {refusal}"
        return [Step("from the spec down", lambda: _not_here(made, why))]


def _not_here(made: Any, why: str) -> Report:
    return replace(Report.attack(made(simulation(0)), "from the spec down", False, why, "not here"), aspect="loss")
