"""By which names the service may be asked.

A page from elsewhere can give its own name the address of this machine, and then read what its visitors' browsers can
reach (DNS rebinding). The browser still says in `Host` which name it asked for. On this machine alone, without TLS,
only its own names are answered; where TLS or a proxy checks names, those that the spec declares, or any.
"""

from __future__ import annotations

import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from evertally.runtime.spec.network import is_loopback, shown_host
from evertally.runtime.spec.types import ServeSpec
from evertally.service.connections import HEALTH
from evertally.service.problems import problem

_THIS_MACHINE = frozenset(("localhost", "127.0.0.1", "[::1]"))
_REFUSAL = "this service is not asked by that name; its operator declares names in [serve] hosts"


def known_hosts(host: str, serve: ServeSpec) -> frozenset[str] | None:
    """The names for a service that listens on `host`; None: any."""
    if serve.hosts is None and (serve.certificate is not None or serve.behind_proxy):
        return None
    own = _THIS_MACHINE if is_loopback(host) else frozenset()
    return own | {shown_host(host).lower(), *(serve.hosts or ())}


class KnownHosts:
    """ASGI middleware. Health may be asked by any name: probes use addresses, and it tells nothing."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._hosts is None or scope["type"] != "http" or scope["path"] in HEALTH or self._knows(scope):
            await self._app(scope, receive, send)
        else:
            await problem(421, _REFUSAL)(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        # Browsers always send one; HTTP/1.0 may do without.
        given = [value for name, value in scope["headers"] if name == b"host"]
        return all(named(value.decode("latin-1")) in (self._hosts or ()) for value in given)


def named(host: str) -> str:
    """The name in a Host header, without its port, in small letters.

    >>> named("LocalHost:8321"), named("[0:0:0:0:0:0:0:1]:80"), named("[::1]"), named("stats.example.org.")
    ('localhost', '[::1]', '[::1]', 'stats.example.org')
    """
    name, bracket, _ = host.rpartition("]")
    if not bracket:
        return host.partition(":")[0].lower().removesuffix(".")
    try:
        return shown_host(str(ipaddress.ip_address(name.removeprefix("["))))
    except ValueError:
        return host.lower()
