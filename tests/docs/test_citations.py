"""Every theorem that code, documents and tests name can be looked up: citations of docs/theory lead to a section that
exists, and docs/theory leads nowhere else."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from conformance import MECHANISMS
from evertally import counting
from evertally.audit import AUDITED
from evertally.noise import ZeroNoise

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
TEXTS = sorted(path.stem for path in THEORY.glob("*.md") if path.stem != "README")

_NUMBER = r"\d+(?:\.\d+)*"
# "streaming-selection 3.1-3.3", "factorization-counting 2.1, 2.2 and 11", "docs/theory/samplers.md, section 3"
_CITATION = re.compile(
    rf"\b({'|'.join(TEXTS)})(?:\.md)?,?\s+(?:\(?sections?\s+)?({_NUMBER}(?:(?:\s*-\s*|,\s+|,?\s+and\s+){_NUMBER})*)"
)


# "factorization-counting E3", "price-of-continual-release P5": numbered warnings
_WARNING = re.compile(rf"\b({'|'.join(TEXTS)})(?:\.md)?,?\s+([EP]\d+)")
# What users-and-domains calls the texts
_SHORT = {
    "fc": "factorization-counting",
    "price": "price-of-continual-release",
    "sel": "streaming-selection",
    "ph": "parameterized-histograms",
}


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
        elif item := re.match(r" *(\d+)\. ", line):
            found.add(f"{current}.{item[1]}")
    return found


def files() -> list[Path]:
    code = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    return sorted([*code, *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def prose(path: Path) -> str:
    return re.sub(r"\n\s*#?\s*", " ", path.read_text(encoding="utf-8"))


def citations() -> Iterator[tuple[Path, str, str]]:
    for path in files():
        for text, numbers in _CITATION.findall(prose(path)):
            for number in re.findall(_NUMBER, numbers):
                yield path.relative_to(ROOT), text, number


def test_citations_resolve():
    known = {text: sections(text) for text in TEXTS}
    all_citations = list(citations())
    # Code, documents and tests all cite; a pattern that finds nothing would find nothing wrong.
    for folder, least in (("src", 300), ("docs", 150), ("tests", 50)):
        assert sum(path.parts[0] == folder for path, *_ in all_citations) >= least
    missing = [citation for citation in all_citations if citation[2] not in known[citation[1]]]
    assert not missing


def cited(text: str) -> list[tuple[str, str]]:
    """What a docstring, or any text, cites: (specification, section)."""
    found = _CITATION.findall(re.sub(r"\s+", " ", text))
    return [(name, number) for name, numbers in found for number in re.findall(_NUMBER, numbers)]


def by_name(classes: Iterable[type]) -> list[type]:
    return sorted(set(classes), key=lambda one: one.__name__)


def processes() -> Iterator[type]:
    for module in pkgutil.iter_modules(counting.__path__):
        for name, found in vars(import_module(f"evertally.counting.{module.name}")).items():
            if isinstance(found, type) and name.endswith("Process") and not getattr(found, "_is_protocol", False):
                yield found


def test_every_mechanism_names_the_section_that_proves_it():
    # Made here, not where tests are collected: some take their time to plan, and every run of any test collects.
    for mechanism in by_name(type(subject.make(ZeroNoise())) for subject in MECHANISMS):
        named = cited(vars(mechanism)["__doc__"])
        assert named, mechanism
        assert [number for name, number in named if number not in sections(name)] == [], mechanism


@pytest.mark.parametrize("process", by_name(processes()), ids=lambda one: one.__name__)
def test_every_noise_process_names_the_section_that_proves_it(process: type):
    named = cited(f"{sys.modules[process.__module__].__doc__} {process.__doc__}")
    assert named
    assert [number for name, number in named if number not in sections(name)] == []


def test_every_audited_claim_names_the_section_that_proves_it():
    for audited in AUDITED:
        named = cited(audited.section)
        assert named, audited.name
        assert [number for name, number in named if number not in sections(name)] == []


def test_named_documents_exist():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for name in re.findall(r"docs/[\w/.-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def test_the_index_names_every_text():
    index = (THEORY / "README.md").read_text(encoding="utf-8")
    for text in TEXTS:
        assert f"]({text}.md)" in index


def test_numbered_warnings_exist():
    known = {text: (THEORY / f"{text}.md").read_text(encoding="utf-8") for text in TEXTS}
    found = [(path, text, name) for path in files() for text, name in _WARNING.findall(prose(path))]
    assert len(found) > 10
    for path, text, name in found:
        assert re.search(rf"^(?:\| |[-*] \*\*){name}\b", known[text], flags=re.M), f"{path}: {text} {name}"


def test_the_texts_cite_themselves_and_each_other_correctly():
    known = {text: sections(text) for text in TEXTS}
    whole = (THEORY / "factorization-counting.md").read_text(encoding="utf-8")
    own = set(re.findall(rf"§({_NUMBER})", whole))
    assert len(own) > 15
    assert own <= known["factorization-counting"]
    text = (THEORY / "users-and-domains.md").read_text(encoding="utf-8")
    short = re.findall(rf"\b({'|'.join(_SHORT)}) ({_NUMBER})", text)
    assert len(short) > 5
    assert [pair for pair in short if pair[1] not in known[_SHORT[pair[0]]]] == []


def test_the_texts_lead_to_nothing_outside():
    here = [path.as_posix() for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.*")]
    for path in sorted(THEORY.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"\.\./|(?<![\w.}])/(?:[a-z]+/)+[\w.]+|https?://|\bsessions?\b", text), path.name
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert (THEORY / link).exists(), f"{path.name} links to {link}"
        for name in re.findall(r"`([\w/]+\.(?:py|csv|npz|json))`", text):
            assert any(file.endswith(f"/{name}") for file in here), f"{path.name} names {name}"


def test_corrections_are_dated_and_name_their_section():
    for text in TEXTS:
        whole = (THEORY / f"{text}.md").read_text(encoding="utf-8")
        _, found, rest = whole.partition("\n## Corrections\n")
        if not found:
            continue
        assert "\n## " not in rest, f"{text}: corrections stand at the end"
        lines = [line for line in rest.splitlines() if line.startswith("- ")]
        assert lines
        for line in lines:
            dated = re.match(rf"- 20\d\d-\d\d-\d\d, ({_NUMBER})(?: and ({_NUMBER}))?[^:]*: ", line)
            assert dated, line
            assert {number for number in dated.groups() if number} <= sections(text), line
