"""Snapshots: a mechanism's exact state as secret bytes, and the way back.

A snapshot holds public parameters, the tick, the exact sums, and a keyed fingerprint of the noise. The noise itself
follows from the key and the address; only Honaker's process keeps some of its noise in it, which would take long to
make again. A keyed checksum covers it, so a damaged snapshot or a wrong key is noticed instead of continued; the
fingerprint tells whether this version would draw the same noise as the one that began the stream.

Sharp edge: two live copies of one stream share their noise. Fed with different data they publish the difference. Within
a process the newer one takes over and the older one refuses to go on (contract/paths.py); a copy in another process
cannot be seen from here. The runtime fences both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.noise import NoiseKey, check_key
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee, PureDP

_MAGIC = b"evertally-snapshot-3\n"
_MAC_BYTES = 32
_PARAMETERS = ("epsilon", "rho", "delta")

Restorer = Callable[[dict[str, Any], list[bytes], NoiseKey, bool], Any]
_restorers: dict[str, tuple[str, Restorer]] = {}  # by the name of the class: where that stands, and its way back
_rooms: list[str] = []  # modules with further statistics, which are read when somebody asks for one


def pack(header: dict[str, Any], parts: list[bytes], key: NoiseKey) -> bytes:
    text = json.dumps(header | {"parts": [len(part) for part in parts]}, sort_keys=True).encode()
    body = _MAGIC + len(text).to_bytes(8, "little") + text + b"".join(parts)
    return body + key.mac("snapshot", body)


def unpack(blob: bytes, key: NoiseKey) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the parts, if the checksum is right."""
    if not isinstance(blob, bytes) or not blob.startswith(_MAGIC):
        raise StateError(
            "these bytes are not an evertally snapshot of this version's format; restore it with the version that "
            "took it"
        )
    body, mac = blob[:-_MAC_BYTES], blob[-_MAC_BYTES:]
    if key.mac("snapshot", body) != mac:
        raise StateError("the snapshot is damaged or belongs to another key; restore from an intact copy")
    start = len(_MAGIC) + 8
    stop = start + int.from_bytes(body[len(_MAGIC) : start], "little")
    header = json.loads(body[start:stop])
    parts = []
    for length in header["parts"]:
        parts.append(body[stop : stop + length])
        stop += length
    return header, parts


def restorable(kind: str, place: str, restorer: Restorer) -> None:
    """Registers how a kind of mechanism comes back. A snapshot names its class: two of one name would come back as each
    other."""
    if _restorers.get(kind, (place,))[0] != place:
        raise ConfigurationError(
            f"there is a statistic named {kind} in {_restorers[kind][0]}; snapshots tell statistics apart by their "
            "names, so call this one something else"
        )
    _restorers[kind] = place, restorer


def look_in(*rooms: str) -> None:
    """Modules that are imported, in this order, where a snapshot holds what is not known yet."""
    _rooms.extend(room for room in rooms if room not in _rooms)


def restore(blob: bytes, *, key: NoiseKey, allow_copy: bool = False) -> Any:
    """The mechanism of a snapshot, continuing bit for bit. The key must be the one it ran with.

    It takes the stream over: in this process the mechanism that the snapshot was taken of releases nothing more, and a
    snapshot that is older than what was released is refused. `allow_copy=True` says that all copies will see exactly
    the same data, and lets them be. Another process cannot be seen from here: there you must know.

    >>> import evertally as et
    >>> key = et.Key.generate()
    >>> counter = et.Counter(guarantee=et.ZCDP(0.1), horizon=1000, key=key)
    >>> _ = counter.run([3, 1, 4])
    >>> blob = counter.snapshot()
    >>> again = et.restore(blob, key=key)
    >>> again.step(1).tick
    4
    >>> counter.step(1)
    Traceback (most recent call last):
    ...
    evertally.errors.NoiseReused: ...
    >>> copies = [et.restore(blob, key=key, allow_copy=True) for _ in range(2)]
    >>> copies[0].step(1).value == copies[1].step(1).value
    True
    """
    header, parts = unpack(blob, check_key(key))
    for room in _rooms:
        if header["kind"] not in _restorers:
            import_module(room)
    if header["kind"] not in _restorers:
        raise StateError(f"the snapshot holds a {header['kind']!r}, which this version does not know")
    _, restorer = _restorers[header["kind"]]
    return restorer(header, parts, key, allow_copy)


def guarantee_to_json(guarantee: Guarantee) -> dict[str, str]:
    """A guarantee with its exact parameters."""
    exact = {name: str(getattr(guarantee, f"exact_{name}", "")) for name in _PARAMETERS}
    return {"kind": type(guarantee).__name__, "adversary": guarantee.adversary} | {k: v for k, v in exact.items() if v}


def guarantee_from_json(data: dict[str, Any]) -> Guarantee:
    """The way back.

    >>> guarantee_from_json(guarantee_to_json(ApproxDP(1, Fraction(1, 3**9)))) == ApproxDP(1, Fraction(1, 3**9))
    True
    """
    kinds: dict[str, Callable[..., Guarantee]] = {c.__name__: c for c in (PureDP, ZCDP, ApproxDP, ApproxZCDP)}
    exact = {name: Fraction(data[name]) for name in _PARAMETERS if name in data}
    # What was promised once is not refused again.
    forced = {"force": True} if "delta" in exact else {}
    return kinds[data["kind"]](**exact, adversary=data["adversary"], **forced)
