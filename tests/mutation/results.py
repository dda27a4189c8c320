"""What the judges said, kept in one file: a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mutation.choose import Mutant

JUDGES = ("tests", "conformance", "short audit", "long audit")


@dataclass
class Verdict:
    """What one judge said about a mutant: "caught", "did not run" (an audit that failed, where that of the product does
    not), "time" (its limit was reached), "survived", "not covered"."""

    word: str
    by: str = ""
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """A mutant that never ends is noticed by whoever waits for it; the table counts it apart."""
        return self.word in ("caught", "did not run", "time")


@dataclass
class Results:
    """Verdicts by mutant and judge."""

    path: Path
    verdicts: dict[str, dict[str, Verdict]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Results:
        found = cls(path)
        if path.is_file():
            for name, by_judge in json.loads(path.read_text(encoding="utf-8")).items():
                found.verdicts[name] = {judge: Verdict(**said) for judge, said in by_judge.items()}
        return found

    def of(self, mutant: Mutant, judge: str) -> Verdict | None:
        return self.verdicts.get(mutant.id, {}).get(judge)

    def say(self, name: str, judge: str, verdict: Verdict) -> None:
        self.verdicts.setdefault(name, {})[judge] = verdict
        self._write()

    def forget(self, name: str, judge: str) -> None:
        self.verdicts.get(name, {}).pop(judge, None)
        self._write()

    def _write(self) -> None:
        text = {name: {judge: asdict(v) for judge, v in said.items()} for name, said in sorted(self.verdicts.items())}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(text, indent=0), encoding="utf-8")
        new.replace(self.path)


def as_they_come(process: subprocess.Popen[Any], answers: Path) -> Iterator[dict[str, Any]]:
    """The lines that a process writes, while it does: what was said is kept, whenever this is stopped. Then it ends."""
    try:
        read, running = 0, True
        while running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(3)
                running = False
            lines = answers.read_text(encoding="utf-8").splitlines()
            yield from map(json.loads, lines[read:])
            read = len(lines)
    finally:
        process.kill()
        process.wait()
