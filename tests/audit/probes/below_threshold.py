"""What is below the threshold, and noise by name, from a real key."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from audit.probes.item_probing import (
    unknown,
)
from audit.probes.probing import KEY, Verdict, first_leak, probe
from evertally.audit import attacks
from evertally.audit.game import Factory
from evertally.contract import restore
from evertally.noise import simulation
from evertally.privacy import ApproxDP, ApproxZCDP
from evertally.statistics import StreamingTopK, UnknownHistogram, UnknownTopK

# -- what is below the threshold -------------------------------------------------------------------------------------


def observed(mechanism: Any, batches: Sequence[Any]) -> str:
    """Everything that can be asked of a mechanism without its key, after these batches: texts, attributes, errors."""
    seen: list[Any] = []
    for events in batches:
        release = mechanism.step_events(events)
        seen += [attacks.form(release), repr(release), json.dumps(release.value)]
    seen += [repr(mechanism), bool(mechanism), len(mechanism) if hasattr(mechanism, "__len__") else None]
    for name in sorted(dir(mechanism)):
        value = getattr(mechanism, name)
        if not name.startswith("_") and not callable(value) and name != "key":
            seen.append((name, repr(value)))
    seen += [mechanism.stddev(2), mechanism.error_bound(0.1), mechanism.error_bound(0.1, 2)]
    wrong: list[Callable[[], Any]] = [
        lambda: mechanism.step(["something else"], tick=mechanism.tick),
        lambda: mechanism.step(["a"], tick=1),
        lambda: mechanism.step({"a": 1}),
        lambda: mechanism.run([[]] * 99),
        lambda: mechanism.stddev(99),
    ]
    for call in wrong:
        try:
            seen.append(repr(call()))
        except Exception as error:  # whatever it says, a reader may see it
            seen.append(repr(error))
    return re.sub(r" at 0x[0-9a-f]+", "", "\n".join(map(str, seen)))


_BLOCKS: dict[str, Any] = {"mechanism": "meta"}


def _kinds(**options: Any) -> list[Factory]:
    """Unknown domains, by tree and by blocks; noise so large that single labels are never shown."""
    promise = {"guarantee": ApproxZCDP(Fraction(1, 50), 1e-9), "horizon": 8}
    common: dict[str, Any] = promise | options
    return [
        lambda key: UnknownHistogram(key=key, **common),
        lambda key: UnknownHistogram(key=key, sticky=True, **common),
        lambda key: UnknownTopK(2, key=key, **common),
        lambda key: UnknownHistogram(key=key, **_BLOCKS, **common),
        lambda key: UnknownTopK(2, key=key, **_BLOCKS, **common),
    ]


@probe("attack", "what is below the threshold")
def _() -> Verdict:
    # 11.4 (10): streams that release the same look the same, whatever else they contain.
    common: list[Any] = [["pear"]] * 1800 + [["fig"]] * 1000
    left, right = [common, [["a secret", "another", "fig"]], []], [common, [["fig"]], []]
    for make in _kinds(max_per_event=3):
        texts = [observed(make(simulation(3)), batches).splitlines() for batches in (left, right)]
        for one, other in zip(*texts, strict=True):
            if one != other:
                return True, f"one event changes what is seen, from {other[:120]!r} to {one[:120]!r}"
    findings = [
        attack(make) for make in _kinds() for attack in (attacks.unknown_item_attack, attacks.bad_record_attack)
    ]
    return first_leak(*findings)


@probe("attack", "the order of what is released")
def _() -> Verdict:
    # 10.3: an event that came first must not come first.
    rest = [["fig"] * 1800, ["pear"] * 1000 + ["lime"] * 2800]
    pairs: list[tuple[list[Any], list[Any]]] = [([["pear"], *rest], [[], *rest]), ([["lime"], *rest], [[], *rest])]
    pairs += [([[], rest[1], rest[0]], [["pear"], rest[1], rest[0]])]
    return first_leak(*(attacks.metadata_attack(make, *pair) for make in _kinds() for pair in pairs))


# -- noise by name, from a real key ----------------------------------------------------------------------------------


@probe("attack", "labels have noise of their own")
def _() -> Verdict:
    # Ranks of all labels at two blocks; and whole paths, of which no two are alike.
    labels, times = [f"label {i}" for i in range(600)], 400
    mechanism = unknown(Fraction(1, 50), 1e-3, 8)(simulation(11))
    releases = [mechanism.step(labels * n).value for n in (times, *[0] * 7)]
    noise = np.array([[value[label] - times for label in labels] for value in releases], dtype=np.float64)
    alike = len(labels) - len(np.unique(noise, axis=1).T)
    if alike:
        return True, f"{alike} of {len(labels)} labels have the noise of another one at every tick"
    ranked = np.argsort(np.argsort(noise[[0, 1, 3]], axis=1), axis=1)  # ticks 1, 2 and 4: blocks of their own
    largest = float(np.abs(np.corrcoef(ranked) - np.eye(3)).max())
    # Times sqrt(n - 1) nearly normal; six deviations leave 2e-9.
    return largest * math.sqrt(len(labels) - 1) > 6, f"the noise of two blocks has rank correlation {largest:.2f}"


@probe("attack", "restored selections")
def _() -> Verdict:
    # A copy that is restored at any tick goes on with the releases of the original.
    words: list[Any] = [["a"] * 40, ["b"] * 5, ["a"] * 3 + ["b"] * 30, ["c"] * 60, [], ["b"] * 9, ["d"] * 50, ["a"]]
    rows: Any = np.array([(9, 0, 1), (0, 60, 0), (0, 0, 1), (200, 1, 0), (0, 0, 900), (0, 9000, 0), (1, 1, 1)])
    two: dict[str, Any] = {"columns": ["a", "b", "c"], "guarantee": ApproxDP(40, 1e-3), "horizon": 8, "radix": 2}
    promise = ApproxZCDP(Fraction(2), 0.05, force=True)
    subjects: dict[str, tuple[Callable[[Any], Any], Sequence[Any]]] = {
        "unknown": (lambda key: UnknownHistogram(guarantee=promise, horizon=8, radix=2, key=key), words),
        "sticky": (lambda key: UnknownHistogram(guarantee=promise, horizon=8, radix=2, sticky=True, key=key), words),
        "top": (lambda key: UnknownTopK(2, guarantee=promise, horizon=8, radix=2, key=key), words),
        "blocks": (lambda key: UnknownTopK(2, guarantee=promise, horizon=8, radix=2, key=key, **_BLOCKS), words),
        "sparseGumb": (lambda key: StreamingTopK(1, 2, eta=2, key=key, **two), rows),
        "MetaAlgo": (lambda key: StreamingTopK(1, mechanism="meta", key=key, **two), rows),
    }
    for name, (make, inputs) in subjects.items():
        original, snapshots, released = make(KEY), [], []
        for x in inputs:
            snapshots.append(original.snapshot())
            released.append(original.step(x).value)
        for tick, snapshot in enumerate(snapshots):
            copy = restore(snapshot, key=KEY)
            if [copy.step(x).value for x in inputs[tick:]] != released[tick:]:
                return True, f"{name}: a copy restored after tick {tick} releases later ticks in another version"
        if not any(released):
            return True, f"{name}: nothing was released"
    return False, "restored copies release what the original does"
