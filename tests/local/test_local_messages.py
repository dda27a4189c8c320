"""Messages: what is written is read, and nothing else is taken for one."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evertally as et
from evertally.errors import MessageRefused
from evertally.local.messages import OVERHEAD, pack, unpack

PROTOCOL = et.local.Protocol(guarantee=et.ZCDP(1), clients=100, low=0, high=1, cells=5)
WIDE = et.local.Protocol(guarantee=et.ZCDP(1e-7), clients=100, low=0, high=1, cells=5)
MESSAGE = et.local.Client(PROTOCOL, et.simulation(1)).message(0.3)


@pytest.mark.parametrize("protocol", [PROTOCOL, WIDE], ids=["4 bytes", "8 bytes"])
@pytest.mark.parametrize("private", [True, False])
def test_round_trip(protocol: et.local.Protocol, private: bool) -> None:
    rng = np.random.default_rng(1)
    limit = protocol.largest_entry
    for _ in range(20):
        entries = rng.integers(-limit, limit, protocol.cells, endpoint=True)
        message = pack(protocol, entries, private=private)
        assert len(message) == protocol.message_bytes == OVERHEAD + 5 * protocol.entry_type.itemsize
        found, flag = unpack(protocol, message)
        assert (found == entries).all()
        assert flag is private
    assert unpack(protocol, memoryview(bytearray(message)))[1] is private


def test_sizes_follow_from_the_budget() -> None:
    assert (PROTOCOL.entry_type.itemsize, WIDE.entry_type.itemsize) == (4, 8)
    for protocol in (PROTOCOL, WIDE):
        assert protocol.largest_entry >= 2**16 + 16 * protocol.law.stddev()


def test_entries_that_no_client_sends_are_cut_and_refused() -> None:
    limit = PROTOCOL.largest_entry
    far = np.array([2**50, -(2**50), limit + 1, 0, limit])
    assert unpack(PROTOCOL, pack(PROTOCOL, far, private=True))[0].tolist() == [limit, -limit, limit, 0, limit]
    forged = et.local.Protocol(guarantee=et.ZCDP(1), clients=100, low=0, high=1, cells=5)
    forged.__dict__["largest_entry"] = 2**31 - 1
    with pytest.raises(MessageRefused, match="larger than any"):
        unpack(PROTOCOL, pack(forged, far, private=True))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (b"", "begin"),
        (b"EVL0" + MESSAGE[4:], "begin"),
        (b"EVL1", "another protocol"),
        (MESSAGE[:-1], "cut or longer"),
        (MESSAGE + b"\0", "cut or longer"),
        (MESSAGE[:30] + bytes([MESSAGE[30] ^ 1]) + MESSAGE[31:], "damaged"),
        (MESSAGE[:5] + bytes(16) + MESSAGE[21:], "another protocol"),
        ("text", "bytes"),
        (None, "bytes"),
        (7, "bytes"),
    ],
)
def test_refusals(wrong: object, word: str) -> None:
    with pytest.raises(MessageRefused, match=word):
        unpack(PROTOCOL, wrong)


def test_every_public_parameter_is_in_the_digest() -> None:
    usual = {"guarantee": et.ZCDP(1), "clients": 100, "low": 0, "high": 1, "cells": 5}
    others = [{"guarantee": et.ZCDP(2)}, {"clients": 101}, {"low": -1}, {"high": 2}, {"cells": 6}]
    for other in others:
        made = et.local.Protocol(**(usual | other))  # type: ignore[arg-type]
        with pytest.raises(MessageRefused, match="another protocol"):
            unpack(made, MESSAGE)
    unpack(et.local.Protocol(**usual), MESSAGE)  # type: ignore[arg-type]


def test_every_flipped_bit_is_noticed() -> None:
    for place in range(len(MESSAGE)):
        damaged = bytearray(MESSAGE)
        damaged[place] ^= 1 << random.Random(place).randrange(8)
        with pytest.raises(MessageRefused):
            unpack(PROTOCOL, bytes(damaged))


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda end: MESSAGE[: 60 - len(end)] + end))
def test_nothing_else_crashes(blob: bytes) -> None:
    server = et.local.Server(PROTOCOL)
    added = server.add_many([blob, MESSAGE])
    assert added.messages + sum(added.refused.values()) == 2
    assert server.messages >= 1


def test_the_bytes_of_a_message_are_frozen() -> None:
    """A changed byte is other noise for the same key: a device that makes its message anew would send a second one."""
    assert hashlib.sha256(MESSAGE).hexdigest()[:16] == "09b3954920d385f4"
