"""Sketches at the size of users-and-domains 5.1: `python -m benchmarks.sketches`.

A million events, Zipf 1.1 over a million labels, 4096 ticks, rho = 1/2: how far off the 200 largest labels are, without
noise and with it; what a histogram of declared labels would have, and what memory and time it takes. Noise is that of
the mechanism's own stated deviation at the last tick, put on the exact table column by column: to play 4096 ticks of
327 680 columns would take minutes, and its noise is audited elsewhere.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import evertally as et
from evertally.encode.texts import Texts
from evertally.sketches.estimates import Estimates

EVENTS, LABELS, HORIZON, TOP = 10**6, 10**6, 4096, 200
PROMISE = et.ZCDP(0.5)


def zipf(seed: int, labels: int = LABELS, events: int = EVENTS) -> Any:
    """How often each label occurs."""
    weights = 1 / np.arange(1, labels + 1) ** 1.1
    return np.random.default_rng(seed).multinomial(events, weights / weights.sum())


def rmse(estimates: Any, counts: Any) -> float:
    return float(np.sqrt(np.mean((estimates - counts) ** 2)))


def compare(counts: Any, rows: int, width: int, seed: int) -> tuple[float, float, float]:
    """Off without noise, with noise, and the stated deviation of the noise."""
    options: dict[str, Any] = {"rows": rows, "width": width, "guarantee": PROMISE, "horizon": HORIZON}
    noise = et.CountSketch(key=et.simulation(seed), watch=["0"], **options)  # and hashes, of their own for each seed
    door: Any = noise._door
    table = door.events(np.repeat(np.arange(len(counts)), counts), 1)
    estimates: Estimates = noise._estimates
    top = Texts.of([str(i) for i in range(TOP)])
    scale = noise.noise.spread(HORIZON).stddev
    dice = np.random.default_rng(seed)
    noisy = table + np.rint(dice.normal(0, scale, table.size)).astype(np.int64)
    stated = noise.stddev(HORIZON)
    assert stated is not None
    return rmse(estimates.of(table, top), counts[:TOP]), rmse(estimates.of(noisy, top), counts[:TOP]), stated


def main() -> None:
    flat = et.Counter(guarantee=PROMISE, horizon=HORIZON, key=et.simulation(0)).stddev(HORIZON)
    print(f"a histogram of declared labels: noise {flat:.2f}")
    print("rows  width   off without noise  with noise  noise of an estimate")
    for rows, width in ((5, 65536), (5, 16384), (5, 3277), (3, 16384), (9, 16384)):
        found = np.array([compare(zipf(seed), rows, width, seed) for seed in range(8)])
        low, high = found.min(axis=0), found.max(axis=0)
        spans = "  ".join(f"{low[i]:.1f} to {high[i]:.1f}".rjust(w) for i, w in ((0, 17), (1, 12)))
        print(f"{rows:4}  {width:5}  {spans}  {found[0, 2]:.2f}")
    labels = [f"/page/{i}" for i in np.random.default_rng(0).zipf(1.1, EVENTS) % LABELS]
    sketch = et.CountSketch(guarantee=PROMISE, horizon=HORIZON, key=et.simulation(0))
    sketch.step_events(labels[:10])
    start = time.perf_counter()
    sketch.step_events(labels)
    print(f"a tick of {EVENTS} events: {time.perf_counter() - start:.2f} s", end=", ")
    start = time.perf_counter()
    sketch.step_events([])
    print(f"one without any: {time.perf_counter() - start:.3f} s; a snapshot has {len(sketch.snapshot())} bytes")


if __name__ == "__main__":
    main()
