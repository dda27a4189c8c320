"""Errors that fall as a guarantee grows weaker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evertally.errors import ConfigurationError
from evertally.pictures.style import look, styled


def plot_falling(
    amounts: Sequence[float], lines: Mapping[str, Sequence[float | None]], *, across: str, ax: Any = None
) -> Any:
    """One line for each kind of error by amount of epsilon or rho, both by factors; returns matplotlib's axes.

    Errors that are None or infinite leave a gap, and a line that has nothing else is not drawn.
    """
    with styled():
        from matplotlib import ticker

        if ax is None:
            from matplotlib import pyplot  # the figure is the user's: shown by a notebook, or by plt.show()

            ax = pyplot.subplots(figsize=(9, 3.6), layout="constrained")[1]
        drawn = 0
        for place, (label, errors) in enumerate(lines.items()):
            known = [math.nan if error is None or not 0 < error < math.inf else error for error in errors]
            if not all(map(math.isnan, known)):
                ax.plot(amounts, known, label=label, marker="o", **look(place))
                drawn += 1
        if not drawn:
            raise ConfigurationError("none of these errors is known before the data: there is nothing to draw")
        ax.set(xscale="log", yscale="log", xlabel=across, ylabel="error")
        ax.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        ax.xaxis.set_minor_locator(ticker.NullLocator())
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_minor_locator(ticker.NullLocator())
        ax.yaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")
        ax.legend()
    return ax
