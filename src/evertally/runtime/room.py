"""How much may wait: altogether, and of one caller."""

from __future__ import annotations

from typing import Any

from evertally.errors import EvertallyError
from evertally.runtime.amounts import Amounts
from evertally.runtime.inbox import Inbox
from evertally.runtime.spec.types import ServeSpec

_LONGEST_QUEUE = 1024  # batches


class Busy(EvertallyError):
    """More waits than may wait. Send the same batch again later."""


def check_room(serve: ServeSpec, inbox: Inbox[Any, Any], kept: Amounts, caller: str, rows: int, size: int) -> None:
    """Raises Busy if there is no room for a batch: in the inbox and for the tick, `kept`, so much may wait of all, and
    half of it (but one batch) of one caller, so that the others find room."""
    queued = inbox.waiting
    if (
        len(inbox) >= _LONGEST_QUEUE
        or queued.all.rows + kept.all.rows + rows > serve.max_waiting_rows
        or queued.all.bytes + kept.all.bytes + size > serve.max_waiting_bytes
    ):
        raise Busy("more events wait for their tick than [serve] lets wait (max_waiting_...); try again later")
    if caller and (
        inbox.batches_of(caller) >= _LONGEST_QUEUE // 2
        or queued.of(caller).rows + kept.of(caller).rows + rows > max(serve.max_waiting_rows // 2, serve.max_batch_rows)
        or queued.of(caller).bytes + kept.of(caller).bytes + size
        > max(serve.max_waiting_bytes // 2, serve.max_batch_bytes)
    ):
        raise Busy("as many of your events wait for their tick as one caller may have; try again later")
