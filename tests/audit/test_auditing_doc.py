"""docs/auditing.md runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

from evertally.audit import suite

DOCUMENT = Path(__file__).parents[2] / "docs" / "auditing.md"


def test_the_examples_run(capsys, monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", suite.Sizes(16, 80_000, 5_000, 100_000, 500, 500))  # quicker
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "auditing.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "closed form" in printed
    assert "claimed 1.0" in printed
