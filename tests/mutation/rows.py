"""The rows of the audit of a spec: which lines of the rooms each of them executes, and whether one of them is broken.

`python -m mutation.rows NAME FILE` runs the short audit of one spec on the product and keeps what each row executed,
how long it took and what it said. A row that does not execute the line of a mutant says of it what it says of the
product.
So only the others are run on a mutant, up to the first that is broken: `evertally audit` would then end with 1.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
import zlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from mutation.choose import ROOMS, ROOT, Mutant
from mutation.covering import cache_folder, digest, in_no_function
from mutation.specs import SPECS, written

if TYPE_CHECKING:
    from evertally.audit.steps import Step

MAKING = "(making)"  # what runs before the first row
_COMPUTED, _PLAYED = 8, 8  # for one mutant: rows of so many specs
_SHARES = (0.3, 0.7, 1.0)  # of the time, that may be gone after each of the three stages
_WEAKER = ("attack", "event", "separation", "hunt", "not here")  # methods of rows in which nothing is computed
_SOON = ("draws", "margins", "undecided", "restored noise", "overdrawn", "other words")  # attacks that compute
_SAME = ("overdrawn", "other words", "kept in a store", "its share of the promise", "all charges together")
# Rows that go through all that a spec has of these rooms. Watched line by line they would take minutes: they are played
# for every mutant there whose file the spec executes, or no spec does.
_THROUGH = {
    "ways in": ("encode", "selection", "counting"),
    "in parts": ("encode", "selection", "counting", "runtime/state"),
    "comes back": ("encode",),
    "kept in a store": ("runtime/state", "encode", "stream"),
}
# Whose numbers are not 1: taken first among those that execute a line.
_TELLING = ("weights", "replaced-users", "pure-histogram", "separated-users", "found-users", "two-level", "sum")
_COMPILED = ("evertally.noise.jit", "evertally.noise.compiled", "evertally.noise.double_words")


Place = tuple[str, int]  # the name of a plan, and the number of a row in it


class Asked(TypedDict):
    """What is played of a spec: names of rows, in this order, and names of those that do not meet the line."""

    names: list[str]
    others: list[str]


@dataclass(frozen=True)
class Row:
    """One row of the audit of a spec, as it was on the product."""

    name: str
    method: str
    seconds: float
    lines: int  # of what is done soon: how many it executes; else 0

    @property
    def stage(self) -> int:
        return 0 if self.name in _SOON else 1 if self.method not in _WEAKER else 2


def steps_of(spec: str, effort: str) -> dict[Place, Step]:
    """The rows of `evertally audit`, by plan and place, as the command makes them."""
    from evertally.cli.audit import plans_of_spec

    plans = plans_of_spec(written(spec), "long" if effort == "long" else "short", 0)
    return {(name, number): step for name, steps in plans.items() for number, step in enumerate(steps)}


def forget_results(modules: Container[str] | None = None) -> None:
    """What the product keeps from call to call was computed before the mistake was there; compiled code may stay, and
    so may what is kept by other modules than these."""
    for name, module in list(sys.modules.items()):
        if name.startswith("evertally.") and (modules is None or name in modules):
            for value in list(vars(module).values()):
                home = str(getattr(value, "__module__", ""))
                if hasattr(value, "cache_clear") and not home.endswith("kernels") and home not in _COMPILED:
                    value.cache_clear()


def judged(spec: str, effort: str, asked: Asked | None, until: float = math.inf) -> str:
    """ "broken ROW" at the first row that is, else "did not run ROW" where one fails, else "survived": a row that fails
    hides nothing of the others, as in the command. No row is begun when this process has worked for `until` seconds.
    All rows are played where nothing is asked for."""
    from evertally.audit.steps import run

    where, played, failed = MAKING, 0, ""
    try:
        steps = _picked(steps_of(spec, effort), asked, effort)
    except Exception as error:  # what the command ends with 2 or 3 for
        return f"did not run {spec}: {where}: {type(error).__name__}"
    for (plan, _), step in steps:
        if time.process_time() > until:
            return failed or f"survived {played} of {len(steps)} rows of {spec}"
        played += 1
        where = f"{plan}: {step.name}"
        try:
            report = run(step)
        except MemoryError:
            raise
        except Exception as error:
            failed = failed or f"did not run {spec}: {where}: {type(error).__name__}"
            continue
        if not report.passed:
            return f"broken {spec}: {where} ({report.method})"
    return failed or f"survived {played} rows of {spec}"


def _picked(steps: dict[Place, Step], asked: Asked | None, effort: str) -> list[tuple[Place, Step]]:
    """The rows that were asked for. A long audit has others besides: all but those that do not meet the line, and those
    that are the same as in a short one."""
    if asked is None:
        return list(steps.items())
    order = {name: number for number, name in enumerate(asked["names"])}
    left = set(asked["others"])
    found = [
        (place, step)
        for place, step in steps.items()
        if (step.name in order or (effort == "long" and step.name not in left))
        and not (effort == "long" and step.name in _SAME)
    ]
    return sorted(found, key=lambda one: order.get(one[1].name, len(order)))


# -- what each row executes --------------------------------------------------------------------------------------------


def traced_file(name: str) -> Path:
    folder = cache_folder() / "audits"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.z"


@cache
def _known(name: str) -> dict[str, Any] | None:
    path = traced_file(name)
    found: dict[str, Any] | None = json.loads(zlib.decompress(path.read_bytes())) if path.is_file() else None
    return found


def affected(mutant: Mutant, seconds: float, *, compiled: bool) -> list[tuple[str, Asked]]:
    """What is played: specs with rows that execute the line. First what is computed, of several specs, then attacks and
    games of some of them, of so many seconds as they were traced."""
    lines = set(range(mutant.line, mutant.line + mutant.before.count("\n") + 1))
    anywhere = in_no_function(mutant)
    found: list[tuple[str, list[Row]]] = []
    direct = set()  # specs that run the line itself, as far as is known
    ran = {name: _executed(name, mutant.file) for name in SPECS}
    nowhere = not any(ran.values())
    for name in SPECS:
        known = _known(name)
        if known is None:
            continue
        everywhere = _meets(known["making"], mutant.file, lines, anywhere)
        everywhere |= compiled and mutant.file in known["compiled"]
        through = nowhere or ran[name] > 0
        rows = [
            _row(row)
            for row in known["rows"]
            if row["passed"]
            and (
                everywhere
                or _meets(row["lines"], mutant.file, lines, anywhere)
                or (through and mutant.room in _THROUGH.get(row["name"], ()))
            )
        ]
        if rows or everywhere:
            found.append((name, sorted(rows, key=lambda row: row.seconds)))
        if everywhere or any(_meets(row["lines"], mutant.file, lines, anywhere) for row in known["rows"]):
            direct.add(name)
    found.sort(key=lambda one: (one[0] not in direct, *_order(ran, *one)))
    return [(name, _asked(name, rows)) for name, rows in _within(found, seconds)]


def _row(traced: dict[str, Any]) -> Row:
    lines = sum(map(len, traced["lines"].values())) if traced["name"] in _SOON else 0
    return Row(traced["name"], traced["method"], traced["seconds"], lines)


def _order(ran: dict[str, int], spec: str, rows: Sequence[Row]) -> tuple[bool, int, float]:
    """Which spec comes first of those that run the line, or do not: where most of the file runs (a way that is only
    ranked runs little of it; of compiled functions nothing is known), then those whose numbers are not 1, then the
    fastest."""
    ranked = not ran[spec] or ran[spec] < 0.75 * max(ran.values())
    return ranked, _TELLING.index(spec) if spec in _TELLING else 99, sum(row.seconds for row in rows)


def _executed(spec: str, file: str) -> int:
    """How many lines of a file the rows that were watched run."""
    known = _known(spec)
    return 0 if known is None else len({line for row in known["rows"] for line in row["lines"].get(file, ())})


def _asked(spec: str, rows: Sequence[Row]) -> Asked:
    known = _known(spec)
    assert known is not None
    names = list(dict.fromkeys(row.name for row in rows))
    return Asked(names=names, others=sorted({row["name"] for row in known["rows"]} - set(names)))


def _within(found: list[tuple[str, list[Row]]], seconds: float) -> Iterator[tuple[str, list[Row]]]:
    """As many rows as fit into the time: those that are done soon of all specs, then what is computed, of some, attacks
    and games of fewer. What comes first may not take all of it: a mistake that every spec executes would never meet
    neighbours."""
    spent = 0.0
    for stage, (most, share) in enumerate(zip((len(found), _COMPUTED, _PLAYED), _SHARES, strict=True)):
        # Of rows that are done soon those first that execute most: laws of all kinds are among them.
        order = sorted(found, key=lambda one: -max((row.lines for row in one[1]), default=0))
        for name, rows in order if stage == 0 else found[:most]:
            these = []
            for row in rows:
                if row.stage == stage and spent + row.seconds <= share * seconds:
                    these.append(row)
                    spent += row.seconds
            if these or (stage == 1 and not spent):  # what is made before the first row may fail already
                yield name, these


def _meets(executed: dict[str, list[int]], file: str, lines: set[int], anywhere: bool) -> bool:
    there = executed.get(file, [])
    return bool(there) if anywhere else not lines.isdisjoint(there)


def trace(name: str, target: Path) -> None:
    """Runs the short audit of a spec on the product with every line of the rooms watched. Of a spec that was traced
    before, rows that are new since; all of them, if what is watched has changed."""
    import evertally
    from evertally.audit.steps import run
    from mutation.tracing import Tracer

    assert evertally.__file__ is not None
    tracer, product = Tracer(Path(evertally.__file__).parent), product_text()
    known: dict[str, Any] = json.loads(zlib.decompress(target.read_bytes())) if target.is_file() else {}
    if known.get("product", product) != product:
        known = {}
    tracer.begin()
    steps = steps_of(name, "short")
    making = _sorted(tracer.end())
    before = {(row["plan"], row["name"]): row for row in known.get("rows", [])}
    rows = []
    for (plan, number), step in steps.items():
        if (found := before.get((plan, step.name))) is not None:
            rows.append({**found, "number": number})
            continue
        watched = step.name not in _THROUGH
        if watched:
            forget_results()
            tracer.begin()
        start = time.process_time()
        report = run(step)
        seconds = time.process_time() - start
        lines = _sorted(tracer.end()) if watched else {}
        row = {"plan": plan, "number": number, "name": step.name, "seconds": round(seconds, 3), "lines": lines}
        rows.append({**row, "passed": report.passed, "method": report.method})
    compiled = sorted({*known.get("compiled", []), *_compiled_files()})
    said = {"product": product, "making": making, "rows": rows, "compiled": compiled}
    target.write_bytes(zlib.compress(json.dumps(said).encode()))


def product_text() -> str:
    """The text of all that is watched, as a hash: lines of other texts are other lines."""
    files = sorted(path for room in ROOMS for path in _files(ROOT / "src" / "evertally" / room))
    return digest([path.read_text(encoding="utf-8") for path in files])


def _files(room: Path) -> list[Path]:
    return list(room.rglob("*.py")) if room.is_dir() else [room.with_suffix(".py")]


def _sorted(lines: dict[str, set[int]]) -> dict[str, list[int]]:
    return {file: sorted(numbers) for file, numbers in lines.items()}


def _compiled_files() -> list[str]:
    """The files of whose functions numba has been handed some: no tracer looks into those."""
    if "numba" not in sys.modules:
        return []
    from numba.core.dispatcher import Dispatcher

    # By type: what a dead proxy would be an instance of, it cannot say.
    handed = {Path(one.py_func.__code__.co_filename) for one in gc.get_objects() if issubclass(type(one), Dispatcher)}
    return sorted(
        {file.as_posix()[file.as_posix().rindex("evertally/") :] for file in handed if "evertally" in str(file)}
    )


if __name__ == "__main__":
    trace(sys.argv[1], Path(sys.argv[2]))
