"""One look for all pictures and tables: lines with bands, bars with whiskers, small tables for notebooks.

The colours are those of the live page; a test holds the two against each other. Pictures need matplotlib:
pip install 'evertally[plot]'. Everything that is drawn has been released already.
"""

from evertally.pictures.charts import Line, draw_band, draw_bars, draw_lines, numbers_of, plot
from evertally.pictures.falling import plot_falling
from evertally.pictures.html import html_table
from evertally.pictures.style import BAND, INK, LINES, QUIET, empty_figure, in_style, look, styled

__all__ = [
    "BAND",
    "INK",
    "LINES",
    "QUIET",
    "Line",
    "draw_band",
    "draw_bars",
    "draw_lines",
    "empty_figure",
    "html_table",
    "in_style",
    "look",
    "numbers_of",
    "plot",
    "plot_falling",
    "styled",
]
