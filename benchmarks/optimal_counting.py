"""The bank, the bank without a horizon and blocks beside the least error that there is; and their time.

    python -m benchmarks.optimal_counting [--short]

Factors are standard deviations in units of 1/sqrt(2 rho), before rounding to integers: the certified sensitivity times
the widest variance of the program's own coefficients, beside the certified frontier. Times are CPU time of `advance`, a
tick and coordinate, the smallest of several runs, beside plain integer draws made in the same run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

from benchmarks.report import Table, print_tables

from evertally.counting.bank import BankProcess
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_open import OPEN_SENSITIVITY, OpenBankProcess, open_bank
from evertally.counting.bank_schedule import build_bank
from evertally.counting.block_table import sizes_for
from evertally.counting.process import NoiseProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt_factor import GRID_BITS, sqrt_factor
from evertally.counting.tree import TreeProcess
from evertally.noise import DiscreteGaussian, Source, ZeroNoise, simulation
from evertally.privacy import ZCDP, Change, PureDP
from evertally.theory.frontier import optimal_factor

ONE = Change(1, 1, 1)
RHO = ZCDP(0.5)
REPEATS = 3


def factors(longest: int) -> Table:
    rows = []
    for k in range(8, longest + 1, 2):
        T = 2**k
        bank, least = build_bank(T), optimal_factor(T)[0]
        factor = math.sqrt(certified(bank) * moments_of(bank).widest(T))
        unknown = moments_of(open_bank()).variance(T) * float(OPEN_SENSITIVITY) / least**2
        ratios = (f"{factor / least:.4f}", f"{worst_error(T) / least:.4f}", f"{unknown:.3f}")
        rows.append((f"2^{k}", str(bank.states), f"{factor:.4f}", f"{least:.4f}", *ratios))
    columns = ("T", "states", "bank", "least possible", "bank/least", "sqrt/least", "no horizon: variance/least")
    return Table("The worst factor", "standard deviation in 1/sqrt(2 rho), before rounding", columns, rows)


def worst_error(T: int) -> float:
    """S_T of the square-root counter, from its factor."""
    factor = sqrt_factor(T)
    return math.sqrt(float((factor.inverse**2).sum()) * factor.column_norm_squared) / 2.0**GRID_BITS


def pure(longest: int) -> Table:
    rows, quiet = [], ZeroNoise().source()
    for k in range(8, longest + 1, 2):
        made = PureBlocksProcess(PureDP(1), ONE, horizon=2**k, columns=1, source=quiet)
        tree = TreeProcess(PureDP(1), ONE, horizon=2**k, columns=1, source=quiet, radix="formula")
        V, other = made.worst().variance, tree.worst().variance
        levels = " x ".join(str(n) for n in sizes_for(2**k))
        rows.append((f"2^{k}", levels, f"{V:.1f}", f"{other:.1f}", f"{V / other:.2f}"))
    return Table("Pure budgets", "the largest variance times eps^2", ("T", "levels", "blocks", "tree", "ratio"), rows)


def nanoseconds(make: Callable[[Source, int], NoiseProcess], columns: int, ticks: int) -> float:
    """Of one tick and coordinate: the first ticks of a new stream, since some noise is made ahead."""
    fresh = [make(simulation(0).source("benchmark"), columns) for _ in range(REPEATS + 1)]
    fresh.pop().advance(ticks)  # compiles, and makes tables
    return _best(lambda: fresh.pop().advance(ticks)) / ticks / columns


def plain(columns: int, ticks: int) -> float:
    source, law = simulation(0).source("plain"), DiscreteGaussian(22)
    source.draws("lane", law, range(1, ticks + 1), columns)
    return _best(lambda: source.draws("lane", law, range(1, ticks + 1), columns)) / ticks / columns


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return min(times) * 1e9


MAKERS: dict[str, Callable[[Source, int], NoiseProcess]] = {
    "bank, T = 2^12 (4 states)": lambda source, d: BankProcess(RHO, ONE, horizon=2**12, columns=d, source=source),
    "bank, T = 2^16 (6 states)": lambda source, d: BankProcess(RHO, ONE, horizon=2**16, columns=d, source=source),
    "bank-open (10 states)": lambda source, d: OpenBankProcess(RHO, ONE, columns=d, source=source),
    "pure-blocks, T = 2^16": lambda source, d: PureBlocksProcess(
        PureDP(1), ONE, horizon=2**16, columns=d, source=source
    ),
}


def times(short: bool) -> Table:
    sizes = [(1, 2**12), (1000, 8)] if short else [(1, 2**12), (1000, 64), (10**6, 2)]
    rows = [("plain integer draw", *(f"{plain(d, ticks):.0f}" for d, ticks in sizes))]
    for name, make in MAKERS.items():
        # A block begins with a pass over its 256 ticks, so whole blocks are timed, and no wide ones.
        shown = [
            "-" if "blocks" in name and d > 1000 else f"{nanoseconds(make, d, 255 if 'blocks' in name else ticks):.0f}"
            for d, ticks in sizes
        ]
        rows.append((name, *shown))
    note = "CPU ns a tick and coordinate, random bits included; d coordinates at once"
    return Table("Time", note, ("", *(f"d = {d:,}" for d, _ in sizes)), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="horizons up to 2^12, and few columns")
    short = parser.parse_args().short
    longest = 12 if short else 20
    print_tables([factors(longest), pure(longest), times(short)])


if __name__ == "__main__":
    main()
