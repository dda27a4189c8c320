"""The table of what was caught, in Markdown; and the mutants that are argued away."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from mutation.choose import ROOMS, Mutant, brief
from mutation.results import JUDGES, Results

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
NOT_PRIVATE = Path(__file__).with_name("not_private.toml")
VERDICTS = Path(__file__).with_name("verdicts.json")  # what docs/auditing.md tells
_WORDS = ("caught", "did not run", "time", "survived", "not covered")


def equivalents(mutants: Sequence[Mutant], path: Path = EQUIVALENT) -> dict[str, str]:
    """Argument by mutant. A name that no mutant has would hide that the code has changed under the argument."""
    said: dict[str, str] = {}
    for section in tomllib.loads(path.read_text(encoding="utf-8")).values():
        said |= section
    unknown = sorted(set(said) - {mutant.id for mutant in mutants})
    if unknown:
        raise ValueError(f"{path.name} argues about {', '.join(unknown)}, which is no mutant (any more): look again")
    empty = sorted(name for name, argument in said.items() if len(argument.split()) < 4)
    if empty:
        raise ValueError(f"{path.name} has no argument for {', '.join(empty)}")
    return said


def not_private(mutants: Sequence[Mutant]) -> dict[str, str]:
    """Those that cost nobody's privacy, with the argument: no audit of privacy needs to see them."""
    return equivalents(mutants, NOT_PRIVATE)


def markdown(
    mutants: Sequence[Mutant], results: Results, equivalent: dict[str, str], harmless: dict[str, str] | None = None
) -> str:
    """By room: mutants, equivalent ones, and of the rest how many each judge caught of those it has judged; audits also
    of those that may cost privacy."""
    harmless = harmless or {}
    audits = [f"{judge}, privacy" for judge in JUDGES if "audit" in judge]
    heads = ["room", "mutants", "equivalent", "not about privacy", *JUDGES, *audits, "survivors"]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for room in (*ROOMS, "all"):
        inside = [m for m in mutants if room in (m.room, "all")]
        rest = [m for m in inside if m.id not in equivalent]
        private = [m for m in rest if m.id not in harmless]
        left = [m for m in rest if survives(m, results)]
        cells = [_cell(rest, results, judge) for judge in JUDGES]
        cells += [_cell(private, results, judge) for judge in JUDGES if "audit" in judge]
        numbers = [len(inside), len(inside) - len(rest), len(rest) - len(private)]
        lines.append(_row([room, *map(str, numbers), *cells, str(len(left))]))
    lines += ["", "Caught of judged. " + _how(mutants, results), ""]
    private = [m for m in mutants if m.id not in equivalent and m.id not in harmless]
    lines += ["Short audits of those that may cost privacy:", "", *what_audits_said(private, results), ""]
    survivors = [m for m in mutants if m.id not in equivalent and survives(m, results)]
    if survivors:
        lines += ["Survivors of the tests:", "", *map(_line, survivors), ""]
    unseen = [
        m
        for m in mutants
        if m.id not in equivalent and m.id not in harmless and _unseen(m, results, "long audit", "short audit")
    ]
    if unseen:
        lines += ["May cost privacy, and no audit that was run saw them:", "", *map(_line, unseen), ""]
    return "\n".join(lines)


def what_audits_said(private: Sequence[Mutant], results: Results, judge: str = "short audit") -> list[str]:
    """By room, how many of those that may cost privacy an audit has each word for."""
    heads = [
        "room",
        "may cost privacy",
        "broken",
        "did not run",
        "out of time",
        "survived",
        "not executed",
        "not judged",
    ]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for room in (*ROOMS, "all"):
        inside = [m for m in private if room in (m.room, "all")]
        words = [verdict.word if (verdict := results.of(m, judge)) else "" for m in inside]
        lines.append(_row([room, *(str(n) for n in (len(inside), *map(words.count, (*_WORDS, ""))))]))
    return lines


def survives(mutant: Mutant, results: Results) -> bool:
    """Judged by the tests, and not caught by them."""
    return _unseen(mutant, results, "tests")


def _unseen(mutant: Mutant, results: Results, *judges: str) -> bool:
    said = [verdict for judge in judges if (verdict := results.of(mutant, judge)) is not None]
    return bool(said) and not any(verdict.caught for verdict in said)


def _how(mutants: Sequence[Mutant], results: Results) -> str:
    """How many of those that were caught are by a broken row, an exception, the clock; how many nothing executed."""
    told = []
    for judge in JUDGES:
        words = [verdict.word for m in mutants if (verdict := results.of(m, judge)) is not None]
        parts = [("caught", "broken" if "audit" in judge else "failed"), ("did not run", "did not run")]
        parts += [("time", "out of time"), ("not covered", "not executed")]
        counts = [f"{words.count(word)} {name}" for word, name in parts if words.count(word)]
        if counts:
            told.append(f"{judge}: {', '.join(counts)}")
    return "; ".join(told) + "."


def _line(m: Mutant) -> str:
    return f"- {m.id} `{m.file}:{m.line}` {m.operator}: `{brief(m.before)}` -> `{brief(m.after)}`"


def _cell(mutants: Sequence[Mutant], results: Results, judge: str) -> str:
    said = [verdict for m in mutants if (verdict := results.of(m, judge)) is not None]
    return f"{sum(v.caught for v in said)} of {len(said)}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
