"""A stream on a socket: opens everything, serves until it is told to stop, and leaves all of it on disk."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from evertally.errors import ConfigurationError
from evertally.runtime.follow import running
from evertally.runtime.input.ahead import compiling_ahead
from evertally.runtime.pump import Pump
from evertally.runtime.spec import StreamSpec
from evertally.runtime.spec.network import in_the_clear, shown_host
from evertally.runtime.state.history import History
from evertally.service.accepting import Acceptor
from evertally.service.app import create_app
from evertally.service.connections import PunctualProtocol
from evertally.service.hosts import known_hosts
from evertally.service.logs import log
from evertally.service.open_files import FOR_HEALTH, connections_within
from evertally.service.places import Place, Places
from evertally.service.tokens import TokenFile
from evertally.service.webhooks import webhooks

_SECONDS_TO_FINISH = 10  # for requests that are under way when the service stops
_SECONDS_WITHOUT_PROGRESS = 60  # after which the kernel gives up a connection whose other end takes nothing


def serve(
    spec: StreamSpec,
    *,
    host: str | None = None,
    port: int | None = None,
    replay: bool = False,
    nothing_was_released: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serves a stream until SIGINT, SIGTERM or SIGHUP. `ready` gets the address once it answers.

    Raises StateError if the stream has to stop by itself: what was acknowledged is safe, and the same call goes on.
    """
    host, port = host or spec.serve.host, spec.serve.port if port is None else port
    if problem := in_the_clear(host, spec.serve.certificate, spec.serve.behind_proxy):
        raise ConfigurationError(f"[serve] {problem}")
    tokens = TokenFile(spec.serve.tokens)
    tokens.tokens()
    tls, places = _tls(spec), _places(spec)
    with (
        compiling_ahead(spec) as compiled,
        contextlib.closing(_bound(host, port)) as listener,
        running(spec, replay=replay, nothing_was_released=nothing_was_released) as (live, pump),
        contextlib.closing(History(live.spec, lambda: pump.published, live.proof)) as history,
        webhooks(live, pump, history),
    ):
        app = create_app(pump, history, live.spec, tokens, known_hosts(host, spec.serve))
        compiled()  # seconds, the first time after an installation; later a fraction of one
        address = f"{'https' if tls else 'http'}://{shown_host(host)}:{listener.getsockname()[1]}/"
        _Server(app, listener, places, tls, pump, lambda: ready(address)).run()


def _places(spec: StreamSpec) -> Places:
    """Half of all connections for strangers, half for holders of tokens."""
    serve = spec.serve
    most = connections_within(serve.connections)
    if most < serve.connections:
        log.warning("%d connections at once fit below the limit of open files; [serve] connections is more", most)
    return Places(most - most // 2, most // 2, FOR_HEALTH, each=serve.connections_per_address)


def _tls(spec: StreamSpec) -> ssl.SSLContext | None:
    certificate, private_key = spec.serve.certificate, spec.serve.private_key
    if certificate is None or private_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key with a password would ask for it on the terminal.
        context.load_cert_chain(certificate, private_key, password="")
    except OSError as error:
        reason = error.strerror if not isinstance(error, ssl.SSLError) else "they are not a PEM certificate and its key"
        raise ConfigurationError(f"[serve] certificate {certificate}, private_key {private_key}: {reason}") from None
    return context


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"cannot serve on host {host!r}: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _SECONDS_WITHOUT_PROGRESS)
        listener.bind(address)
        listener.set_inheritable(False)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot serve on {host}, port {port}: {error.strerror}; choose another with --port"
        ) from None
    return listener


class _Server(uvicorn.Server):
    """uvicorn that does not end the process by the signal that stopped it: the pump has work to do after it."""

    def __init__(
        self,
        app: Any,
        listener: socket.socket,
        places: Places,
        tls: ssl.SSLContext | None,
        pump: Pump,
        ready: Callable[[], None],
    ) -> None:
        config = uvicorn.Config(
            app,
            http=PunctualProtocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        )
        super().__init__(config)
        config.load()
        self._listener, self._places, self._tls = listener, places, tls
        self._pump, self._ready = pump, ready
        self._live_events = app.state.parts.live_events

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])  # it listens nowhere by itself
        if self.started:
            self._acceptor = Acceptor(self._listener, self._places, self._protocol, self._tls)
            self._acceptor.start()
            self._ready()

    def _protocol(self, place: Place) -> PunctualProtocol:
        return PunctualProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, place=place
        )

    async def on_tick(self, counter: int) -> bool:
        # A stream that has stopped by itself ends the process: whoever supervises it sees that, and starts it again.
        return await super().on_tick(counter) or not self._pump.working

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._acceptor.stop()
        self._listener.close()
        self._live_events.close()  # these answers never end by themselves
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit  # the second time
        self.should_exit = True
