"""The judges "short audit" and "long audit": `evertally audit` of the specs whose rows execute the line of a mutant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mutation.choose import ROOT, Mutant
from mutation.covering import cache_folder
from mutation.results import Results, Verdict, as_they_come
from mutation.rows import affected, traced_file
from mutation.specs import SPECS
from mutation.world import is_compiled

WORK = {"short": 120.0, "long": 300.0}  # seconds of work for one mutant, after which no further row is begun


def trace_audits(seconds: float, workers: int = 1) -> None:
    """Runs the short audit of every spec on the product, and keeps which lines each row executes: of specs that were
    traced before, only what has changed since."""

    def one(name: str) -> None:
        call = [sys.executable, "-m", "mutation.rows", name, str(traced_file(name))]
        subprocess.run(call, env=_environment(), cwd=ROOT, timeout=seconds, check=True)

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(one, SPECS):
            pass


def by_audits(
    mutants: Sequence[Mutant], results: Results, effort: str, workers: int = 1, seconds: float | None = None
) -> None:
    """Judges in forks of processes that have the product loaded; then, what cannot be planted there, in forks that
    import it changed. Verdicts are written down as they come."""
    judge, limit = f"{effort} audit", seconds or WORK[effort]
    whole = all(traced_file(name).is_file() for name in SPECS)
    left = []
    for mutant in mutants:
        before = results.of(mutant, "short audit")
        if effort == "long" and before is not None and before.caught:
            # A long audit has the rows of the short one, with more games and longer copies.
            results.say(mutant.id, judge, before)
        elif affected(mutant, limit, compiled=is_compiled(mutant)):
            left.append(mutant)
        elif whole:
            results.say(mutant.id, judge, Verdict("not covered"))
    known = {mutant.id: mutant for mutant in left}
    open_ = []
    for said in _answers("planted", [m for m in left if not is_compiled(m)], effort, workers, limit):
        if said["answer"] == "not here":
            open_.append(known[said["id"]])
        else:
            _note(said, results, judge)
    for said in _answers("imported", [*open_, *(m for m in left if is_compiled(m))], effort, workers, limit):
        _note(said, results, judge)


def verdict_of(answer: str, seconds: float) -> Verdict:
    """ "caught": a row is broken, the command ends with 1. "did not run": it ends with 2 or 3, where the product does
    not. "No power here" catches nothing."""
    for word, meant in (
        ("broken", "caught"),
        ("did not run", "did not run"),
        ("survived", "survived"),
        ("time", "time"),
    ):
        if answer.startswith(word):
            return Verdict(meant, answer[len(word) :].strip(": ")[:200], seconds)
    raise ValueError(f"an audit in a fork answered {answer!r}")


def _note(said: dict[str, Any], results: Results, judge: str) -> None:
    verdict = verdict_of(said["answer"], said["seconds"])
    results.say(said["id"], judge, verdict)
    print(said["id"], judge, verdict.word, verdict.by, verdict.seconds, flush=True)


def _answers(mode: str, mutants: Sequence[Mutant], effort: str, workers: int, limit: float) -> Iterator[dict[str, Any]]:
    """What the forks say, as they say it."""
    if not mutants:
        return
    folder = cache_folder() / "audit-forks"
    folder.mkdir(exist_ok=True)
    asked, answers = (folder / f"{mode}-{effort}-{os.getpid()}.{end}" for end in ("json", "jsonl"))
    asked.write_text(json.dumps([_job(mutant, effort, limit) for mutant in mutants]), encoding="utf-8")
    answers.write_text("", encoding="utf-8")
    call = [sys.executable, "-m", "mutation.audit_forks", mode, str(asked), str(answers), str(workers)]
    with (folder / f"{mode}-{effort}-{os.getpid()}.log").open("w") as log:
        process = subprocess.Popen(call, cwd=ROOT, env=_environment(), stdout=log, stderr=log)
    yield from as_they_come(process, answers)


def _job(mutant: Mutant, effort: str, limit: float) -> dict[str, Any]:
    compiled = is_compiled(mutant)
    return {
        "id": mutant.id,
        "file": mutant.file,
        "source": mutant.source,
        "product": (ROOT / "src" / mutant.file).read_text(encoding="utf-8"),
        "compiled": compiled,
        "effort": effort,
        "specs": affected(mutant, limit, compiled=compiled),
        "seconds": limit,
    }


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")]),
        "NUMBA_CACHE_DIR": str(cache_folder() / "compiled"),
        "OPENBLAS_NUM_THREADS": "1",
    }
