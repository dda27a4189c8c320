"""Two small pools of threads: one parses batches, one reads the release log. Neither can starve the other.

Batches are parsed one at a time for each caller: who sends many large ones has one thread, and waits for himself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

_PARSING = 2


@dataclass
class _Turn:
    """Of one caller: how many of its batches want to be parsed, and that one of them is."""

    wanted: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Workers:
    """Runs blocking work off the event loop. Few threads: each reader keeps a connection to the store."""

    def __init__(self) -> None:
        self._parsing = ThreadPoolExecutor(_PARSING, "evertally-parse")
        self._free = asyncio.Semaphore(_PARSING)
        self._turns: dict[str, _Turn] = {}
        self._reading = ThreadPoolExecutor(2, "evertally-read")

    async def parse(self, caller: str, work: Callable[[], T]) -> T:
        # Both let in whoever came first. Of one caller only one waits for a thread: so callers take turns.
        turn = self._turns.setdefault(caller, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock, self._free:
                return await asyncio.get_running_loop().run_in_executor(self._parsing, work)
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[caller]

    async def read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    def close(self) -> None:
        self._parsing.shutdown(cancel_futures=True)
        self._reading.shutdown(cancel_futures=True)
