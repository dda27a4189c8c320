"""Tables of documents: their rows, formulas as people write them, and columns of noise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from printed import ROOT


def rows(document: str, after: str) -> list[list[str]]:
    """The cells of the first table after a text, without its head."""
    text = (ROOT / document).read_text(encoding="utf-8").split(after, 1)[1]
    lines = [line for line in text[text.index("\n|") :].split("\n\n")[0].splitlines() if line.startswith("|")]
    # A bar within a cell is written \| there.
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def value(formula: str, **letters: int) -> float:
    """What a formula is worth: products without a sign, squares as ².

    >>> value("4(6D-4)", D=3), value("2h² + D C(D,2)", h=2, D=3), round(value("(2 sqrt(D))²", D=3))
    (56, 17, 12)
    """
    tokens = re.findall(r"\d+|sqrt|[A-Za-z]|²|\^|[()+\-/,]", formula)
    made = ""
    for before, token in zip(["", *tokens], tokens, strict=False):
        ends = bool(re.fullmatch(r"\d+|[A-Za-z]+|²|\)", before)) and before not in ("C", "sqrt")
        if ends and re.fullmatch(r"\d+|[A-Za-z]+|\(", token):
            made += "*"
        made += {"²": "**2", "^": "**"}.get(token, token)
    worth = eval(made, {"C": math.comb, "sqrt": math.sqrt}, dict(letters))
    assert isinstance(worth, int | float)
    return worth


def gamma_and_l1(cell: str, **letters: int) -> tuple[int, int]:
    """Of a cell "Gamma² (l1)", and whatever comes after it; both rounded up, as the product does."""
    found = re.fullmatch(r"(.+) \((.+)\)", re.split(r";| if |, also", cell)[0])
    assert found, cell
    squared, l1 = (math.ceil(value(part, **letters) - 1e-9) for part in found.groups())
    return squared, l1


def noise_column(
    document: str, classes: dict[str, Callable[..., Any]], **common: Any
) -> list[tuple[str, float, float]]:
    """Rows of the table of standard deviations: what was made, what is printed, what the product states."""
    makers = {name: partial(kind, **common) for name, kind in classes.items()}
    found = []
    for cell, printed in rows(document, "## How large the noise is"):
        call = cell.split("`")[1]
        made = eval(call, dict(makers))
        found.append((call, float(printed), made.stddev(common["horizon"])))
    return found
