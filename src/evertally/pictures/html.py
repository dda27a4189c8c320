"""Small tables for notebooks. Whatever is put into one is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

from evertally.pictures.style import COLOURS

_CELL = f"padding:2px 10px;border-bottom:1px solid {COLOURS['rule']};"
_MOST = 20  # rows; a notebook is no place for ten thousand


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], notes: Sequence[str] = ()) -> str:
    """Rows under a head; numbers are set to the right, and of many rows the first twenty are shown.

    >>> "&lt;b&gt;" in html_table("counts", ["label", "value"], [("<b>", 12345)])
    True
    >>> "12,345" in html_table("counts", ["label", "value"], [("<b>", 12345)])
    True
    """
    shown = [list(row) for row in rows]
    right = [any(_is_number(row[i]) for row in shown) for i in range(len(head))]
    lines = [_line("th", head, right)] if any(head) else []
    lines += [_line("td", row, right) for row in shown[:_MOST]]
    said = [*notes, *([f"{len(shown) - _MOST:,} more rows"] if len(shown) > _MOST else [])]
    foot = "".join(f"<div>{html.escape(note)}</div>" for note in said)
    return (
        '<div style="font-variant-numeric:tabular-nums"><table style="border-collapse:collapse">'
        f'<caption style="text-align:left;font-weight:600;padding:2px 10px">{html.escape(caption)}</caption>'
        f"{''.join(lines)}</table>{foot}</div>"
    )


def written(value: Any) -> str:
    """A cell: numbers as people write them, nothing for None."""
    if value is None:
        return ""
    if not _is_number(value):
        return str(value)
    number = float(value)
    text = f"{number:,.4g}" if number % 1 and abs(number) < 1000 else f"{number:,.0f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _line(tag: str, cells: Sequence[Any], right: Sequence[bool]) -> str:
    aligned = (
        f'<{tag} style="{_CELL}text-align:{"right" if far else "left"}">{html.escape(written(cell))}</{tag}>'
        for cell, far in zip(cells, right, strict=True)
    )
    return f"<tr>{''.join(aligned)}</tr>"
