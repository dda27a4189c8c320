"""How exact windows will be: known before any data, for the error does not depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evertally.contract.forms import RowForm, flat
from evertally.contract.ticks import ends_to_look_at
from evertally.runtime.clock import Clock
from evertally.runtime.spec import StreamSpec
from evertally.runtime.windows.answers import Windows
from evertally.runtime.windows.law import Law, shows_rows
from evertally.runtime.windows.offered import WINDOWS, offered
from evertally.runtime.windows.question import each

_WITHOUT_END = 1024  # ticks, at which a plan quotes errors of a stream that has no horizon
_DAY = 86_400_000_000
_EVENLY = 32  # windows that the usual one is the middle of


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
        ends = ends_to_look_at(1, last)
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
    ends = ends_to_look_at(ticks, last)
    known = [(stddev, end) for end in ends if (stddev := law.stddev(end, end - ticks)) is not None]
    if known:
        stddev, worst = max(known)
        radius = _radius(law, worst, worst - ticks)
    else:
        stddev, radius = None, max(_radius(law, end, end - ticks) for end in ends[:: max(1, len(ends) // 16)])
    # Noise of some processes is largest where a stream begins: what most windows have is said as well.
    even = sorted({ticks + (last - ticks) * i // _EVENLY for i in range(_EVENLY + 1)})
    usual = sorted(_radius(law, end, end - ticks) for end in even)[len(even) // 2]
    seconds = None if clock.integer else ticks * clock.length / 1e6
    rate = {"words": each(clock, per), "radius": radius * per / ticks, "usual": usual * per / ticks}
    return {"ticks": ticks, "seconds": seconds, "words": clock.lasting(ticks), "stddev": stddev} | {
        "radius": radius,
        "usual": usual,
        "per": rate,
    }


def _radius(law: Law, tick: int, since: int) -> float:
    """Half the interval of a window, of the widest number; intervals of sums are as wide whatever was counted."""
    if law.plain:
        return float(int(law.radius(tick, since, law.beta)))
    zeros = np.zeros(law.width, dtype=np.int64)
    lower, upper = law.difference(zeros, None, (tick, since)).interval(beta=law.beta)
    return float(np.maximum(flat(upper), -flat(lower)).max())


def asked_for(spec: StreamSpec, mechanisms: Mapping[str, Any]) -> list[str]:
    """How exact the windows will be that a spec asks for: a line for each."""
    lines = []
    for query in spec.queries:
        window, per = query.words.window, query.words.per
        if window is None:
            continue
        law = Law(query, mechanisms[query.name], True, spec.beta)
        name = f"{query.name}/{query.words.written}"
        if not law.additive:
            lines.append(f"{name}: how exact depends on how much a window has; each comes with its interval")
            continue
        found = _exactness(law, spec.clock, window, per or window, spec.last_tick or max(_WITHOUT_END, window))
        unit = f" {query.words.unit}" if query.words.unit else ""
        sure = f"{100 * (1 - spec.beta):g} %"
        lines.append(f"{name}: within {found['per']['radius']:,.4g}{unit} of the truth, {sure} of the time")
    return lines
