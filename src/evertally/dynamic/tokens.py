"""Names of items that are minted here: a keyed permutation of a counter (dynamic-data 6.3, T).

A permutation never repeats, so uniqueness is a fact and not a probability; a bare counter would tell clients how many
items there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from evertally.noise import ItemSource
from evertally.secret import Secret

_BLOCK = 16


class Tokens(Secret):
    """AES-128 of the number of a lifetime, in hexadecimal digits.

    >>> from evertally.noise import simulation
    >>> tokens = Tokens(simulation(1).source("demo"))
    >>> token = tokens.of([7])[0]
    >>> len(token), tokens.number(token), tokens.number("no token")
    (32, 7, None)
    """

    def __init__(self, source: ItemSource) -> None:
        # One block is one counter, and each counter is used once: no mode is needed, or wanted.
        self._cipher = Cipher(algorithms.AES(source.order(b"tokens")), modes.ECB())  # noqa: S305

    def of(self, numbers: Iterable[int]) -> list[str]:
        """The tokens of these lifetimes."""
        blocks = b"".join(number.to_bytes(_BLOCK, "big") for number in numbers)
        made = self._cipher.encryptor().update(blocks)
        return [made[i : i + _BLOCK].hex() for i in range(0, len(made), _BLOCK)]

    def number(self, token: str | None) -> int | None:
        """The lifetime that a token names, None if it is no token. One that was never minted is a number that never
        lived."""
        if token is None or len(token) != 2 * _BLOCK or not token.isascii():
            return None
        try:
            block = bytes.fromhex(token)
        except ValueError:
            return None
        return int.from_bytes(self._cipher.decryptor().update(block), "big") if len(block) == _BLOCK else None
