"""Long lists of labels: places that the noise leaves open, what is clear of it, and what is found by a search.

A list is looked at as a whole, so what is said of its labels holds for all of them at once: with intervals that hold
one by one, about 250 of 10,000 labels that never occurred would look real.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import RowForm, flat
from evertally.errors import ConfigurationError
from evertally.runtime.releases import unpack
from evertally.runtime.windows.answers import Windows
from evertally.runtime.windows.law import Law, Numbers, between
from evertally.runtime.windows.question import Question

Array = NDArray[Any]
_LOOKED_AT = 64  # ticks of a window in which labels that were found later are looked for


@dataclass(frozen=True)
class Listing:
    """A page of the labels of one window (None: totals), as rates `per` so many ticks if it is given.

    Where differences mean nothing, it has what the query itself releases at the end of the window ("level").
    """

    query: str
    window: int | None
    last: int | None = None
    search: str = ""
    sort: Literal["value", "name"] = "value"
    offset: int = 0
    limit: int = 50
    per: int | None = None


@dataclass(frozen=True)
class _Whole:
    """All labels of a window: intervals of each alone, and of all at once. `later`: the tick after which a label is
    counted, where it was found in the window and not before; such labels come last, and have no place."""

    labels: Sequence[str]
    value: Array
    lower: Array
    upper: Array
    least: Array  # all at once
    most: Array
    bound: float | None
    beta: float
    later: tuple[int, ...] = ()

    def rated(self, per: int, end: int, since: int) -> _Whole:
        """The same per so many ticks."""
        begins = np.array([since] * (len(self.labels) - len(self.later)) + [*self.later])
        times = per / (end - begins)
        cells = {name: getattr(self, name) * times for name in ("value", "lower", "upper", "least", "most")}
        return replace(self, bound=None if self.bound is None else self.bound * per / (end - since), **cells)


def listing(windows: Windows, asked: Listing, published: int) -> dict[str, Any]:
    """The page, with places, and how many labels match and are clear of the noise."""
    law = windows.laws[asked.query]
    end, since = _ends(asked, published)
    measure = _measure(law, asked.window)
    since = since if measure == "window" else 0
    with windows.lock:
        whole = _whole(windows, law, end, since, asked.window is None)
    # A level, a mean or a percentile has no rate.
    rated = asked.per is not None and measure == "window" and (law.additive or law.query.result.running)
    if rated and asked.per is not None:
        whole = whole.rated(asked.per, end, since)
    count, ranked = len(whole.labels), len(whole.labels) - len(whole.later)
    place = np.arange(count)
    needle = asked.search.casefold()
    if needle:
        place = np.array([n for n in place.tolist() if needle in whole.labels[n].casefold()], dtype=np.int64)
    if asked.sort == "name":
        place = np.array(sorted(place.tolist(), key=lambda n: whole.labels[n]), dtype=np.int64)
    else:
        place = place[np.lexsort((-whole.value[place], place >= ranked))]
    clear = (whole.least > 0) | (whole.most < 0)
    # Surely above: their least is above my most. Surely below: their most is below my least.
    above = ranked - np.searchsorted(np.sort(whole.least[:ranked]), whole.most, side="right")
    below = np.searchsorted(np.sort(whole.most[:ranked]), whole.least, side="left")
    shown = place[asked.offset : asked.offset + asked.limit]
    following = place[asked.offset + 1 : asked.offset + asked.limit + 1].tolist()
    rows = [
        {
            "label": whole.labels[n],
            "value": whole.value[n].item(),
            "lower": whole.lower[n].item(),
            "upper": whole.upper[n].item(),
            "clear": bool(clear[n]),
            "from": int(above[n]) + 1 if n < ranked else None,
            "to": ranked - int(below[n]) if n < ranked else None,
            "tied": after is not None
            and max(n, after) < ranked
            and bool(whole.least[n] <= whole.most[after] and whole.least[after] <= whole.most[n]),
            "since": whole.later[n - ranked] if n >= ranked else None,
        }
        for n, after in zip(shown.tolist(), [*following, None], strict=False)
    ]
    return {
        "query": asked.query,
        "measure": measure,
        "since": since,
        "tick": end,
        "per": asked.per if rated else None,
        "labels": count,
        "matching": len(place),
        "clear": int(clear[place].sum()) if len(place) else 0,
        "bound": whole.bound,
        "beta": whole.beta,
        "rows": rows,
    }


def _ends(asked: Listing, published: int) -> tuple[int, int]:
    ends = Question(asked.query, asked.window, last=asked.last, points=1).ends(published)
    if not ends:
        raise ConfigurationError("no window of that length is full yet; ask for a shorter one, or for the total")
    return ends[-1], 0 if asked.window is None else ends[-1] - asked.window


def _measure(law: Law, window: int | None) -> Literal["window", "total", "level"]:
    """As in an `Answer`."""
    sums = law.differences and law.query.categories is not None
    if not sums and not (window is not None and law.query.record.result.running):
        return "level"
    return "total" if window is None else "window"


def _whole(windows: Windows, law: Law, end: int, since: int, total: bool) -> _Whole:
    query = law.query
    kept = windows.payloads(query.name, [tick for tick in (since, end) if tick])
    if end not in kept or (since and since not in kept and (law.differences or query.result.running)):
        raise ConfigurationError("the release log does not keep that tick any more; ask for a later one")
    if query.categories is None and not query.result.brings_labels:
        raise ConfigurationError(f"{query.name!r} releases one number, without labels")
    if query.result.value == "label":
        raise ConfigurationError(f"{query.name!r} releases labels in places, without numbers; see v1/releases")
    if law.differences and query.categories is not None:
        now = law.row(kept[end], None)
        before = None if total else law.row(kept[since], None) if since else law.first(None)
        return _differences(law, query.categories, now, before, (end, since))
    columns = unpack(query, kept[end])
    if since and query.result.running:
        return _found(windows, law, columns, unpack(query, kept[since]), (end, since))
    labels = columns["category"]
    value, lower, upper = _arrays(_picked(columns, labels))
    law_of_all = law.mechanism._engine.accuracy(end) if query.categories is not None else None
    if law_of_all is not None and type(law.mechanism._form).interval is RowForm.interval:
        bound = float(np.floor(law_of_all.radius(law.beta / len(labels))))
        return _Whole(labels, value, lower, upper, value - bound, value + bound, bound, law.beta)
    return _Whole(labels, value, lower, upper, lower, upper, None, law.beta)


def _found(windows: Windows, law: Law, now: dict[str, Any], before: dict[str, Any], ticks: tuple[int, int]) -> _Whole:
    """Labels that were found, by differences of their totals; those found later, from where they were first seen."""
    end, since = ticks
    both = [label for label in now["category"] if label in set(before["category"])]
    cells = [between(_picked(now, both), _picked(before, both))]
    missing = set(now["category"]) - set(both)
    later: dict[str, int] = {}
    if missing:
        looked = np.unique(np.linspace(since + 1, end - 1, min(_LOOKED_AT, end - since - 1)).astype(np.int64)).tolist()
        for tick, payload in sorted(windows.payloads(law.query.name, looked).items()):
            columns = unpack(law.query, payload)
            new = [label for label in columns["category"] if label in missing]
            missing -= set(new)
            later |= dict.fromkeys(new, tick)
            cells.append(between(_picked(now, new), _picked(columns, new)))
    value, lower, upper = map(np.concatenate, zip(*map(_arrays, cells), strict=True))
    labels = [*both, *later]
    return _Whole(labels, value, lower, upper, lower, upper, None, 2 * law.beta, tuple(later.values()))


def _arrays(numbers: Numbers) -> tuple[Array, Array, Array]:
    value, lower, upper = (np.array(part) for part in (numbers.value, numbers.lower, numbers.upper))
    return value, lower, upper


def _picked(columns: dict[str, Any], labels: list[str]) -> Numbers:
    place = {label: number for number, label in enumerate(columns["category"])}
    value, lower, upper = ([columns[name][place[label]] for label in labels] for name in ("value", "lower", "upper"))
    return Numbers(value, lower, upper, None)


def _differences(law: Law, labels: Sequence[str], now: Any, before: Any, ticks: tuple[int, int]) -> _Whole:
    end, since = ticks
    if now is None or (since and before is None):
        raise ConfigurationError("the release log does not keep the numbers that windows of this query are made of")
    if law.plain:
        value = now if before is None else now - before
        alone, at_once = (int(law.radius(end, since, beta)) for beta in (law.beta, law.beta / len(labels)))
        return _Whole(
            labels, value, value - alone, value + alone, value - at_once, value + at_once, float(at_once), law.beta
        )
    release = law.difference(now, before, ticks)
    (lower, upper), (least, most) = (
        map(flat, release.interval(beta=beta)) for beta in (law.beta, law.beta / len(labels))
    )
    value = flat(release.value)
    bound = float(np.maximum(most - value, value - least).max())
    return _Whole(labels, value, lower, upper, least, most, bound, law.beta)
