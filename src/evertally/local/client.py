"""One person's half of the protocol: a value or a loss goes in, one private message comes out. Nothing else leaves."""

from __future__ import annotations

from evertally.contract.paths import named, once
from evertally.errors import ReplayRefused
from evertally.local.factor import IntArray, column
from evertally.local.losses import Loss, absolute
from evertally.local.messages import pack
from evertally.local.protocol import Protocol
from evertally.noise import NoiseKey, own_key
from evertally.secret import Secret


class Client(Secret):
    """Makes the one message of one person.

    Theorem: factorization-counting 6.9. The message is R u + Z, u the cell of the person's point, Z discrete Gaussian;
    for a loss the point is drawn first, which costs nothing (divergence is jointly convex). Tier "exact"; error: none
    that anybody could use, one message is nearly all noise; time and memory O(w).

    A second message would spend the guarantee a second time, so there is one: asked again for the same, the client
    gives the same bytes, and for anything else it refuses. The noise follows from the key, the name and the protocol.
    Without a key, one is drawn and forgotten with the client. With a key of the device, `name` stands for one record
    for ever; a program that was restarted cannot know what it has sent: keep the bytes that were made, and send those.

    A value beyond the domain counts as its end. One that is no number says nothing (`losses.constant`), and makes a
    message like any other: that somebody had no value is hidden too.

    >>> import evertally as et
    >>> protocol = et.local.Protocol(guarantee=et.ApproxDP(1.0, 1e-9), clients=10_000, low=0, high=120)
    >>> client = et.local.Client(protocol)
    >>> message = client.message(34)
    >>> len(message) == protocol.message_bytes, client.message(34) == message
    (True, True)
    >>> client.message(35)
    Traceback (most recent call last):
    ...
    evertally.errors.ReplayRefused: this client has made its message, ...
    """

    def __init__(self, protocol: Protocol, key: NoiseKey | None = None, *, name: str | None = None) -> None:
        self._protocol = protocol
        self._key = own_key(key)
        name = named(name, self._key, "client")
        self._source = self._key.source("local", name, protocol.digest)
        self._sent: tuple[bytes, bytes] | None = None  # a keyed digest of the loss, and the message

    @property
    def private(self) -> bool:
        """False under a simulation key."""
        return self._key.private

    def message(self, value: object) -> bytes:
        """The message of somebody whose point is `value`: for the median."""
        return self.message_for_loss(absolute(value))

    def message_for_loss(self, loss: Loss) -> bytes:
        """The message of somebody with this loss (`evertally.local.losses`)."""
        if not isinstance(loss, Loss):
            raise TypeError("a loss is made by evertally.local.losses; for a value use message(value)")
        digest = self._source.order(loss.text().encode())
        if self._sent is not None:
            if self._sent[0] != digest:
                raise ReplayRefused(
                    "this client has made its message, for something else; a second one would have the same noise and "
                    "publish the difference. One person sends one message under one protocol"
                )
            return self._sent[1]
        if self._key.private:
            once(self._source.fingerprint(), digest, self._key.process, "message")
        message = pack(self._protocol, self._entries(loss), private=self._key.private)
        self._sent = digest, message
        return message

    def _entries(self, loss: Loss) -> IntArray:
        protocol = self._protocol
        point = loss.point(protocol.low, protocol.high, self._source.variates("point", "exponential", 0, 1))
        noise = self._source.draws("message", protocol.law, [0], protocol.cells)[0]
        entries: IntArray = column(protocol.factor, protocol.cell(point)) + noise
        return entries
