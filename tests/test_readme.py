"""What the documents say, runs; where they point, something is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_readme_python_runs_as_printed(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "±" in printed
    assert "Ledger" in printed
    assert names["visits"].tick == 24
    assert names["busiest"].mechanism in printed


def test_column_queries_page_runs_as_printed():
    text = (ROOT / "docs" / "column-queries.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "column-queries.md", "exec"), names)
    assert names["top"].tick == 104
    assert set(names["several"].step([1] * 8).value) == {"largest", "upper quartile"}


def test_quickstart_is_five_lines():
    first = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S).group(1)
    assert len([line for line in first.splitlines() if line.strip()]) <= 5


def test_unknown_items_page_runs_as_printed():
    text = (ROOT / "docs" / "unknown-items.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "unknown-items.md", "exec"), names)
    assert list(names["release"].value) == ["tea", "milk"]
    assert names["tags"].tick == 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} points to {target}, which is not there"
