"""What an administrator may see of a running stream. The sizes are private: they are not noised."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evertally.runtime.amounts import Amounts
from evertally.secret import Secret


@dataclass(repr=False)
class ClientFigures(Secret):
    """Of one caller, since the start."""

    batches: int = 0
    rows: int = 0
    bytes: int = 0
    refused_busy: int = 0
    failed: int = 0
    waiting_rows: int = 0
    waiting_bytes: int = 0


@dataclass(repr=False)
class Figures(Secret):
    """Of all callers and sources since the start, and how the stream is."""

    batches: int = 0
    bytes: int = 0
    duplicates: int = 0
    refused_busy: int = 0  # because too much waited, or was being sent
    failed: int = 0  # batches that could not be taken though nothing was wrong with their envelope
    quarantined: int = 0  # files and messages that were set aside and wait for the operator
    queued: int = 0
    waiting_rows: int = 0
    waiting_bytes: int = 0
    tick_seconds: float = 0.0  # to compute and commit the last tick
    late_seconds: float = 0.0  # by which the last tick missed its moment
    clock_behind_seconds: float = 0.0  # by which the wall clock has gone back behind the stream
    memory: dict[str, int] = field(default_factory=dict)  # bytes of each query, about, a few seconds ago
    problem: str | None = None  # with folders and brokers
    webhooks: dict[str, str | None] = field(default_factory=dict)  # why each of them fails, None while it delivers
    clients: dict[str, ClientFigures] = field(default_factory=dict)  # by the name of their token

    def now(self, *waiting: Amounts, queued: int, quarantined: int) -> Figures:
        """With what waits, in these places, and what was set aside. May be called from any thread."""
        clients = {
            name: replace(
                client,
                waiting_rows=sum(place.of(name).rows for place in waiting),
                waiting_bytes=sum(place.of(name).bytes for place in waiting),
            )
            for name, client in dict(self.clients).items()
        }
        return replace(
            self,
            clients=clients,
            queued=queued,
            quarantined=quarantined,
            waiting_rows=sum(place.all.rows for place in waiting),
            waiting_bytes=sum(place.all.bytes for place in waiting),
        )

    def of(self, caller: str) -> ClientFigures:
        return self.clients.setdefault(caller, ClientFigures())

    def count(self, caller: str, rows: int, size: int, duplicate: bool) -> None:
        """A batch was accepted."""
        self.batches += 1
        self.bytes += size
        self.duplicates += duplicate
        if caller:
            client = self.of(caller)
            client.batches += 1
            client.bytes += size
            client.rows += rows

    def refuse(self, caller: str) -> None:
        """Somebody was asked to come again later."""
        self.refused_busy += 1
        if caller:
            self.of(caller).refused_busy += 1

    def fail(self, caller: str) -> None:
        """A batch could not be taken."""
        self.failed += 1
        if caller:
            self.of(caller).failed += 1
