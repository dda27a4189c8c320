"""How late flights from New York depart: the whole distribution, released every day, with its bands.

    python examples/departure_delays.py [folder] [--days 365]

One flight is protected. Every day a distribution function comes out, from which any quantile and any share can be
read (docs/value-quantiles.md); nothing is added to the noise for asking more. The data are public (new_york.py), so
the truth can stand beside it. Edges are at every minute near the timetable, and further apart beyond: public, and
chosen without looking at the delays.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import evertally as et
from evertally.pictures import BAND, INK, empty_figure, in_style
from new_york import delays

EDGES = [*range(-30, 60), *range(60, 240, 5), *range(240, 1501, 30)]
SHARES = (0.5, 0.9, 0.99)


@in_style
def draw(days: list[Any], true: np.ndarray, curve: Any, last: np.ndarray, target: Path) -> None:
    """The quantiles day by day, and the distribution function of the first day."""
    figure = empty_figure(10, 8)
    top, bottom = figure.subplots(2, 1)
    ticks = np.arange(1, len(days) + 1)
    for column, q in enumerate(SHARES):
        values, lower, upper = (np.array([part[kind][q] for part in days]) for kind in range(3))
        (line,) = top.plot(ticks, values, drawstyle="steps-post", label=f"{q:.0%} of flights were at most so late")
        top.fill_between(ticks, lower, upper, step="post", alpha=BAND, linewidth=0, color=line.get_color())
        top.plot(ticks, true[:, column], color=INK, linewidth=0.8)
    top.set(title="Minutes of delay since January 2013, released every day; bands: 95 %; black: exact", xlabel="day")
    top.set_yscale("symlog")
    top.legend(loc="center right")
    total = curve.counts[-1]
    bottom.plot(curve.edges, curve.counts / total, label="released on the first day")
    bottom.fill_between(
        curve.edges,
        curve.lower / total,
        curve.upper / total,
        alpha=BAND,
        linewidth=0,
        label="95 % for all minutes at once",
    )
    bottom.plot(EDGES, [np.mean(last <= edge) for edge in EDGES], color=INK, linewidth=0.8, label="exact")
    bottom.set(
        title="Share of the flights of the first day that departed at most so many minutes late", xlabel="minutes"
    )
    bottom.set_xlim(-30, 180)
    bottom.legend(loc="lower right")
    figure.savefig(target, dpi=120, metadata={"Software": None})


def main() -> None:
    """Plays the year, and says what is known at its end."""
    arguments = argparse.ArgumentParser(description="Delays of flights from New York.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("delays"))
    arguments.add_argument("--days", type=int, default=365)
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    late = et.ValueQuantile(
        edges=EDGES,
        q=SHARES,
        guarantee=et.ApproxDP(1, 1e-6),
        horizon=given.days,
        key=et.Key.generate(),
        name="delays",
    )
    days, seen, true, first = [], [], [], None
    year = delays(given.days)
    for day in year:
        release = late.step(day)
        first = release if first is None else first
        days.append((release.value, *release.interval(beta=0.05)))
        seen += day
        true.append(np.quantile(seen, SHARES, method="inverted_cdf"))
    print(f"{len(seen):,} flights in {given.days} days; noise of a count: {late.rank_stddev(given.days):.0f} flights")
    print(f"{'share':>6}{'released':>10}{'lower':>7}{'upper':>7}{'exact':>7}")
    for q, exact in zip(SHARES, true[-1], strict=True):
        value, lower, upper = (part[q] for part in days[-1])
        print(f"{q:>6.0%}{value:10.0f}{lower:7.0f}{upper:7.0f}{exact:7.0f}")
    hour = release.between(60, 1500)
    low, high = hour.interval(beta=0.05)
    print(
        f"more than an hour late: {hour.value:,.0f} ({low:,.0f} to {high:,.0f}), exactly {sum(x > 60 for x in seen):,}"
    )
    target = given.folder / "cdf.png"
    assert first is not None
    draw(days, np.array(true), first.cdf(), np.array(year[0]), target)
    print(f"The picture: {target}")


if __name__ == "__main__":
    main()
