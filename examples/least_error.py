"""How small the noise of a running count can be: every process beside what is possible, for streams of any length.

    python examples/least_error.py [folder] [--longest 24]

The worst standard deviation of a count over T ticks, in units of 1/sqrt(2 rho) for Gaussian noise and of 1/epsilon
under a pure budget, before it is rounded to whole numbers. No data are needed: noise is known before it is drawn. The
grey area is what no Gaussian noise reaches, whatever its recipe, certified at every T (docs/optimal-counting.md); under
a pure budget no such bound is known.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from evertally.bounds.square_root import S
from evertally.counting.choose import Choice, misfit, model_of
from evertally.counting.processes import PROCESSES, Setting
from evertally.counting.survey import widest
from evertally.pictures import BAND, QUIET, empty_figure, in_style
from evertally.privacy import ZCDP, Change, PureDP
from evertally.theory.count_floors import count_floor

# So little budget that rounding to whole numbers does not matter.
RHO, EPSILON = ZCDP(5e-9), PureDP(1e-4)
GAUSSIAN = ("tree", "bank-open", "sqrt", "bank")
PURE = ("epoch-tree", "tree", "epoch-blocks", "pure-blocks")
Curve = list[tuple[int, float]]


def worst(name: str, charge: ZCDP | PureDP, T: int) -> float | None:
    """The worst standard deviation of a process up to tick T, in units of the budget; None where it does not fit."""
    if name == "sqrt":
        return float(S(T))  # by formula: its factor takes long to prepare
    horizon = T if PROCESSES[name].bounded else None
    setting = Setting(Change(1, 1, 1), horizon, 1, 2**30, "exact")
    if misfit(name, charge, setting) is not None:
        return None
    top = widest(model_of(Choice(name, charge), setting), T)
    unit = 1 / float(charge.exact_epsilon) if isinstance(charge, PureDP) else 1 / math.sqrt(2 * float(charge.exact_rho))
    return None if top is None else top.stddev / unit


def curves(names: tuple[str, ...], charge: ZCDP | PureDP, lengths: list[int]) -> dict[str, Curve]:
    """A curve for each process that this version has."""
    found = {}
    for name in names:
        if name in PROCESSES:
            points = [(T, worst(name, charge, T)) for T in lengths]
            found[name] = [(T, value) for T, value in points if value is not None]
    return found


@in_style
def draw(gaussian: dict[str, Curve], pure: dict[str, Curve], floor: Curve, target: Path) -> None:
    figure = empty_figure(10, 4.5)
    left, right = figure.subplots(1, 2)
    for axes, lines, title in (
        (left, gaussian, "Gaussian noise, in units of 1/sqrt(2 rho)"),
        (right, pure, "Pure budget, in units of 1/epsilon"),
    ):
        for name, points in lines.items():
            told = PROCESSES[name].bounded
            axes.plot(*zip(*points, strict=True), "-" if told else "--", label=name if told else f"{name} (not told T)")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(title=title, xlabel="T, ticks of the stream", ylabel="worst standard deviation")
    ticks, least = zip(*floor, strict=True)
    left.fill_between(ticks, least, 1.0, color=QUIET, alpha=BAND, label="impossible (certified)")
    left.set_ylim(bottom=1.0)
    for axes in (left, right):
        axes.legend(fontsize="small", loc="upper left")
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--longest", type=int, default=24, help="T goes up to 2 to this")
    given = parser.parse_args()
    lengths = [2**k for k in range(4, given.longest + 1)]
    gaussian, pure = curves(GAUSSIAN, RHO, lengths), curves(PURE, EPSILON, lengths)
    floor = [(T, count_floor(T, RHO) or 0.0) for T in lengths]
    floor = [(T, value * math.sqrt(2 * float(RHO.exact_rho))) for T, value in floor]
    print(f"{'T':>10}  {'floor':>7}", *(f"{name:>11}" for name in (*gaussian, *pure)))
    for i, (T, least) in enumerate(floor):
        cells = (dict(points).get(T) for points in (*gaussian.values(), *pure.values()))
        shown = ("" if value is None else f"{value:.3f}" for value in cells)
        if i % 2 == 0:
            print(f"{T:>10}  {least:>7.3f}", *(f"{cell:>11}" for cell in shown))
    target = given.folder / "least-error.png"
    draw(gaussian, pure, floor, target)
    print(f"The picture: {target}")


if __name__ == "__main__":
    main()
