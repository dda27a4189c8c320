"""A record shop: what it can publish about its customers every week if it protects each of them as a whole.

    python examples/record_shop.py [folder] [--weeks 78]

Orders of all customers who bought for the first time at an online record shop in early 1997, and what they bought until
the middle of 1998: the CDNOW data, public (they come with the package `lifetimes`: `pip install --no-deps
lifetimes==0.11.3`), so that the truth may stand beside what is released. The stream is described in record_shop.toml;
`evertally run` does the same. Writes orders, spec, releases and a picture; prints released beside true.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import importlib.util
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evertally.pictures import BAND, INK, empty_figure, in_style
from evertally.runtime import load_spec, plain_words, run

START = dt.date(1997, 1, 1)
SPEC = Path(__file__).with_name("record_shop.toml")
# As in the spec: weeks of a month, months that are looked at; dollars of a customer, of an order; weeks of a customer
# whose orders are among the percentiles, and how far apart.
MONTH, AGES, ALLOWANCE, MOST, KEPT, APART = 4, 12, 400.0, 200.0, 2, 6
SHARES = (0.5, 0.9, 0.99)


class Order(NamedTuple):
    """One order."""

    week: int  # from 1
    day: dt.date
    customer: str
    dollars: float


def orders(weeks: int) -> list[Order]:
    """In the order of their days."""
    package = importlib.util.find_spec("lifetimes")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise SystemExit("this example needs its data set: pip install --no-deps lifetimes==0.11.3")
    lines = (Path(package.submodule_search_locations[0]) / "datasets" / "CDNOW_master.txt").read_text().splitlines()
    found = []
    for customer, day, _, dollars in (line.split() for line in lines[1:]):
        date = dt.date(int(day[:4]), int(day[4:6]), int(day[6:]))
        found.append(Order((date - START).days // 7 + 1, date, customer, float(dollars)))
    return sorted((order for order in found if order.week <= weeks), key=lambda order: order.day)


Series = dict[str, np.ndarray]


def exact(found: list[Order], weeks: int) -> Series:
    """The truth week by week, of what the rules of the spec count; the whole revenue and all orders too."""
    visits: dict[str, list[int]] = defaultdict(list)
    for order in found:
        visits[order.customer].append(order.week)
    ticks = np.arange(1, weeks + 1)
    true: Series = {"customers": np.array([sum(seen[0] <= t for seen in visits.values()) for t in ticks])}
    for window in (4, 12):
        there = np.zeros(weeks + 1, dtype=int)
        for seen in visits.values():
            there[sorted({t for week in seen for t in range(week, min(week + window, weeks + 1))})] += 1
        true[f"active {window}"] = there[1:]
    months = weeks // MONTH
    for cohort in range(months):
        those = [{(w - 1) // MONTH for w in seen} for seen in visits.values() if (seen[0] - 1) // MONTH == cohort]
        ages = range(min(AGES, months - cohort))
        true[f"cohort {cohort + 1}"] = np.array([sum(cohort + age in active for active in those) for age in ages])
    left: dict[str, float] = defaultdict(lambda: ALLOWANCE)
    whole, counted = np.zeros(weeks), np.zeros(weeks)
    for order in found:
        taken = min(order.dollars, MOST, left[order.customer])
        left[order.customer] -= taken
        whole[order.week - 1] += order.dollars
        counted[order.week - 1] += taken
    true["revenue"], true["whole revenue"] = np.cumsum(counted), np.cumsum(whole)
    kept: dict[str, list[int]] = defaultdict(list)
    amounts, at = [], []
    for order in found:
        weeks_kept = kept[order.customer]
        if len(weeks_kept) < KEPT and (not weeks_kept or order.week >= weeks_kept[-1] + APART):
            weeks_kept.append(order.week)
            amounts.append(order.dollars)
            at.append(order.week)
    for q in SHARES:
        name, now = f"order {q}", np.array(at)
        true[name] = np.array([np.quantile(np.array(amounts)[now <= t], q, method="inverted_cdf") for t in ticks])
        true[f"all {name}"] = np.array([np.quantile([order.dollars for order in found], q, method="inverted_cdf")])
    return true


def released(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of the output file by what they are about, week by week."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with open(path) as lines:
        for row in map(json.loads, lines):
            name = row["query"] if row["category"] is None else f"{row['query']} {row['category']}"
            found[name].append(row)
    return found


def in_order(rows: dict[str, list[dict[str, Any]]], true: Series) -> dict[str, str]:
    """The names of series: in the truth, and in the output."""
    named = {"customers": "customers", "revenue": "revenue"}
    named |= {f"active {window}": f"active {window}" for window in (4, 12)}
    named |= {f"order {q}": f"order-values {q}" for q in SHARES}
    return {ours: theirs for ours, theirs in named.items() if theirs in rows and ours in true}


def report(rows: dict[str, list[dict[str, Any]]], true: Series) -> None:
    """Released beside true in the last week; how often the truth lay within its interval."""
    print(f"{'in the last week':22}{'released':>12}{'true':>12}{'95 % interval':>26}{'true inside':>13}")
    for ours, theirs in in_order(rows, true).items():
        last, series = rows[theirs][-1], true[ours]
        inside = np.mean([row["lower"] <= x <= row["upper"] for row, x in zip(rows[theirs], series, strict=True)])
        interval = f"{last['lower']:,.0f} to {last['upper']:,.0f}"
        print(f"{ours:22}{last['value']:>12,.0f}{series[-1]:>12,.0f}{interval:>26}{inside:>13.0%}")
    share = true["revenue"][-1] / true["whole revenue"][-1]
    print(f"The allowance of {ALLOWANCE:.0f} dollars a customer keeps {share:.0%} of the whole revenue.")
    everything = ", ".join(f"{q:.0%}: {true[f'all order {q}'][-1]:.0f}" for q in SHARES)
    print(f"Of all orders, not only those that the rule keeps: {everything}")
    print("Who came first in a month of four weeks, and how many of them order again, released (true):")
    for cohort in shown_cohorts(true):
        cells = [rows[f"returning cohort {cohort}, age {age}"][-1] for age in range(len(true[f"cohort {cohort}"]))]
        shown = "  ".join(f"{c['value']:,} ({x:,})" for c, x in zip(cells, true[f"cohort {cohort}"], strict=True))
        print(f"month {cohort}: {shown}")


def shown_cohorts(true: Series) -> list[int]:
    """The first three: later there are hardly any new customers in these data."""
    return [cohort for cohort in (1, 2, 3) if f"cohort {cohort}" in true]


@in_style
def draw(rows: dict[str, list[dict[str, Any]]], true: Series, target: Path) -> None:
    """Customers, revenue, retention and order values; bands are 95 % intervals, black lines are exact."""
    figure = empty_figure(11, 8)
    ((people, money), (returning, values)) = figure.subplots(2, 2)
    weeks = np.arange(1, len(true["customers"]) + 1)
    labels = {"customers": "so far", "active 12": "with an order in 12 weeks", "active 4": "in 4 weeks"}
    labels |= {"revenue": "at most 400 dollars of a customer"} | {f"order {q}": f"{q:.0%} are at most" for q in SHARES}
    named = in_order(rows, true)
    for axes, names in (
        (people, ("customers", "active 12", "active 4")),
        (money, ("revenue",)),
        (values, [f"order {q}" for q in SHARES]),
    ):
        for name in names:
            found = rows[named[name]]
            (line,) = axes.plot(weeks, [row["value"] for row in found], label=labels[name])
            lower, upper = [row["lower"] for row in found], [row["upper"] for row in found]
            axes.fill_between(weeks, lower, upper, alpha=BAND, linewidth=0, color=line.get_color())
            axes.plot(weeks, true[name], color=INK, linewidth=0.8)
        axes.legend()
    money.plot(weeks, true["whole revenue"], "--", color=INK, linewidth=0.8)
    for cohort in shown_cohorts(true):
        if len(true[f"cohort {cohort}"]) > 1:
            ages = range(1, len(true[f"cohort {cohort}"]))
            cells = [rows[f"returning cohort {cohort}, age {age}"][-1] for age in ages]
            errors = np.array([[c["value"] - c["lower"], c["upper"] - c["value"]] for c in cells]).T
            returning.errorbar(ages, [c["value"] for c in cells], errors, fmt="o-", label=f"first in month {cohort}")
            returning.plot(ages, true[f"cohort {cohort}"][1:], color=INK, linewidth=0.8)
    people.set(title="Customers", xlabel="week", ylim=(0, None))
    money.set(title="Revenue so far, dollars (dashed: of all orders in full)", xlabel="week")
    values.set(title="Value of an order so far, dollars", xlabel="week", yscale="log")
    returning.set(title="Customers who order again", xlabel="months of four weeks after that of the first order")
    if returning.get_legend_handles_labels()[0]:
        returning.legend()
    figure.savefig(target, dpi=110, metadata={"Software": None})


def main() -> None:
    """Writes orders and spec, runs the stream, prints and draws what came out."""
    arguments = argparse.ArgumentParser(description="A record shop that protects its customers.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("record-shop"))
    arguments.add_argument("--weeks", type=int, default=78)
    given = arguments.parse_args()
    folder, weeks = given.folder, given.weeks
    folder.mkdir(parents=True, exist_ok=True)
    found = orders(weeks)
    with open(folder / "orders.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["day", "customer", "dollars"])
        writer.writerows((f"{order.day}T12:00:00Z", order.customer, order.dollars) for order in found)
    spec = folder / SPEC.name
    spec.write_text(SPEC.read_text().replace("horizon = 78", f"horizon = {weeks}"))
    print(plain_words(load_spec(spec)))
    run(load_spec(spec), folder / "orders.csv")
    rows, true = released(folder / "releases.jsonl"), exact(found, weeks)
    customers = len({order.customer for order in found})
    print(f"{len(found):,} orders of {customers:,} customers in {weeks} weeks")
    report(rows, true)
    draw(rows, true, folder / "record-shop.png")
    print(f"The picture: {folder / 'record-shop.png'}")


if __name__ == "__main__":
    main()
