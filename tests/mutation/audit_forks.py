"""Audits of mutants in forks of one process that has everything loaded.

`python -m mutation.audit_forks planted|imported JOBS ANSWERS WORKERS`, two files of JSON. "planted": the product is
loaded and warm, and a fork has one function replaced. "imported", for what runs on import and for what numba compiles:
only libraries are loaded, and a fork imports the product with one file of it changed. What was compiled of that file,
and of those that import it, is compiled anew.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mutation.choose import ROOT
from mutation.covering import cache_folder
from mutation.forked import plant
from mutation.rows import forget_results, judged

_MEMORY = 6 << 30
_PATIENCE = 1200.0  # seconds on the clock, however busy the machine is
_LIBRARIES = ("numpy", "numba", "flint", "scipy.stats", "scipy.optimize", "scipy.signal", "pydantic", "rich.table")
_WARM = ("capped-users",)


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another text."""

    def __init__(self, file: str, source: str) -> None:
        self._name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._path, self._source = ROOT / "src" / file, source

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        places = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self, submodule_search_locations=places
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, str(self._path), "exec"), vars(module))


def importers(file: str) -> set[str]:
    """The modules of a product file and of all that import it, directly or not."""
    imports: dict[str, set[str]] = {}
    for path in (ROOT / "src" / "evertally").rglob("*.py"):
        name = path.relative_to(ROOT / "src").as_posix().removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found = imports.setdefault(name, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
            elif isinstance(node, ast.Import):
                found |= {one.name for one in node.names}
    reached = {file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")}
    while more := {name for name, those in imports.items() if those & reached} - reached:
        reached |= more
    return reached


@contextlib.contextmanager
def _compiled_anew(file: str) -> Iterator[None]:
    """A copy of what numba has kept, without what may hold code of this file."""
    from numba.core import config

    stale = {name.rpartition(".")[2] for name in importers(file)}
    with tempfile.TemporaryDirectory() as folder:
        before = Path(config.CACHE_DIR)
        for kept in before.rglob("*.nb?") if before.is_dir() else ():
            if kept.name.partition(".")[0] not in stale:
                target = Path(folder) / kept.relative_to(before)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(kept, target)
        config.CACHE_DIR = folder
        yield


def _judge(job: dict[str, Any], mode: str) -> str:
    until = time.process_time() + float(job["seconds"])
    if mode == "planted":
        if not plant(job["file"], job["source"], job["product"]):
            return "not here"
        forget_results(importers(job["file"]))
        return _rows(job, until)
    sys.meta_path.insert(0, _Mutated(job["file"], job["source"]))
    with _compiled_anew(job["file"]) if job["compiled"] else contextlib.nullcontext():
        return _rows(job, until)


def _rows(job: dict[str, Any], until: float) -> str:
    failed, answer = "", "survived"
    for spec, asked in job["specs"]:
        answer = judged(spec, job["effort"], asked, until)
        if answer.startswith("broken"):
            return answer
        if answer.startswith("did not run"):
            failed = failed or answer
    return failed or answer


@dataclass
class Fork:
    """One mutant that is being judged by a process of its own."""

    job: dict[str, Any]
    child: int
    reading: int
    start: float

    @classmethod
    def begin(cls, job: dict[str, Any], mode: str) -> Fork:
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            return cls(job, child, reading, time.monotonic())
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        limit = int(2 * job["seconds"]) + 60
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        answer = "did not run: died"
        try:
            answer = _judge(job, mode)
        except BaseException as error:
            answer = f"did not run: {type(error).__name__}"
        finally:
            os.write(writing, answer.encode())
            os._exit(0)

    def end(self, *, late: bool) -> dict[str, Any]:
        """What `judged` says of the first spec that shows something; or "time", "not here"."""
        said = "time" if late else os.read(self.reading, 65536).decode()
        os.close(self.reading)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child, signal.SIGKILL)
        _, status = os.waitpid(self.child, 0)
        if not said:
            over = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            said = "time" if over else "did not run: died"
        return {"id": self.job["id"], "answer": said, "seconds": round(time.monotonic() - self.start, 1)}


def _warm() -> None:
    """Tables of samplers and compiled code that most audits want."""
    from evertally.audit.draws import wrong_draw
    from evertally.noise import DiscreteGaussian, DiscreteLaplace
    from evertally.noise.reals import RealLaw

    for law in (DiscreteGaussian(100), DiscreteGaussian(2), DiscreteLaplace(3), RealLaw("normal", ""), "gumbel"):
        wrong_draw(law)
    for spec in _WARM:
        judged(spec, "short", None, time.process_time() + 2)


def main(mode: str, asked: Path, answers: Path, workers: int) -> None:
    waiting: list[dict[str, Any]] = json.loads(asked.read_text(encoding="utf-8"))[::-1]
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / "compiled"))
    for name in _LIBRARIES:
        importlib.import_module(name)
    if mode == "planted":
        import evertally.cli.audit  # noqa: F401

        _warm()
    running: dict[int, Fork] = {}
    with answers.open("a", encoding="utf-8") as said:
        while waiting or running:
            while waiting and len(running) < workers:
                one = Fork.begin(waiting.pop(), mode)
                running[one.reading] = one
            ready, _, _ = select.select(list(running), [], [], 5)
            late = [r for r, one in running.items() if time.monotonic() - one.start > _PATIENCE and r not in ready]
            for reading in [*ready, *late]:
                print(json.dumps(running.pop(reading).end(late=reading in late)), file=said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
