"""What the documents say, runs; where they point, something is."""

import re

import pytest

import evertally as et
from evertally.contract.mechanism import Mechanism
from printed import ROOT, python_blocks, run_as_printed

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_readme_python_runs_as_printed(capsys):
    assert len(python_blocks("README.md")) == 6
    names = run_as_printed("README.md")
    printed = capsys.readouterr().out
    assert "±" in printed
    assert "Ledger" in printed
    assert names["visits"].tick == 24
    assert len(names["found"].window("7d").frame) == 3 * 5
    assert names["busiest"].mechanism in printed
    assert set(names["release"].value) == {1, 7, 28}


def test_column_queries_page_runs_as_printed():
    names = run_as_printed("docs/column-queries.md")
    assert names["top"].tick == 104
    assert set(names["several"].step([1] * 8).value) == {"largest", "upper quartile"}


def test_quickstart_is_five_lines():
    first = python_blocks("README.md")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 5


def test_unknown_items_page_runs_as_printed():
    names = run_as_printed("docs/unknown-items.md")
    assert list(names["release"].value) == ["tea", "milk"]
    assert names["tags"].tick == 1


def test_every_statistic_is_listed_and_every_page_can_be_found():
    statistics = {
        name for name in et.__all__ if isinstance(getattr(et, name), type) and issubclass(getattr(et, name), Mechanism)
    }
    assert len(statistics) > 30
    readme = (ROOT / "README.md").read_text()
    for name in statistics:
        assert f"`{name}`" in readme, name
        assert f"`{name}`" in et.__doc__, name
    assert [page.name for page in ROOT.glob("docs/*.md") if f"(docs/{page.name})" not in readme] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} points to {target}, which is not there"
