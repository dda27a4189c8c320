"""SipHash-2-4 of Aumasson and Bernstein (2012), with 64 and with 128 bits: a keyed pseudo-random function for short
messages. Here in plain integers, as it is defined; `cut_kernels` computes the same for many messages."""

from __future__ import annotations

_ALL = 2**64 - 1


def siphash(key: bytes, message: bytes, size: int = 8) -> bytes:
    """`size` bytes, 8 or 16, under a key of 16 bytes.

    >>> siphash(bytes(range(16)), bytes(range(15))).hex()  # the example of the paper, a129ca6149be45e5, from behind
    'e545be4961ca29a1'
    """
    k0, k1 = (int.from_bytes(part, "little") for part in (key[:8], key[8:]))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    if size == 16:
        v[1] ^= 0xEE
    whole = len(message) // 8 * 8
    words = [int.from_bytes(message[i : i + 8], "little") for i in range(0, whole, 8)]
    words.append(int.from_bytes(message[whole:], "little") | (len(message) & 0xFF) << 56)
    for word in words:
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF if size == 8 else 0xEE
    _rounds(v, 4)
    found = (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    if size == 16:
        v[1] ^= 0xDD
        _rounds(v, 4)
        found += (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    return found


def _rounds(v: list[int], count: int) -> None:
    a, b, c, d = v
    for _ in range(count):
        a = (a + b) & _ALL
        b = (b << 13 & _ALL | b >> 51) ^ a
        a = a << 32 & _ALL | a >> 32
        c = (c + d) & _ALL
        d = (d << 16 & _ALL | d >> 48) ^ c
        a = (a + d) & _ALL
        d = (d << 21 & _ALL | d >> 43) ^ a
        c = (c + b) & _ALL
        b = (b << 17 & _ALL | b >> 47) ^ c
        c = c << 32 & _ALL | c >> 32
    v[:] = a, b, c, d
