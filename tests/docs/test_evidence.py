"""What the documents name as evidence exists: tests by their names, code by its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Texts of the system, and what is not foreseen.
ELSEWHERE = {"Address already in use", "internal error, RuntimeError at caching.py"}


@pytest.mark.parametrize("document", ["threat-model.md", "operating.md", "privacy.md", "architecture.md"])
def test_evidence_exists(document: str) -> None:
    text = (ROOT / "docs" / document).read_text()
    for path, _, name in re.findall(r"`(tests/[\w/]+\.py)(::(\w+))?`", text):
        assert f"def {name}" in (ROOT / path).read_text() if name else (ROOT / path).exists(), f"{path} {name}"
    for path in re.findall(r"`((?:encode|runtime|service)/[\w/]*(?:\.py)?)`", text):
        assert (ROOT / "src" / "evertally" / path).exists(), path


def test_the_parts_of_the_runtime_are_named_in_full() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().partition("| part | files in `runtime/`")[2]
    rows = text.partition("\n\n")[0].splitlines()[2:]
    named = {name.strip("/") for row in rows for name in re.findall(r"`([\w/]+(?:\.py)?)`", row.split(" | ")[1])}
    there = {path.name for path in (ROOT / "src" / "evertally" / "runtime").iterdir() if not path.name.startswith("__")}
    assert there == {name.partition("/")[0] for name in named}


def test_every_promise_names_its_evidence() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count(" | ") == 2]
    promises = [row for row in rows if not re.match(r"\| (promised|channel) ", row)]
    assert len(promises) > 25
    for row in promises:
        assert "tests/" in row or "runtime/" in row, row


def test_messages_are_those_of_the_program() -> None:
    """The operator looks for what the program said: every quoted piece of a message is a piece of the source."""
    program = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    program = re.sub(r'"\s*\n\s*f?"', "", program)  # one text in several literals
    text = (ROOT / "docs" / "operating.md").read_text().partition("## When something is wrong")[2]
    quoted = [part for line in text.splitlines() for part in re.findall(r"`([^`]+)`", line.split(" | ")[0])]
    assert len(quoted) > 30
    for message in quoted:
        for piece in re.split(r"\.\.\.| N ", message):
            words = piece.strip(" ,:()")
            assert words in program or words in ELSEWHERE, message
