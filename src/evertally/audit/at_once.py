"""Many ticks in one call: to the bit what the same ticks are one by one, however they are cut into calls.

`run` goes other ways than `step`: it looks at stretches of ticks, skips what cannot happen, keeps what it released once
for many. A row that a stretch counts in two intervals, or in none, shows as another release here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evertally.audit.attacks import Finding
from evertally.audit.game import Factory, Sent
from evertally.noise import simulation

NAME = "many ticks at once"
_KEYS = 3
_MOST = 12  # ticks


def at_once_attack(make: Factory, inputs: Sequence[Any]) -> Finding:
    """Plays the inputs over and over, in one call, in two, in calls of two ticks; and one by one.

    >>> import evertally as et
    >>> at_once_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=8, key=key), [3, 0, 9]).leaked
    False
    """
    model = make(simulation(0))
    if model.takes_users or any(isinstance(x, Sent) for x in inputs):
        return Finding(NAME, False, "events that come with their users come tick by tick", looked=False)
    ticks = _MOST if model.horizon is None else min(_MOST, model.horizon)
    # The largest first: what ends an interval in the first tick of a call is looked at there alone.
    order = [inputs[2], *inputs] if len(inputs) > 2 else inputs
    stream = [order[i % len(order)] for i in range(ticks)]
    for seed in range(_KEYS):
        one = make(simulation(seed))
        try:
            single = [_plain(one.step(x).value) for x in stream]
        except TypeError as error:
            return Finding(NAME, False, f"its ticks are events alone: {error}", looked=False)
        for cuts in ([ticks], [1, ticks - 1], [2] * (ticks // 2) + [ticks % 2]):
            told = f"calls of {', '.join(map(str, cuts))} ticks" if len(cuts) < 3 else "calls of two ticks"
            again, shown, start = make(simulation(seed)), list[Any](), 0
            for count in filter(None, cuts):
                try:
                    values = again.run(stream[start : start + count])
                except TypeError as error:
                    return Finding(NAME, False, f"it takes no such ticks in one call: {error}", looked=False)
                shown += [_plain(value) for value in values]
                start += count
            for tick, (some, other) in enumerate(zip(single, shown, strict=True), start=1):
                if not _same(some, other):
                    return Finding(
                        NAME, True, f"tick {tick} is {other} in {told}, and {some} alone: one key, one stream"
                    )
    return Finding(NAME, False, f"{ticks} ticks are the same in one call, in several, and one by one")


def _plain(value: Any) -> Any:
    """A released value as `run` shows it: the numbers of declared labels without them."""
    if isinstance(value, Mapping):
        return dict(value)
    return np.asarray(value).tolist()


def _numbers(value: Any) -> list[Any]:
    """The numbers behind labels, in their order; stacked statistics have tables in a table."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in _numbers(part)]
    return [value]


def _same(some: Any, other: Any) -> bool:
    if isinstance(some, dict) and not isinstance(other, dict):
        some = _numbers(some)
    return bool(some == other or repr(some) == repr(other))  # NaN is the same as NaN
