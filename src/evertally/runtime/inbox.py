"""Where batches wait for the thread that owns a stream: everybody's in turn, and nobody's behind all of another's."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Generic, TypeVar

from evertally.runtime.amounts import Amounts
from evertally.secret import Secret

B = TypeVar("B")
R = TypeVar("R")

_Turns = OrderedDict[str, deque[tuple[B, int]]]  # by caller, who is next first: (batch, bytes)


class Inbox(Secret, Generic[B, R]):
    """Batches of many callers, and requests of another kind, each of which comes after all that was put before it.

    >>> inbox = Inbox()
    >>> for caller, batch in (("greedy", 1), ("greedy", 2), ("greedy", 3), ("small", 4)):
    ...     inbox.put(caller, batch, rows=1, size=10)
    >>> inbox.put_request("close")
    >>> inbox.put("small", 5, rows=1, size=10)
    >>> inbox.take(2, 1000), inbox.take(9, 1000), inbox.take(9, 1000), inbox.take(9, 1000)
    ([1, 4], [2, 3], 'close', [5])
    """

    def __init__(self) -> None:
        self._filled = threading.Condition()
        self._woken = False
        self._queue: deque[_Turns[B] | R] = deque()
        self.waiting = Amounts()  # with what was taken and is not done yet
        self._length = 0
        self._batches: dict[str, int] = {}

    def __len__(self) -> int:
        return self._length

    def batches_of(self, caller: str) -> int:
        return self._batches.get(caller, 0)

    def put(self, caller: str, batch: B, rows: int, size: int) -> None:
        with self._filled:
            if not self._queue or not isinstance(self._queue[-1], OrderedDict):
                self._queue.append(OrderedDict())
            turns = self._queue[-1]
            assert isinstance(turns, OrderedDict)
            turns.setdefault(caller, deque()).append((batch, size))
            self.waiting.add(caller, rows, size)
            self._batches[caller] = self.batches_of(caller) + 1
            self._length += 1
            self._filled.notify()

    def put_request(self, request: R) -> None:
        with self._filled:
            self._queue.append(request)
            self._filled.notify()

    def wake(self) -> None:
        """Ends the waiting of `take`, now or the next time."""
        with self._filled:
            self._woken = True
            self._filled.notify()

    def take(self, most: int, size: int, timeout: float = 0.0) -> list[B] | R:
        """Some batches, from each caller in turn, not beyond `size` bytes unless it is one batch; or a request. If
        nothing comes, an empty list."""
        with self._filled:
            if timeout > 0:
                self._filled.wait_for(lambda: self._queue or self._woken, timeout)
            self._woken = False
            if not self._queue:
                return []
            first = self._queue[0]
            if not isinstance(first, OrderedDict):
                self._queue.popleft()
                return first
            taken = self._taken(first, most, size)
            if not first:
                self._queue.popleft()
            return taken

    def done(self, caller: str, rows: int, size: int) -> None:
        """A batch that was taken waits no longer, or waits elsewhere."""
        with self._filled:
            self.waiting.take(caller, rows, size)

    def _taken(self, turns: _Turns[B], most: int, left: int) -> list[B]:
        taken: list[B] = []
        while turns and len(taken) < most:
            caller, batches = next(iter(turns.items()))
            batch, size = batches[0]
            if taken and size > left:
                break
            taken.append(batch)
            batches.popleft()
            left -= size
            turns.move_to_end(caller)
            if not batches:
                del turns[caller]
            self._batches[caller] -= 1
            self._length -= 1
            if not self._batches[caller]:
                del self._batches[caller]
        return taken
