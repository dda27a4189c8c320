"""The mutation engine: its mistakes are mistakes, their names last, and mutants are really run."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from mutation import rows
from mutation.audit_forks import importers
from mutation.audits import verdict_of
from mutation.choose import ROOMS, ROOT, SAMPLE, Mutant, all_mutants, mutants_of, sample
from mutation.covering import Map, OneTest
from mutation.forked import plant
from mutation.judges import picked_for
from mutation.results import JUDGES, Results, Verdict
from mutation.rows import Asked, judged
from mutation.specs import SPECS, written
from mutation.table import VERDICTS, equivalents, markdown, not_private, what_audits_said
from mutation.world import World, is_compiled

SOURCE = '''"""Adds up."""

def charge(change, relation, levels):
    """Costs."""
    total = 2 * change.l1 if relation is Neighbours.REPLACE else change.l1
    for level in range(levels + 1):
        if level >= 3 and total:
            raise ValueError(f"{level + 1} is too much")
        total = max(total, sqrt(level))
    self.total += total
    return self.source.draws("tree", law, min(total, 7)), self.source.draws("leaves", law, 1)

def __repr__(self):
    return str(1 + 2)
'''


@pytest.fixture(scope="module")
def everything() -> list[Mutant]:
    return all_mutants()


def found(source: str = SOURCE, room: str = "privacy") -> list[Mutant]:
    return mutants_of(source, "evertally/privacy/made.py", room)


@pytest.mark.parametrize(
    ("mistake", "before", "after"),
    [
        ("factor dropped", "2 * change.l1", "(change.l1)"),
        ("factor dropped", "2 * change.l1", "(2)"),
        ("constant doubled", "2", "(2 * 2)"),
        ("constant plus one", "2", "(2 + 1)"),
        ("constant halved", "7", "3"),
        ("swapped relation", "REPLACE", "ADD_REMOVE"),
        ("swapped norm", "l1", "l2_squared"),
        ("swapped name", "max", "min"),
        ("off by one", "levels + 1", "(levels)"),
        ("off by one", "levels + 1", "levels + 1 + 1"),
        ("check skipped", "level >= 3 and total", "False"),
        ("comparison", " >= ", " > "),
        ("and or", " and ", " or "),
        ("root or square dropped", "sqrt(level)", "(level)"),
        ("cap skipped", "min(total, 7)", "(total)"),
        ("lane reused", '"tree"', "'leaves'"),
        ("statement skipped", "self.total += total", "pass"),
    ],
)
def test_a_mistake_is_made(mistake: str, before: str, after: str) -> None:
    assert (mistake, before, after) in {(m.operator, m.before, m.after) for m in found()}


def test_messages_documents_and_representations_are_left_alone() -> None:
    assert {m.function for m in found()} == {"charge"}
    assert not [m for m in found() if "too much" in m.before and m.operator != "check skipped"]
    assert not [m for m in found() if m.before in ("level + 1", '"""Costs."""')]


def test_statements_change_places_where_order_matters() -> None:
    source = "def commit(self):\n    self.write()\n    self.tick = 3\n"
    mistakes = {m.after for m in found(source, "runtime/state") if m.operator == "order of statements"}
    assert mistakes == {"self.tick = 3\n    self.write()"}
    assert not [m for m in found(source, "privacy") if m.operator == "order of statements"]


def test_a_place_is_found_behind_letters_of_several_bytes() -> None:
    assert {m.before for m in found("def f(x):\n    return g('ü€', x) * 5\n") if m.operator == "constant doubled"} == {
        "5"
    }


def test_names_stay_when_other_functions_change() -> None:
    before = {m.id: m.before for m in found()}
    after = {m.id: m.before for m in found("def first(x):\n    return x * 9 + 1\n\n" + SOURCE)}
    assert before.items() < after.items()
    assert len(before) == len(found()), "no name twice"


def test_the_sample_is_large_balanced_and_compiles(everything: list[Mutant]) -> None:
    chosen = sample(everything)
    assert len({m.id for m in chosen}) == len(chosen) == SAMPLE >= 300
    assert {m.room for m in chosen} == set(ROOMS)
    assert {m.operator for m in chosen} == {m.operator for m in everything}
    assert [m.id for m in sample(everything, 50)] == [m.id for m in chosen[:50]]
    for mutant in chosen:
        compile(mutant.source, mutant.file, "exec")
        assert mutant.source != (ROOT / "src" / mutant.file).read_text(encoding="utf-8")


def test_what_is_argued_away_exists(everything: list[Mutant], tmp_path: Path) -> None:
    equivalents(everything)
    wrong = tmp_path / "equivalent.toml"
    wrong.write_text('[equivalent]\n0000000000 = "It is as good as the product, for a reason."\n')
    with pytest.raises(ValueError, match="0000000000"):
        equivalents(everything, wrong)
    wrong.write_text(f'[equivalent]\n{everything[0].id} = "trust me"\n')
    with pytest.raises(ValueError, match="no argument"):
        equivalents(everything, wrong)


def test_covering_tests_come_from_the_room_first(everything: list[Mutant]) -> None:
    mutant = next(m for m in everything if m.room == "privacy" and m.function == "change")
    near, far, other = (
        OneTest("tests/privacy/test_a.py::t", 3.0),
        OneTest("tests/users/test_b.py::t", 0.1),
        OneTest("x::y", 0.1),
    )
    covered = Map({(mutant.file, mutant.line): [far, near], ("evertally/stream.py", 60): [other]}, {})
    assert picked_for(mutant, covered, "tests", 10) == [near, far]
    assert picked_for(mutant, covered, "conformance", 10) == []


def test_a_planted_function_is_the_mutant() -> None:
    from evertally.privacy import Contribution, Neighbours, neighbours

    file = "evertally/privacy/neighbours.py"
    product = (ROOT / "src" / file).read_text(encoding="utf-8")
    kept = neighbours._event.__code__
    try:
        assert plant(file, product.replace("_cells(min(2 * b, d), w)", "_cells(min(b, d), w)"), product)
        assert neighbours.change(Neighbours.REPLACE, Contribution(), 9).l1 == 1
    finally:
        neighbours._event.__code__ = kept
    assert neighbours.change(Neighbours.REPLACE, Contribution(), 9).l1 == 2
    assert not plant(file, product, product)
    assert not plant(file, product.replace("max_weight: int = 1", "max_weight: int = 2"), product), "ran on import"


def test_a_mutant_lives_in_a_copy_and_leaves_it(everything: list[Mutant], tmp_path: Path) -> None:
    """A replaced event that is charged once: seen by what runs in the copy, and gone from it afterwards."""
    world = World(tmp_path / "world")
    dropped = ("factor dropped", "2 * b", "(b)")
    mutant = next(m for m in everything if m.function == "_event" and (m.operator, m.before, m.after) == dropped)
    code = "import evertally.privacy as p; print(p.change('replace', p.Contribution(), 9).l1)"
    with world.holding(mutant):
        assert world.run(["-c", code], 60).said == "1\n"
    assert world.run(["-c", code], 60).said == "2\n"
    assert world.run(["-c", "while True: pass"], 1).status is None
    assert "MemoryError" in world.run(["-c", "bytearray(1 << 40)"], 60).said
    assert not is_compiled(mutant)
    assert is_compiled(next(m for m in everything if m.file.endswith("noise/kernels.py")))


def test_an_audit_that_has_no_power_caught_nothing() -> None:
    assert verdict_of("broken tree: asked: closed form (closed form)", 2.0).caught
    failed = verdict_of("did not run tree: asked: closed form: ZeroDivisionError", 2.0)
    assert (failed.word, failed.caught) == ("did not run", True)
    assert not verdict_of("survived 3 of 20 rows of tree", 2.0).caught
    with pytest.raises(ValueError, match="not here"):
        verdict_of("not here", 2.0)


def test_every_spec_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An audit that cannot even read its spec would count as one that did not run on the mutant."""
    from evertally.runtime import load_spec

    monkeypatch.setenv("EVERTALLY_MUTATION", str(tmp_path))
    assert all(len(load_spec(written(name)).queries) in (1, 2) for name in SPECS)


