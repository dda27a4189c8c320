"""Audits from the spec down: planted bugs are broken promises, honest streams hold, and it is said how tight."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evertally.audit.report import Report
from evertally.audit.spec_down import Promise, SpecAudit, spec_steps
from evertally.audit.spec_down.curves import epsilon_of, rho_of
from evertally.audit.suite import run
from evertally.dynamic.charges import Relation
from evertally.encode.caps import Cap
from evertally.encode.users import UserCap
from evertally.privacy import ZCDP, ApproxDP, Neighbours, guarantees, neighbours
from evertally.runtime import load_spec
from evertally.runtime.mechanisms import build
from evertally.selection.reach import Reach
from evertally.statistics import streaming, unknown
from evertally.stream import Stream
from spec_text import spec_text

USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
REPLACED = {"name": "visits", "horizon": 48, "neighbours": "replace"}
ALL = {"name": "all", "kind": "counter", "share": 0.3}
WARD = {"name": "ward", "kind": "histogram", "share": 0.4, "column": "ward", "categories": ["north", "south", "west"]}
MOST = {"name": "most", "kind": "streaming-top", "k": 2, "column": "ward", "categories": ["a", "b", "c"]}
INSIDE = {"action": "ward", "insert": "north", "delete": "south", "id": "item", "protects": "event"}

Audit = Callable[..., dict[str, list[Report]]]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """All rows from the spec down of a spec with these queries."""

    def audited(*queries: Any, **sections: Any) -> dict[str, list[Report]]:
        path = tmp_path / "visits.toml"
        path.write_text(spec_text(*queries, **sections))
        spec = load_spec(path)
        steps = spec_steps(path, spec, build(spec, None))
        return {name: [run(step) for step in own] for name, own in steps.items()}

    return audited


def verdicts(found: dict[str, list[Report]], name: str) -> dict[str, str]:
    return {report.aspect: report.verdict for report in found[name]}


# -- planted bugs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [(ALL, WARD), ({**WARD, "share": 1, "max_per_event": 2},)])
def test_a_lifetime_cap_that_is_applied_per_tick(audit: Audit, monkeypatch: Any, queries: Any) -> None:
    real = UserCap._decide
    monkeypatch.setattr(UserCap, "_decide", lambda self, codes, before, tick: real(self, codes, before * 0, tick))
    found = audit(*queries, stream=USERS)
    assert {verdicts(found, query["name"])["loss"] for query in queries} == {"broken"}


def test_a_cap_that_is_forgotten_at_restore(audit: Audit, monkeypatch: Any) -> None:
    real = Cap.from_bytes.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(Cap, "from_bytes", classmethod(lambda cls, blob: cls._of_options(real(cls, blob)._options())))
    found = audit(ALL, WARD, stream=USERS)
    for name in ("all", "ward"):
        loss = next(report for report in found[name] if report.aspect == "loss")
        assert loss.verdict == "broken" and "restored" in loss.adversary


@pytest.mark.parametrize("stream", [REPLACED, {**USERS, "neighbours": "replace"}])
def test_a_replacement_that_is_charged_as_a_removal(audit: Audit, monkeypatch: Any, stream: Any) -> None:
    real = neighbours._event
    monkeypatch.setattr(neighbours, "_event", lambda relation, *rest: real(Neighbours.ADD_REMOVE, *rest))
    monkeypatch.setattr(neighbours, "replaced_user", lambda removed, linf, signs: removed)
    found = audit(WARD, stream=stream, guarantee={"rho": 0.5})
    assert verdicts(found, "ward")["loss"] == "broken"


@pytest.mark.parametrize("guarantee", [{"rho": 0.5}, {"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}])
def test_shares_that_are_multiplied(audit: Audit, monkeypatch: Any, guarantee: Any) -> None:
    real = Stream.add

    def add(self: Stream, kind: Any, /, *, share: Any, **options: Any) -> Any:
        return real(self, kind, share=Fraction(share) * 13 / 10, **options)

    monkeypatch.setattr(Stream, "add", add)
    found = audit(ALL, WARD, guarantee=guarantee)
    for name in ("all", "ward"):
        assert verdicts(found, name) == {"budget": "broken", "loss": "broken"}
        assert found[name][0].fraction == pytest.approx(1.3)


def test_a_ledger_that_lets_everything_pass(audit: Audit, monkeypatch: Any) -> None:
    real = ZCDP.share
    monkeypatch.setattr(ZCDP, "share", lambda self, part: real(self, Fraction(part) * 13 / 10))
    monkeypatch.setattr("evertally.privacy._promise.Promise.admits", lambda self, cost: True)
    found = audit({**ALL, "share": 0.5}, {**WARD, "share": 0.5}, guarantee={"rho": 0.5})
    assert [report.verdict for report in found["visits (all queries)"]] == ["broken"]


def test_a_promise_that_is_converted_wrongly(audit: Audit, monkeypatch: Any) -> None:
    real = guarantees.rho_of_epsilon_delta
    monkeypatch.setattr(guarantees, "rho_of_epsilon_delta", lambda *promise: real(*promise) * Fraction(21, 20))
    found = audit(ALL, WARD, guarantee={"epsilon": 1, "delta": 1e-6})
    assert verdicts(found, "all") == {"budget": "broken", "loss": "broken"}


@pytest.mark.parametrize("room", [streaming, unknown])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_user_whose_number_of_events_is_left_out_of_blocks(
    audit: Audit, monkeypatch: Any, room: Any, relation: str
) -> None:
    monkeypatch.setattr(room, "Reach", lambda weight, relation, events: Reach(weight, relation, 1))
    query = {**MOST, "mechanism": "meta"}
    if room is unknown:
        query = {"name": "most", "kind": "unknown-top", "k": 2, "column": "ward", "mechanism": "meta"}
    found = audit(query, stream={**USERS, "neighbours": relation, "max_events_per_tick": 9}, guarantee={"epsilon": 2, "delta": 1e-6})
    assert verdicts(found, "most")["change"] == "broken"


@pytest.mark.parametrize("mechanism", ["linear", "subtract", "interval-tree"])
def test_a_user_whose_number_of_events_is_left_out_of_dynamic_data(
    audit: Audit, monkeypatch: Any, mechanism: str
) -> None:
    alone = {"steps": Relation.steps.fget, "change": Relation.change}  # type: ignore[attr-defined]

    def without(relation: Relation) -> Relation:
        return Relation(**{name: getattr(relation, name) for name in Relation.__dataclass_fields__} | {"max_events_per_user": None})

    monkeypatch.setattr(Relation, "steps", property(lambda self: alone["steps"](without(self))))
    monkeypatch.setattr(Relation, "change", lambda self, *rest: alone["change"](without(self), *rest))
    query = {"name": "inside", "kind": "dynamic_count", **INSIDE, "mechanism": mechanism}
    found = audit(query, stream={**USERS, "max_events_per_user": 12}, guarantee={"epsilon": 1})
    assert "broken" in verdicts(found, "inside").values()
