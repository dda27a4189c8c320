"""Calls that end half-way, and calls that enter together: what must hold when Ctrl-C, a time-out or a thread comes in.

A trace function (`sys.settrace`) sees every line of the package before it runs, and raises there, or lets somebody else
in there. It stands for a signal handler, which Python runs between any two lines.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import evertally

_PACKAGE = str(Path(evertally.__file__).parent)
_OURSELVES = str(Path(__file__).parent)

Line = tuple[CodeType, int]
Return = tuple[CodeType, int, str]
Place = Line | Return
OnLine = Callable[[Line], None]


class Interruption(BaseException):
    """What a signal handler or a lack of memory raises, at a line of our choice."""


def watched(call: Callable[[], Any], on_line: OnLine, of: CodeType | None = None) -> Any:
    """Calls, and calls `on_line` before every line of the package that runs, or only before those of one function."""

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            on_line((frame.f_code, frame.f_lineno))
        return local

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if of is not None:
            return local if code is of else None
        file = code.co_filename
        return local if file.startswith(_PACKAGE) and not file.startswith(_OURSELVES) else None

    return _under(call, enter, sys.gettrace, sys.settrace)


def lines_of(call: Callable[[], Any]) -> tuple[Any, list[Line]]:
    """The result of a call, and the lines that it ran, each once, in the order of their first time."""
    seen: dict[Line, None] = {}
    result = watched(call, lambda line: seen.setdefault(line))
    return result, list(seen)


def interrupted(call: Callable[[], Any], at: Place, files: tuple[str, ...] = ()) -> bool:
    """Calls, and raises when the line is about to run for the first time, or when a built-in function has returned to
    this place in one of these files: there, between two instructions of one line, Python runs signal handlers. Whether
    it came to that."""

    def stop(place: Place) -> None:
        if place == at:
            raise Interruption

    try:
        if len(at) == 2:
            watched(call, stop, of=at[0])
        else:
            _profiled(call, files, stop)
    except Interruption:
        return True
    return False


def returns_of(call: Callable[[], Any], files: tuple[str, ...]) -> tuple[Any, list[Return]]:
    """The result of a call, and the places in these files to which built-in functions returned, each once."""
    seen: dict[Return, None] = {}
    result = _profiled(call, files, lambda place: seen.setdefault(place))
    return result, list(seen)


def _profiled(call: Callable[[], Any], files: tuple[str, ...], on_return: Callable[[Return], Any]) -> Any:
    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_return" and frame.f_code.co_filename.endswith(files):
            on_return((frame.f_code, frame.f_lineno, argument.__name__))

    return _under(call, profile, sys.getprofile, sys.setprofile)


def _under(call: Callable[[], Any], hook: Any, current: Callable[[], Any], install: Callable[[Any], None]) -> Any:
    before = current()
    install(hook)
    try:
        return call()
    finally:
        install(before)


def entered(call: Callable[[], Any], at: Line, other: Callable[[], Any]) -> tuple[Any, list[BaseException | None]]:
    """Calls, and when the line is about to run, calls `other` from this thread (as a signal handler does) and from
    another one. The result, and what the two others raised."""
    raised: list[BaseException | None] = []

    def try_other() -> None:
        try:
            other()
            raised.append(None)
        except BaseException as error:
            raised.append(error)

    def let_in(line: Line) -> None:
        if line == at and not raised:
            try_other()
            thread = threading.Thread(target=try_other)
            thread.start()
            thread.join()

    return watched(call, let_in), raised


def name_of(place: Place) -> str:
    at = f"at {Path(place[0].co_filename).name}:{place[1]} in {place[0].co_name}"
    return at if len(place) == 2 else f"after {place[2]} {at}"
