"""`evertally plan --sweep`: errors of every query under several guarantees, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from evertally.cli.show import output_console
from evertally.errors import ConfigurationError
from evertally.pictures import empty_figure, in_style, plot_falling
from evertally.privacy import Guarantee
from evertally.runtime import Plan, StreamSpec
from evertally.runtime.plan import PlannedQuery
from evertally.runtime.sweep import swept


def amounts_of(text: str) -> list[float]:
    """Numbers between commas.

    >>> amounts_of("0.1, 1,3")
    [0.1, 1.0, 3.0]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigurationError('--sweep takes numbers between commas, such as "0.1,0.3,1,3"') from None


def sweep_table(spec: StreamSpec, amounts: list[float], picture: Path | None = None) -> None:
    """A row for each guarantee, a column for each query: what holds for all ticks, and the worst standard deviation.
    Bounds go into the picture too."""
    plans = swept(spec, amounts)
    table = Table()
    table.add_column("guarantee")
    for query in plans[0][1].queries:
        table.add_column(query.name, justify="right")
    for guarantee, plan in plans:
        table.add_row(str(guarantee), *(_cell(query) for query in plan.queries))
    console = output_console(110)
    console.print(table)
    within = f"{1 - plans[0][1].beta:.0%}"
    console.print(
        f"Error that all ticks stay below with probability {within}, in brackets the worst standard deviation."
    )
    if any(query.error_bound is None for query in plans[0][1].queries):
        console.print("* depends on the data: evertally plan says how, and each release has its interval")
    if picture is not None:
        draw_sweep(plans, amounts, picture)
        console.print(f"{picture} is drawn.", markup=False)


@in_style
def draw_sweep(plans: Sequence[tuple[Guarantee, Plan]], amounts: Sequence[float], file: Path) -> None:
    """A line for each query whose error is known before the data."""
    names = [query.name for query in plans[0][1].queries]
    lines = {name: [plan.queries[i].error_bound for _, plan in plans] for i, name in enumerate(names)}
    figure = empty_figure(9, 3.6)
    axes = figure.subplots()
    plot_falling(amounts, lines, across="epsilon" if hasattr(plans[0][0], "epsilon") else "rho", ax=axes)
    axes.set_ylabel(f"error, all ticks, {1 - plans[0][1].beta:.0%}")
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as problem:
        raise ConfigurationError(f"--picture {file}: {problem}") from None


def _cell(query: PlannedQuery) -> str:
    if query.error_bound is None:
        return "*"
    bound = f"{query.error_bound:,.4g}" if math.isfinite(query.error_bound) else "no bound"
    return bound if query.worst_stddev is None else f"{bound} ({query.worst_stddev:,.3g})"
