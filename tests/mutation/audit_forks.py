"""Audits of mutants in forks of one process that has everything loaded.

`python -m mutation.audit_forks planted|imported JOBS ANSWERS`, two files of JSON. "planted": the product is loaded and
warm, and a fork has one function replaced. "imported", for what runs on import and for what numba compiles: only the
libraries are loaded, and a fork imports the product with one file of it changed. What was compiled of that file, and of
those that import it, is compiled anew.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from mutation.choose import ROOT
from mutation.covering import cache_folder
from mutation.forked import plant
from mutation.rows import Asked, forget_results, judged

_MEMORY = 6 << 30
_PATIENCE = 900.0  # seconds on the clock, however busy the machine is
_LIBRARIES = ("numpy", "numba", "flint", "scipy.stats", "scipy.optimize", "scipy.signal", "pydantic", "rich.table")
_WARM = ("together", "found", "rebased", "capped-users", "bank")


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
    """The stems of a product file and of all that import it, directly or not."""
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
    return {name.rpartition(".")[2] for name in reached}


@contextlib.contextmanager
def _compiled_anew(file: str) -> Iterator[None]:
    """A copy of what numba has kept, without what may hold code of this file."""
    from numba.core import config

    stale = importers(file)
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
        forget_results()
        return _rows(job, until)
    sys.meta_path.insert(0, _Mutated(job["file"], job["source"]))
    with _compiled_anew(job["file"]) if job["compiled"] else contextlib.nullcontext():
        return _rows(job, until)


def _rows(job: dict[str, Any], until: float) -> str:
    answer = "survived"
    for spec, asked in job["specs"]:
        answer = judged(spec, job["effort"], asked, until)
        if not answer.startswith("survived"):
            return answer
    return answer


def fork(job: dict[str, Any], mode: str) -> str:
    """What `judged` says of the first spec that shows something; or "time", "died", "not here"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        limit = int(2 * job["seconds"]) + 60
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        answer = "died"
        try:
            answer = _judge(job, mode)
        except BaseException as error:
            answer = f"did not run: {type(error).__name__}"
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], _PATIENCE)
    said = os.read(reading, 65536).decode() if ready else "time"
    os.close(reading)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not said:
        over = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return "time" if over else "did not run: died"
    return said


def _warm() -> None:
    """Modules and compiled code that most audits want."""
    for spec in _WARM:
        everything = Asked(rows=[("asked", number) for number in range(40)], names=[], others=[])
        judged(spec, "short", everything, time.process_time() + 6)
    forget_results()


def main(mode: str, asked: Path, answers: Path) -> None:
    jobs: Sequence[dict[str, Any]] = json.loads(asked.read_text(encoding="utf-8"))
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / "compiled"))
    for name in _LIBRARIES:
        importlib.import_module(name)
    if mode == "planted":
        import evertally.cli.audit  # noqa: F401

        _warm()
    with answers.open("a", encoding="utf-8") as said:
        for job in jobs:
            start = time.monotonic()
            answer = fork(job, mode)
            seconds = round(time.monotonic() - start, 1)
            print(json.dumps({"id": job["id"], "answer": answer, "seconds": seconds}), file=said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
