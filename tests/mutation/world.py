"""A copy of the project in which a mutant lives: its tests, its command line and its processes see the mistake.

The copy is made once; a mutant is one file written into it, and the original written back. Nothing compiled may pass
from one mutant to the next: Python's files of the mutated module are removed, and so is what numba kept wherever a
mutant may be part of compiled loops (numba notices a change of the file of a function, not of the functions it calls).
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutation.choose import ROOT, Mutant

_LINKED = ("docs", "examples", "benchmarks", "deploy", "requirements")
_COPIED = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile")
_MEMORY = 6 << 30  # bytes for one process: a mistake may also ask for ever more


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its status (None if time was over), what it said at the end, how long it took."""

    status: int | None
    said: str
    seconds: float


class World:
    """A copy of the project below `folder`. One process at a time works in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fresh = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.refresh()

    def refresh(self) -> None:
        """Brings the copy up to what the project is now."""
        for part in ("src", "tests"):
            _copy(ROOT / part, self.folder / part)
        for name in _COPIED:
            shutil.copy2(ROOT / name, self.folder / name)
        for name in _LINKED:
            if not (self.folder / name).exists():
                (self.folder / name).symlink_to(ROOT / name)

    @contextmanager
    def holding(self, mutant: Mutant | None) -> Iterator[None]:
        """While this is open, the copy has the mistake (none: it is the product)."""
        if mutant is None:
            yield
            return
        path = self.folder / "src" / mutant.file
        before = path.read_bytes()
        self._write(path, mutant.source.encode())
        if is_compiled(mutant):
            self._fresh += 1
        try:
            yield
        finally:
            self._write(path, before)
            if is_compiled(mutant):
                shutil.rmtree(self._numba(), ignore_errors=True)
                self._fresh = 0
            shutil.rmtree(self.folder / "examples-found", ignore_errors=True)

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            cached.unlink()
        # Python compares seconds and sizes: two mutants of one file within a second would be one.
        os.utime(path, ns=(time.time_ns(), time.time_ns()))

    def _numba(self) -> Path:
        return self.folder / ("compiled-fresh" if self._fresh else "compiled")

    def run(self, arguments: Sequence[str], seconds: float, more: Mapping[str, str] | None = None) -> Outcome:
        """`python arguments` in this copy, with limits of time and memory; all that it starts ends with it."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder / "src"), str(self.folder / "tests")]),
            "NUMBA_CACHE_DIR": str(self._numba()),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "examples-found"),
            "OPENBLAS_NUM_THREADS": "1",
            **(more or {}),
        }
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_limited,
        )
        status: int | None = None
        try:
            said, _ = process.communicate(timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            _end(process)
            said, _ = process.communicate()
        finally:
            _end(process)
        return Outcome(status, said[-4000:].decode(errors="replace"), round(time.monotonic() - start, 1))


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _copy(source: Path, target: Path) -> None:
    """Files that differ in size or time are copied, those that are gone are removed."""
    wanted = set()
    for path in source.rglob("*"):
        inside = path.relative_to(source)
        if "__pycache__" in inside.parts or path.suffix in (".nbi", ".nbc") or ".hypothesis" in inside.parts:
            continue
        wanted.add(inside)
        there = target / inside
        if path.is_dir():
            there.mkdir(parents=True, exist_ok=True)
        elif not there.is_file() or there.read_bytes() != path.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, there)
    for there in list(target.rglob("*.py")):
        if there.relative_to(target) not in wanted:
            there.unlink()


def is_compiled(mutant: Mutant) -> bool:
    """Whether numba may have compiled the function: kernels, and whatever hands functions to `jit`."""
    text = (ROOT / "src" / mutant.file).read_text(encoding="utf-8")
    return "kernels" in mutant.file or "jit" in text or "double_words" in mutant.file or "njit" in text
