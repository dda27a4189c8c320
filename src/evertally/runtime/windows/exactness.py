"""How exact windows will be: known before any data, for the error does not depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.contract.forms import RowForm, flat
from evertally.runtime.clock import Clock
from evertally.runtime.windows.answers import Windows
from evertally.runtime.windows.law import Law, shows_rows
from evertally.runtime.windows.offered import WINDOWS, offered
from evertally.runtime.windows.question import each

_LOOKED_AT = 256  # windows of one length, spread over the stream
_WITHOUT_END = 1024  # ticks, at which a plan quotes errors of a stream that has no horizon
_DAY = 86_400_000_000


def exactness(windows: Windows, name: str, clock: Clock, last: int | None) -> list[dict[str, Any]]:
    """Standard deviation and radius by window: the largest of those that were looked at. Nothing for what is no sum."""
    law = windows.laws[name]
    if not law.additive:
        return []
    last = last or _WITHOUT_END
    lengths = [one["ticks"] for one in offered(clock, last, (*WINDOWS, 90, 365))]
    if law.query.words.window is not None and law.query.words.window < last:
        lengths.append(law.query.words.window)
    per = law.query.words.per or _day(clock)
    with windows.lock:
        return [_exactness(law, clock, ticks, per, last) for ticks in sorted({*lengths, last})]


def level(windows: Windows, name: str, last: int | None) -> dict[str, float] | None:
    """The same for what a query releases by itself, such as who is active now, where only noise is in the way: the
    widest of its numbers."""
    law = windows.laws[name]
    engine, form = law.mechanism._engine, law.mechanism._form
    found = law.query.record.result.brings_labels
    if law.differences or found or law.query.record.error_later or not hasattr(engine, "width"):
        return None
    if not isinstance(form, RowForm) or not shows_rows(form, engine.width):
        return None
    last = last or _WITHOUT_END
    with windows.lock:
        ends = np.unique(np.linspace(1, last, min(_LOOKED_AT, last)).astype(np.int64)).tolist()
        known = [(stddev, end) for end in ends if (stddev := law.mechanism.stddev(end)) is not None]
        if not known:
            return None
        stddev, worst = max(known)
        zeros = np.zeros(engine.width, dtype=np.int64)
        _, upper = form.interval(zeros, engine.accuracy(worst), law.beta)
    return {"stddev": float(stddev), "radius": float(flat(upper).max())}


def _day(clock: Clock) -> int:
    days, rest = divmod(_DAY, clock.length)
    return days if not clock.integer and days and not rest else 1


def _exactness(law: Law, clock: Clock, ticks: int, per: int, last: int) -> dict[str, Any]:
    ends = np.unique(np.linspace(ticks, last, min(_LOOKED_AT, last - ticks + 1)).astype(np.int64)).tolist()
    known = [(stddev, end) for end in ends if (stddev := law.stddev(end, end - ticks)) is not None]
    if known:
        stddev, worst = max(known)
        radius = _radius(law, worst, worst - ticks)
    else:
        stddev, radius = None, max(_radius(law, end, end - ticks) for end in ends[:: max(1, len(ends) // 16)])
    seconds = None if clock.integer else ticks * clock.length / 1e6
    rate = {"words": each(clock, per), "radius": radius * per / ticks}
    return {"ticks": ticks, "seconds": seconds, "words": clock.lasting(ticks), "stddev": stddev} | {
        "radius": radius,
        "per": rate,
    }


def _radius(law: Law, tick: int, since: int) -> float:
    """Half the interval of a window, of the widest number; intervals of sums are as wide whatever was counted."""
    if law.plain:
        return float(int(law.radius(tick, since, law.beta)))
    zeros = np.zeros(law.width, dtype=np.int64)
    lower, upper = law.mechanism.window_of(zeros, None, tick=tick, since=since).interval(beta=law.beta)
    return float(np.maximum(flat(upper), -flat(lower)).max())
