"""Tables of a benchmark, for the terminal and for a markdown file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, what its numbers mean, and rows of text."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        lines = [list(self.columns), *map(list, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        body = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        rule = "-" * len(body[0])
        return "\n".join([self.title, self.note, "", body[0], rule, *body[1:], ""])

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cells) + " |"

        rule = ["---"] + ["---:"] * (len(self.columns) - 1)
        return "\n".join(
            [f"## {self.title}", "", self.note, "", line(self.columns), line(rule), *map(line, self.rows), ""]
        )


def quantity(value: float) -> str:
    """A number with three digits and a unit of thousands: 12.3 k, 4.56 M.

    >>> quantity(1234567.0), quantity(12.0), quantity(0.5)
    ('1.23 M', '12', '0.5')
    """
    for limit, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def print_tables(tables: Iterable[Table]) -> None:
    """For the terminal."""
    for table in tables:
        print(table.text())
