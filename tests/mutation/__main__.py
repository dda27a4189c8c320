"""`PYTHONPATH=tests python -m mutation map|list|run|table`: what tests cover, the mutants, the judges, the table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mutation.audits import by_audits, trace_audits
from mutation.choose import ROOMS, SAMPLE, Mutant, all_mutants, sample
from mutation.covering import PLACES, Map, cache_folder, files_with_tests, trace, traced
from mutation.judges import CONFORMANCE, by_forks, in_the_world, undecided
from mutation.results import JUDGES, Results
from mutation.table import VERDICTS, equivalents, markdown, not_private
from mutation.world import World


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("what", choices=("map", "list", "run", "table"))
    parser.add_argument("--room", choices=ROOMS, action="append", help="only mutants of this room")
    parser.add_argument("--judge", choices=JUDGES, action="append", help="only this judge; the others stay as they are")
    parser.add_argument("--limit", type=int, help="at most so many mutants that have no verdict yet")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="size of the sample, over all rooms")
    parser.add_argument("--forks", action="store_true", help="leave open what forks do not catch, for another run")
    parser.add_argument("--seconds", type=float, help="audits: of work for one mutant, in place of 120 (short) or 300")
    parser.add_argument("--workers", type=int, default=1, help="audits at once")
    parser.add_argument("--only", action="append", help="the mutant of this name, judged again")
    parser.add_argument("--places", action="append", help="map: only tests below this folder")
    parser.add_argument("--long", action="store_true", help="map: those that `make quick` leaves out, too")
    parser.add_argument("--results", type=Path, help="verdicts; a table is of those that are kept with the project")
    parser.add_argument("--output", type=Path, help="where the table is written")
    options = parser.parse_args()
    everything = all_mutants()
    equivalent, harmless = equivalents(everything), not_private(everything)
    chosen = [m for m in sample(everything, options.sample) if not options.room or m.room in options.room]
    results = Results.read(
        options.results or (VERDICTS if options.what == "table" else cache_folder() / "results.json")
    )
    judges = options.judge or ["tests", "conformance"]
    if options.only:
        chosen = [m for m in everything if m.id in options.only]
        for mutant in chosen if options.what == "run" else ():
            for judge in judges:
                results.forget(mutant.id, judge)
    if options.what == "map":
        _map(options.places or [*PLACES, CONFORMANCE], options.long)
        if any("audit" in judge for judge in judges):
            trace_audits(3600, options.workers)
    elif options.what == "list":
        for mutant in chosen:
            print(mutant)
    elif options.what == "run":
        for judge in judges:
            rest = [m for m in chosen if m.id not in equivalent]
            if "audit" in judge:  # what may cost privacy comes first
                rest.sort(key=lambda m: m.id in harmless)
            _judge(undecided(rest, results, judge)[: options.limit], judge, results, options)
    text = markdown(chosen, results, equivalent, harmless)
    if options.what in ("run", "table"):
        print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


def _map(places: Sequence[str], long: bool) -> None:
    for place in places:
        for length in ("quick", "long") if long else ("quick",):
            files = [file for file in files_with_tests([place]) if not traced(file, length)]
            if files:
                trace(files, length, 3600)
                print(f"{place}: {sum(traced(file, length) for file in files)} of {len(files)} ({length})", flush=True)


def _judge(mutants: Sequence[Mutant], judge: str, results: Results, options: argparse.Namespace) -> None:
    if judge in ("tests", "conformance"):
        covered = Map.read()
        by_forks(mutants, covered, results, judge)
        mutants = undecided(mutants, results, judge)
        if options.forks or not mutants:
            return
        world = World(cache_folder() / "world")
        for mutant in mutants:
            results.say(mutant.id, judge, in_the_world(mutant, world, covered, judge))
            print(mutant, results.of(mutant, judge), flush=True)
        return
    by_audits(mutants, results, judge.split()[0], options.workers, options.seconds)


if __name__ == "__main__":
    main()
