"""The bank, the bank without a horizon and blocks beside the least error that there is; what they cost; and the running
code beside its formulas.

    python -m benchmarks.optimal_counting [--monte-carlo] [--short] [--jax-python PATH]

Factors are standard deviations in units of 1/sqrt(2 rho), before rounding to integers: the certified sensitivity times
the widest variance of the program's own coefficients, beside the certified frontier. What costs what: optimal_speed.py.
Formulas beside Monte Carlo, for all processes: optimal_frontier.py; the exit code says whether they agree.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from benchmarks.report import Table, print_tables

from benchmarks import optimal_frontier, optimal_speed
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_open import OPEN_SENSITIVITY, open_bank
from evertally.counting.bank_schedule import build_bank
from evertally.counting.block_table import sizes_for
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt_factor import GRID_BITS, sqrt_factor
from evertally.counting.tree import TreeProcess
from evertally.noise import ZeroNoise
from evertally.privacy import Change, PureDP
from evertally.theory.frontier import optimal_factor

ONE = Change(1, 1, 1)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="horizons up to 2^12, few columns, no jax-privacy")
    parser.add_argument("--monte-carlo", action="store_true", help="formulas beside the running code: ten minutes")
    parser.add_argument("--no-speed", action="store_true", help="errors alone")
    parser.add_argument("--jax-python", help="an interpreter that has jax-privacy, if this one has not")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="directory of the results")
    options = parser.parse_args()
    longest = 12 if options.short else 20
    tables = [factors(longest), pure(longest)]
    print_tables(tables)
    if not options.no_speed:
        measured = optimal_speed.measure(options.short, options.jax_python)
        print_tables(measured)
        tables += measured
    rows: list[optimal_frontier.Row] = []
    if options.monte_carlo:
        rows = optimal_frontier.measure({2**8: 2_000, 2**10: 2_000} if options.short else optimal_frontier.COLUMNS)
        tables += optimal_frontier.tables(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / ".gitignore").write_text("*\n")
    (options.out / "optimal.md").write_text("\n".join(table.markdown() for table in tables))
    if rows:
        optimal_frontier.plot(rows, options.out / "optimal.png")
    print(f"written: {options.out}/optimal.md{', optimal.png' if rows else ''}")
    return 0 if all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
