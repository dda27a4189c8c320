"""The thread that owns a live stream: batches come to it, ticks leave it.

Batches that wait together are made durable together (one fsync). A tick is computed when its time is over and published
a fixed time after that, so that the moment of publication does not tell how long it took. What is late is published at
the next multiple of that fixed time.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeVar

from evertally.errors import ConfigurationError, EvertallyError, StateError, described
from evertally.runtime.input.batches import Piece
from evertally.runtime.input.envelope import BatchRefused
from evertally.runtime.input.feeds import Feed
from evertally.runtime.input.folder import Unread
from evertally.runtime.input.sources import Batch
from evertally.runtime.live import Live, Receipt
from evertally.runtime.plan import Plan
from evertally.runtime.releases import TickRelease
from evertally.secret import Secret

T = TypeVar("T")

_LONGEST_QUEUE = 1024  # batches
_TOGETHER = 256  # batches in one transaction
_CLOSED_AT_ONCE = 100_000  # ticks on one request: a slip of the pen must not spend a horizon
_CATCH_UP_TICKS = 256  # released between two looks at the queue
_POLL_SECONDS = 0.2  # between two looks at folders and brokers
_LEAP_SECONDS = 60.0  # by which the wall clock may leap against the steady one before the stream stops
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former goes on while the machine sleeps


class Busy(EvertallyError):
    """More waits than may wait. Send the same batch again later."""


class Stopped(StateError):
    """The stream has stopped; its state is safe."""


@dataclass(repr=False)
class Figures(Secret):
    """What an administrator may see. The sizes are private: they are not noised."""

    batches: int = 0
    bytes: int = 0
    duplicates: int = 0
    refused_busy: int = 0
    queued: int = 0
    waiting_bytes: int = 0
    tick_seconds: float = 0.0  # to compute and commit the last tick
    late_seconds: float = 0.0  # by which the last tick missed its moment
    clock_behind_seconds: float = 0.0  # by which the wall clock has gone back behind the stream
    memory: dict[str, int] = field(default_factory=dict)  # bytes of each query, about, a few seconds ago
    problem: str | None = None  # with folders and brokers
    webhooks: dict[str, str | None] = field(default_factory=dict)  # why each of them fails, None while it delivers


@dataclass(frozen=True, repr=False)
class _Submitted(Secret):
    batch_id: str
    batch: Batch
    size: int
    receipt: Future[Receipt]


@dataclass(frozen=True)
class _Close:
    until: object
    released: Future[int]


class Pump(Secret):
    """Feeds a `Live`, closes its ticks, tells subscribers. Start it once; after `stop` it is done."""

    def __init__(self, live: Live, feeds: Sequence[Feed] = ()) -> None:
        self._live, self._feeds = live, feeds
        self._unread: list[Sequence[str]] = [()] * len(feeds)  # what is wrong with each of them
        self._on_wall = live.spec.clock.close == "wall"
        self._queue: queue.Queue[_Submitted | _Close | None] = queue.Queue()
        self._lock = threading.Lock()
        self._queued_bytes = 0
        self._subscribers: list[Callable[[TickRelease], None]] = []
        self._due: list[tuple[float, TickRelease]] = []  # committed, to be published at a moment of the wall clock
        self._thread = threading.Thread(target=self._run, name="evertally-pump", daemon=True)
        self._stopping = False
        self._next_poll = 0.0
        self._wall_ahead: float | None = None
        self.published = live.released if not live.replaying else 0
        self.failure: str | None = None
        self.figures = Figures(memory=live.memory)
        self.problems: list[str] = []  # with folders and brokers, one sentence each; replaced as a whole

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes what was accepted, closes the stream, returns when all of it is on disk."""
        self._stopping = True
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    @property
    def working(self) -> bool:
        return self._thread.is_alive() and self.failure is None and not self._stopping

    @property
    def ended(self) -> bool:
        """Whether the last tick is published."""
        return self._live.last_tick is not None and self.published >= self._live.last_tick

    def described(self) -> tuple[Plan, dict[str, Any]]:
        """Plan and certificate of what runs. May be called from any thread."""
        return self._live.described()

    def laws(self) -> tuple[dict[str, Any], bool]:
        """What windows are made with (`Live.laws`). May be called from any thread."""
        return self._live.laws()

    def submit(self, batch_id: str, batch: Batch, size: int) -> Future[Receipt]:
        """A batch of `size` bytes; the receipt comes when it is durable. Raises Busy or Stopped."""
        with self._lock:
            waiting = self._queued_bytes + self._live.waiting_bytes + size
            self._check_working()
            if waiting > self._live.spec.serve.max_waiting_bytes or self._queue.qsize() >= _LONGEST_QUEUE:
                self.figures.refused_busy += 1
                raise Busy("more events wait for their tick than [serve] max_waiting_bytes allows; try again later")
            self._queued_bytes += size
            submitted = _Submitted(batch_id, batch, size, Future())
            self._queue.put(submitted)
        return submitted.receipt

    def close_until(self, until: object) -> Future[int]:
        """Closes all ticks that are over at `until`; the last released tick comes when they are published."""
        if self._on_wall:
            raise ConfigurationError('ticks close on the wall clock; [clock] close = "request" lets you close them')
        close = _Close(until, Future())
        with self._lock:
            self._check_working()
            self._queue.put(close)
        return close.released

    def _check_working(self) -> None:
        if not self.working:
            raise Stopped(self.failure or "the stream is stopping")

    def subscribe(self, callback: Callable[[TickRelease], None]) -> Callable[[], None]:
        """`callback` gets every tick from now on when it is published, in the pump's thread. Returns the way out."""
        with self._lock:
            self._subscribers.append(callback)

        def unsubscribe() -> None:
            with self._lock:
                if callback in self._subscribers:
                    self._subscribers.remove(callback)

        return unsubscribe

    def _run(self) -> None:
        try:
            with self._live:
                while not self._stopping:
                    self._turn()
                self._take(block=0.0)
        except EvertallyError as error:
            self.failure = str(error)
        except BaseException as error:
            self.failure = f"internal error, {described(error)}"
        finally:
            self._abandon()

    def _turn(self) -> None:
        self._take(block=self._seconds_to_wait())
        self._poll()
        if self._on_wall:
            self._watch_clock()
            self._close_passed()
        self._publish_due()

    def _seconds_to_wait(self) -> float:
        now = self._live.now() / 1e6
        moments = [moment for moment, _ in self._due[:1]]
        if self._on_wall and not self._live.ended:
            moments.append(self._end(self._live.released + 1))
        wait = min((moment - now for moment in moments), default=1.0)
        return max(0.0, min(wait, 1.0, _POLL_SECONDS if self._feeds else 1.0))

    def _take(self, block: float) -> None:
        """What has been submitted: batches together, until something else comes."""
        together: list[_Submitted] = []
        try:
            item = self._queue.get(timeout=block) if block > 0 else self._queue.get_nowait()
            while True:
                if isinstance(item, _Submitted):
                    together.append(item)
                elif item is not None:
                    self._accept(together)
                    together = []
                    self._close(item)
                if len(together) >= _TOGETHER:
                    break
                item = self._queue.get_nowait()
        except queue.Empty:
            pass
        self._accept(together)

    def _accept(self, submitted: Sequence[_Submitted]) -> None:
        if not submitted:
            return
        answers: Sequence[Receipt | EvertallyError]
        try:
            answers = self._live.accept([(one.batch_id, one.batch) for one in submitted])
        except EvertallyError as error:
            answers = [error] * len(submitted)
        finally:
            # Before anybody is answered: who sends on at once must not find the batch still in the queue.
            with self._lock:
                self._queued_bytes -= sum(one.size for one in submitted)
            self.figures.queued = self._queue.qsize()
            self.figures.waiting_bytes = self._live.waiting_bytes
        for one, answer in zip(submitted, answers, strict=True):
            if isinstance(answer, EvertallyError):
                _refuse(one.receipt, answer)
            else:
                self.figures.batches += 1
                self.figures.bytes += one.size
                self.figures.duplicates += answer.duplicate
                _answer(one.receipt, answer)

    def _poll(self) -> None:
        """New batches of folders and brokers, as long as they may wait. One that cannot be read holds up no tick."""
        if not self._feeds or time.monotonic() < self._next_poll:
            return
        self._next_poll = time.monotonic() + _POLL_SECONDS
        for number, feed in enumerate(self._feeds):
            try:
                # A feed tells of its problems at its end; until it is there, those that it told last remain.
                if self._drain(feed()):
                    self._unread[number] = ()
            except Unread as error:
                self._unread[number] = error.problems
            except ConfigurationError as error:  # the folder or the broker; a StateError ends the stream
                self._unread[number] = (str(error),)
        self.problems = [problem for problems in self._unread for problem in problems]
        self.figures.problem = "; ".join(self.problems) or None

    def _drain(self, pieces: Iterator[Piece]) -> bool:
        """Takes what a feed has; whether it came to its end."""
        while self._live.waiting_bytes <= self._live.spec.serve.max_waiting_bytes and not self._tick_is_over():
            piece = next(pieces, None)
            if piece is None:
                return True
            if self._live.over:
                return False
            for answer in self._live.accept([(piece.batch_id, piece.batch)], piece.marks):
                if isinstance(answer, BatchRefused):
                    raise answer
                self.figures.batches += 1
                self.figures.duplicates += answer.duplicate
        return False

    def _end(self, tick: int) -> float:
        clock = self._live.spec.clock
        return (clock.start + tick * clock.length) / 1e6

    def _tick_is_over(self) -> bool:
        return self._on_wall and not self._live.ended and self._live.now() / 1e6 >= self._end(self._live.released + 1)

    def _close_passed(self) -> None:
        if not self._tick_is_over():
            return
        passed = self._live.spec.clock.open_tick(self._live.now()) - 1
        stop = min(passed, self._live.released + _CATCH_UP_TICKS, self._live.last_tick or passed)
        started = time.monotonic()
        ticks = self._live.release_through(stop)
        self.figures.tick_seconds, self.figures.memory = time.monotonic() - started, self._live.memory
        for tick in ticks:
            self._due.append((self._moment(tick), tick))
        if not ticks and not self._live.replaying:  # a replay has just arrived: all of it was published before
            self.published = self._live.released

    def _moment(self, tick: TickRelease) -> float:
        """When a tick is published: `publish_after` seconds after its end, or at the next multiple of that."""
        after = self._live.spec.serve.publish_after
        passed = self._live.now() / 1e6 - self._end(tick.tick)
        self.figures.late_seconds = max(0.0, passed - after)
        moment = self._end(tick.tick) + after * max(1, math.ceil(passed / after))
        return max(moment, self._due[-1][0]) if self._due else moment

    def _publish_due(self) -> None:
        now = self._live.now() / 1e6
        ready = list(takewhile(lambda due: due[0] <= now, self._due))
        self._due = self._due[len(ready) :]
        self._publish([tick for _, tick in ready])

    def _publish(self, ticks: Sequence[TickRelease]) -> None:
        self._live.publish(ticks)
        for tick in ticks:
            with self._lock:
                self.published = tick.tick
                subscribers = list(self._subscribers)
            for callback in subscribers:
                callback(tick)

    def _close(self, close: _Close) -> None:
        live, clock = self._live, self._live.spec.clock
        try:
            tick = clock.tick_before(close.until)
            away = tick - live.released
            if away > _CLOSED_AT_ONCE:
                raise ConfigurationError(f"until is {away} ticks away; at most {_CLOSED_AT_ONCE} are closed at once")
            if live.last_tick is not None and tick > live.last_tick:
                raise ConfigurationError(f"until is after the last tick, {clock.end_of(live.last_tick)}")
            while live.released < tick:
                started = time.monotonic()
                self._publish(live.release_through(min(tick, live.released + _CATCH_UP_TICKS)))
                self.figures.tick_seconds, self.figures.memory = time.monotonic() - started, live.memory
        except ConfigurationError as error:
            _refuse(close.released, error)
        except BaseException:
            _refuse(close.released, Stopped("the stream has stopped; its state is safe"))
            raise
        else:
            self.published = max(self.published, 0 if live.replaying else live.released)
            _answer(close.released, live.released)

    def _watch_clock(self) -> None:
        """A wall clock that leaps forward would spend the horizon on idle ticks: stop instead, and let a person look.

        One that goes back closes no tick until it has caught up.
        """
        now = self._live.now() / 1e6
        ahead = now - time.clock_gettime(_STEADY)
        leap = ahead - (ahead if self._wall_ahead is None else self._wall_ahead)
        self._wall_ahead = ahead
        self.figures.clock_behind_seconds = max(0.0, self._end(self._live.released) - now)
        if leap > _LEAP_SECONDS:
            raise StateError(
                f"the wall clock leapt forward by {leap:.0f} seconds; no tick was closed for it. Check the clock and "
                "start again: the time that has passed by then counts as idle"
            )

    def _abandon(self) -> None:
        """Answers all who still wait. Under the lock: nobody can come after it."""
        with self._lock:
            self._stopping = True
            while not self._queue.empty():
                item = self._queue.get_nowait()
                if item is not None:
                    waiting: Future[Any] = item.receipt if isinstance(item, _Submitted) else item.released
                    _refuse(waiting, Stopped(self.failure or "the stream has stopped"))


# Whoever waits may have gone: an answer to nobody must not stop the stream.


def _answer(waiting: Future[T], result: T) -> None:
    if waiting.set_running_or_notify_cancel():
        waiting.set_result(result)


def _refuse(waiting: Future[Any], error: Exception) -> None:
    if waiting.set_running_or_notify_cancel():
        waiting.set_exception(error)
