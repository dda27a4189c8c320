"""The colours of the page, and matplotlib dressed in them.

Lines follow Okabe and Ito, darkened until they have a contrast of 4.5 against white: they differ for colour-blind
readers too, and can be read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

from evertally.errors import ConfigurationError

# By their names on the page (service/dashboard/colours.css, light).
COLOURS = {
    "paper": "#f5f5f1",
    "card": "#ffffff",
    "ink": "#1b2631",
    "quiet": "#55616d",
    "rule": "#e3e4dd",
    "strong": "#c9cdc4",
    "soft": "#eef0ea",
    "accent": "#0a5f8f",
    "good": "#00704f",
    "warn": "#8f4700",
    "wrong": "#a8201a",
    "line-0": "#0072b2",
    "line-1": "#c25400",
    "line-2": "#00805e",
    "line-3": "#a8478a",
    "line-4": "#9c6800",
    "line-5": "#1b2631",
}
INK, QUIET = COLOURS["ink"], COLOURS["quiet"]
LINES = tuple(COLOURS[f"line-{i}"] for i in range(6))
BAND = 0.17  # how much of a line's colour its band has
_DASHES = ("-", "--", ":")

Given = ParamSpec("Given")
Made = TypeVar("Made")


def look(place: int) -> dict[str, Any]:
    """Colour and dash of a label by its place among all of them, so that neither rank nor choice changes it.

    >>> look(0), look(7)
    ({'color': '#0072b2', 'linestyle': '-'}, {'color': '#c25400', 'linestyle': '--'})
    """
    return {"color": LINES[place % len(LINES)], "linestyle": _DASHES[place // len(LINES) % len(_DASHES)]}


def styled() -> AbstractContextManager[None]:
    """Within it, whatever matplotlib makes has our look."""
    matplotlib = _matplotlib()
    context: AbstractContextManager[None] = matplotlib.rc_context(
        {
            "axes.axisbelow": True,
            "axes.edgecolor": COLOURS["strong"],
            "axes.facecolor": COLOURS["card"],
            "axes.grid": True,
            "axes.labelcolor": QUIET,
            "axes.prop_cycle": matplotlib.cycler(color=LINES),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "figure.facecolor": COLOURS["card"],
            "grid.color": COLOURS["rule"],
            "grid.linewidth": 0.8,
            "legend.frameon": False,
            "lines.linewidth": 1.6,
            "savefig.facecolor": COLOURS["card"],
            "text.color": INK,
            "xtick.color": COLOURS["strong"],
            "xtick.labelcolor": QUIET,
            "ytick.color": COLOURS["strong"],
            "ytick.labelcolor": QUIET,
        }
    )
    return context


def in_style(draw: Callable[Given, Made]) -> Callable[Given, Made]:
    """A function that draws, with our look."""

    @functools.wraps(draw)
    def dressed(*given: Given.args, **named: Given.kwargs) -> Made:
        with styled():
            return draw(*given, **named)

    return dressed


def empty_figure(width: float, height: float) -> Any:
    """A figure in inches that needs no screen, for a file."""
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    return FigureCanvasAgg(Figure(figsize=(width, height), layout="constrained")).figure


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise ConfigurationError("the picture needs matplotlib: pip install 'evertally[plot]'") from None
    return matplotlib
