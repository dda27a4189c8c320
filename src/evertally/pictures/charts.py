"""Lines with bands and bars with whiskers: no number is drawn without its error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from evertally.errors import ConfigurationError
from evertally.pictures.style import BAND, COLOURS, INK, LINES, QUIET, look, styled

TOGETHER = 6  # lines in one panel; more cannot be told apart
_NAMES = {"low": ("low", "lower"), "high": ("high", "upper"), "label": ("label", "column", "category")}
_WHAT = (
    "a picture is drawn of a release of several numbers, of a list of releases, of the table of run(full=True), or of "
    "a tidy frame with tick, value, low and high"
)


@dataclass
class Line:
    """One number over time, with its interval; `place` is that of its label among all labels."""

    label: str
    place: int = 0
    x: list[Any] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, x: Any, value: Any, low: Any, high: Any) -> None:
        """One point; an interval that has no end, or none at all, leaves a gap in the band."""
        self.x.append(x)
        for numbers, number in ((self.value, value), (self.low, low), (self.high, high)):
            numbers.append(math.nan if number is None or math.isinf(number) else float(number))


def plot(what: Any, *, ax: Any = None, beta: float = 0.05) -> Any:
    """Draws releases, or a table of them, and returns matplotlib's axes: a list of them where there are several
    queries, each of which has a picture of its own.

    A release of several numbers becomes bars with whiskers; a list of releases, the table of `run(full=True)` or a tidy
    frame (pandas, Polars, Arrow) lines with bands. Of more than six labels those that are largest at the end are drawn.
    `beta` is for releases: whiskers and bands hold the truth with probability 1 - beta each; a table has its own.
    """
    panels = _panels(what, beta)
    bars = _is_release(what)
    height = 0.9 + 0.3 * len(panels[""]) if bars else 3.2 * len(panels) + 0.4
    with styled():
        for axes, (title, lines) in zip(places := _axes(ax, len(panels), height), panels.items(), strict=True):
            if bars:
                draw_bars(axes, lines)
            else:
                draw_lines(axes, lines, beside=ax is None)
            axes.set_title(title)
    return places[0] if len(places) == 1 else places


def draw_lines(axes: Any, lines: Sequence[Line], beside: bool = False) -> None:
    """Lines with bands, those that are largest at the end where there are too many; their names beside them, where the
    figure makes room."""
    chosen = sorted(sorted(lines, key=_last)[-TOGETHER:], key=lambda line: line.place)
    for line in chosen:
        looks = look(line.place)
        axes.plot(line.x, line.value, label=line.label or None, **looks)
        draw_band(axes, line.x, line.low, line.high, looks["color"])
    if any(line.label for line in chosen):
        left = len(lines) - len(chosen)
        place: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if beside else {}
        axes.legend(title=f"and {left:,} more" if left else None, **place)
    axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.10g}".replace("-", "\N{MINUS SIGN}"))
    if chosen and hasattr(chosen[0].x[0], "year"):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        axes.xaxis.set_major_locator(days := AutoDateLocator())
        axes.xaxis.set_major_formatter(ConciseDateFormatter(days))


def draw_band(axes: Any, x: Any, low: Any, high: Any, colour: str, **more: Any) -> None:
    """A band in the colour of its line, with a thin edge."""
    axes.fill_between(x, low, high, color=colour, alpha=BAND, linewidth=0.6, **more)


def draw_bars(axes: Any, lines: Sequence[Line]) -> None:
    """One bar for each label, by its last point; hollow where it cannot be told from zero. Never cut off at zero."""
    for at, line in enumerate(lines):
        value, low, high = line.value[-1], line.low[-1], line.high[-1]
        clear = low > 0 or high < 0
        axes.barh(at, value, color=LINES[0] if clear else COLOURS["card"], edgecolor=LINES[0], alpha=0.85, height=0.7)
        axes.errorbar(value, at, xerr=[[value - low], [high - value]], color=INK, capsize=3, linewidth=1)
    axes.set_yticks(range(len(lines)), [line.label for line in lines])
    axes.axvline(0, color=QUIET, linewidth=1)
    axes.grid(visible=False, axis="y")
    axes.invert_yaxis()


def _is_release(what: Any) -> bool:
    return hasattr(what, "interval") and hasattr(what, "value")


def _last(line: Line) -> float:
    known = [abs(value) for value in line.value if not math.isnan(value)]
    return known[-1] if known else -1.0


def _axes(ax: Any, wanted: int, height: float) -> list[Any]:
    if ax is not None:
        given = list(getattr(ax, "flat", ax)) if isinstance(ax, Iterable) else [ax]
        if len(given) != wanted:
            raise ConfigurationError(f"there are {wanted} pictures to draw and {len(given)} axes: one for each")
        return given
    from matplotlib import pyplot  # the figure is the user's: shown by a notebook, or by plt.show()

    figure, places = pyplot.subplots(wanted, squeeze=False, figsize=(9, height), layout="constrained")
    figure.align_ylabels()
    return list(places.flat)


def _panels(what: Any, beta: float) -> dict[str, list[Line]]:
    """What goes into each picture, by its title."""
    if _is_release(what):
        if numbers_of(what, beta)[0][0] is None:
            raise ConfigurationError(
                "a release of one number is no picture: draw a list of releases, or the table of run(full=True)"
            )
        return _of_releases([what], beta)
    if isinstance(what, list | tuple):
        if not what or not all(map(_is_release, what)):
            raise ConfigurationError(_WHAT)
        return _of_releases(what, beta)
    return _of_columns(_columns(what))


def numbers_of(release: Any, beta: float = 0.05) -> list[tuple[Any, Any, Any, Any]]:
    """(label, value, lower, upper) of each number of a release; one number alone has no label, labels alone have no
    interval."""
    value = release.value
    try:
        low, high = release.interval(beta)
    except ConfigurationError:
        low = high = None
    if isinstance(value, Mapping):
        labels = list(value)
    elif hasattr(value, "__len__") and not isinstance(value, str | bytes):
        labels = list(range(len(value)))
    else:
        return [(None, value, low, high)]
    if low is None or high is None:
        return [(label, value[label], None, None) for label in labels]
    return [(label, value[label], low[label], high[label]) for label in labels]


def _of_releases(releases: Sequence[Any], beta: float) -> dict[str, list[Line]]:
    lines: dict[str, Line] = {}
    for release in releases:
        for label, *numbers in numbers_of(release, beta):
            name = "" if label is None else str(label)
            if not isinstance(numbers[0], Real) or numbers[1] is None:
                raise ConfigurationError(_WHAT)
            lines.setdefault(name, Line(name, len(lines))).add(release.tick, *numbers)
    return {"": list(lines.values())}


def _of_columns(columns: Mapping[str, list[Any]]) -> dict[str, list[Line]]:
    found = {name: next((columns[one] for one in _NAMES.get(name, (name,)) if one in columns), None) for name in _USED}
    if any(found[name] is None for name in ("tick", "value", "low", "high")):
        raise ConfigurationError(_WHAT)
    rows = len(columns["tick"])
    if not rows:
        raise ConfigurationError("a table without rows is no picture")
    x, query, label = found["time"] or found["tick"], found["query"] or [""] * rows, found["label"] or [None] * rows
    panels: dict[str, dict[str, Line]] = {}
    for at, title, named, *numbers in zip(x, query, label, found["value"], found["low"], found["high"], strict=True):  # type: ignore[arg-type]
        name = named if isinstance(named, str) else ""  # a missing label is None, or NaN in pandas
        panel = panels.setdefault(str(title), {})
        panel.setdefault(name, Line(name, len(panel))).add(at, *numbers)
    return {title: list(lines.values()) for title, lines in panels.items()}


_USED = ("tick", "time", "query", "label", "value", "low", "high")


def _columns(table: Any) -> dict[str, list[Any]]:
    """The columns of a table of any library, as lists."""
    if hasattr(table, "to_pydict"):
        return dict(table.to_pydict())
    if isinstance(table, Mapping):
        return {name: list(cells) for name, cells in table.items()}
    if not hasattr(table, "columns"):
        raise ConfigurationError(_WHAT)
    listed = (getattr(table[name], "to_list", None) for name in table.columns)
    return {str(name): cells() for name, cells in zip(table.columns, listed, strict=True) if cells is not None}
