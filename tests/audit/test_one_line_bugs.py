"""`evertally audit` on copies of the package with a bug of one line: one of them here, all of them in `make audit`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from audit.one_line_bugs import BROKEN, BUGS, SOURCE, Bug, audited
from evertally.runtime import load_spec
from evertally.runtime.standing import standing

QUICKEST = next(bug for bug in BUGS if bug.name == "tree of 4 levels, Gaussian")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_it_can_be_planted_and_its_stream_can_be_built(bug: Bug, tmp_path: Path) -> None:
    file = tmp_path / bug.file
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCE / "evertally" / bug.file, file)
    before = file.read_text()
    bug.plant(tmp_path)
    assert file.read_text() != before
    spec = tmp_path / "visits.toml"
    spec.write_text(bug.spec)
    assert standing(load_spec(spec))


def test_the_short_audit_catches_it_and_breaks_nothing_else() -> None:
    found, product = audited(QUICKEST.spec, QUICKEST), audited(QUICKEST.spec, None)
    assert found.returncode == BROKEN, found.stdout + found.stderr
    assert "BROKEN" in found.stdout
    assert product.returncode in (0, 4), product.stdout + product.stderr
    assert "BROKEN" not in product.stdout
