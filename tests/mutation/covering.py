"""Which tests execute which line: made once, file by file, and kept among the temporary files of this user."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from mutation.choose import ROOMS, ROOT, Mutant

Length = Literal["quick", "long"]

# Where the rooms are tested, the nearest first. Documents, pages, pictures and clusters execute the same lines later.
PLACES = (
    "tests/test_stream.py",
    *(f"tests/{room}" for room in ROOMS if room != "stream"),
    *(f"src/evertally/{room}" for room in ROOMS if room != "stream"),
    "src/evertally/stream.py",
    "tests/contract",
    "tests/test_frozen_releases.py",
    "tests/statistics",
    "tests/users",
    "tests/histogram",
    "tests/values",
    "tests/sketches",
    "tests/dynamic",
    "tests/runtime",
    "tests/agreement",
    "tests/applications",
    "tests/kinds",
    "tests/planner",
)


@dataclass(frozen=True)
class OneTest:
    """A test that executes a line."""

    id: str
    seconds: float

    @property
    def file(self) -> str:
        return self.id.partition("::")[0]


def cache_folder() -> Path:
    """Where maps and worlds lie: EVERTALLY_MUTATION, or a folder among the temporary files."""
    given = os.environ.get("EVERTALLY_MUTATION")
    folder = Path(given) if given else Path(tempfile.gettempdir()) / f"evertally-mutation-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def files_with_tests(places: Iterable[str]) -> list[str]:
    """The files with tests, in the order in which they are traced; product files count by their doctests."""
    found: list[str] = []
    for place in places:
        path = ROOT / place
        pattern = "*.py" if place.startswith("src/") else "test_*.py"
        files = sorted(path.rglob(pattern)) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and (not place.startswith("src/") or ">>>" in file.read_text(encoding="utf-8")):
                found.append(file.relative_to(ROOT).as_posix())
    return list(dict.fromkeys(found))


def trace(files: Sequence[str], length: Length, seconds: float) -> None:
    """Runs files of tests and keeps what they executed, each when it is done; ends after so many seconds."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")]),
        "EVERTALLY_TRACE": str(_target("", length).parent),
        "EVERTALLY_TRACE_AS": f".{length}.z",
    }
    marker = "not long" if length == "quick" else "long"
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "mutation.tracing"]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run([*call, "-m", marker, *files], cwd=ROOT, env=environment, capture_output=True, timeout=seconds)


def traced(file: str, length: Length) -> bool:
    return _target(file, length).is_file()


def _target(file: str, length: Length) -> Path:
    folder = cache_folder() / "lines"
    folder.mkdir(exist_ok=True)
    return folder / f"{file.replace('/', '+')}.{length}.z"


@dataclass
class Map:
    """The tests by line, as far as they have been traced."""

    tests: dict[tuple[str, int], list[OneTest]] = field(default_factory=dict)
    files: dict[str, list[OneTest]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Map:
        found = cls()
        for path in sorted((cache_folder() / "lines").glob("*.z")):
            for name, what in json.loads(zlib.decompress(path.read_bytes())).items():
                test = OneTest(name, what["seconds"])
                for file, lines in what["lines"].items():
                    found.files.setdefault(file, []).append(test)
                    for line in lines:
                        found.tests.setdefault((file, line), []).append(test)
        return found

    def covering(self, mutant: Mutant) -> list[OneTest]:
        """Tests that execute the line; of a line that runs when the file is imported, those that use the file."""
        last = mutant.line + mutant.before.count("\n")
        found = {test for line in range(mutant.line, last + 1) for test in self.tests.get((mutant.file, line), [])}
        if not found and in_no_function(mutant):
            found = set(self.files.get(mutant.file, []))
        return sorted(found, key=lambda test: (test.seconds, test.id))

    def near(self, mutant: Mutant) -> list[OneTest]:
        """Tests that use the file, or one that imports it: compiled code is not followed line by line."""
        files = [mutant.file, *importers(mutant.file)]
        found = {test for file in files for test in self.files.get(file, [])}
        return sorted(found, key=lambda test: (test.seconds, test.id))


@cache
def importers(file: str) -> list[str]:
    """The files of the product that import this one by its name."""
    package, _, name = file.removesuffix(".py").replace("/", ".").rpartition(".")
    wanted = re.compile(
        rf"from {re.escape(package)}(\.{name} import| import [^\n]*\b{name}\b)|import {package}\.{name}\b"
    )
    every = (ROOT / "src" / "evertally").rglob("*.py")
    found = [path.relative_to(ROOT / "src").as_posix() for path in every if wanted.search(path.read_text("utf-8"))]
    return sorted(set(found) - {file})


def in_no_function(mutant: Mutant) -> bool:
    """Whether the line runs when its file is imported."""
    import ast

    tree = ast.parse((ROOT / "src" / mutant.file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return not any(one.lineno <= mutant.line <= (one.end_lineno or 0) for one in functions)


def digest(things: Any) -> str:
    return hashlib.sha256(json.dumps(things, sort_keys=True).encode()).hexdigest()[:16]
