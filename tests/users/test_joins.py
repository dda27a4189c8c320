"""Events that follow earlier ones of the same user (users-and-domains 7, joins)."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.noise import ZeroNoise
from evertally.users.joins import Followed

LABELS = ["shown", "order", "call", "noise"]


def joined(**options: Any) -> Any:
    given: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 40, "key": ZeroNoise(), "max_pairs": 2}
    return et.JoinedEvents(**{"after": ["shown"], "then": ["order", "call"]} | given | options)


def model(ticks: list[Any], most: int, within: int | None, once: bool) -> list[dict[str, int]]:
    """A plain model: what is known of each user, in a dictionary."""
    users: dict[str, dict[str, Any]] = {}
    counts, found = {"order": 0, "call": 0}, []
    for t, (labels, owners) in enumerate(ticks, 1):
        for label, owner in zip(labels, owners, strict=True):
            if owner is None:
                continue
            mine = users.setdefault(owner, {"shown": None, "pairs": []})
            if label == "shown":
                mine["shown"] = t
                continue
            follows = mine["shown"] is not None and (within is None or t - mine["shown"] <= within)
            room = len(mine["pairs"]) < most and not (once and label in mine["pairs"])
            if label in counts and follows and room:
                mine["pairs"].append(label)
                counts[label] += 1
        found.append(dict(counts))
    return found


@pytest.mark.parametrize(("within", "once"), [(None, False), (2, False), (None, True)])
def test_without_noise_it_is_the_plain_model_also_across_restarts(within: int | None, once: bool) -> None:
    dice = np.random.default_rng(3)
    ticks = [
        (
            [LABELS[i] for i in dice.integers(0, 4, 12)],
            [[None, "ann", "bob", "cid", 7][i] for i in dice.integers(0, 5, 12)],
        )
        for _ in range(20)
    ]
    made = joined(within=within, once=once, max_pairs=3)
    wanted = model(
        [(labels, [str(o) if o is not None else None for o in owners]) for labels, owners in ticks], 3, within, once
    )
    for t, (labels, owners) in enumerate(ticks):
        if t == 9:
            made = et.restore(made.snapshot(), key=made.key)
        assert made.step_events(labels, users=owners).value == wanted[t]


@cache
def paths_of_all_lives(once: bool) -> set[tuple[int, ...]]:
    events = [(t, label) for t in range(3) for label in ("shown", "order", "call")]
    paths, door = {(0,) * 6}, joined()._door
    for life in itertools.chain.from_iterable(itertools.combinations_with_replacement(events, n) for n in (2, 3, 4)):
        rule = Followed(2, 2, None, once)
        ticks = [[x for at, x in life if at == t] for t in range(3)]
        rows = [rule.admit(door.owned(events, ["me"] * len(events), t + 1)) for t, events in enumerate(ticks)]
        paths.add(tuple(np.concatenate(rows).tolist()))
    return paths


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_user_moves_more_than_is_charged(relation: str, once: bool) -> None:
    """All lives of a user with up to four events in three ticks, through door and rule: the charge is attained."""
    made = joined(horizon=3, neighbours=relation, once=once, mechanism="tree", radix=2)
    # The tree of radix 2 over three ticks: ticks 1, 2, 3 and the node of the first two.
    nodes = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    lives = [np.array(path).reshape(3, 2) for path in paths_of_all_lives(once)]
    others = lives if relation == "replace" else [np.zeros((3, 2), dtype=int)]
    worst = max(int(((nodes @ (a - b)) ** 2).sum()) for a in lives for b in others)
    l1 = max(int(np.abs(a - b).sum()) for a in lives for b in others)
    # Two nodes hold an event of the first two ticks, one holds one of the third: there two users who share all columns
    # are apart by less than in a longer tree.
    assert worst == (6 if once and relation == "replace" else 2 * made.sensitivity.l2_squared)
    assert worst <= 2 * made.sensitivity.l2_squared
    assert l1 == made.sensitivity.l1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "event"}, 'unit="user"'),
        ({"max_events_per_user": 3}, "leave out max_events_per_user"),
        ({"after": ["order"]}, "not in both"),
        ({"neighbours": "independent", "guarantee": et.ZCDP(1, adversary="oblivious")}, "neighbours are"),
        ({"max_pairs": 0}, "max_pairs"),
        ({"then": [str(i) for i in range(70)], "once": True}, "up to 62"),
    ],
)
def test_what_is_not_proved_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(et.ConfigurationError, match=words):
        joined(**options)
