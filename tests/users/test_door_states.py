"""What one unit is counted for depends on its own events: users-and-domains 11.2, 6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.noise import ZeroNoise

_TICKS = 8
_KEY: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": _TICKS, "key": ZeroNoise()}

MADE: dict[str, Callable[[], Any]] = {
    "ended": lambda: et.PeriodUsers(period=2, max_active_periods=2, **_KEY),
    "so far": lambda: et.PeriodUsers(period=4, so_far=True, **_KEY),
    "table": lambda: et.Retention(period=2, ages=3, **_KEY),
    "set": lambda: et.PresentItems(max_flips=3, **_KEY),
    "copies": lambda: et.PresentItems(semantics="copies", max_flips=2, **_KEY),
}


def rows(name: str, ticks: list[list[Any]]) -> np.ndarray:
    mechanism, found = MADE[name](), []
    for events in ticks:
        mechanism.step_events(events)
        found.append(mechanism._kept.played.recent[-1].copy())
    return np.array(found)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("seed", range(4))
def test_a_unit_moves_the_rows_alike_whoever_else_is_there(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = name in ("set", "copies")

    def events(who: list[str]) -> list[list[Any]]:
        chosen = [[str(rng.choice(who)) for _ in range(rng.integers(0, 4))] for _ in range(_TICKS)]
        if not items:
            return [list(names) for names in chosen]
        return [[(str(rng.choice(["insert", "delete"])), None, one) for one in names] for names in chosen]

    mine, crowd = events(["me"]), events(["a", "b", "c", "d"])
    nobody: list[list[Any]] = [[] for _ in range(_TICKS)]
    alone = rows(name, mine) - rows(name, nobody)
    for others in (crowd, crowd[::-1], [tick[::-1] for tick in crowd]):
        both = [
            [*theirs, *own] if t % 2 else [*own, *theirs]
            for t, (own, theirs) in enumerate(zip(mine, others, strict=False))
        ]
        assert np.array_equal(rows(name, both) - rows(name, others), alone)
