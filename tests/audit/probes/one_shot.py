"""One release of one histogram."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from audit.probes.item_probing import (
    REPLACE,
    Histogram,
    dominated,
    exceeds,
    needed,
    pair_loss,
    released_by,
)
from audit.probes.probing import Verdict, concentrated_verdict, probe
from evertally.audit.laws.enumerated import bad_mass
from evertally.privacy import ZCDP
from evertally.selection.histograms import (
    KnownGumbel,
    LimitedDomainLaplace,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.reach import Reach


@probe("exact law", "labels that tie at a noisy threshold")
def _() -> Verdict:
    # 4.3: one label exists in one world only, although several tie; Delta0 delta, not kbar delta.
    narrow = UnknownGauss(3, Fraction(1, 5), 1, needed(0.4, 2))
    tied = {"b": 1, "c": 1, "d": 1}
    pairs: list[tuple[Histogram, Histogram]] = [(tied, {"a": 1, **tied}), (tied, {**tied, "e": 1})]
    pairs += [({"b": 2, "c": 1, "d": 1, "e": 1}, {"b": 1, "c": 1, "d": 1, "e": 1})]
    cases = []
    for pair in pairs:
        cases.append(dominated(pair_loss(released_by(narrow), *pair, tail=1e-9), narrow.charge, f"{pair}"))
    many = {f"{i:02d}": 1 for i in range(22)}
    ten = {f"{i:02d}": 1 for i in range(10)}
    pairs = [(many, {**many, "05": 2}), (many, {**many, "99": 1}), (ten, {**ten, "99": 1}), (ten, {"": 1, **ten})]
    mechanisms: list[Any] = [LimitedDomainLaplace(kbar, Fraction(4), 1, Fraction(1, 20)) for kbar in (4, 10)]
    for mechanism in (*mechanisms, UnknownGauss(10, Fraction(1), 1, Fraction(1, 20))):
        release = released_by(mechanism)
        for one, other in (*pairs, *((right, left) for left, right in pairs)):
            where = f"{len(one)} labels, kbar = {mechanism.kbar}, one that only one world can show"
            cases.append((bad_mass(release(one), release(other)), mechanism.charge.delta, where))
    return exceeds(cases)


@probe("exact law", "a label just above the cut")
def _() -> Verdict:
    # 1.3: under replacement the label and the cut move both, for users by all their events.
    wide = Fraction(1, 5)
    cases = []
    settings: list[tuple[Reach, Histogram, Histogram]] = [
        (Reach(), {"a": 1}, {}),
        (Reach(max_weight=3), {"a": 3}, {}),
        (Reach(neighbours=REPLACE), {"z": 2}, {"z": 1, "a": 1}),
        (Reach(events=2), {"z": 3}, {"z": 1}),
        (Reach(2, REPLACE), {"z": 4}, {"z": 2, "a": 2}),
    ]
    for reach, left, right in settings:
        variance, scale = wide * reach.move**2, Fraction(1, 2) * reach.move
        delta = needed(float(2 * variance), 2 * reach.move)
        mechanisms: list[Any] = [
            UnknownGauss(1, variance, 1, delta, reach),
            UnknownGumbel(1, 1, scale, None, Fraction(1, 5), reach),
        ]
        for mechanism in mechanisms:
            loss = pair_loss(released_by(mechanism), left, right)
            cases.append(dominated(loss, mechanism.charge, f"{type(mechanism).__name__}, {left} or {right}"))
        laplace = LimitedDomainLaplace(1, scale, 1, Fraction(1, 20), reach)
        loss, claim = pair_loss(released_by(laplace), left, right, 1e-5), laplace.charge
        cases.append((loss.delta(claim.epsilon), claim.delta, f"Laplace, {left} or {right}"))
    return exceeds(cases)


@probe("exact law", "labels that tie at a Gumbel threshold")
def _() -> Verdict:
    # 4.5: kbar labels exist in one world only, however few an event touches.
    cases = []
    for k, kbar in ((1, 2), (2, 2), (1, 3)):
        mechanism = UnknownGumbel(k, kbar, Fraction(1, 2), None, Fraction(1, 10))
        tied = {f"label {i}": 1 for i in range(kbar)}
        loss = pair_loss(released_by(mechanism), tied, {**tied, "one more": 1})
        cases.append(dominated(loss, mechanism.charge, f"k = {k}, kbar = {kbar}"))
    return exceeds(cases)


@probe("exact law", "the labels that are selected")
def _() -> Verdict:
    # 11.4 (6): all counts but one rise; under replacement one rises and another one falls.
    pairs: list[tuple[Reach, int, Histogram, Histogram]] = [
        (Reach(), 1, {"a": 0, "b": 1}, {"a": 0, "b": 0}),
        (Reach(), 2, {"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 0}),
        (Reach(max_weight=2), 1, {"a": 0, "b": 2}, {"a": 0, "b": 0}),
        (Reach(neighbours=REPLACE), 1, {"a": 1, "b": 0}, {"a": 0, "b": 1}),
    ]
    verdicts = []
    for reach, k, left, right in pairs:
        mechanism = KnownGumbel.within(ZCDP(Fraction(1, 50)), k, counts=False, reach=reach)
        verdicts.append(concentrated_verdict(pair_loss(released_by(mechanism), left, right), mechanism.charge.rho))
    return max(verdicts)


@probe("exact law", "selected labels with their counts")
def _() -> Verdict:
    # One of two labels; the only label there is; the only two.
    pairs: list[tuple[int, Histogram, Histogram]] = [
        (1, {"a": 1, "b": 1}, {"a": 0, "b": 0}),
        (1, {"a": 1}, {"a": 0}),
        (2, {"a": 1, "b": 0}, {"a": 0, "b": 0}),
    ]
    verdicts = []
    for k, left, right in pairs:
        mechanism = KnownGumbel.within(ZCDP(2), k)
        verdicts.append(concentrated_verdict(pair_loss(released_by(mechanism), left, right, 1e-9), 2))
    return max(verdicts)
