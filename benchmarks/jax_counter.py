"""jax-privacy's correlated noise for prefix sums, timed. Run by speed.py, perhaps by another interpreter: it imports
nothing of evertally and prints one line of JSON for each number.

The library privatises one gradient a step; the running sum of what it returns is a continual counter with Gaussian
noise in floats. `sqrt` is its full Toeplitz factorization, O(T d) time and memory a step; `BLT` has four buffers.
"""

from __future__ import annotations

import json
import time
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz

T = 4096


def report(what: str, kind: str, columns: int, count: int, seconds: float) -> None:
    row = {"what": what, "by": f"jax-privacy {version('jax-privacy')}", "kind": kind, "columns": columns}
    print(json.dumps(row | {"count": count, "seconds": seconds}), flush=True)


def time_one(what: str, matrix: Any, columns: int, ticks: int, scan: bool) -> None:
    privatizer = noise_addition.matrix_factorization_privatizer(matrix, stddev=50.0, prng_key=1)
    zeros = jnp.zeros(columns)

    def tick(state: Any, _: Any) -> Any:
        noise_state, total = state
        noisy, noise_state = privatizer.update(zeros, noise_state)
        total = total + noisy
        return (noise_state, total), total

    start = privatizer.init(zeros), zeros
    step = jax.jit(lambda state: tick(state, None))
    state, out = step(start)
    out.block_until_ready()
    began = time.perf_counter()
    for _ in range(ticks):
        state, out = step(state)
        out.block_until_ready()
    report(what, "step", columns, ticks, time.perf_counter() - began)
    if scan:
        run = jax.jit(lambda state: jax.lax.scan(tick, state, None, length=ticks))
        run(start)[1].block_until_ready()
        began = time.perf_counter()
        run(start)[1].block_until_ready()
        report(what, "run", columns, ticks, time.perf_counter() - began)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    roots = toeplitz.inverse_as_streaming_matrix(toeplitz.optimal_max_error_strategy_coefs(T))
    blt = buffered_toeplitz.optimize(n=T, min_buffers=4, max_buffers=4)
    buffers = blt.inverse_as_streaming_matrix()
    time_one("sqrt, float64", roots, 1, T - 1, scan=True)
    time_one("BLT of 4 buffers, float64", buffers, 1, T - 1, scan=True)
    time_one("BLT of 4 buffers, float64", buffers, 1000, 1000, scan=True)
    time_one("BLT of 4 buffers, float64", buffers, 10**6, 16, scan=False)


if __name__ == "__main__":
    main()
