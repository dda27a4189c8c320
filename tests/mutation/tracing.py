"""A plugin of pytest that notes which lines of the product each test executes, and how long the test takes.

`pytest -p mutation.tracing`, with EVERTALLY_TRACE naming the folder to write into and EVERTALLY_TRACE_AS the end of the
names: a file for each file of tests, as soon as its last test is done. In a function that a test calls very often
only the first calls are looked at line by line: a line that is reached later is missed, and costs a survivor a second
look, never a mutant its judge.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from mutation.choose import ROOMS

_LOOKS = 100  # calls of one function that are followed, for each test

Lines = dict[str, set[int]]


class Tracer:
    """Follows what the rooms do."""

    def __init__(self, package: Path) -> None:
        self._package = str(package) + os.sep
        self._wanted = tuple(self._package + room for room in ROOMS)
        self._relevant: dict[CodeType, str | None] = {}
        self._looks: dict[CodeType, int] = {}
        self.lines: Lines = {}

    def begin(self) -> None:
        self.lines, self._looks = {}, {}
        threading.settrace(self._call)
        sys.settrace(self._call)

    def end(self) -> Lines:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        return self.lines

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        file = self._relevant.get(code, "")
        if file == "":
            name = code.co_filename
            inside = name.startswith(self._wanted)
            file = self._relevant[code] = "evertally/" + Path(name[len(self._package) :]).as_posix() if inside else None
        if file is None:
            return None
        looks = self._looks.get(code, 0)
        if looks >= _LOOKS:
            return None
        self._looks[code] = looks + 1
        seen = self.lines.setdefault(file, set())
        seen.add(frame.f_lineno)

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                seen.add(frame.f_lineno)
            return line

        return line


class _Plugin:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._file = ""
        self._found: dict[str, dict[str, Any]] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        file = item.nodeid.partition("::")[0]
        if file != self._file:
            self._write()
            self._file, self._found = file, {}
        start = time.perf_counter()
        self._tracer.begin()
        try:
            return (yield)
        finally:
            lines = self._tracer.end()
            self._found[item.nodeid] = {
                "seconds": round(time.perf_counter() - start, 4),
                "lines": {file: sorted(numbers) for file, numbers in lines.items()},
            }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._write()

    def _write(self) -> None:
        if self._file:
            kept = {name: what for name, what in self._found.items() if name not in self._failed}
            name = self._file.replace("/", "+") + os.environ["EVERTALLY_TRACE_AS"]
            target = Path(os.environ["EVERTALLY_TRACE"]) / name
            target.with_suffix(".new").write_bytes(zlib.compress(json.dumps(kept).encode()))
            target.with_suffix(".new").rename(target)


def pytest_configure(config: pytest.Config) -> None:
    import evertally

    assert evertally.__file__ is not None
    config.pluginmanager.register(_Plugin(Tracer(Path(evertally.__file__).parent)))
