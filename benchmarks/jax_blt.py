"""jax-privacy's buffered linear Toeplitz noise (BLT), its error and its time.

Run by optimal_speed.py, perhaps by another interpreter: it imports nothing of evertally and prints one line of JSON for
each number.

Error: C has the coefficients of the optimised BLT, the noise of prefix sums is A C^-1 z; the worst factor is the norm
of C's first column times that of the last row of A C^-1, both summed here from the coefficients, in float64.
Time: of the running sum of what its privatizer returns for zeros, which is the noise of a counter.
"""

from __future__ import annotations

import json
import math
import time
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import buffered_toeplitz

BUFFERS = 4
REPEATS = 3


def report(**row: Any) -> None:
    print(json.dumps(row | {"version": version("jax-privacy"), "buffers": BUFFERS}), flush=True)


def factor(blt: Any, T: int) -> float:
    strategy, noising = (np.asarray(matrix.toeplitz_coefs(T)) for matrix in (blt, blt.inverse()))
    return math.sqrt(float((strategy**2).sum() * (np.cumsum(noising) ** 2).sum()))


def timed(matrix: Any, columns: int, ticks: int, dtype: Any) -> tuple[float, float]:
    """CPU time, of all its threads, and wall time, in ns a tick and column; one compiled call for all ticks."""
    privatizer = noise_addition.matrix_factorization_privatizer(matrix, stddev=50.0, prng_key=1, dtype=dtype)
    zeros = jnp.zeros(columns, dtype=dtype)

    def tick(state: Any, _: Any) -> Any:
        noise_state, total = state
        noisy, noise_state = privatizer.update(zeros, noise_state)
        total = total + noisy
        # One column is kept: writing all noise of a million columns is no part of making it.
        return (noise_state, total), total[0]

    run = jax.jit(lambda state: jax.lax.scan(tick, state, None, length=ticks))
    start = privatizer.init(zeros), zeros
    jax.block_until_ready(run(start))
    times = []
    for _ in range(REPEATS):
        cpu, wall = time.process_time(), time.perf_counter()
        jax.block_until_ready(run(start))
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    best = [min(column) * 1e9 / ticks / columns for column in zip(*times, strict=True)]
    return best[0], best[1]


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    for T in (2**10, 2**12):
        blt = buffered_toeplitz.optimize(n=T, min_buffers=BUFFERS, max_buffers=BUFFERS)
        report(kind="error", T=T, factor=factor(blt, T))
    for dtype in (jnp.float64, jnp.float32):
        # Its buffers have the type of its parameters.
        cast = buffered_toeplitz.BufferedToeplitz.build(blt.buf_decay, blt.output_scale, dtype=dtype)
        matrix = cast.inverse_as_streaming_matrix()
        for columns, ticks in ((1, 2**12), (1000, 256), (10**6, 4)):
            cpu, wall = timed(matrix, columns, ticks, dtype)
            report(kind="time", dtype=jnp.dtype(dtype).name, columns=columns, ticks=ticks, cpu=cpu, wall=wall)


if __name__ == "__main__":
    main()
