"""Learning one number from noisy messages alone: what comes out, beside what factorization-counting 6.9 says.

    python -m benchmarks.local [--short] [--json FILE]

People have values between 0 and 1; each makes one message under a key of its own, the server adds them up. The sums of
many clients are made without the bytes in between (`sums_of`); for a sample of the clients the real messages are made
and added by the real server, and both must give the same integers. "slopes": the largest error of any of the w
estimated slopes, beside the bound for noise alone and the standard deviation at the end of the grid. "median off by":
of the released median from the true one, on the scale of values, as it is and after isotonic regression, and in
average loss beside its bound. What was measured is the worst of several runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from benchmarks.report import Table
from numpy.typing import NDArray

import evertally as et
from evertally.local import Client, Protocol, Result, Server
from evertally.local.losses import number

SAMPLE = 200
BETA = 0.05
SHAPE = (2, 5)  # of the law of the values, a Beta law; its median is 0.264


@dataclass(frozen=True)
class Learnt:
    """One protocol; what was measured is the worst of its runs."""

    promise: str
    clients: int
    cells: int
    message_bytes: int
    stddev: float  # of the last slope, as the result states it
    formula: float  # the same by 6.9: (2/sqrt n) sigma_1 Delta_swap sqrt(S_w), in real numbers
    slopes_off: float
    noise_bound: float
    runs: int
    median_off: float
    isotonic_off: float  # of the median after isotonic regression
    loss_off: float
    loss_bound: float
    same_integers: bool  # for the sample: messages added by the server, and `sums_of`


def seeds(run: int, clients: int) -> range:
    """A key for each client of each run."""
    return range(run * 10_000_000, run * 10_000_000 + clients)


def sums_of(protocol: Protocol, values: Sequence[float], keys: range) -> NDArray[np.int64]:
    """What a server would have after the messages of clients with these values and keys (no entry is ever cut)."""
    w = protocol.cells
    counts = np.bincount([protocol.cell(_point(protocol, value)) for value in values], minlength=w)
    total = np.convolve(protocol.factor, counts)[:w].astype(np.int64)
    for seed in keys:
        source = et.simulation(seed).source("local", "client", protocol.digest)
        total += source.draws("message", protocol.law, [0], w)[0]
    return total


def _point(protocol: Protocol, value: float) -> Fraction:
    point = number(value)
    assert point is not None
    return max(protocol.low, min(protocol.high, point))


def served(protocol: Protocol, values: Sequence[float], keys: range) -> Server:
    """The same by real messages."""
    server = Server(protocol)
    server.add_many(
        Client(protocol, et.simulation(seed)).message(value) for seed, value in zip(keys, values, strict=True)
    )
    return server


def same_integers(protocol: Protocol, values: Sequence[float], keys: range) -> bool:
    """Whether both ways give the same sums for these clients."""
    entries = served(protocol, values, keys)._sums.entries
    return bool((entries == sums_of(protocol, values, keys)).all())


def true_slopes(protocol: Protocol, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """2 * (share of values below each grid point) - 1, of these very people."""
    cells = np.array([protocol.cell(_point(protocol, value)) for value in values.tolist()])
    below = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=protocol.cells))])
    return 2.0 * below / values.size - 1.0


def by_formula(protocol: Protocol, clients: int) -> float:
    """6.9 in real numbers, without the integer factor: an independent computation."""
    w = protocol.cells
    f = np.cumprod(np.concatenate([[1.0], 1 - 1 / (2 * np.arange(1, w))]))
    norms = np.cumsum(f**2)
    swap = max(norms[-1] + norms[w - d - 1] - 2 * float(f[: w - d] @ f[d:]) for d in range(1, w))
    sigma = math.sqrt(1 / (2 * float(protocol.guarantee.to_zcdp().exact_rho)))
    return 2 / math.sqrt(clients) * sigma * math.sqrt(swap * norms[-1])


def learn(promise: et.ApproxDP | et.ZCDP, clients: int, first: int, runs: int) -> Learnt:
    protocol = Protocol(guarantee=promise, clients=clients, low=0, high=1)
    population = np.random.default_rng(0).beta(*SHAPE, 1_000_000)
    median = float(np.median(population))

    def loss(theta: float) -> float:
        return float(np.abs(population - theta).mean())

    slopes, medians, isotonic, losses, same = [], [], [], [], True
    for run in range(first, first + runs):
        values, keys = np.random.default_rng([1, run]).beta(*SHAPE, clients), seeds(run, clients)
        sums = sums_of(protocol, values.tolist(), keys)
        result = Result.of(protocol, sums, clients, BETA, private=False)
        rising = Result.of(protocol, sums, clients, BETA, private=False, isotonic=True)
        slopes.append(float(np.abs(result.slopes - true_slopes(protocol, values)).max()))
        medians.append(abs(result.minimiser - median))
        isotonic.append(abs(rising.minimiser - median))
        losses.append(loss(result.minimiser) - loss(median))
        same &= same_integers(protocol, values[:SAMPLE].tolist(), keys[:SAMPLE])
    return Learnt(
        promise=str(promise),
        clients=clients,
        cells=protocol.cells,
        message_bytes=protocol.message_bytes,
        stddev=float(result.stddev[-1]),
        formula=by_formula(protocol, clients),
        slopes_off=max(slopes),
        noise_bound=result.bound.noise,
        runs=runs,
        median_off=max(medians),
        isotonic_off=max(isotonic),
        loss_off=max(losses),
        loss_bound=result.bound.total,
        same_integers=same,
    )


def measure(short: bool) -> list[Learnt]:
    promises = [et.ApproxDP(1.0, 1e-9), et.ApproxDP(4.0, 1e-9), et.ZCDP(2)]
    sizes, runs = ([1000], 2) if short else ([10_000, 100_000], 5)
    cases = [(promise, clients) for clients in sizes for promise in promises]
    return [learn(promise, clients, runs * case, runs) for case, (promise, clients) in enumerate(cases)]


def table(rows: list[Learnt]) -> Table:
    return Table(
        "Local learning of a median",
        f"Values of a Beta(2, 5) law between 0 and 1, one message each; bounds hold with probability 95 %. Worst of "
        f"{rows[0].runs} runs.",
        [
            "promise to each",
            "clients",
            "cells",
            "bytes",
            "std",
            "6.9",
            "slopes off by",
            "bound",
            "median off by",
            "isotonic",
            "loss",
            "bound",
        ],
        [
            (
                row.promise,
                f"{row.clients:,}",
                f"{row.cells}",
                f"{row.message_bytes:,}",
                f"{row.stddev:.4f}",
                f"{row.formula:.4f}",
                f"{row.slopes_off:.3f}",
                f"{row.noise_bound:.3f}",
                f"{row.median_off:.3f}",
                f"{row.isotonic_off:.3f}",
                f"{row.loss_off:.4f}",
                f"{row.loss_bound:.3f}",
            )
            for row in rows
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--short", action="store_true", help="1000 clients: seconds")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args()
    rows = measure(options.short)
    print(table(rows).text())
    print(table(rows).markdown())
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n")
    return 0 if all(row.same_integers for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
