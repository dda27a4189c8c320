"""Decaying sums on a bank and by the root factor: predicted and measured errors.

    python -m benchmarks.decay [--columns 2000]

Standard deviations at rho = 1/2, rounding to integers included. Measured: the root of the mean square of the program's
noise over many columns at the tick where it should be widest.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from benchmarks.report import Table, print_tables

from evertally.counting import age_ways
from evertally.counting.choose import Choice
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import Setting
from evertally.counting.workloads import Decay
from evertally.noise import simulation
from evertally.privacy import ZCDP, Change

RHO = ZCDP(0.5)
FACTORS = ("0.9", "0.99", "0.999", "0.9999")
HORIZONS = (16, 64, 256, 1024, 4096)


def noise(mechanism: str, factor: str, horizon: int, columns: int) -> NoiseProcess:
    setting = Setting(Change(1, 1, 1), horizon, columns, 2**40)
    return age_ways.build(Choice(mechanism, RHO), setting, Decay(factor), simulation(1).source("decay"))


def measured(process: NoiseProcess, horizon: int) -> tuple[float, float]:
    """At the widest tick: predicted and found."""
    at = max(range(1, horizon + 1), key=lambda tick: process.spread(tick).variance)
    row = process.advance(at)[-1].astype(np.float64)
    return process.spread(at).stddev, math.sqrt(float(np.mean(row * row)))


def errors(columns: int, factors: tuple[str, ...] = FACTORS, horizons: tuple[int, ...] = HORIZONS) -> Table:
    rows = []
    for factor in factors:
        for T in horizons:
            both = [measured(noise(name, factor, T, columns), T) for name in ("bank", "root")]
            (bank, found), (root, seen) = both
            numbers = (f"{number:.3f}" for number in (bank, found, root, seen, bank / root))
            rows.append((factor, str(T), *numbers))
    head = ("factor", "T", "bank", "measured", "root", "measured", "bank/root")
    return Table("Decaying sums", f"worst standard deviation at rho = 1/2, {columns} columns", head, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=2000)
    print_tables([errors(parser.parse_args().columns)])
