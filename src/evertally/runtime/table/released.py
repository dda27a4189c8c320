"""What `et.release` gives back: everything that was released, as a tidy frame of the library that the rows came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from evertally.contract.release import Release
from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey
from evertally.pictures import html_table, plot
from evertally.privacy import Guarantee, Ledger
from evertally.runtime.certificate import certificate_of, ledger_of
from evertally.runtime.clock import duration
from evertally.runtime.mechanisms import Mechanisms
from evertally.runtime.spec import StreamSpec
from evertally.runtime.table.columns import Library
from evertally.runtime.table.tidy import Log, Window, has_rate, totals, windows


class Released:
    """All releases of a table. `frame` is the tidy table in the library of the input; `to_pandas`, `to_polars` and
    `to_arrow` give it in theirs. Its columns: tick, time (when the tick ended), query, label (None where a query has
    one number), value, stddev, and the interval [low, high] that holds the true value with probability 1 - beta, each
    by itself; `since` in windows. Everything here is public, but for `key`.

    >>> import evertally as et
    >>> clock = {"time": "day", "start": 0, "end": 60, "tick": 1}
    >>> visits = {"day": [day for day in range(60) for _ in range(200)]}
    >>> found = et.release(visits, {"visits": "counter"}, **clock, guarantee=et.ZCDP(0.5), key=et.simulation(1))
    >>> found
    <Released: visits; 60 ticks, ZCDP(rho=0.5), not private>
    >>> weeks = found.window(7)
    >>> weeks.to_arrow()["since"].to_pylist()[:3], weeks.to_arrow().num_rows
    ([4, 11, 18], 8)
    """

    def __init__(
        self,
        spec: StreamSpec,
        laws: Mechanisms,
        log: Log,
        library: Library,
        key: NoiseKey,
        queries: Sequence[str] | None = None,
        windows: Mapping[str, Window] | None = None,
    ) -> None:
        self._spec, self._laws, self._log, self._library = spec, laws, log, library
        self._windows = windows
        self.key = key
        self.queries = [query.name for query in spec.queries] if queries is None else list(queries)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised for all of it together."""
        return self._spec.guarantee

    @property
    def releases(self) -> Mapping[str, list[Release]]:
        """The running releases themselves, by query, one for each tick."""
        return {name: [releases[name] for releases in self._log.releases] for name in self.queries}

    @cached_property
    def ledger(self) -> Ledger:
        """What each query paid."""
        return ledger_of(self._spec, self._laws)

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """What is promised, to whom and by which theorems, for the files."""
        return certificate_of(self._spec, self._laws)

    def __getitem__(self, query: str) -> Released:
        """One query alone."""
        if query not in self.queries:
            raise KeyError(f"there is no query {query!r} here; there are: {', '.join(self.queries)}")
        return self._with([query], self._windows)

    def window(self, length: Any = None, *, per: Any = None, every: Any = None) -> Released:
        """The same over windows: `length` ticks, or a length of time, "7d" or a timedelta; free, as it is made of what
        is out.

        A window is the difference of two releases, with the exact error of that difference. `per` makes rates of
        counts and sums ("1d": per day); means stay means. `every` is how far apart the ends of windows are, by default
        the window itself, so that no event is in two. Only full windows; the last one ends with the last tick. Queries
        whose differences mean nothing (users who were active, found labels) are left out. Without a length each query
        has the `window` and the `per` of the spec that was given, and those without are left out.
        """
        if length is None and (per is not None or every is not None):
            option = "every" if per is None else "per"
            raise ConfigurationError(f'{option} goes with a window: window="7d", {option}="1d", for example')
        clock = self._spec.clock
        levels = {query.name for query in self._spec.queries if query.record.level}
        named = [name for name in self.queries if self._laws[name].differences and name not in levels]
        if not named:
            raise ConfigurationError("none of these queries has windows: differences of their releases mean nothing")
        if length is None:
            words = {query.name: query.words for query in self._spec.queries if query.name in named}
            declared = {name: self._one(one.window, one.per) for name, one in words.items() if one.window is not None}
            if not declared:
                raise ConfigurationError('no query of a spec says which window: give one, window("7d") for example')
            return self._with(list(declared), declared)
        ticks = clock.ticks_in("window", length)
        unit = None if per is None else clock.ticks_in("per", per)
        one = self._one(ticks, unit, None if every is None else clock.ticks_in("every", every))
        return self._with(named, dict.fromkeys(named, one))

    def _one(self, ticks: int, unit: int | None, every: int | None = None) -> Window:
        if ticks > len(self._log.ticks):
            raise ConfigurationError(f"window: {ticks} ticks are more than the {len(self._log.ticks)} that are out")
        clock = self._spec.clock
        rate = "" if unit is None else clock.lasting(unit) if clock.integer else duration(unit * clock.length)
        return Window(ticks, every or ticks, 1.0 if unit is None else unit / ticks, rate)

    @property
    def frame(self) -> Any:
        """The tidy table, in the library that the rows came in."""
        if self._library == "dict":
            return self.to_arrow().to_pydict()
        return getattr(self, f"to_{self._library}")()

    def to_arrow(self) -> Any:
        """The tidy table as a table of Arrow."""
        return self._table

    def to_pandas(self) -> Any:
        """The tidy table as a frame of pandas."""
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """The tidy table as a frame of Polars."""
        try:
            import polars
        except ModuleNotFoundError:
            raise ConfigurationError("to_polars needs Polars: pip install polars") from None
        return polars.from_arrow(self._table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """So that every library that reads Arrow takes it as it is."""
        return self._table.__arrow_c_stream__(requested_schema)

    def plot(self, *, ax: Any = None) -> Any:
        """Lines with bands, one picture for each query; returns matplotlib's axes, a list of them if there are several
        queries."""
        axes = plot(self._table, ax=ax)
        if self._windows is not None:
            drawn = axes if isinstance(axes, list) else [axes]
            for name, one in zip(self.queries, drawn, strict=True):
                window = self._windows[name]
                if window.per and has_rate(self._spec, self._laws, name, window):
                    one.set_ylabel(f"per {window.per}")
                one.set_xlabel(f"windows of {self._spec.clock.lasting(window.ticks)}, each drawn at its end")
        return axes

    def _with(self, queries: Sequence[str], windows: Mapping[str, Window] | None) -> Released:
        return Released(self._spec, self._laws, self._log, self._library, self.key, queries, windows)

    @cached_property
    def _table(self) -> Any:
        if self._windows is None:
            return totals(self._spec, self._log, self.queries)
        asked = {name: self._windows[name] for name in self.queries}
        return windows(self._spec, self._laws, self._log, asked)

    def _described(self) -> str:
        ticks = len(self._log.ticks)
        lengths = sorted({self._windows[name].ticks for name in self.queries} if self._windows else ())
        seen = f", windows of {' and '.join(map(self._spec.clock.lasting, lengths))}" if lengths else ""
        private = "" if self.key.private else ", not private"
        return f"{', '.join(self.queries)}; {ticks} ticks{seen}, {self.guarantee}{private}"

    def __repr__(self) -> str:
        return f"<Released: {self._described()}>"

    def _repr_html_(self) -> str:
        table = self._table
        last = max(table["tick"].to_pylist(), default=0)
        names = ("time", "query", "label", "value", "stddev", "low", "high")
        rows = zip(table["tick"].to_pylist(), *(table[name].to_pylist() for name in names), strict=True)
        shown = [(str(time), *rest) for tick, time, *rest in rows if tick == last]
        said = f"{table.num_rows:,} rows; the last of each query. Each interval holds with {1 - self._spec.beta:.0%}"
        return html_table(self._described(), names, shown, [said])
