"""Places on a network that a spec may name."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from evertally.kinds.fields import says


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def in_the_clear(host: str, certificate: object, behind_proxy: bool) -> str | None:
    """What is wrong with serving there, if tokens and events would travel in the clear."""
    if certificate is not None or behind_proxy or is_loopback(host):
        return None
    return (
        f"host {host!r} can be reached from other machines, and tokens and events would travel in the clear: give "
        "certificate and private_key, or write behind_proxy = true if a proxy of yours does TLS"
    )


def shown_host(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def _safe_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not good or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:
        raise ValueError("must be an https:// address or http:// on this machine (127.0.0.1, ::1, localhost)") from None
    return url


Port = Annotated[int, Field(ge=0, le=65535), says("must be a port from 1 to 65535, or 0 for any that is free")]
WebAddress = Annotated[str, AfterValidator(_safe_address), says("must be a text that is not empty")]
