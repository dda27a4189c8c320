"""docs/auditing.md runs as printed."""

from __future__ import annotations

from evertally.audit import suite
from printed import python_blocks, run_as_printed


def test_the_examples_run(capsys, monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", suite.Sizes(16, 40_000, 2_500, 100_000, 500, 500))  # quicker
    assert len(python_blocks("docs/auditing.md")) == 4
    run_as_printed("docs/auditing.md")
    printed = capsys.readouterr().out
    assert "closed form" in printed
    assert "claimed 1.0" in printed
