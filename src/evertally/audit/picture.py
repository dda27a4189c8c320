"""The picture of an audit: what the strongest adversary saw on the two sides, and how well it can tell them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from statistics import NormalDist
from typing import Any

import numpy as np

from evertally.audit.estimators import coin_rho
from evertally.audit.game import FloatArray
from evertally.audit.report import Report
from evertally.errors import ConfigurationError
from evertally.pictures import BAND, INK, LINES, QUIET, empty_figure, in_style

_LEFT, _RIGHT, _ALLOWED = LINES[1], LINES[0], LINES[2]


@in_style
def draw(reports: Mapping[str, Report], target: str | PathLike[str]) -> None:
    """Writes a PNG with one row for each report that has scores: the two laws of the score, and the ROC curve.

    The green line is the most that the promise allows; a curve that leaves the region below it breaks the promise.
    """
    shown = {name: report for name, report in reports.items() if report.scores is not None}
    if not shown:
        raise ConfigurationError("no games were played, so there is nothing to draw")
    figure = empty_figure(10, 3.6 * len(shown) + 0.4)
    for axes, (name, report) in zip(figure.subplots(len(shown), 2, squeeze=False), shown.items(), strict=True):
        _draw_laws(axes[0], name, report)
        _draw_roc(axes[1], report)
    figure.savefig(target, dpi=120, metadata={"Software": None})


def _draw_laws(axes: Any, name: str, report: Report) -> None:
    assert report.scores is not None
    left, right = report.scores
    both = np.concatenate([left, right])
    low, high = np.quantile(both, [0.0005, 0.9995])
    values = np.unique(both[(low <= both) & (both <= high)][:100_000])
    if values.size <= 60:  # a score with few values: one bar for each
        middles = (values[1:] + values[:-1]) / 2
        edges = np.concatenate([[values[0] - 0.5], middles, [values[-1] + 0.5]])
    else:
        edges = np.linspace(low, high, 61)
    for scores, colour, label in ((left, _LEFT, "with the change"), (right, _RIGHT, "without it")):
        shares = np.histogram(scores, edges)[0] / scores.size
        axes.stairs(shares, edges, color=colour, fill=True, alpha=BAND)
        axes.stairs(shares, edges, color=colour, label=label)
    axes.set_title(name)
    axes.set_xlabel(f"score of the adversary ({report.adversary})")
    axes.set_ylabel("share of games")
    axes.legend()


def _draw_roc(axes: Any, report: Report) -> None:
    assert report.scores is not None
    left, right = report.scores
    alarms, hits = roc(left, right)
    x = np.concatenate([np.geomspace(1e-4, 0.1, 60), np.linspace(0.1, 1, 91)])
    axes.plot(x, allowed(report, x), color=_ALLOWED, label=f"claimed: {report.unit} = {report.claimed:.3g}")
    axes.plot(alarms, hits, color=INK, linewidth=1.2, label=f"found: {report.unit} at least {report.audited:.3g}")
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle="--", label="guessing")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_title("within the claim" if report.passed else "the claim is broken")
    axes.set_xlabel("false alarms")
    axes.set_ylabel("hits")
    axes.legend(loc="lower right")


def roc(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rates of false alarms and of hits of the events {score > c}, for all c.

    >>> alarms, hits = roc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    >>> alarms.tolist(), hits.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    thresholds = np.unique(np.concatenate([left, right]))[::-1]
    if thresholds.size > 1000:
        thresholds = np.quantile(thresholds, np.linspace(1, 0, 1000))
    rates = [1 - np.searchsorted(np.sort(scores), thresholds, side="right") / scores.size for scores in (right, left)]
    return np.append(rates[0], 1.0), np.append(rates[1], 1.0)


def allowed(report: Report, alarms: FloatArray) -> FloatArray:
    """The most hits that the claim allows at these rates of false alarms."""
    if report.unit == "mu":
        normal = NormalDist()
        return np.array([normal.cdf(normal.inv_cdf(x) + report.claimed) if x < 1 else 1.0 for x in alarms])
    if report.unit == "rho":
        hits = np.linspace(0, 1, 401)
        lost = [np.maximum(coin_rho(hits, np.full(401, x)), coin_rho(np.full(401, 1 - x), 1 - hits)) for x in alarms]
        return np.array([float(hits[loss <= report.claimed].max()) for loss in lost])
    grown = math.exp(report.claimed) * alarms + report.delta
    mirrored = 1 - math.exp(-report.claimed) * (1 - alarms - report.delta)
    return np.minimum(np.minimum(grown, mirrored), 1.0)
