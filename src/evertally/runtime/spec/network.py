"""Places on a network that a spec may name."""

from __future__ import annotations

import ipaddress
import re
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


def _host_name(name: str) -> str:
    """As it stands in a Host header, in small letters: a name, or an address (of IPv6 with or without brackets)."""
    bare = name.removeprefix("[").removesuffix("]").lower()
    try:
        return shown_host(str(ipaddress.ip_address(bare)))
    except ValueError:
        if not re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", bare):
            raise ValueError(_HOSTS) from None
        return bare


def _safe_address(url: str) -> str:
    # What splits addresses throws line breaks and tabs away in silence, and a request line has no place for spaces.
    if re.search(r"[\x00-\x20\x7f-\xa0]", url) or not url.isprintable():
        raise ValueError("must be an address without spaces, line breaks and other control characters")
    try:
        parts = urlsplit(url)
        good = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not good or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:
        raise ValueError("must be an https:// address or http:// on this machine (127.0.0.1, ::1, localhost)") from None
    return url


_HOSTS = 'must be a list of names or addresses without a port, such as ["stats.example.org"]'
HostNames = Annotated[list[Annotated[str, AfterValidator(_host_name)]], Field(min_length=1), says(_HOSTS)]
Port = Annotated[int, Field(ge=0, le=65535), says("must be a port from 1 to 65535, or 0 for any that is free")]
WebAddress = Annotated[str, AfterValidator(_safe_address), says("must be a text that is not empty")]
