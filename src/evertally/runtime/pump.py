"""The thread that owns a live stream: batches come to it, ticks leave it.

Batches that wait together are made durable together (one fsync). A tick is computed when its time is over and published
a fixed time after that, so that the moment of publication does not tell how long it took. What is late is published at
the next multiple of that fixed time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeVar

from evertally.errors import ConfigurationError, EvertallyError, StateError, described
from evertally.runtime.figures import Figures
from evertally.runtime.inbox import Inbox
from evertally.runtime.input.batches import Piece
from evertally.runtime.input.encoded import BatchFailed, Encoded, received
from evertally.runtime.input.envelope import BatchRefused
from evertally.runtime.input.feeds import Feed
from evertally.runtime.input.folder import Unread
from evertally.runtime.input.quarantine import Quarantine
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import length
from evertally.runtime.live import Live, Receipt
from evertally.runtime.plan import Plan
from evertally.runtime.releases import TickRelease
from evertally.runtime.room import Busy, check_room
from evertally.runtime.state.store import TakenOver
from evertally.secret import Secret

T = TypeVar("T")

_TOGETHER = 256  # batches in one transaction
_BYTES_TOGETHER = 2**24  # of them, so that nobody waits for more than that of others
_CLOSED_AT_ONCE = 100_000  # ticks on one request: a slip of the pen must not spend a horizon
_CATCH_UP_TICKS = 256  # released between two looks at the queue
_POLL_SECONDS = 0.2  # between two looks at folders and brokers
_LEAP_SECONDS = 60.0  # by which the wall clock may leap against the steady one before the stream stops
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former goes on while the machine sleeps


class Stopped(StateError):
    """The stream has stopped; its state is safe."""


@dataclass(frozen=True, repr=False)
class _Submitted(Secret):
    batch_id: str
    batch: Batch | Encoded
    caller: str
    rows: int
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
        self._inbox: Inbox[_Submitted, _Close] = Inbox()
        self._lock = threading.Lock()
        self._subscribers: list[Callable[[TickRelease], None]] = []
        self._due: list[tuple[float, TickRelease]] = []  # committed, to be published at a moment of the wall clock
        self._thread = threading.Thread(target=self._run, name="evertally-pump", daemon=True)
        self._stopping = False
        self._next_poll = 0.0
        self._wall_ahead: float | None = None
        self.published = live.released if not live.replaying else 0
        self.failure: str | None = None
        self._figures = Figures(memory=live.memory)
        self._quarantine = Quarantine.beside(live.spec.state_file)
        self.foreseen = True  # a failure that is not is an error of the program
        self.problems: list[str] = []  # with folders and brokers, one sentence each; replaced as a whole

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes what was accepted, closes the stream, returns when all of it is on disk."""
        self._stopping = True
        self._inbox.wake()
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

    @property
    def figures(self) -> Figures:
        """As they are now. May be called from any thread."""
        queued, waiting = self._inbox.waiting, self._live.waiting
        return self._figures.now(queued, waiting, queued=len(self._inbox), quarantined=self._quarantine.held)

    def received(self, body: bytes, media_type: str, caller: str) -> Encoded:
        """A body as a batch that can be submitted: all that depends on what it holds. May be called from any thread.
        Raises BatchRefused, or BatchFailed if it cannot be taken."""
        return received(body, media_type, self._live.spec, self._live.released + 1, caller)

    def submit(self, batch_id: str, batch: Batch | Encoded, size: int, caller: str = "") -> Future[Receipt]:
        """A batch of `size` bytes; the receipt comes when it is durable. Raises Busy or Stopped."""
        rows = batch.rows if isinstance(batch, Encoded) else length(batch)
        submitted = _Submitted(batch_id, batch, caller, rows, size, Future())
        with self._lock:
            self._check_working()
            try:
                check_room(self._live.spec.serve, self._inbox, self._live.waiting, caller, rows, size)
            except Busy:
                self._figures.refuse(caller)
                raise
            self._inbox.put(caller, submitted, rows, size)
        return submitted.receipt

    def turned_away(self, caller: str) -> None:
        """Somebody was asked to come again before there was a batch to submit."""
        with self._lock:
            self._figures.refuse(caller)

    def failed(self, caller: str) -> None:
        """Taking a batch of somebody failed before it was submitted."""
        with self._lock:
            self._figures.fail(caller)

    def told(self, webhook: str, failure: str | None) -> None:
        """Why a webhook fails; None while it delivers."""
        self._figures.webhooks[webhook] = failure

    def close_until(self, until: object) -> Future[int]:
        """Closes all ticks that are over at `until`; the last released tick comes when they are published."""
        if self._on_wall:
            raise ConfigurationError('ticks close on the wall clock; [clock] close = "request" lets you close them')
        close = _Close(until, Future())
        with self._lock:
            self._check_working()
            self._inbox.put_request(close)
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
                while self._take(block=0.0):
                    pass
        except EvertallyError as error:
            self.failure = str(error)
        except BaseException as error:
            self.failure, self.foreseen = f"internal error, {described(error)}", False
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

    def _take(self, block: float) -> bool:
        """What has been submitted: some batches together, or something else. Whether there was anything."""
        taken = self._inbox.take(_TOGETHER, _BYTES_TOGETHER, timeout=block)
        if isinstance(taken, _Close):
            self._close(taken)
            return True
        if taken:
            self._accept(taken)
        return bool(taken)

    def _accept(self, submitted: Sequence[_Submitted]) -> None:
        answers: Sequence[Receipt | EvertallyError]
        try:
            answers = self._live.accept([(one.batch_id, one.batch) for one in submitted])
        except TakenOver as error:
            for one in submitted:
                _refuse(one.receipt, Stopped(str(error)))
            raise
        except EvertallyError as error:
            answers = [error] * len(submitted)
        except BaseException:
            for one in submitted:
                _refuse(one.receipt, Stopped("the stream has stopped; its state is safe"))
            raise
        finally:
            # Before anybody is answered: who sends on at once must not find the batch still in the queue.
            for one in submitted:
                self._inbox.done(one.caller, one.rows, one.size)
        for one, answer in zip(submitted, answers, strict=True):
            if isinstance(answer, BatchFailed):
                self.failed(one.caller)
            if isinstance(answer, EvertallyError):
                _refuse(one.receipt, answer)
            else:
                self._figures.count(one.caller, one.rows, one.size, answer.duplicate)
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
            except StateError:
                raise
            except Exception as error:  # of this folder or broker alone
                self._unread[number] = (described(error),)
        self._tell_problems()

    def _tell_problems(self) -> None:
        ticks = [self._live.trouble] if self._live.trouble else []
        self.problems = [*(problem for problems in self._unread for problem in problems), *ticks]
        self._figures.problem = "; ".join(self.problems) or None

    def _drain(self, pieces: Generator[Piece]) -> bool:
        """Takes what a feed has; whether it came to its end."""
        refused: BatchRefused | None = None
        serve = self._live.spec.serve
        while not self._tick_is_over():
            waiting = self._live.waiting.all
            if waiting.bytes > serve.max_waiting_bytes or waiting.rows > serve.max_waiting_rows:
                return False
            try:
                # What could not be taken goes back: whoever offered it knows what it was.
                piece = next(pieces) if refused is None else pieces.throw(refused)
            except StopIteration:
                return True
            if self._live.over:
                return False
            [answer] = self._live.accept([(piece.batch_id, piece.batch)], piece.marks)
            refused = answer if isinstance(answer, BatchRefused) else None
            if isinstance(answer, Receipt):
                self._figures.count("", length(piece.batch), 0, answer.duplicate)
            else:
                self.failed("")
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
        self._figures.tick_seconds, self._figures.memory = time.monotonic() - started, self._live.memory
        self._tell_problems()
        for tick in ticks:
            self._due.append((self._moment(tick), tick))
        if not ticks and not self._live.replaying:  # a replay has just arrived: all of it was published before
            self.published = self._live.released

    def _moment(self, tick: TickRelease) -> float:
        """When a tick is published: `publish_after` seconds after its end, or at the next multiple of that."""
        after = self._live.spec.serve.publish_after
        passed = self._live.now() / 1e6 - self._end(tick.tick)
        self._figures.late_seconds = max(0.0, passed - after)
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
                self._figures.tick_seconds, self._figures.memory = time.monotonic() - started, live.memory
        except ConfigurationError as error:
            _refuse(close.released, error)
        except BaseException:
            _refuse(close.released, Stopped("the stream has stopped; its state is safe"))
            raise
        else:
            self._tell_problems()
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
        self._figures.clock_behind_seconds = max(0.0, self._end(self._live.released) - now)
        if leap > _LEAP_SECONDS:
            raise StateError(
                f"the wall clock leapt forward by {leap:.0f} seconds; no tick was closed for it. Check the clock and "
                "start again: the time that has passed by then counts as idle"
            )

    def _abandon(self) -> None:
        """Answers all who still wait. Under the lock: nobody can come after it."""
        with self._lock:
            self._stopping = True
            while item := self._inbox.take(_TOGETHER, _BYTES_TOGETHER):
                waiting = [item.released] if isinstance(item, _Close) else [one.receipt for one in item]
                for future in waiting:
                    _refuse(future, Stopped(self.failure or "the stream has stopped"))


# Whoever waits may have gone: an answer to nobody must not stop the stream.


def _answer(waiting: Future[T], result: T) -> None:
    if waiting.set_running_or_notify_cancel():
        waiting.set_result(result)


def _refuse(waiting: Future[Any], error: Exception) -> None:
    if waiting.set_running_or_notify_cancel():
        waiting.set_exception(error)
