"""Every theorem that the code names can be looked up: citations of docs/theory lead to a section that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
TEXTS = sorted(path.stem for path in THEORY.glob("*.md") if path.stem != "README")

_NUMBER = r"\d+(?:\.\d+)*"
# "streaming-selection 3.1-3.3", "factorization-counting 2.1, 2.2 and 11", "docs/theory/samplers.md, section 3"
_CITATION = re.compile(
    rf"\b({'|'.join(TEXTS)})(?:\.md)?,?\s+(?:\(?sections?\s+)?({_NUMBER}(?:(?:\s*-\s*|,\s+|,?\s+and\s+){_NUMBER})*)"
)


def sections(text: str) -> set[str]:
    """Numbers of headings, of items that begin with their number in bold, and n.m for item m of a list in section n."""
    found: set[str] = set()
    current = ""
    for line in (THEORY / f"{text}.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(rf"#+ ({_NUMBER})\b", line):
            current = heading[1]
            found.add(current)
        elif trap := re.match(rf"- \*\*({_NUMBER})\b", line):
            found.add(trap[1])
        elif item := re.match(r"(\d+)\. ", line):
            found.add(f"{current}.{item[1]}")
    return found


def citations() -> Iterator[tuple[Path, str, str]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        prose = re.sub(r"\n\s*#?\s*", " ", path.read_text(encoding="utf-8"))
        for text, numbers in _CITATION.findall(prose):
            for number in re.findall(_NUMBER, numbers):
                yield path.relative_to(ROOT), text, number


def test_citations_resolve():
    known = {text: sections(text) for text in TEXTS}
    all_citations = list(citations())
    assert len(all_citations) > 50
    missing = [citation for citation in all_citations if citation[2] not in known[citation[1]]]
    assert not missing


def test_named_documents_exist():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for name in re.findall(r"docs/[\w/.-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def test_the_index_names_every_text():
    index = (THEORY / "README.md").read_text(encoding="utf-8")
    for text in TEXTS:
        assert f"]({text}.md)" in index
