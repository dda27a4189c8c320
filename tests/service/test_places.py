"""Places of connections, counted; and how many fit below the limit of open files."""

from __future__ import annotations

import resource

import pytest

from evertally.errors import ConfigurationError
from evertally.service import open_files
from evertally.service.places import Place, Places


def test_places_count_what_is_there() -> None:
    places = Places(strangers=4, known=4, health=2, each=2)
    gone: list[str] = []

    def came(name: str, owner: str) -> tuple[Place, bool]:
        place = Place(lambda: gone.append(name))
        return place, places.enter(place, owner)

    first, _ = came("first", "192.0.2.1")
    first.works()
    second, _ = came("second", "192.0.2.1")
    second.works()
    third, entered = came("third", "192.0.2.1")
    assert entered
    assert third.only_health  # both places of this address are at work
    assert first.vouch("till")
    assert first.vouch("till")
    assert not first.stranger
    assert [pool.size for pool in (places.strangers, places.known, places.health)] == [1, 1, 1]
    fourth, _ = came("fourth", "192.0.2.1")
    assert not fourth.only_health
    came("fifth", "192.0.2.1")
    assert gone == ["fourth"]
    for place in (first, second, third, fourth):
        place.leave()
        place.leave()
        assert place.vouch("till")  # by a request that does not know yet
    assert [pool.size for pool in (places.strangers, places.known, places.health)] == [1, 0, 0]


def test_whoever_has_most_loses_first() -> None:
    places = Places(strangers=4, known=4, health=2)
    gone: list[str] = []
    for number, owner in enumerate(["192.0.2.7", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.8", "192.0.2.9"]):
        assert places.enter(Place(lambda name=f"{owner} {number}": gone.append(name)), owner)
    assert gone == ["192.0.2.1 1", "192.0.2.1 2"]


def test_the_limit_of_files_is_raised_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: asked.append(limits))

    def limits(soft: int, hard: int) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))

    limits(1024, 524_288)
    assert open_files.connections_within(800) == 800
    assert asked == [(65_536, 524_288)]
    limits(256, 256)
    assert open_files.connections_within(800) == 112
    limits(100, 100)
    with pytest.raises(ConfigurationError, match="LimitNOFILE"):
        open_files.connections_within(800)
