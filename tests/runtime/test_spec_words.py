"""The usual mistakes in a spec file: what is said of them is what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from evertally.errors import ConfigurationError
from evertally.runtime.spec import load_spec
from evertally.runtime.spec.file import SpecFile, _in_other_words
from spec_text import spec_text

SAID = {
    '[query]\nname = "a"\n\n[query]\nname = "b"\n': (4, "write [[query]], with two brackets"),
    '[query]\nname = "a"\n\n[[query]]\nname = "b"\n': (4, "there is a section [query] already; write [[query]]"),
    '[[sink]]\nfile = "a"\n\n[sink]\nfile = "b"\n': (4, "write [[sink]], with two brackets"),
    "[stream]\nhorizon = 1\n[stream]\nname = 2\n": (3, "there is a section [stream] already; put its options into one"),
    "[clock]\ntick = 6h  # six hours\n": (2, 'write tick = "6h"'),
    "[clock]\nend = 2013-01-01 at noon\n": (2, 'write end = "2013-01-01 at noon"'),
    "[[query]]\nname = a\n": (2, 'write name = "a"'),
    "[stream]\nhorizon = 1 2\n": (2, "this is not valid TOML: "),
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_no_toml_is_said_in_other_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(text)
    line, words = SAID[text]
    with pytest.raises(ConfigurationError) as refusal:
        SpecFile(path)
    assert str(refusal.value).startswith(f"{path}:{line}: ")
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "value", ["1", "-1.5e3", "1_000", "true", "inf", "-nan", "0xff", "2013-01-01", "07:30:00", "2013-01-01 07:30:00Z"]
)
def test_what_toml_takes_is_never_said_to_be_a_text(tmp_path: Path, value: str) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(f"[stream]\nhorizon = {value}\n")
    assert "horizon" in SpecFile(path).content["stream"]
    assert _in_other_words(path.read_text().splitlines(), 2) is None


def test_one_section_for_a_query_is_said_to_be_two_brackets(write_spec) -> None:  # type: ignore[no-untyped-def]
    path = write_spec()
    whole = path.read_text()
    first = whole.index("[[query]]")
    rest = whole[first + 9 :]
    path.write_text(whole[:first] + "[query]" + rest[: rest.index("[[query]]")])
    with pytest.raises(ConfigurationError, match=r"is written \[\[query\]\], with two brackets"):
        load_spec(path)


@pytest.mark.parametrize("edges", ["[2, 1]", "[]", "[0, nan]", "{from = 2, to = 1, ratio = 2}"])
def test_an_option_is_named_once(tmp_path: Path, edges: str) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(spec_text({"name": "a", "kind": "histogram", "column": "x"}).rstrip() + f"\nedges = {edges}\n")
    with pytest.raises(ConfigurationError, match=r"\[\[query\]\] edges is refused: (log_)?edges "):
        load_spec(path)
