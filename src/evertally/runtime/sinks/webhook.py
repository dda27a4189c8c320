"""A POST for every tick, at least once and in order, by a thread that nothing waits for.

The body is one element of the list of releases that the service gives: tick, time, and the columns of each query. The
header `Idempotency-Key: <stream>/<tick>` lets a receiver pass over what it has already; it says so with a 2xx answer,
as for any tick that it took. Every other answer, a redirection included, means: again, later, the same tick.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from evertally.errors import EvertallyError
from evertally.runtime.releases import TickRelease, as_json
from evertally.runtime.spec import StreamSpec
from evertally.runtime.spec.types import SinkSpec

_WHOLE = 3  # times the time-out: of one exchange. The time-out itself is of each step, and a step may be a byte
_POLL = 1.0  # seconds after which a thread that was not woken looks for new ticks itself


class Webhook(threading.Thread):
    """Delivers what comes after tick `after`, until it is stopped.

    `read(tick)` gives some published releases after a tick, the oldest first, or none. `done(tick)` is told of every
    tick that was delivered; what is not remembered there is delivered again. Both are called in this thread. After a
    failure the next attempt waits, twice as long each time, from `first_wait` to `longest_wait` seconds. `trouble` is
    told why, whenever that changes, and None when all is well again.
    """

    def __init__(
        self,
        spec: StreamSpec,
        sink: SinkSpec,
        read: Callable[[int], Sequence[TickRelease]],
        done: Callable[[int], None],
        after: int = 0,
        *,
        trouble: Callable[[str | None], None] = lambda failure: None,
        first_wait: float = 1.0,
        longest_wait: float = 300.0,
    ) -> None:
        super().__init__(name=sink.name, daemon=True)
        if sink.webhook is None:
            raise ValueError("this sink is not a webhook")
        self._spec = spec
        self._url = urlsplit(sink.webhook)
        self._timeout = sink.timeout
        self._read, self._done, self._trouble = read, done, trouble
        self._first_wait, self._longest_wait = first_wait, longest_wait
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._connection: HTTPConnection | None = None
        self.delivered = after
        self.failure: str | None = None  # why the last attempt failed; None while all is well

    def wake(self) -> None:
        """There are new ticks."""
        self._news.set()

    def stop(self) -> None:
        """Returns within a second; nothing is delivered afterwards. A request that is under way is given up."""
        self._stopping.set()
        self._news.set()
        _end(self._connection)
        if self.is_alive():
            # What looks up a name or waits for a connection cannot be woken; it sends nothing more.
            self.join(0.9)

    def run(self) -> None:
        wait = self._first_wait
        while not self._stopping.is_set():
            self._news.clear()
            try:
                releases = self._read(self.delivered)
                for release in releases:
                    self._post(release)
                    if self._stopping.is_set():
                        return
                    self._done(release.tick)
                    self.delivered, wait = release.tick, self._first_wait
                    self._tell(None)
            except (OSError, HTTPException, ValueError, EvertallyError) as error:
                self._tell(_reason(error))
                self._stopping.wait(wait)
                wait = min(2 * wait, self._longest_wait)
            else:
                if not releases:
                    self._news.wait(_POLL)

    def _tell(self, failure: str | None) -> None:
        if failure != self.failure:
            self.failure = failure
            self._trouble(failure)

    def _post(self, release: TickRelease) -> None:
        body = json.dumps(as_json(self._spec, release)).encode("ascii")
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self._spec.name}/{release.tick}",
            "User-Agent": "evertally",
            "Connection": "close",
        }
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        connection = self._connection = self._new_connection()
        over = threading.Event()

        def give_up() -> None:
            over.set()
            _end(connection)

        late = threading.Timer(_WHOLE * self._timeout, give_up)
        late.daemon = True
        late.start()
        try:
            connection.connect()
            if self._stopping.is_set():
                raise ConnectionAbortedError
            connection.request("POST", target, body, headers)
            status = connection.getresponse().status
        finally:
            late.cancel()
            self._connection = None
            connection.close()
            if over.is_set():  # whatever the end of it looked like
                raise TimeoutError
        if not 200 <= status < 300:
            raise _RefusedError(f"the receiver answered with status {status}")

    def _new_connection(self) -> HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            return HTTPSConnection(host, port, timeout=self._timeout, context=ssl.create_default_context())
        return HTTPConnection(host, port, timeout=self._timeout)


def _end(connection: HTTPConnection | None) -> None:
    """Ends the exchange, from another thread."""
    if connection is not None and connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


class _RefusedError(HTTPException):
    pass


def _reason(error: Exception) -> str:
    """What an operator may read: nothing that the receiver wrote."""
    if isinstance(error, _RefusedError | EvertallyError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "the receiver did not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the receiver was refused: {error.verify_message}"
    return (isinstance(error, OSError) and error.strerror) or f"the exchange failed ({type(error).__name__})"
