"""The rows of the release log, and what proves each of them: a mac under the key, checked whenever a row is read."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key
from evertally.runtime.releases import TickRelease, compressed, decompressed
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.public_log import chained, digest_of, signed_head
from evertally.runtime.state.sidecar import NO_CHAIN
from evertally.secret import Secret

KeptRow = tuple[int, str, bytes, bytes | None]  # tick, query, payload as it is kept, mac
LinkRow = tuple[int, bytes, bytes]  # tick, chain of the public log, mac


# Every row that has a mac of its own, as `Proof.is_genuine` takes it: of a link the name of the query is a line break.
PROVED_ROWS = {
    "release": "SELECT tick, query, payload, mac FROM release",
    "link": "SELECT tick, char(10), chain, mac FROM link",
}


class DamagedLog(StateError):
    """A row of the release log is not what was released."""


class Proof(Secret):
    """Makes and checks macs and heads. May be asked from any thread.

    `since` is the tick after which the public log is a chain: 0, or where a stream of an earlier version was taken up.
    """

    def __init__(self, key: Key, spec: StreamSpec) -> None:
        self._signer, self._spec = key, spec
        self._key = key.mac("store release", b"")
        self.since = 0

    def row(self, tick: int, query: str, payload: bytes) -> KeptRow:
        """A payload as the log keeps it."""
        kept = compressed(payload)
        return tick, query, kept, self.mac(tick, query, kept)

    def mac(self, tick: int, query: str, kept: bytes) -> bytes:
        """What proves a row."""
        place = f"{tick} {query}\n".encode()  # a name of a query has no line in it
        return hashlib.blake2b(place + kept, key=self._key, digest_size=16).digest()

    def is_genuine(self, row: KeptRow) -> bool:
        tick, query, kept, mac = row
        try:
            return mac is not None and hmac.compare_digest(self.mac(tick, query, kept), mac)
        except (TypeError, ValueError):  # SQLite keeps anything in any column: a text where bytes were
            return False

    def genuine(self, rows: Sequence[KeptRow]) -> Sequence[KeptRow]:
        """The same rows; refuses others than those that were released."""
        if not all(map(self.is_genuine, rows)):
            raise self.not_as_committed()
        return rows

    def not_as_committed(self) -> DamagedLog:
        return DamagedLog(
            f"{self._spec.state_file} is damaged (release): a release is not what it was when it was committed. It "
            "is not shown. Stop the stream and see `evertally verify`"
        )

    def link(self, tick: int, chain: str) -> LinkRow:
        """The chain of the public log at a tick, as it is kept."""
        raw = bytes.fromhex(chain)
        return tick, raw, self.mac(tick, "\n", raw)

    def chain(self, row: LinkRow) -> str:
        """The chain that `link` was given."""
        tick, raw, mac = row
        if not self.is_genuine((tick, "\n", raw, mac)):
            raise DamagedLog(f"{self._spec.state_file} is damaged (link): what vouches for the log was changed")
        return raw.hex()

    def linked(self, chain: str, release: TickRelease) -> str:
        """The chain one tick on."""
        if release.tick <= self.since:
            return NO_CHAIN
        return chained(chain, release.tick, digest_of(self._spec, release))

    @property
    def public_key(self) -> bytes:
        """What heads are checked with."""
        return self._signer.public_key

    def head(self, tick: int, chain: str, releases: Iterable[TickRelease] = ()) -> dict[str, Any]:
        """What vouches for the log up to a tick, and for single ticks."""
        digests = ((release.tick, digest_of(self._spec, release)) for release in releases)
        return signed_head(self._signer, self._spec, self.since, tick, chain, digests)


def collected(spec: StreamSpec, origin: int | None, rows: Sequence[KeptRow]) -> list[TickRelease]:
    """Rows of the release log, in the order of ticks, as releases with queries in the order of the spec."""
    if origin is None and spec.clock.floating:
        raise ConfigurationError("the clock of this stream starts at its first serve, which has not been yet")
    clock = spec.clock if origin is None else spec.clock.anchored(origin)
    by_tick: dict[int, dict[str, bytes]] = {}
    for tick, query, kept, _ in rows:
        by_tick.setdefault(tick, {})[query] = decompressed(kept)
    names = [query.name for query in spec.queries]
    return [
        TickRelease(tick, clock.end_of(tick), {name: found[name] for name in names if name in found})
        for tick, found in by_tick.items()
    ]
