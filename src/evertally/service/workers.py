"""Two small pools of threads: one parses batches, one reads the release log. Neither can starve the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """Runs blocking work off the event loop. Few threads: each reader keeps a connection to the store."""

    def __init__(self) -> None:
        self._parsing = ThreadPoolExecutor(2, "evertally-parse")
        self._reading = ThreadPoolExecutor(2, "evertally-read")

    async def parse(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._parsing, work)

    async def read(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    def close(self) -> None:
        self._parsing.shutdown(cancel_futures=True)
        self._reading.shutdown(cancel_futures=True)
