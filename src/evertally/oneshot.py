"""One release of one histogram: what `evertally` does for streams, once. streaming-selection 4.

    et.oneshot.known_histogram    all counts of a public list of labels
    et.oneshot.known_top          the k largest of a public list
    et.oneshot.unknown_histogram  counts above a threshold, where labels come with the data
    et.oneshot.unknown_top        at most k labels that pass a threshold

A histogram is a mapping from labels (text, whole numbers, bytes) to counts of events, a Series with labels for its
index (`frame["word"].value_counts()`), or a frame of two columns, labels and "count". The caller has bounded the
events: each adds at most `max_weight` to a label, and for the two histograms to at most `max_per_event` labels. Counts
below 0 are read as 0, what is no label is left out; of two keys that are spellings of one label the larger count is
kept.

Each call spends its guarantee. With a key, a `name` stands for one histogram for ever: the same name with other counts
would put the same noise on them and reveal the difference. Within a process that is refused, and a key that was not
made for this call alone needs an explicit name; other processes cannot be seen from here. Without a key, one is drawn
and forgotten.

A list of labels is public only if it was not read off the data. What `delta` means is said in `bounds/selection.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, NoReturn

from evertally.bounds.selection import kbar_rule
from evertally.contract.paths import named, once
from evertally.contract.release import Release
from evertally.counting.process import spread_of
from evertally.encode.frames import column
from evertally.encode.labels import as_list, canonical
from evertally.encode.named import counts_by_label
from evertally.encode.plain import whole
from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey, own_key
from evertally.noise.key import encode_path
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee, Neighbours
from evertally.privacy.conversions import pure_epsilon_of_rho
from evertally.selection.histograms import (
    FixedThresholdGauss,
    KnownGauss,
    KnownGumbel,
    LimitedDomainLaplace,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.item_engine import charge_of
from evertally.selection.items import LARGEST_COUNT, Items
from evertally.selection.reach import Reach

__all__ = [
    "FixedThresholdGauss",
    "Items",
    "KnownGauss",
    "KnownGumbel",
    "LimitedDomainLaplace",
    "Reach",
    "UnknownGauss",
    "UnknownGumbel",
    "known_histogram",
    "known_top",
    "unknown_histogram",
    "unknown_top",
]

_Mechanism = KnownGauss | KnownGumbel | UnknownGauss | LimitedDomainLaplace | FixedThresholdGauss | UnknownGumbel


def known_histogram(
    histogram: Mapping[Any, int],
    categories: Iterable[Any],
    *,
    guarantee: Guarantee,
    max_per_event: int = 1,
    max_weight: int = 1,
    neighbours: str | Neighbours = "add_remove",
    max_events_per_user: int | None = None,
    key: NoiseKey | None = None,
    name: str | None = None,
) -> Release:
    """All counts of `categories`, with Gaussian noise. `KnownGauss`; tier "exact"; time and memory O(d).

    >>> import evertally as et
    >>> release = known_histogram({"a": 120}, ["a", "b"], guarantee=et.ZCDP(0.5), key=et.simulation(1))
    >>> release.value, round(release.stddev, 3), release.interval(beta=0.05)[0]
    ({'a': 120, 'b': 0}, 1.0, {'a': 118, 'b': -2})
    """
    reach = _reach(max_weight, neighbours, max_events_per_user)
    mechanism = KnownGauss.within(_zcdp(guarantee), max_per_event, reach)
    return _release(mechanism, _declared(histogram, categories), key, name)


def known_top(
    histogram: Mapping[Any, int],
    k: int,
    categories: Iterable[Any],
    *,
    guarantee: Guarantee,
    counts: bool = True,
    max_weight: int = 1,
    neighbours: str | Neighbours = "add_remove",
    max_events_per_user: int | None = None,
    key: NoiseKey | None = None,
    name: str | None = None,
) -> Release:
    """The k largest of `categories`, best first; an event may touch all of them. `KnownGumbel`; tier "exact"; O(d).

    Without `counts` the value is a list of labels, and the whole guarantee is spent on choosing them.

    >>> import evertally as et
    >>> visits = {"a": 120, "b": 20, "c": 90}
    >>> list(known_top(visits, 2, ["a", "b", "c"], guarantee=et.ZCDP(0.5), key=et.simulation(1)).value)
    ['a', 'c']
    """
    reach = _reach(max_weight, neighbours, max_events_per_user)
    mechanism = KnownGumbel.within(_zcdp(guarantee), k, counts=counts, reach=reach)
    return _release(mechanism, _declared(histogram, categories), key, name)


def unknown_histogram(
    histogram: Mapping[Any, int],
    *,
    guarantee: Guarantee,
    max_per_event: int = 1,
    kbar: int | None = None,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    max_weight: int = 1,
    neighbours: str | Neighbours = "add_remove",
    max_events_per_user: int | None = None,
    key: NoiseKey | None = None,
    name: str | None = None,
) -> Release:
    """The counts that pass a threshold, largest first. Tier "exact"; time and memory O(n).

    `FixedThresholdGauss`; with `kbar` only so many of the largest counts are looked at (`UnknownGauss`, or with
    `noise="laplace"` `LimitedDomainLaplace`). Of (epsilon, delta) half of delta pays for rare labels (7.2 there).

    >>> import evertally as et
    >>> words = {"the": 200, "private": 60, "idiosyncratic": 1}
    >>> list(unknown_histogram(words, guarantee=et.ApproxDP(1.0, 1e-6), key=et.simulation(1)).value)
    ['the', 'private']
    """
    reach = _reach(max_weight, neighbours, max_events_per_user)
    mechanism: FixedThresholdGauss | UnknownGauss | LimitedDomainLaplace
    if noise == "laplace" and kbar is not None:
        mechanism = LimitedDomainLaplace.within(_approximate(guarantee), kbar, max_per_event, reach)
    elif noise == "gaussian" and kbar is not None:
        mechanism = UnknownGauss.within(charge_of(guarantee), kbar, max_per_event, reach)
    elif noise == "gaussian":
        mechanism = FixedThresholdGauss.within(charge_of(guarantee), max_per_event, reach)
    else:
        raise ConfigurationError('noise is "gaussian", or "laplace" together with kbar')
    return _release(mechanism, _seen(histogram), key, name)


def unknown_top(
    histogram: Mapping[Any, int],
    k: int,
    *,
    guarantee: Guarantee,
    kbar: int | None = None,
    counts: bool = True,
    max_weight: int = 1,
    neighbours: str | Neighbours = "add_remove",
    max_events_per_user: int | None = None,
    key: NoiseKey | None = None,
    name: str | None = None,
) -> Release:
    """At most k labels that pass a threshold, best first; an event may have any number of labels. `UnknownGumbel`.

    `kbar` (default 10 k) is how many of the largest counts are looked at. Tier "exact"; time and memory O(n).

    >>> import evertally as et
    >>> words = {"the": 300, "private": 200, "idiosyncratic": 1}
    >>> list(unknown_top(words, 3, guarantee=et.ApproxDP(1.0, 1e-6), key=et.simulation(1)).value)
    ['the', 'private']
    """
    reach = _reach(max_weight, neighbours, max_events_per_user)
    look = kbar_rule(k) if kbar is None else kbar
    mechanism = UnknownGumbel.within(charge_of(guarantee), k, look, counts=counts, reach=reach)
    return _release(mechanism, _seen(histogram), key, name)


def _seen(histogram: Mapping[Any, int]) -> dict[str, int]:
    """Positive counts by canonical label."""
    histogram = counts_by_label(histogram)
    if not isinstance(histogram, Mapping):
        raise TypeError(f"a histogram is a mapping from labels to counts, not a {type(histogram).__name__}")
    seen: dict[str, int] = {}
    for key, value in list(histogram.items()):
        label, count = canonical(key), whole(value, LARGEST_COUNT)
        if label is not None and count > 0:
            # An event may have touched both spellings: their sum would move twice as far as allowed, their maximum
            # does not.
            seen[label] = max(count, seen.get(label, 0))
    return seen


def _declared(histogram: Mapping[Any, int], categories: Iterable[Any]) -> dict[str, int]:
    """The counts of a public list, zeros included; other labels are left out silently."""
    labels = [canonical(category) for category in as_list(column(categories))]
    if not labels or None in labels or len(set(labels)) < len(labels):
        raise ConfigurationError("categories are distinct labels (text, whole numbers or bytes), at least one")
    seen = _seen(histogram)
    return {label: seen.get(label, 0) for label in labels if label is not None}


def _reach(max_weight: int, neighbours: str | Neighbours, max_events_per_user: int | None) -> Reach:
    return Reach(max_weight, Neighbours.parse(neighbours), 1 if max_events_per_user is None else max_events_per_user)


def _zcdp(guarantee: Guarantee) -> ZCDP:
    if isinstance(guarantee, ZCDP | ApproxDP | ApproxZCDP):
        return guarantee.to_zcdp()
    raise ConfigurationError("this mechanism has Gaussian noise, which is never pure: give ZCDP or ApproxDP")


def _approximate(guarantee: Guarantee) -> ApproxDP:
    if isinstance(guarantee, ApproxDP):
        return guarantee
    charge = charge_of(guarantee)
    return ApproxDP(pure_epsilon_of_rho(charge.exact_rho), charge.exact_delta, force=True)


def _release(mechanism: _Mechanism, histogram: dict[str, int], key: NoiseKey | None, name: str | None) -> Release:
    key = own_key(key)
    name = named(name, key, "histogram")
    reach = mechanism.reach
    # Parameters are part of the address: the same bits at two scales would reveal data.
    path = [str(getattr(mechanism, field.name)) for field in fields(mechanism) if field.name != "reach"]
    path += [str(reach.max_weight), reach.neighbours.value, str(reach.events)]
    source = key.source("oneshot", name, type(mechanism).__name__, *path)
    if key.private:
        counts = ((label.encode("utf-8", "surrogatepass"), str(count)) for label, count in sorted(histogram.items()))
        once(source.fingerprint(), source.order(encode_path(*(part for pair in counts for part in pair))), key.process)
    released = mechanism.release(Items.of(histogram, source), source, 0)
    law = mechanism.law
    if law is None:
        return Release(1, [label for label, _ in released], None, key.private, _no_interval)
    values = {label: value for label, value in released if value is not None}
    spread = spread_of(law, 1.0, 1.0)

    def interval(beta: float) -> tuple[dict[str, int], dict[str, int]]:
        radius = math.floor(spread.radius(beta))
        lower, upper = ({label: value + off for label, value in values.items()} for off in (-radius, radius))
        return lower, upper

    return Release(1, values, law.stddev(), key.private, interval)


def _no_interval(beta: float) -> NoReturn:
    raise ConfigurationError("labels alone have no interval; ask for counts=True")
