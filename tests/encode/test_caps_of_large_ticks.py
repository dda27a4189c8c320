"""Large ticks, whose users are looked up event by event: the same as small ones, and as a plain dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evertally.encode import SeparatedCap, UserCap, caps
from evertally.encode.texts import Texts

CAPS: dict[str, Callable[[], Any]] = {
    "cap": lambda: UserCap(3),
    "separated": lambda: SeparatedCap(2, 2, events=2),
}


def digest(name: bytes) -> bytes:
    return blake2b(name, key=b"secret", digest_size=16).digest()


def ticks(seed: int) -> list[list[str | None]]:
    random = np.random.default_rng(seed)
    spread = [40, 5000, 300, 3000, 200, 800]
    found = []
    for most in spread:
        names: list[str | None] = [f"user {i}" for i in random.integers(0, most, 600)]
        for i, odd in enumerate([None, "", "e\u0301", "\u00e9", "n" * 1100, None]):
            names[97 * i + most % 9] = odd
        found.append(names)
    return found


@pytest.mark.parametrize("name", CAPS)
@pytest.mark.parametrize("seed", range(3))
def test_the_way_to_look_users_up_changes_nothing(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    event_by_event, by_name = CAPS[name](), CAPS[name]()
    looked = 0
    for tick, users in enumerate(ticks(seed), 1):
        for again in (False, True):  # a tick may be asked again
            monkeypatch.setattr(caps, "_LARGE", 10**6)
            kept = event_by_event.keep(pa.array(users), tick)
            monkeypatch.setattr(caps, "_LARGE", 0)
            assert kept.tolist() == by_name.keep(pa.array(users), tick).tolist()
            looked += again and int(kept.sum())
        assert event_by_event.to_bytes() == by_name.to_bytes()
        if tick == 2:
            event_by_event = type(event_by_event).from_bytes(event_by_event.to_bytes())
        if tick == 4:
            for cap in (event_by_event, by_name):
                cap.recognise(digest)
                cap.erase(Texts.of(["user 1", "\u00e9", "never seen"]))
    assert looked > 1000


def test_large_ticks_keep_the_first_events_of_each_user() -> None:
    cap, counts = UserCap(3), Counter[str]()
    for tick, users in enumerate(ticks(9), 1):
        expected = []
        for user in users:
            name = "\u00e9" if user == "e\u0301" else user
            expected.append(name is not None and counts[name] < 3)
            if name is not None:
                counts[name] += 1
        assert cap.keep(pa.array(users), tick).tolist() == expected
