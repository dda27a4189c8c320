"""Connections come in here, one by one, and only as far as there are places for them.

The event loop's own way to accept takes whatever comes, makes a TLS handshake with it, and asks later. When no files
are left it tries again a hundred times a second for each connection that waits. Here the limits come first.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

from evertally.service.logs import log
from evertally.service.open_files import FOR_HEALTH
from evertally.service.places import Place, Places

_BACKLOG = 1024
# Accepted before others get their turn. What was said on a new connection is read in the fourth turn after it at the
# latest: so many newer ones are fewer than the smallest pool of places has, and do not close it unheard.
_AT_ONCE = FOR_HEALTH // 4
_PAUSE = 1.0  # seconds, when the system has no more files or memory
_NOTHING_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SECONDS_FOR_TLS = 20.0


class Acceptor:
    """Accepts on one listening socket: a place first, then TLS, then the protocol that `make` makes."""

    def __init__(
        self,
        listener: socket.socket,
        places: Places,
        make: Callable[[Place], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener, self._places, self._make, self._tls = listener, places, make, tls
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[object]] = set()
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._listener.setblocking(False)
        self._listener.listen(_BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        """No more; who is not through with TLS yet is sent away."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listener)
        for task in self._opening:
            task.cancel()

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NOTHING_LEFT:
                    continue  # the network's trouble with that one connection
                log.error("no connection can be accepted: %s", error.strerror)
                self._loop.remove_reader(self._listener)
                self._again = self._loop.call_later(_PAUSE, self._loop.add_reader, self._listener, self._accept)
                return
            self._open(connection, str(address[0]))

    def _open(self, connection: socket.socket, address: str) -> None:
        place = Place()
        if not self._places.enter(place, address):
            connection.close()
            return
        connection.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(
            self._loop.connect_accepted_socket(
                lambda: self._make(place),
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else _SECONDS_FOR_TLS,
            )
        )
        place.close = task.cancel  # until the protocol has its transport
        self._opening.add(task)
        task.add_done_callback(lambda task: self._opened(task, place, connection))

    def _opened(self, task: asyncio.Task[object], place: Place, connection: socket.socket) -> None:
        self._opening.discard(task)
        if task.cancelled() or task.exception() is not None:
            place.leave()
            connection.close()  # a task that was cancelled before it began has not done it
