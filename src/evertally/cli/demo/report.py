"""The report of the demo: released beside exact. Everything in it was measured in this run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evertally.cli.demo.flights import Exact
from evertally.runtime import StreamSpec, plain_words
from evertally.runtime.releases import entries


def write_report(path: Path, spec: StreamSpec, latest: dict[str, Any], exact: Exact, seconds: float) -> None:
    """Writes the report as Markdown."""
    inside, numbers = coverage(path.parent / "releases.jsonl", exact)
    lines = [
        "# A year of departures from New York, as released",
        "",
        plain_words(spec),
        "",
        f"{exact.departures:,} departures went in over HTTP and {latest['tick']:,} ticks came out in {seconds:.1f} s: "
        f"{exact.departures / seconds:,.0f} events and {latest['tick'] / seconds:,.0f} ticks a second.",
        "",
        f"Of {numbers:,} released counts {inside / numbers:.2%} are within their 95 % interval of the exact count.",
        "",
        "The data are public, so exact counts can stand beside the released ones; the product never shows them.",
        "",
        f"## At the end, {latest['time']}",
        "",
        "| query | label | released | 95 % interval | exact |",
        "|---|---|---:|---|---:|",
    ]
    for name, columns in latest["queries"].items():
        for label, value, lower, upper in entries(columns):
            truth = exact.counts.get((name, label))
            shown = "" if truth is None else f"{int(truth[latest['tick'] - 1]):,}"
            lines.append(f"| {name} | {label or ''} | {_shown(value)} | {_shown(lower)} to {_shown(upper)} | {shown} |")
    lines += ["", "![departures by carrier](departures.png)", ""]
    path.write_text("\n".join(lines))


def coverage(releases: Path, exact: Exact) -> tuple[int, int]:
    """How many released counts are within their interval of the exact count, and how many there are."""
    inside = numbers = 0
    with open(releases) as file:
        for row in map(json.loads, file):
            truth = exact.counts.get((row["query"], row["category"]))
            if truth is not None:
                numbers += 1
                inside += row["lower"] <= truth[row["tick"] - 1] <= row["upper"]
    return inside, numbers


def _shown(number: float) -> str:
    return f"{number:,.1f}" if isinstance(number, float) and not number.is_integer() else f"{number:,.0f}"
