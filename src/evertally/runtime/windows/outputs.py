"""Windows that a spec asks for (`window`, `per`), as rows beside the totals in everything that gets releases.

They follow from the release log and public numbers alone: after a crash the same rows come out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evertally.errors import ConfigurationError
from evertally.kinds.query_table import a
from evertally.runtime.releases import TickRelease, listed
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.windows.answers import Windows
from evertally.runtime.windows.law import Law


def check_windows(spec: StreamSpec, mechanisms: Mapping[str, Any], keeps_rows: bool) -> None:
    """Refuses a window of what has none, and a rate of what is no sum, at their lines."""
    for number, query in enumerate(spec.queries, 1):
        if query.words.window is None:
            continue
        law = Law(query, mechanisms[query.name], keeps_rows, spec.beta)
        if law.differences and query.words.per is not None and not law.additive:
            problem = f"per is for counts and sums, and {a(query.kind)} is none of them: it has no rate. Leave out per"
            spec.file.refuse(problem, "query", "per", number)
        if law.differences:
            continue
        where = f"{spec.path}:{query.line}: query {query.name!r}"
        if mechanisms[query.name].differences and not query.record.level:
            raise ConfigurationError(
                f"{where}: window needs the released integers, which are not kept of this query: the stream was begun "
                "by a version that did not, or there are too many of them. Leave out window"
            )
        raise ConfigurationError(
            f"{where}: window is for sums over ticks, and differences of two releases of {query.kind} are none: it "
            "counts by windows of its own, weighs ticks, or estimates. Leave out window"
        )


class WindowRows:
    """Adds the windows that end with a tick to its release."""

    def __init__(self, spec: StreamSpec, windows: Windows) -> None:
        self._windows = windows
        self._asked = [query for query in spec.queries if query.words.window is not None]

    def added(self, releases: Sequence[TickRelease]) -> list[TickRelease]:
        """The same releases, with windows as far as they are full and their beginning is kept."""
        if not self._asked:
            return list(releases)
        found: dict[int, dict[str, tuple[QuerySpec, dict[str, Any]]]] = {release.tick: {} for release in releases}
        for query in self._asked:
            with self._windows.lock:
                self._add(query, releases, found)
        return [replace(release, windows=found[release.tick]) for release in releases]

    def _add(self, query: QuerySpec, releases: Sequence[TickRelease], found: dict[int, dict[str, Any]]) -> None:
        law, window, per = self._windows.laws[query.name], query.words.window or 0, query.words.per
        kept = {release.tick: release.payloads[query.name] for release in releases if query.name in release.payloads}
        begins = sorted({tick - window for tick in kept if tick > window} - set(kept))
        earlier = kept | (self._windows.payloads(query.name, begins) if begins else {})
        for tick, payload in kept.items():
            since = tick - window
            now = law.row(payload, None) if since == 0 or since in earlier else None
            before = law.first(None) if since == 0 else law.row(earlier[since], None) if now is not None else None
            if now is None or before is None:
                continue
            numbers = law.window(now, before, (tick, since), None)
            if per is not None and law.additive:
                numbers = numbers.scaled(per, window)
            labels = listed(query.categories)
            cells = {"value": numbers.value, "lower": numbers.lower, "upper": numbers.upper}
            columns = cells if labels is not None else {name: part[0] for name, part in cells.items()}
            stddev = None if numbers.stddev is None else float(f"{numbers.stddev:.6g}")
            found[tick][f"{query.name}/{query.words.written}"] = (
                query,
                {"category": labels, **columns, "stddev": stddev},
            )
