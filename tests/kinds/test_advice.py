"""What a plan tells the writer of a spec: where a counter would cut fractions."""

from __future__ import annotations

from pathlib import Path

import pytest
from visit_stream import WriteSpec, spec_writer

from evertally.runtime.plan import plan
from evertally.runtime.spec import load_spec
from spec_text import queries_text

MINUTES = {"name": "minutes", "kind": "counter", "share": 0.01, "column": "minutes", "max_weight": 120}
SAID = "minutes: a counter counts: fractions of 'minutes' are cut towards zero"


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    return spec_writer(tmp_path)


@pytest.mark.parametrize(("declared", "said"), [(None, True), ("number", True), ("integer", False)])
def test_fractions_of_a_counted_column(write_spec: WriteSpec, declared: str | None, said: bool) -> None:
    columns = f'\n[events]\ntime = "time"\nward = "text"\nminutes = "{declared}"\n' if declared else ""
    spec = load_spec(write_spec(("share = 0.75", "share = 0.5"), append=columns + queries_text(MINUTES)))
    advice = plan(spec).advice
    assert len(advice) == said
    assert all(line.startswith(SAID) for line in advice)


def test_counted_events_have_no_fractions(write_spec: WriteSpec) -> None:
    assert plan(load_spec(write_spec())).advice == ()
