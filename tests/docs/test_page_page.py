"""docs/page.md: its pictures are there and say what they show, its words are those of the page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "page.md"
DASHBOARD = ROOT / "src" / "evertally" / "service" / "dashboard"
SHOWN = re.compile(r"!\[(.*?)\]\((.*?)\)")
SCREENSHOTS = ("dashboard.png", "page-statistic.png", "page-phone.png")


def test_screenshots_are_in_the_docs_with_words_for_those_who_do_not_see_them() -> None:
    shown = dict(reversed(found) for found in SHOWN.findall(PAGE.read_text()))
    for name in SCREENSHOTS:
        assert len(shown[f"images/{name}"]) > 60
        file = ROOT / "docs" / "images" / name
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size < 300_000
    first = SHOWN.search((ROOT / "README.md").read_text())
    assert first is not None
    assert first.group(2) == "docs/images/dashboard.png"


def test_its_words_are_those_of_the_page() -> None:
    code = " ".join(file.read_text() for file in DASHBOARD.rglob("*.js"))
    states = re.search(r"## States(.*?)##", PAGE.read_text(), re.S)
    assert states is not None
    named = re.findall(r"^\| (\w[\w ]*) \|", states.group(1), re.M)
    assert len(named) == 5
    for words in (
        *named,
        "no clear change",
        "What is promised",
        "Longer windows are more exact",
        "stays hidden",
        "Total",
    ):
        assert words in code, words
    for name in re.findall(r"`([\w/]+\.(?:js|css))`", (ROOT / "docs" / "architecture.md").read_text()):
        assert (DASHBOARD / name).exists(), name
