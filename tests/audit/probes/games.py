"""Probes by games: the lower confidence bound on what is lost, from releases alone."""

from __future__ import annotations

from audit.probes.probing import (
    KEY,
    Verdict,
    counter,
    probe,
    verdict,
)
from evertally.audit.adversaries import Differencing, Feedback, FirstTick
from evertally.audit.report import measure_mu, play
from evertally.privacy import ZCDP, PureDP


@probe("game", "one tick, pure")
def _() -> Verdict:
    make = counter(PureDP(1), 1)
    return verdict(play(make, FirstTick(make(KEY)), 20_000))


@probe("game", "one tick, pure, by the release itself")
def _() -> Verdict:
    # The most powerful score is flat in the tails of the law that ought to be; this one sees every outcome.
    return verdict(play(counter(PureDP(1), 1), Differencing(), 20_000))


@probe("game", "binary tree of seven ticks, averaging")
def _() -> Verdict:
    return verdict(play(counter(PureDP(1), 7, radix=2), Differencing(), 10_000))


@probe("game", "binary tree of eight ticks, best test")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 8, radix=2)
    return verdict(measure_mu(make, FirstTick(make(KEY)), 20_000))


@probe("game", "square-root counter of eight ticks, feedback")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 8, "sqrt")
    return verdict(measure_mu(make, Feedback(make(KEY)), 5_000))
