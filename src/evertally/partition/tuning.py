"""Thresholds, splits and the number of intervals of the variants V1 and V2, tuned for the error that typically happens.

parameterized-histograms 7.2 with other numbers. The text calibrates for the worst case: no close by noise alone, hence
a threshold kappa above the largest of all noise. But such a close does little harm: H gets an insert that is nearly
empty. Letting some of them happen lowers kappa, and the error with it. What is chosen, by simulation of two synthetic
streams (`typical`), is how many intervals to plan for and how to divide epsilon between the test and H. H comes in
blocks, so that more closes than planned cost some accuracy and never end the stream.

Public numbers only. Any split, any kappa and any number of intervals are private (2.2 and 2.4), so nothing here can
weaken a promise, and nothing here is tuned in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Any

from evertally.counting.process import node_law
from evertally.errors import ConfigurationError
from evertally.partition.budget import Split, noise_of
from evertally.partition.configuration import Configuration, Terms
from evertally.partition.histograms import BLOCKS, IN_BLOCKS, OPTIMAL
from evertally.partition.noise_bounds import most_closes
from evertally.partition.rebased import at_one_tick, moving_rise, sizes_up_to
from evertally.partition.rules import Intervals, Rebased, Rise, Rule
from evertally.partition.typical import Scales, TypicalStream, forget, mean_growth, typical_error
from evertally.privacy import ApproxDP, Change, PureDP

_MOST_INTERVALS = 2**12  # of the first block; more follow
_HISTOGRAM_SHARES = tuple(Fraction(i, 10) for i in range(3, 10))
# Of what the test gets; the rest is for mu, which needs more of it where neighbours move both ways.
_TAU_SHARE, _TAU_SHARE_ONE_WAY = Fraction(2, 5), Fraction(3, 5)
_LATE = 4
_NUMBERS = "split, n, kappa"
_WORTH = 0.99  # of the typical error: another way to make H is taken for less than that
_NEVER = 40  # scales of mu that no tick of any stream reaches


def tuned(terms: Terms, name: str, stream: TypicalStream, reach: int) -> Configuration:
    """V1 ("rebased") or V2 ("intervals") for streams like `stream`.

    `reach` bounds how much the test values of all queries together can grow while the answers stay below `largest`: it
    bounds the number of closes, and so enters the error bound. Without `largest` to rely on it is what was declared.
    """
    rule = partial(Intervals if name == "intervals" else Rebased, terms.queries)
    if terms.unlimited:
        return _unlimited(terms, name, stream, rule)
    T = terms.horizon
    assert T is not None
    histogram, split, n, kappa = _settled(terms, stream)
    noise = terms.noise(split)
    return Configuration(
        name,
        terms,
        noise,
        histogram,
        n,
        lambda: rule(lambda j, ticks: kappa),
        lambda j, t: kappa,
        (1, 1, 0),
        closes=lambda beta: most_closes(noise, kappa, T, reach, beta),
        sure_closes=lambda beta: T if terms.most is None else most_closes(noise, kappa, T, T * terms.most, beta),
    )


def _unlimited(terms: Terms, name: str, stream: TypicalStream, rule: Callable[[Rise], Rule]) -> Configuration:
    """V3 and V4: kappa grows with ln t, so that noise alone closes a few intervals in every order of magnitude of t.

    An empty tick closes with probability of about 1/(2 _LATE t). Split and blocks are those of the answer in the middle
    between 1 and all that is possible, on a logarithmic scale.
    """
    middle = replace(stream, largest=max(1, math.isqrt(stream.horizon * stream.growth)))
    histogram, split, n, _ = _settled(terms, middle)
    noise = terms.noise(split)
    scale = float(noise.mu.scale)
    moving = moving_rise(lambda j, t: math.ceil(scale * math.log(_LATE * t)))
    # n is no limit here: blocks follow one another for ever
    return Configuration(name, terms, noise, histogram, n, lambda: rule(moving), at_one_tick(moving), (1, 1, 0))


def _settled(terms: Terms, stream: TypicalStream) -> tuple[str, Split, int, int]:
    """What the search finds, found once: another version of numpy may simulate another ripple. And how H is made, by
    name: a stream that was begun before there was a choice goes on with "blocks"."""
    asked = terms.promise, terms.change, stream, terms.split, terms.one_way
    histogram = terms.rule("H", lambda: preferred(*asked), before=BLOCKS, beside=_NUMBERS)
    if histogram not in IN_BLOCKS:
        raise KeyError(histogram)  # settled by a version that knows more ways

    def find() -> list[Any]:
        split, n, kappa = best(*asked, histogram)
        return [[str(split.tau), str(split.mu), str(split.histogram)], n, kappa]

    shares, n, kappa = terms.settle(_NUMBERS, find)
    return histogram, Split.of(*shares), n, kappa


def preferred(
    promise: PureDP | ApproxDP, change: Change, stream: TypicalStream, split: Split | None = None, one_way: bool = False
) -> str:
    """How H is made in blocks, for the least typical error. Nothing changes where nothing is gained.

    >>> [preferred(PureDP(1), Change(1, 1, 1), TypicalStream(T, T, 1, 1)) for T in (16, 10**5)]
    ['blocks', 'optimal-blocks']
    """
    errors = [_search(promise, change, stream, split, one_way, kind)[0] for kind in IN_BLOCKS]
    forget()
    before, now = (min(error, stream.largest) for error in errors)  # above that nothing is released at all
    return OPTIMAL if now < _WORTH * before else BLOCKS


def best(
    promise: PureDP | ApproxDP,
    change: Change,
    stream: TypicalStream,
    split: Split | None = None,
    one_way: bool = False,
    histogram: str = OPTIMAL,
) -> tuple[Split, int, int]:
    """The split, the number n of intervals that H is made for, and kappa: the least typical error.

    >>> split, n, kappa = best(PureDP(1), Change(1, 1, 1), TypicalStream(2**20, 1000, 1, 1))
    >>> 20 < n < 400, 50 < kappa < 120
    (True, True)
    """
    return _search(promise, change, stream, split, one_way, histogram)[1:]


@lru_cache(maxsize=512)
def _search(
    promise: PureDP | ApproxDP,
    change: Change,
    stream: TypicalStream,
    split: Split | None,
    one_way: bool,
    histogram: str,
) -> tuple[float, Split, int, int]:
    """The typical error, and by what it is reached.

    Two parts of the steady stream and one of the burst, for what is best on one of them alone is bad on the other. A
    descent: n for a middling split, then the split, then n again. Time: some ten milliseconds.
    """
    noise = partial(noise_of, promise, linf=change.linf, one_way=one_way)
    sizes = sizes_up_to(min(_MOST_INTERVALS, stream.horizon, stream.largest))
    shares = (split.histogram,) if split is not None else _possible_shares(promise, change)

    def split_at(share: int) -> Split:
        return split or _split(shares[share], one_way)

    @cache
    def cost(share: int, size: int) -> tuple[float, int]:
        return _cost(stream, Scales.of(noise(split_at(share)), change), sizes[size], histogram)

    share, size = len(shares) // 2, len(sizes) // 2
    for _ in range(2):
        size = _descend(lambda i: cost(share, i)[0], size, len(sizes))  # noqa: B023
        share = _descend(lambda i: cost(i, size)[0], share, len(shares))  # noqa: B023
    error, kappa = cost(share, size)
    chosen = split_at(share)
    if error > stream.largest:
        # Any release is noisier than what it tells: rather none before the answer is larger than declared.
        kappa = stream.largest + math.ceil(_NEVER * noise(chosen).mu.scale)
    return error, chosen, sizes[size], kappa


def _possible_shares(promise: PureDP | ApproxDP, change: Change) -> tuple[Fraction, ...]:
    """Shares whose noise can be drawn: under a large epsilon some of it would be too small for the samplers."""

    def possible(share: Fraction) -> bool:
        try:
            node_law(noise_of(promise, _split(share, False), linf=change.linf).histogram, change, 1)
        except ConfigurationError:
            return False
        return True

    return tuple(share for share in _HISTOGRAM_SHARES if possible(share)) or _HISTOGRAM_SHARES[:1]


def _split(histogram: Fraction, one_way: bool) -> Split:
    tau = (1 - histogram) * (_TAU_SHARE_ONE_WAY if one_way else _TAU_SHARE)
    return Split.of(tau, 1 - histogram - tau, histogram)


def _cost(stream: TypicalStream, scales: Scales, n: int, histogram: str) -> tuple[float, int]:
    kappa = threshold(stream, scales, n)
    simulated = partial(typical_error, stream, scales, kappa, histogram, n, replicas=96)
    steady, burst = simulated(burst=False), simulated(burst=True)
    return (2 * steady + burst) / 3, kappa


@lru_cache(maxsize=512)
def threshold(stream: TypicalStream, scales: Scales, n: int) -> int:
    """The kappa at which the steady stream closes about n intervals, and hardly ever more: whatever H is made of."""
    wanted = n - 1.5 * math.sqrt(n) if n > 4 else 0.8 * n
    low, high = 0.0, 60 * scales.mu + 2 * stream.largest
    for _ in range(24):
        if math.floor(low) + 1 == math.ceil(high):
            break  # it stays above low, so it is rounded up to this whatever comes
        middle = (low + high) / 2
        early = stream.largest > wanted * mean_growth(middle, scales, stream.rate)
        low, high = (middle, high) if early else (low, middle)
    return math.ceil(high)


def _descend(cost: Callable[[int], float], start: int, count: int) -> int:
    """A place where `cost` is least within two steps, from `start` on; one step could be a ripple of the simulation."""
    here = start
    while True:
        around = [i for i in range(here - 2, here + 3) if 0 <= i < count]
        least = min(around, key=cost)
        if least == here:
            return here
        here = least