def test_a_row_that_is_broken_ends_the_audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tree that pays for one level less: a row sees it, and rows that are not asked for are not run."""
    from evertally.counting import tree

    monkeypatch.setenv("EVERTALLY_MUTATION", str(tmp_path))
    asked = Asked(names=["its share of the promise", "neighbours through the door"], others=[])
    assert judged("tree", "short", asked).startswith("survived 2 rows of tree")
    law = tree.node_law
    monkeypatch.setattr(tree, "node_law", lambda charge, change, levels: law(charge, change, max(1, levels - 1)))
    assert judged("tree", "short", asked).startswith("broken tree: asked: ")
    monkeypatch.setattr(tree, "node_law", None)
    assert judged("tree", "short", asked).startswith("did not run tree: ")


def test_rows_that_meet_a_line_are_picked_from_what_was_traced(
    everything: list[Mutant], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVERTALLY_MUTATION", str(tmp_path))
    monkeypatch.setattr(rows, "_known", lambda name: known if name == "tree" else None)
    mutant = next(m for m in everything if m.room == "privacy" and m.function == "change")
    row = {"plan": "asked", "number": 0, "method": "event", "seconds": 1.0, "passed": True}
    there, elsewhere = {mutant.file: [mutant.line]}, {mutant.file: [mutant.line + 1]}
    meets = [{**row, "name": "game", "lines": there}, {**row, "name": "law", "method": "exact law", "lines": there}]
    known = {"making": elsewhere, "compiled": [], "rows": [*meets, {**row, "name": "other", "lines": elsewhere}]}
    found = rows.affected(mutant, 120.0, compiled=False)
    assert not any(asked["names"] for _, asked in rows.affected(mutant, 0.5, compiled=False))  # each takes a second
    assert [(spec, asked["names"]) for spec, asked in found] == [("tree", ["law"]), ("tree", ["game"])]
    assert all("other" in asked["others"] for _, asked in found)


def test_rows_that_are_not_watched_are_played_for_their_rooms(
    everything: list[Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"plan": "asked", "number": 0, "method": "equal ways", "seconds": 1.0, "passed": True, "lines": {}}
    known: dict[str, dict[str, Any]] = {
        name: {"making": {}, "compiled": [], "rows": [{**row, "name": "ways in"}]} for name in ("tree", "weights")
    }
    monkeypatch.setattr(rows, "_known", known.get)
    mutant = next(m for m in everything if m.room == "encode")
    assert [spec for spec, _ in rows.affected(mutant, 120.0, compiled=False)] == ["weights", "tree"]
    known["tree"]["rows"].append({**row, "name": "law", "lines": {mutant.file: [mutant.line + 10**6]}})
    assert rows.affected(mutant, 120.0, compiled=False) == [("tree", {"names": ["ways in"], "others": ["law"]})]
    assert rows.affected(next(m for m in everything if m.room == "privacy"), 120.0, compiled=False) == []


def test_rows_that_are_new_are_traced_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was traced stays, as long as the text of the rooms does."""
    monkeypatch.setenv("EVERTALLY_MUTATION", str(tmp_path))
    every = rows.steps_of("tree", "short")
    few = {place: step for place, step in every.items() if step.name in ("its share of the promise", "overdrawn")}
    monkeypatch.setattr(rows, "steps_of", lambda name, effort: few)
    target = tmp_path / "tree.z"
    rows.trace("tree", target)
    first = json.loads(zlib.decompress(target.read_bytes()))
    assert {row["name"] for row in first["rows"]} == {"its share of the promise", "overdrawn"}
    kept = [{**row, "seconds": -1.0} for row in first["rows"] if row["name"] == "overdrawn"]
    target.write_bytes(zlib.compress(json.dumps({**first, "rows": kept}).encode()))
    rows.trace("tree", target)
    again = {row["name"]: row["seconds"] for row in json.loads(zlib.decompress(target.read_bytes()))["rows"]}
    assert again["overdrawn"] == -1.0
    assert again["its share of the promise"] >= 0
    monkeypatch.setattr(rows, "product_text", lambda: "another")
    rows.trace("tree", target)
    assert min(row["seconds"] for row in json.loads(zlib.decompress(target.read_bytes()))["rows"]) >= 0


