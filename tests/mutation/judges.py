"""The judges "tests" and "conformance": the tests that execute the line, and the conformance checks that do.

They judge in two steps: forks of a process that has collected the tests (forked.py), then, for what survived, a whole
copy of the project (world.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path

from mutation.choose import ROOT, Mutant
from mutation.covering import Map, OneTest, cache_folder, digest
from mutation.results import Results, Verdict, as_they_come
from mutation.world import World, is_compiled

CONFORMANCE = "tests/checks/test_conformance.py"
_FORKED_SECONDS = 15.0  # of tests, in a fork, as they took when they were traced
_WORLD_SECONDS = 60.0
_FORKED_LEAST = 10.0
_SLOWER = 4  # times as long as traced: another machine, busy cores
_LEAST = 60.0


def picked_for(mutant: Mutant, covered: Map, judge: str, seconds: float, passed: Collection[str] = ()) -> list[OneTest]:
    """Covering tests, those of the mutant's own room first, the fastest first, as many as fit into so many seconds."""
    lines = covered.covering(mutant)
    everywhere = {*lines, *covered.near(mutant)} if is_compiled(mutant) else set(lines)
    wanted = [t for t in everywhere if (t.file == CONFORMANCE) == (judge == "conformance")]
    if passed:
        wanted = [test for test in wanted if _with_text(test) not in passed]
    home = (f"tests/{mutant.room}", f"src/{mutant.file}")
    found, spent = [], 0.0
    for test in sorted(wanted, key=lambda t: (not t.file.startswith(home), t.seconds, t.id)):
        if spent + test.seconds > seconds and found:
            continue
        found.append(test)
        spent += test.seconds
    return found


def by_forks(mutants: Sequence[Mutant], covered: Map, results: Results, judge: str) -> None:
    """Judges in forks; verdicts of those that were caught are written down, the others are left open. Tests that passed
    on a mutant are not run on it again, here, as long as mutant and test stay as they are."""
    passed = Passed(cache_folder() / "passed.json")
    jobs = []
    for mutant in mutants:
        picked = picked_for(mutant, covered, judge, _FORKED_SECONDS, passed.on(mutant))
        if picked and not is_compiled(mutant):
            jobs.append((mutant, picked))
    if not jobs:
        return
    folder = cache_folder() / "forks"
    folder.mkdir(exist_ok=True)
    asked, answers = folder / "jobs.json", folder / "answers.jsonl"
    asked.write_text(json.dumps([_job(mutant, picked) for mutant, picked in jobs]), encoding="utf-8")
    answers.write_text("", encoding="utf-8")
    files = sorted({test.file for _, picked in jobs for test in picked})
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")]),
        "EVERTALLY_FORKED": str(asked),
        "EVERTALLY_FORKED_TO": str(answers),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "examples"),
    }
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "mutation.forked"]
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(
            [*call, f"--basetemp={folder / 'made'}", *files], cwd=ROOT, env=environment, stdout=said, stderr=said
        )
        for answer, (mutant, picked) in zip(as_they_come(process, answers), jobs, strict=False):
            _note(answer, mutant, picked, results, judge, passed)


class Passed:
    """Which tests passed on which mutant: by the text of both."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def on(self, mutant: Mutant) -> set[str]:
        return set(self._known.get(self._name(mutant), []))

    def note(self, mutant: Mutant, tests: Iterable[OneTest]) -> None:
        known = self._known.setdefault(self._name(mutant), [])
        known += [_with_text(test) for test in tests]
        self._path.write_text(json.dumps(self._known), encoding="utf-8")

    def _name(self, mutant: Mutant) -> str:
        return digest([mutant.id, mutant.source])


def _with_text(test: OneTest) -> str:
    return f"{test.id} {text_of(test.file)}"


@cache
def text_of(file: str) -> str:
    """The text of a file of tests, as a hash."""
    return digest((ROOT / file).read_text(encoding="utf-8"))


def _job(mutant: Mutant, picked: Sequence[OneTest]) -> dict[str, object]:
    spent = sum(test.seconds for test in picked)
    return {
        "id": mutant.id,
        "file": mutant.file,
        "source": mutant.source,
        "product": (ROOT / "src" / mutant.file).read_text(encoding="utf-8"),
        "tests": [test.id for test in picked],
        "seconds": _FORKED_LEAST + _SLOWER * spent,
        "patience": 1.5 * _FORKED_LEAST + _SLOWER * spent,
    }


def _note(
    said: dict[str, object], mutant: Mutant, picked: Sequence[OneTest], results: Results, judge: str, passed: Passed
) -> None:
    answer, seconds = str(said["answer"]), float(str(said["seconds"]))
    word, _, number = answer.partition(" ")
    # A fork that does not end may wait for a lock that a thread of its parent held: the copy has to say so too.
    if "::" in answer:
        results.say(mutant.id, judge, Verdict("caught", answer, seconds))
    elif word == "survived":
        passed.note(mutant, picked[: int(number)])


def in_the_world(mutant: Mutant, world: World, covered: Map, judge: str) -> Verdict:
    """Judges in a copy of the project."""
    picked = picked_for(mutant, covered, judge, _WORLD_SECONDS)
    if not picked:
        return Verdict("not covered")
    list_of = world.folder / "picked.json"
    list_of.write_text(json.dumps({test.id: test.seconds for test in picked}), encoding="utf-8")
    files = sorted({test.file for test in picked})
    options = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "mutation.picking", "--tb=line"]
    seconds = _LEAST + _SLOWER * sum(test.seconds for test in picked)
    with world.holding(mutant):
        outcome = world.run(["-m", "pytest", *options, *files], seconds, {"EVERTALLY_PICKED": str(list_of)})
    if outcome.status is None:
        return Verdict("time", "world", outcome.seconds)
    if outcome.status == 0:
        return Verdict("survived", f"{len(picked)} tests", outcome.seconds)
    failed = [line for line in outcome.said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return Verdict("caught", (failed or ["it does not start"])[0].removeprefix("FAILED ")[:200], outcome.seconds)


def undecided(mutants: Iterable[Mutant], results: Results, judge: str) -> list[Mutant]:
    return [mutant for mutant in mutants if results.of(mutant, judge) is None]
