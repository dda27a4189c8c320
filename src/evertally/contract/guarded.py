"""One call at a time, and all of a call or nothing of it.

Ctrl-C, a time-out or a lack of memory may end a call at any line. A mechanism whose sums had moved and whose tick had
not would count the same events again at the next try, and release their double. So:

* everything that a mechanism has committed is one object, `Kept`, and is replaced by one assignment, last;
* engines work ahead of it. Before a call uses an engine that is not where `Kept` says, the engine goes back: linear
  noise is a function of the tick and is made anew, engines that change in place return to their state before the
  call, and where there is no way back the mechanism refuses;
* a call that raises has released nothing, so it leaves `Kept` as it was, whatever it had done;
* a second call that enters while one is inside (another thread, a signal handler) is refused.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar, cast

from evertally.encode import UserTick
from evertally.errors import InterruptedCall
from evertally.secret import Secret


@dataclass(repr=False, slots=True)
class Kept(Secret):
    """All that a mechanism has committed. A value that is never changed, only replaced; one is made for every tick, and
    a data class that forbids changes takes four times as long. Secret."""

    tick: int = 0
    played: Any = None  # what the engine has to keep, and what it released last
    totals: Any = None  # the last tick's input, until its digest is asked for
    digest: bytes = b""
    users: UserTick = field(default_factory=UserTick)  # the cap moves with the release


Call = TypeVar("Call", bound=Callable[..., Any])


def exclusive(method: Call) -> Call:
    """A public call: alone, from a settled state, and without a trace if it raises."""

    @functools.wraps(method)
    def guarded(self: Guarded, *arguments: Any, **options: Any) -> Any:
        # Python runs signal handlers after calls. So the ticket is there before it is put in, and from the last call on
        # nothing is called: no interruption can come between the commit and the return, or leave the ticket behind.
        turn, ticket, kept = self._turn, object(), None
        try:
            if turn.setdefault("inside", ticket) is not ticket:
                raise InterruptedCall(
                    "this mechanism is inside another call: another thread or a signal handler is using it. Let one "
                    "thread use it at a time; if none does, restore it from its last snapshot"
                )
            kept = self._kept
            self._settle()
            result = method(self, *arguments, **options)
            self._handed_out(self._kept.tick)
            del turn["inside"]; return result  # noqa: E702  # fmt: skip
        except BaseException:
            if "inside" in turn and turn["inside"] is ticket:
                if kept is not None:  # the caller gets no release, so no tick is used
                    self._kept = kept
                del turn["inside"]
            raise

    return cast(Call, guarded)


class Guarded(Secret, ABC):
    """The state of a mechanism behind one assignment. Not used directly; see `Contract`."""

    def __init__(self) -> None:
        self._turn: dict[str, object] = {}  # the ticket of the call that is inside; `setdefault` lets one in
        self._kept = Kept()
        self._engine_tick: int | None = 0  # where the engine is; None while it moves

    @property
    def tick(self) -> int:
        """Ticks released so far."""
        return self._kept.tick

    @abstractmethod
    def _go_back(self, kept: Kept) -> None:
        """Brings the engine to the committed state, from wherever an interrupted call left it, or raises."""

    @abstractmethod
    def _handed_out(self, tick: int) -> None:
        """The caller gets releases up to this tick now."""

    def _settle(self) -> None:
        """What an interrupted call left is taken back, or the mechanism refuses. Can itself be interrupted."""
        if self._engine_tick != self._kept.tick:
            self._go_back(self._kept)
            self._engine_tick = self._kept.tick

    def _moved(self, count: int, play: Callable[[], Any]) -> Any:
        """Plays `count` ticks on the engine; nothing is committed yet."""
        self._engine_tick = None
        played = play()
        self._engine_tick = self._kept.tick + count
        return played


def no_way_back() -> NoReturn:
    """For engines that cannot undo: what an interrupted call changed would be counted twice."""
    raise InterruptedCall(
        "a call was interrupted while it changed the state of this mechanism; going on would count its events twice. "
        "Restore it from its last snapshot: et.restore(snapshot, key=key)"
    )
