"""Attacks that need more than one mechanism, or many keys: second streams, repeated questions, bits of floats."""

from __future__ import annotations

import numpy as np

from evertally.audit.attacks import Finding, FloatArray, _correlation_finding, _noises, _rank_correlation, through_door
from evertally.audit.estimators import threshold_bound
from evertally.audit.game import Factory, public, take
from evertally.audit.report import claimed_epsilon, default_delta
from evertally.noise import simulation
from evertally.privacy import Guarantee


def second_stream_attack(make: Factory, other: Factory, keys: int = 160, ticks: int = 3) -> Finding:
    """Looks for shared noise between two mechanisms under one key, by rank correlation over many keys.

    Ranks see the same bits at another scale, or behind another law, as well as the same numbers: every draw is a
    monotone function of its bits. The two must differ in stream name, mechanism name or a parameter; without any
    difference they are one stream on purpose, and this attack succeeds.

    >>> import evertally as et
    >>> def counter(stream):
    ...     return lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, stream=stream, key=key)
    >>> second_stream_attack(counter("a"), counter("b")).leaked
    False
    >>> second_stream_attack(counter("a"), counter("a")).leaked
    True
    """
    ones, others = _noises(make, keys, ticks), _noises(other, keys, ticks)
    columns = min(ones.shape[2], others.shape[2])
    found = [(_rank_correlation(ones[:, t, j], others[:, t, j]), t, j) for t in range(ticks) for j in range(columns)]
    return _correlation_finding("second stream", found, keys, "the noise of two mechanisms")


def repeat_attack(make: Factory, ticks: int = 512) -> Finding:
    """Looks for noise that comes back after some ticks: where it does, two releases differ by exactly their data.

    Chance repeats small numbers, so play it with little budget: the noise should be in the hundreds.

    >>> import evertally as et
    >>> repeat_attack(lambda key: et.Counter(guarantee=et.PureDP(0.01), horizon=512, key=key)).leaked
    False
    """
    mechanism = make(simulation(7))
    releases = np.array([public(through_door(mechanism, []))[0] for _ in range(ticks)])
    steps = np.diff(releases, prepend=0.0)
    rates = [float(np.mean(steps[lag:] == steps[:-lag])) for lag in range(1, ticks // 2 + 1)]
    lag, chance = int(np.argmax(rates)) + 1, float(np.median(rates))
    text = f"{max(rates):.0%} of the releases' steps come back after {lag} ticks; after a typical lag {chance:.0%} do"
    return Finding("repeat", max(rates) > 0.2 + 2 * chance, text)


def float_support_attack(
    mechanism_factory: Factory, trials: int = 4000, claim: Guarantee | None = None, error: float = 1e-6
) -> Finding:
    """Mironov's attack: which doubles can come out at all depends on the count to which float noise was added.

    A sum 1 + noise is rounded to the grid of numbers near 1, so a small result of it is a multiple of 2^-53; noise
    alone is on a finer grid. The attack scores each first release of the streams 0 and 1 by the lowest bit that it
    uses, chooses an event on half of the trials and judges it on the other half.

    >>> import evertally as et
    >>> float_support_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key), trials=200).leaked
    False
    """
    guarantee = claim or mechanism_factory(simulation(0)).guarantee
    delta = default_delta(guarantee)
    releases = [
        np.array([public(take(mechanism_factory(simulation(6).derive(f"{x}/{i}")), x))[0] for i in range(trials)])
        for x in (0, 1)
    ]
    bound = threshold_bound(_lowest_bit(releases[0]), _lowest_bit(releases[1]), delta, error)
    claimed = claimed_epsilon(guarantee, delta)
    on_grid = all(bool((values == np.rint(values)).all()) for values in releases)
    event = f"lowest bit {'above' if bound.above else 'at most'} 2^{bound.threshold:.0f}"
    text = (
        f"{'all' if on_grid else 'not all'} releases are integers; the event '{event}' has rates "
        f"{bound.rates[0]:.3f} on 0 and {bound.rates[1]:.3f} on 1: epsilon at least {bound.epsilon:.2f}, "
        f"claimed {claimed:.2f}"
    )
    return Finding("float support", bound.epsilon > claimed, text)


def _lowest_bit(values: FloatArray) -> FloatArray:
    """k such that the double is an odd multiple of 2^k; 1100, beyond all others, for 0."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.log2(np.maximum(whole & -whole, 1))
    return np.where(whole == 0, 1100.0, trailing + exponent - 53)
