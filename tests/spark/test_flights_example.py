"""The example on real flights, a week of them: what it prints is near the truth, and what one process releases."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from printed import ROOT

if TYPE_CHECKING:
    from apart import Driver

DAYS = 8


def test_it_runs_and_is_near_the_truth(tmp_path: Path, apart: Callable[..., Driver]) -> None:
    folder = tmp_path / "planes"
    said = apart(ROOT / "examples" / "flights_on_spark.py", folder, "--days", DAYS, name="example").finished()
    assert re.findall(r"^batch (\d): .* days (\d) to (\d)$", said, re.M) == [
        (str(number), str(2 * number + 1), str(2 * number + 2)) for number in range(4)
    ]
    numbers = r"([\d,]+) +([\d,-]+) to ([\d,]+) +([\d,]+)$"
    lines = re.findall(rf"^(planes|by-airport|by-route) +[\w ]+? {{2,}}{numbers}", said, re.M)
    assert [name for name, *_ in lines][:7] == ["planes"] + ["by-airport"] * 6
    for name, *cells in lines:
        released, lower, upper, true = (int(cell.replace(",", "")) for cell in cells)
        # Six standard deviations; of a plane at most ten airports count, so that the truth may be above.
        assert abs(released - true) < 3 * (upper - lower) / 2 or name != "planes"
        assert released - true < 3 * (upper - lower) / 2
    assert re.search(rf"[\d,]+ released numbers of {DAYS} days; one process releases the same$", said, re.M)
    assert len(list((folder / "public").glob("*/about.json"))) == 4
    for private in ("root", "marks"):
        assert stat.S_IMODE((folder / private).stat().st_mode) == 0o700
    assert "flights_on_spark.py" in (ROOT / "docs" / "spark.md").read_text()
