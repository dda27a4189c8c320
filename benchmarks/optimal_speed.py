"""What the optimal counters cost: a tick, a call, construction, memory; all in one run.

    python -m benchmarks.optimal_speed [--short] [--jax-python PATH]

Times are CPU times of `advance`, a tick and coordinate, the smallest of several runs. Beside them: the plain integer
draw, which any mechanism needs; the memory bandwidth of the machine, from copying an array that no cache holds; and the
buffered linear Toeplitz noise of jax-privacy (`jax_blt.py`), floats for model training, which wants its own versions of
things and may live in an environment of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table, print_tables

import evertally as et
from evertally.counting.bank import BankProcess
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_open import OPEN_STATES, OpenBankProcess
from evertally.counting.bank_schedule import build_bank, states_for
from evertally.counting.process import NoiseProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.noise import DiscreteGaussian, Source, simulation
from evertally.privacy import ZCDP, Change, PureDP
from evertally.theory.frontier import optimal_factor

ONE = Change(1, 1, 1)
RHO = ZCDP(0.5)
REPEATS = 3
WIDE = 10**6
INSTALL = "jax-privacy is not installed here: `pip install jax-privacy` in an environment of its own, then --jax-python"
_COPIED = 2**28  # bytes, well beyond any cache

Make = Callable[[Source, int], NoiseProcess]


@dataclass(frozen=True)
class Timed:
    """A process, and how many ticks are timed for how many columns; `skip` ticks are not, which begin a block."""

    name: str
    make: Make
    ticks: dict[int, int]
    states: int = 0
    skip: int = 0


LONG = {1: 2**14, 1000: 2**9, WIDE: 4}  # columns, ticks


def _bank(states: int) -> Timed:
    def make(source: Source, d: int) -> NoiseProcess:
        return BankProcess(RHO, ONE, horizon=2**16, columns=d, source=source, bank=build_bank(2**16, states))

    return Timed(f"bank, {states} states", make, LONG, states)


def _blocks(T: int, block: int, columns: tuple[int, ...]) -> Timed:
    """Each block begins with a pass over it, so whole blocks are timed; of two levels not the first, which makes the
    upper one."""

    def make(source: Source, d: int) -> NoiseProcess:
        return PureBlocksProcess(PureDP(1), ONE, horizon=T, columns=d, source=source)

    name, skip = f"pure-blocks, T = 2^{T.bit_length() - 1}", block if block < T else 0
    return Timed(name, make, dict.fromkeys(columns, block), skip=skip)


SUBJECTS = (
    _bank(4),
    _bank(6),
    _bank(8),
    Timed(
        f"bank-open, {OPEN_STATES} states",
        lambda source, d: OpenBankProcess(RHO, ONE, columns=d, source=source),
        LONG,
        OPEN_STATES,
    ),
    _blocks(2**6, 64, (1, 1000, WIDE)),
    _blocks(2**16, 256, (1, 1000)),
    # It makes its noise ahead, 8 T bytes a column: the whole horizon is timed.
    Timed(
        "sqrt, T = 2^12",
        lambda source, d: SqrtProcess(RHO, ONE, horizon=2**12, columns=d, source=source),
        {1: 2**12, 1000: 2**12},
    ),
)


def nanoseconds(subject: Timed, columns: int) -> float:
    """Of one tick and coordinate of a new stream."""
    ticks = subject.ticks[columns]
    repeats = REPEATS if columns < WIDE else 2
    times = []
    for seed in range(repeats + 1):  # the first compiles, and makes tables
        process = subject.make(simulation(seed).source("benchmark"), columns)
        if subject.skip:
            process.advance(subject.skip)
        times.append(_cpu(lambda process=process: process.advance(ticks)))
    return min(times[1:]) * 1e9 / ticks / columns


def plain(columns: int, ticks: int) -> float:
    """One integer draw."""
    source, law = simulation(0).source("plain"), DiscreteGaussian(22)
    times = [_cpu(lambda: source.draws("lane", law, range(1, ticks + 1), columns)) for _ in range(REPEATS + 1)]
    return min(times[1:]) * 1e9 / ticks / columns


def bandwidth() -> float:
    """Bytes read and written a nanosecond, by one core that copies an array."""
    source = np.ones(_COPIED // 8)
    target = np.empty_like(source)
    return 2 * _COPIED / min(_cpu(lambda: np.copyto(target, source)) for _ in range(REPEATS + 3)) / 1e9


def _cpu(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def jax_rows(python: str | None) -> list[dict[str, Any]] | str:
    """What jax_blt.py prints; or why it prints nothing."""
    if python is None and importlib.util.find_spec("jax_privacy") is None:
        return INSTALL
    script = Path(__file__).with_name("jax_blt.py")
    done = subprocess.run([python or sys.executable, str(script)], capture_output=True, text=True, timeout=600)
    if done.returncode:
        return f"jax-privacy failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def times(short: bool, blt: list[dict[str, Any]] | str) -> list[Table]:
    sizes = (1, 1000) if short else (1, 1000, WIDE)
    draw = {d: plain(d, max(2, 2**14 // d)) for d in sizes}
    rows = [("plain integer draw", *(f"{draw[d]:.0f}" for d in sizes))]
    traffic = []
    for subject in SUBJECTS:
        cells = []
        for d in sizes:
            if d not in subject.ticks:
                cells.append("-")
                continue
            ns = nanoseconds(subject, d)
            cells.append(f"{ns:.0f} ({ns / draw[d]:.1f})")
            if d == WIDE and subject.states:
                traffic.append((subject, ns))
        rows.append((subject.name, *cells))
    for row in blt if not isinstance(blt, str) else []:
        if row["kind"] == "time" and row["columns"] == 1:
            same = {other["columns"]: other for other in blt if other.get("dtype") == row["dtype"]}
            cells = [f"{same[d]['cpu']:.0f} ({same[d]['cpu'] / draw[d]:.1f})" for d in sizes]
            rows.append((f"jax-privacy {row['version']}, BLT of {row['buffers']} buffers, {row['dtype']}", *cells))
    note = (
        "CPU ns a tick and coordinate, random bits included; in brackets: over the plain draw. d coordinates at once."
    )
    note += f" {blt}." if isinstance(blt, str) else ""
    made = [Table("Time", note, ("", *(f"d = {d:,}" for d in sizes)), rows)]
    return made + ([_traffic(traffic)] if traffic else [])


def _traffic(timed: list[tuple[Timed, float]]) -> Table:
    """States are read and written once a tick, the noise is written as an integer."""
    speed, rows = bandwidth(), []
    for subject, ns in timed:
        moved = 16 * subject.states + 8
        rows.append((subject.name, f"{moved}", f"{moved / ns:.1f}", f"{100 * moved / ns / speed:.0f} %"))
    note = f"d = {WIDE:,}. Copying {_COPIED >> 20} MiB by one core reads and writes {speed:.1f} GB/s in this run."
    return Table("Memory traffic of a tick", note, ("", "bytes a coordinate", "GB/s", "of the bandwidth"), rows)


def beside_blt(blt: list[dict[str, Any]] | str) -> list[Table]:
    """Worst factors at the same zCDP."""
    if isinstance(blt, str):
        return []
    rows = []
    for row in blt:
        if row["kind"] == "error":
            T = row["T"]
            bank = build_bank(T)
            ours = math.sqrt(certified(bank) * moments_of(bank).widest(T))
            least = optimal_factor(T)[0]
            found = (f"{row['factor']:.4f}", f"{ours:.4f}", f"{least:.4f}")
            ratios = (f"{row['factor'] / least:.4f}", f"{ours / least:.4f}", f"{row['factor'] / ours:.4f}")
            rows.append((f"2^{T.bit_length() - 1}", *found, *ratios))
    title = f"The worst factor beside jax-privacy {blt[0]['version']}"
    note = (
        f"Standard deviation in 1/sqrt(2 rho): its optimised BLT of {blt[0]['buffers']} buffers, our bank of 4 states."
    )
    return [Table(title, note, ("T", "BLT", "bank", "least", "BLT/least", "bank/least", "BLT/bank"), rows)]


def steps(short: bool) -> Table:
    """One public call a tick."""
    count, rows = (256 if short else 4096), []
    for name, guarantee in (
        ("bank", RHO),
        ("bank-open", RHO),
        ("sqrt", RHO),
        ("tree", RHO),
        ("pure-blocks", et.PureDP(1)),
    ):
        horizon = None if name == "bank-open" else 2**16
        counter = et.Counter(guarantee=guarantee, horizon=horizon, mechanism=name, key=et.simulation(0))

        def many(counter: Any = counter) -> None:
            for _ in range(count):
                counter.step(1)

        many()
        rows.append((name, f"{min(_cpu(many) for _ in range(REPEATS)) * 1e6 / count:.1f}"))
    return Table("Counter.step", "CPU us a call, one event a tick, T = 2^16", ("mechanism", "us"), rows)


def construction(longest: int) -> Table:
    """Everything that settles a bank of a horizon that nobody has asked for before; kernels are compiled already."""
    rows = []
    make = lambda T: et.Counter(guarantee=RHO, horizon=T, mechanism="bank", key=et.simulation(0))  # noqa: E731
    for T in (300, 5000, 2**20 + 1)[: 2 if longest <= 20 else 3]:  # each number of states is compiled
        make(T)
    for k in range(10, longest + 1, 2):
        T = 2**k - 3  # is in no cache
        seconds = _cpu(lambda T=T: make(T))
        rows.append((f"2^{k}", str(states_for(T)), f"{seconds:.2f}"))
    return Table("Construction of the bank", "CPU seconds, certificate included", ("T", "states", "seconds"), rows)


_CHILD = """
import resource, sys
import numpy as np, evertally as et

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def make(columns):
    return et.VectorCounter(columns, guarantee=et.ZCDP(0.5), horizon=2**16, mechanism=sys.argv[1], key=et.simulation(0))