def test_importers_reach_through_packages() -> None:
    found = importers("evertally/noise/kernels.py")
    assert {"evertally.noise.kernels", "evertally.noise.sampler", "evertally.counting.tree"} <= found
    assert "evertally.privacy.neighbours" not in found


def test_results_go_on_where_they_were(everything: list[Mutant], tmp_path: Path) -> None:
    one, two, three = everything[:3]
    results = Results.read(tmp_path / "results.json")
    results.say(one.id, "tests", Verdict("caught", "a test"))
    results.say(two.id, "tests", Verdict("survived"))
    results.say(three.id, "tests", Verdict("not covered"))
    again = Results.read(tmp_path / "results.json")
    assert again.verdicts == results.verdicts
    table = markdown([one, two, three], again, {three.id: "changes the width of a printed column only"})
    assert f"| {one.room} | 3 | 1 | 0 | 1 of 2 |" in table
    assert two.id in table
    assert one.id not in table.replace(f"| {one.room}", "")
    assert len(JUDGES) == 4


def test_the_handbook_tells_what_is_kept(everything: list[Mutant]) -> None:
    results, away = Results.read(VERDICTS), {**equivalents(everything), **not_private(everything)}
    private = [mutant for mutant in sample(everything) if mutant.id not in away]
    handbook = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")
    for line in what_audits_said(private, results)[2:]:
        assert line in handbook, line
    unseen = {m.id for m in private if (said := results.of(m, "short audit")) is None or not said.caught}
    assert sorted(unseen) == sorted(name for name in unseen if name in handbook)
