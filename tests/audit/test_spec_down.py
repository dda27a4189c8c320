"""Audits from the spec down: planted bugs are broken promises, honest streams hold, and it is said how tight."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evertally.audit.dynamic_inputs import one_round
from evertally.audit.report import Report
from evertally.audit.spec_down import Charge, Promise, SpecAudit, other_words, reading, spec_steps
from evertally.audit.spec_down.cells import columns_of
from evertally.audit.spec_down.curves import epsilon_of, mu_of, rho_of
from evertally.audit.spec_down.neighbours import Relation as Neighbouring
from evertally.audit.spec_down.reading import NotAffine
from evertally.audit.spec_down.small import ragged, small_copy
from evertally.audit.suite import run
from evertally.dynamic.charges import Relation
from evertally.dynamic.families import Points
from evertally.dynamic.static.weights_update import MultiplicativeWeights
from evertally.encode.caps import Cap
from evertally.encode.users import UserCap
from evertally.privacy import ZCDP, Neighbours, PureDP, guarantees, neighbours
from evertally.privacy._promise import Cost
from evertally.runtime import load_spec
from evertally.runtime.mechanisms import build
from evertally.runtime.table.given import spec_from
from evertally.selection.reach import Reach
from evertally.statistics import Counter, streaming, unknown
from evertally.stream import Stream
from evertally.users.periods import PeriodUsers
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
    return {report.aspect: report.verdict for report in found[name] if report.aspect != "state"}


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
        assert loss.verdict == "broken"
        assert "restored" in loss.adversary


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
    assert [report.verdict for report in found["visits (all queries)"]] == [
        "broken",
        "broken",
        "holds (tight)",
        "holds (tight)",  # its files
    ]


def test_a_ledger_that_forgets_is_asked_for_more(audit: Audit, monkeypatch: Any) -> None:
    """Charges of a spec add up to what is promised; only who asks for more sees that a sum is wrong."""
    monkeypatch.setattr(
        "evertally.privacy._promise.Cost.__add__",
        lambda self, other: Cost(self.epsilon and other.epsilon, other.rho, other.delta),
    )
    found = audit({**ALL, "share": 0.5}, {**WARD, "share": 0.5}, guarantee={"rho": 0.5})
    (row,) = [report for report in found["visits (all queries)"] if report.adversary == "overdrawn"]
    assert row.verdict == "broken"


def test_conversions_are_held_against_the_theorems(monkeypatch: Any) -> None:
    for name in ("delta_of_rho", "epsilon_of_rho", "rho_of_epsilon_delta", "gaussian_mu"):
        real = getattr(other_words, name)
        factor = Fraction(99, 100) if name in ("delta_of_rho", "epsilon_of_rho") else Fraction(101, 100)
        monkeypatch.setattr(other_words, name, lambda *given, real=real, factor=factor: real(*given) * factor)
        assert other_words.other_words_report(ZCDP(0.5), 9).verdict == "broken", name
        monkeypatch.setattr(other_words, name, real)
    assert other_words.other_words_report(ZCDP(0.5), 9).verdict == "holds (tight)"


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
    found = audit(
        query,
        stream={**USERS, "neighbours": relation, "max_events_per_tick": 9},
        guarantee={"epsilon": 2, "delta": 1e-6},
    )
    assert verdicts(found, "most")["change"] == "broken"


@pytest.mark.parametrize("mechanism", ["linear", "subtract", "interval-tree"])
def test_a_user_whose_number_of_events_is_left_out_of_dynamic_data(
    audit: Audit, monkeypatch: Any, mechanism: str
) -> None:
    alone = {"steps": Relation.steps.fget, "change": Relation.change}  # type: ignore[attr-defined]

    def without(relation: Relation) -> Relation:
        return Relation(
            **{name: getattr(relation, name) for name in Relation.__dataclass_fields__} | {"max_events_per_user": None}
        )

    monkeypatch.setattr(Relation, "steps", property(lambda self: alone["steps"](without(self))))
    monkeypatch.setattr(Relation, "change", lambda self, *rest: alone["change"](without(self), *rest))
    query = {"name": "inside", "kind": "dynamic_count", **INSIDE, "mechanism": mechanism}
    found = audit(query, stream={**USERS, "max_events_per_user": 12}, guarantee={"epsilon": 1})
    assert "broken" in verdicts(found, "inside").values()


# -- honest streams ----------------------------------------------------------------------------------------------------

VALUES = {"column": "minutes", "lower": 0, "upper": 50}
FAMILIES: dict[str, dict[str, Any]] = {
    "counter": {},
    "histogram": {"column": "ward", "categories": ["north", "south", "west", "east"], "max_per_event": 2},
    "vector_counter": {"column": "minutes", "columns": 50},
    "mean": VALUES,
    "variance": VALUES,
    "sum": {"column": "minutes", "upper": 50, "resolution": 0.5},
    "value_histogram": {"column": "minutes", "edges": [0, 7, 20.5, 60]},
    "value-quantile": {"column": "minutes", "edges": {"from": 1, "to": 100, "ratio": 1.5}, "q": [0.5]},
    "dashboard": {"column": "ward", "types": ["north", "south"], "metrics": {"both": "all", "cold": ["north"]}},
    "group_by": {"columns": {"ward": ["north", "south"], "patient": ["p1", "p2"]}, "tables": [["ward"], []]},
    "top": {"k": 2, "column": "ward", "categories": ["north", "south", "attic"]},
    "sketch": {"column": "patient", "watch": ["p1"], "width": 64},
    "cut_graph": {"columns": ["patient", "ward"], "vertices": ["north", "south", "p1"], "copies": "counted"},
}
OF_USERS: dict[str, dict[str, Any]] = {
    "distinct_users": {"column": "ward", "categories": ["north", "south"]},
    "joined_events": {"column": "ward", "after": ["north"], "then": ["south"]},
    "active_users": {"windows": [1, 3]},
    "period_users": {"period": 4},
    "retention": {"period": 4, "ages": 2},
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_honest_statistics_of_events_lose_all_that_they_may_and_no_more(audit: Audit, kind: str) -> None:
    stream = {"name": "visits", "horizon": 48} | ({"max_events_per_tick": 9} if kind == "top" else {})
    found = audit({"name": "one", "kind": kind, **FAMILIES[kind]}, stream=stream, guarantee={"rho": 0.5})
    assert verdicts(found, "one") == {"budget": "holds (tight)", "loss": "holds (tight)"}


@pytest.mark.parametrize("kind", OF_USERS)
def test_honest_statistics_of_users(audit: Audit, kind: str) -> None:
    stream = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient"}
    found = audit({"name": "one", "kind": kind, **OF_USERS[kind]}, stream=stream, guarantee={"rho": 0.5})
    assert verdicts(found, "one") == {"budget": "holds (tight)", "loss": "holds (tight)"}


@pytest.mark.parametrize("guarantee", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.5}])
@pytest.mark.parametrize("stream", [USERS, {**USERS, "neighbours": "replace"}, REPLACED])
def test_honest_histograms_under_every_promise_and_relation(audit: Audit, guarantee: Any, stream: Any) -> None:
    found = audit({"name": "ward", "kind": "histogram", **FAMILIES["histogram"]}, stream=stream, guarantee=guarantee)
    held = verdicts(found, "ward")
    # A replaced user is charged as if the noise of both were in one tick; of pure noise some is left.
    assert held["budget"] == "holds (tight)"
    assert held["loss"] == "holds (tight)" or (held["loss"] == "no power here" and found["ward"][1].fraction > 0.6)


def test_events_that_are_ordered_by_their_content(audit: Audit) -> None:
    found = audit(WARD, stream={**USERS, "order": "content"})
    assert verdicts(found, "ward") == {"budget": "holds (tight)", "loss": "holds (tight)"}


def test_users_who_may_come_in_few_ticks(audit: Audit) -> None:
    stream = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient"}
    apart = {"max_ticks_per_user": 5, "min_separation": 2, "max_events_per_user_tick": 2}
    found = audit({"name": "all", "kind": "counter", **apart}, stream=stream)
    assert verdicts(found, "all") == {"budget": "holds (tight)", "loss": "holds (tight)"}


def test_streams_without_an_end_and_independent_columns(audit: Audit) -> None:
    ward = {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["north", "south"], "max_per_event": 2}
    endless = audit(ward, stream={"name": "visits"})
    columns = audit(
        ward, stream={**REPLACED, "neighbours": "independent"}, guarantee={"rho": 0.5, "adversary": "oblivious"}
    )
    for found in (endless, columns):
        assert verdicts(found, "ward")["loss"] == "holds (tight)"


BLOCKS = {"k": 2, "column": "ward", "mechanism": "meta"}
INPUTS: dict[str, dict[str, Any]] = {
    "streaming-top": {**BLOCKS, "categories": ["a", "b", "c"]},
    "unknown-top": BLOCKS,
    "unknown-histogram": {"column": "ward", "max_per_event": 2},
    "max": {"column": "ward", "categories": ["north", "south"], "mechanism": "rebased", "largest": 60},
    "counter": {"mechanism": "sparse"},
}


@pytest.mark.parametrize("kind", INPUTS)
def test_what_neighbours_move_where_releases_are_no_numbers_plus_noise(audit: Audit, kind: str) -> None:
    stream = {**USERS, "max_events_per_tick": 9}
    query = {"name": "one", "kind": kind, **INPUTS[kind]}
    found = audit(query, stream=stream, guarantee={"epsilon": 2, "delta": 1e-6})
    assert verdicts(found, "one")["change"] == "holds (tight)"


def test_a_stream_says_what_it_leaves_unused(audit: Audit) -> None:
    found = audit(ALL, WARD)
    budget = [report for report in found["visits (all queries)"] if report.aspect == "budget"]
    assert [report.stopped for report in budget] == ["the stream leaves 30 % of its promise unused"]


# -- arithmetic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 90.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_curves_agree_with_the_certified_ones(epsilon: float, delta: float) -> None:
    """Two programs that know nothing of each other: the certified one may be a little below."""
    certified = float(guarantees.rho_of_epsilon_delta(Fraction(epsilon), Fraction(delta)))
    assert certified <= rho_of(epsilon, delta) * (1 + 1e-10)
    assert rho_of(epsilon, delta) == pytest.approx(certified, rel=1e-6)
    assert epsilon_of(rho_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-9)
    assert mu_of(epsilon, delta) >= (2 * rho_of(epsilon, delta)) ** 0.5  # the exact curve of normal laws allows more


def test_gaussian_noise_keeps_no_pure_promise() -> None:
    promise = Promise.written({"guarantee": {"epsilon": 1}, "query": [{"name": "all", "kind": "counter"}]})
    assert promise.claim("all", Charge(Fraction(1), Fraction(1, 2)), gaussian=True) == ("mu", 0.0)
    assert promise.used("all", Charge(None, Fraction(1, 100))).part == float("inf")


def test_half_of_delta_is_for_labels_that_one_unit_brought() -> None:
    said = {
        "guarantee": {"epsilon": 1, "delta": 1e-6},
        "query": [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}],
    }
    promise = Promise.written(said)
    rho = Fraction(rho_of(1.0, 5e-7)) / 2
    both = [Charge(None, rho, Fraction(1e-6) / 4), Charge(None, rho)]
    assert promise.used("a", both[0], bad=True).part == pytest.approx(1)
    assert promise.total(both).part < 1  # a quarter of delta is nobody's
    assert promise.used("a", Charge(None, rho, Fraction(1e-6) / 3), bad=True).part == float("inf")


def test_sizes_of_tables_that_nobody_wrote_are_small_in_a_small_copy() -> None:
    sketch = {"name": "seen", "kind": "count_sketch", "column": "ward", "watch": ["north"]}
    content = {"stream": {"name": "s", "horizon": 48}, "guarantee": {"rho": 0.5}, "query": [sketch]}
    content["clock"] = {"start": 0, "tick": 1}
    spec = spec_from(content)
    made = build(spec, None)["seen"]
    assert made.width > small_copy(content, spec, "seen", made).made.width == 8


def test_a_matrix_of_noise_that_no_memory_holds_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(key: Any) -> Any:
        return Counter(guarantee=PureDP(1.0), horizon=4, mechanism="tree", key=key).run([0] * 4).astype(float)

    assert reading.Noise.read(played).W.size > 1
    monkeypatch.setattr(reading, "_LARGEST", 1)
    with pytest.raises(NotAffine, match="too large to be read"):
        reading.Noise.read(played)


# -- what outsiders found ----------------------------------------------------------------------------------------------


def neighbours_of(query: dict[str, Any], horizon: int, **stream: Any) -> Report:
    """The row of a query that is alone."""
    content = {"stream": {"name": "s", "horizon": horizon, **stream}, "guarantee": {"rho": 0.5}, "query": [query]}
    content["clock"] = {"start": 0, "tick": 1}
    spec = spec_from(content)
    return SpecAudit(content, spec, build(spec, None)).neighbours(query["name"])


def test_noise_of_words_of_one_length_alone_is_read_and_letters_in_a_text_are_letters() -> None:
    words = {"name": "w", "kind": "substring_counts", "column": "page", "alphabet": "ab", "sequence": "stream"}
    found = neighbours_of({**words, "longest": 3, "only_longest": True, "gap": 1}, 7)
    assert found.passed
    assert found.method == "neighbours"
    assert found.fraction > 0.5


@pytest.mark.parametrize("horizon", [7, 10, 46])
def test_a_last_period_that_the_horizon_cuts_off_is_paid_for(horizon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    today = {"name": "today", "kind": "period_users", "period": 4, "so_far": True}
    users = {"unit": "user", "user_column": "who"}
    assert neighbours_of(today, horizon, **users).verdict == "holds (tight)"
    monkeypatch.setattr(PeriodUsers, "_periods", lambda self, length: max(1, self.horizon // length))
    found = neighbours_of(today, horizon, **users)
    assert found.verdict == "broken"
    assert "horizon=6" in found.mechanism or f"horizon={horizon}" in found.mechanism


def test_lengths_that_leave_a_rest() -> None:
    stream = {"name": "s", "horizon": 99, "unit": "user", "user_column": "who"}
    query = {"name": "w", "kind": "active_users", "windows": [3, 7]}
    content = {"stream": stream, "guarantee": {"rho": 0.5}, "clock": {"start": 0, "tick": 1}, "query": [query]}
    found = ragged(content, spec_from(content), "w", 16)
    assert found is not None
    assert found > 7
    assert 0 not in (found % 3, found % 7)
    query["windows"] = [1]
    assert ragged(content, spec_from(content), "w", 16) is None
    query["windows"] = [7]
    assert ragged(content, spec_from(content), "w", 7) is None, "too long to be played"


def test_one_round_of_multiplicative_weights_leaves_what_they_are_asked_as_it_is() -> None:
    static = MultiplicativeWeights(Points(["a", "b", "c"]))
    plain = static.rounds(ZCDP(4.0), 1000, True)
    with one_round():
        short = static.rounds(ZCDP(4.0), 1000, True)
    assert (short.count, plain.count > 1) == (1, True)
    assert static.rounds(ZCDP(4.0), 1000, True) == plain


def test_a_last_block_that_the_horizon_cuts_off_is_protected_too() -> None:
    period = {"unit": "user-period", "period": 4, "user_column": "who"}
    query = {"name": "all", "kind": "counter", "min_separation": 2, "calendar": True}
    content = {"stream": {"name": "s", "horizon": 10, "neighbours": "replace", **period}, "guarantee": {"rho": 0.5}}
    content |= {"clock": {"start": 0, "tick": 1}, "query": [query]}
    spec = spec_from(content)
    small = small_copy(content, spec, "all", build(spec, None)["all"], exactly=6)
    relation, random = Neighbouring(small, columns_of(small, query), content["stream"], query), np.random.default_rng(0)
    blocks = set()
    for pair in relation.pairs(random):
        for _ in range(9):
            own = {(entry.tick - 1) // 4 for entry in pair.entries if entry.side != "both"}
            assert len(own) == 1, "one block of one user"
            blocks |= own
            pair = relation.changed(pair, random)
    assert blocks == {0, 1}
