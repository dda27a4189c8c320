"""The spec of the section about windows in docs/command-line.md is read, and released."""

from __future__ import annotations

import re
from pathlib import Path

from evertally.runtime import load_spec
from evertally.runtime.live import Live

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
REST = """
[guarantee]
rho = 0.5

[clock]
column = "time"
start = 2013-01-01T00:00:00Z
tick = "6h"
close = "request"

[key]
file = "shop.key"

[state]
file = "shop.state"

[output]
file = "shop.csv"
"""


def test_the_spec_about_windows_releases_them(tmp_path: Path) -> None:
    section = PAGE.split("\n## Windows\n")[1].split("\n## ")[0]
    (text,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    path = tmp_path / "shop.toml"
    path.write_text(text + REST)
    spec = load_spec(path)
    assert (spec.title, spec.noun) == ("Orders of the shop", "order")
    with Live(spec) as live:
        live.publish(live.release_through(29))
    rows = [line.split(",")[::2][:2] for line in (tmp_path / "shop.csv").read_text().splitlines()[1:]]
    assert [query for tick, query in rows if tick == "29"] == ["orders", "basket", "orders/7d per 1d", "basket/7d"]
    assert "`orders/7d per 1d`" in section
    assert "orders/7d per 1d" not in {query for tick, query in rows if int(tick) < 28}
