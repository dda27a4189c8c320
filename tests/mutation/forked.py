"""The fast judge: tests are collected once, and every mutant is a fork of that process with one function replaced.

What is caught here is caught: the code that ran is the mutant's. What is not caught goes to a copy of the project
(world.py), for a fork still has what was computed on import, what numba compiled, and what other processes run.

`pytest -p mutation.forked`, with EVERTALLY_FORKED naming a JSON file of jobs and EVERTALLY_FORKED_TO one of answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

_MEMORY = 6 << 30


def codes(code: CodeType) -> dict[str, CodeType]:
    """Every function of a module by its qualified name; those that share one are left out."""
    found: dict[str, CodeType] = {}
    twice: set[str] = set()

    def look(inside: CodeType) -> None:
        for constant in inside.co_consts:
            if isinstance(constant, CodeType):
                if constant.co_qualname in found:
                    twice.add(constant.co_qualname)
                found[constant.co_qualname] = constant
                look(constant)

    look(code)
    return {name: one for name, one in found.items() if name not in twice}


def plant(file: str, source: str, product: str) -> bool:
    """Puts the functions of `source` that differ into the loaded module; False where that is not possible."""
    module = sys.modules.get(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    if module is None or module.__file__ is None:
        return False
    before, after = (codes(compile(text, module.__file__, "exec")) for text in (product, source))
    # What runs on import (bodies of classes) has run. Functions inside others come with them.
    functions = [name for name, code in after.items() if code.co_flags & CO_OPTIMIZED and "<" not in name]
    outer = [name for name in functions if name in before and not _same(before[name], after[name])]
    planted = 0
    for name in outer:
        function = _find(vars(module), name)
        if function is None or function.__code__.co_freevars != after[name].co_freevars:
            return False
        function.__code__ = after[name]
        planted += 1
    return planted > 0


def forget_results() -> None:
    """What the product keeps from call to call was computed before the mistake was there."""
    for name, module in list(sys.modules.items()):
        if name.startswith("evertally."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def _same(one: CodeType, two: CodeType) -> bool:
    """Equal but for where lines are."""
    if one.co_code != two.co_code or one.co_names != two.co_names or len(one.co_consts) != len(two.co_consts):
        return False
    pairs = zip(one.co_consts, two.co_consts, strict=True)
    return all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in pairs
    )


def _find(names: dict[str, Any], name: str) -> FunctionType | None:
    first, _, rest = name.partition(".")
    found = names.get(first)
    if rest:
        return _find(dict(vars(found)), rest) if isinstance(found, type) else None
    for part in ("__func__", "fget", "func", "__wrapped__"):  # class methods, properties, cached ones
        found = getattr(found, part, found) if not isinstance(found, FunctionType) else found
    return found if isinstance(found, FunctionType) else None


class _Forks:
    def __init__(self) -> None:
        self._failed = ""
        self._sound: dict[str, bool] = {}  # whether a test that failed on a mutant passes on the product, in a fork too

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        jobs = json.loads(Path(os.environ["EVERTALLY_FORKED"]).read_text(encoding="utf-8"))
        items = {item.nodeid: item for item in session.items}
        with Path(os.environ["EVERTALLY_FORKED_TO"]).open("a", encoding="utf-8") as answers:
            for job in jobs:
                picked = [items[name] for name in job["tests"] if name in items]
                start = time.monotonic()
                answer = self._answer(job, picked)
                seconds = round(time.monotonic() - start, 2)
                said = {"id": job["id"], "answer": answer, "seconds": seconds, "tests": len(picked)}
                print(json.dumps(said), file=answers, flush=True)
        return True

    def _answer(self, job: dict[str, Any], picked: list[pytest.Item]) -> str:
        while picked := [item for item in picked if self._sound.get(item.nodeid, True)]:
            answer = self._fork(job, picked)
            accuser = [item for item in picked if item.nodeid == answer]
            if accuser and answer not in self._sound:
                self._sound[answer] = self._fork({**job, "source": ""}, accuser).startswith("survived")
            if self._sound.get(answer, True):
                return answer
        return "none"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = report.nodeid

    def _fork(self, job: dict[str, Any], picked: list[pytest.Item]) -> str:
        """The test that caught the mutant; or "survived", "time", "died", "not here"."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            try:
                os.write(writing, self._judge(job, picked).encode())
            except BaseException as error:
                os.write(writing, f"died {type(error).__name__}".encode())
            finally:
                os._exit(0)
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], job["patience"])
        said = os.read(reading, 65536).decode() or "died" if ready else "time"
        os.close(reading)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return said

    def _judge(self, job: dict[str, Any], picked: list[pytest.Item]) -> str:
        if job["source"] and not plant(job["file"], job["source"], job["product"]):
            return "not here"
        forget_results()
        until = time.monotonic() + job["seconds"]
        for number, item in enumerate(picked):
            following = picked[number + 1] if number + 1 < len(picked) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return self._failed
            if time.monotonic() > until:
                return f"survived {number + 1}"
        return f"survived {len(picked)}"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Forks())