columns, ticks = int(sys.argv[2]), int(sys.argv[3])
small = make(100)  # imports, compilers, coefficients
for _ in range(2):
    small.step(np.ones(100, dtype=np.int64))
row = np.ones(columns, dtype=np.int64)
seen = [resident()]
counter = make(columns)
for _ in range(ticks):
    counter.step(row)
    seen.append(resident())
print(seen[-1] - seen[0], max(seen) - seen[0])
"""


def memory(columns: int, ticks: int = 16) -> Table:
    """Of a process of its own, where the kernel tells it."""
    rows = []
    for name, states in (("bank", states_for(2**16)), ("tree", 0)):
        if not Path("/proc/self/statm").exists():
            break
        command = [sys.executable, "-c", _CHILD, name, str(columns), str(ticks)]
        grown, peak = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
        own = f"{8 * states * columns / 1e6:.1f}" if states else "-"
        rows.append((name, f"{grown / 1e6:.1f}", f"{peak / 1e6:.1f}", own))
    note = f"MB, VectorCounter(columns={columns:,}, horizon=2^16) and {ticks} steps; beside it the bank's states alone"
    return Table("Growth of resident memory", note, ("mechanism", "at the end", "most after a step", "states"), rows)


def measure(short: bool, jax_python: str | None = None) -> list[Table]:
    blt = "left out of the short run" if short else jax_rows(jax_python)
    made = times(short, blt) + beside_blt(blt) + [steps(short), construction(12 if short else 24)]
    return [*made, memory(1000 if short else 10**5)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--jax-python", help="an interpreter that has jax-privacy")
    options = parser.parse_args()
    print_tables(measure(options.short, options.jax_python))


if __name__ == "__main__":
    main()
