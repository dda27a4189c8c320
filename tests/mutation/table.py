"""The table of what was caught, in Markdown; and the mutants that are argued away."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from mutation.choose import ROOMS, Mutant, brief
from mutation.results import JUDGES, Results

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def equivalents(mutants: Sequence[Mutant], path: Path = EQUIVALENT) -> dict[str, str]:
    """Argument by mutant. A name that no mutant has would hide that the code has changed under the argument."""
    said: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
    unknown = sorted(set(said) - {mutant.id for mutant in mutants})
    if unknown:
        raise ValueError(f"{path.name} argues about {', '.join(unknown)}, which is no mutant (any more): look again")
    empty = sorted(name for name, argument in said.items() if len(argument.split()) < 5)
    if empty:
        raise ValueError(f"{path.name} has no argument for {', '.join(empty)}")
    return said


def markdown(mutants: Sequence[Mutant], results: Results, equivalent: dict[str, str]) -> str:
    """By room: mutants, equivalent ones, and of the rest how many each judge caught of those it has judged."""
    heads = ["room", "mutants", "equivalent", *JUDGES, "survivors"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for room in (*ROOMS, "all"):
        inside = [m for m in mutants if room in (m.room, "all")]
        rest = [m for m in inside if m.id not in equivalent]
        left = [m for m in rest if survives(m, results)]
        cells = [_cell(rest, results, judge) for judge in JUDGES]
        same = len(inside) - len(rest)
        lines.append(_row([room, str(len(inside)), str(same), *cells, str(len(left))]))
    late = sum(v.word == "time" for said in results.verdicts.values() for v in said.values())
    lines += ["", f"Caught of judged; {late} verdicts are by the limit of time, and counted as caught.", ""]
    survivors = [m for m in mutants if m.id not in equivalent and survives(m, results)]
    if survivors:
        lines += ["Survivors:", ""]
        lines += [
            f"- {m.id} `{m.file}:{m.line}` {m.operator}: `{brief(m.before)}` -> `{brief(m.after)}`" for m in survivors
        ]
    return "\n".join(lines) + "\n"


def survives(mutant: Mutant, results: Results) -> bool:
    """Judged by the tests, and not caught by them."""
    verdict = results.of(mutant, "tests")
    return verdict is not None and not verdict.caught


def _cell(mutants: Sequence[Mutant], results: Results, judge: str) -> str:
    said = [verdict for m in mutants if (verdict := results.of(m, judge)) is not None]
    return f"{sum(v.caught for v in said)} of {len(said)}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
