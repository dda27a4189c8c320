"""Workloads in a spec: planned, certified, run and shown, and refused with their line."""

from __future__ import annotations

from pathlib import Path

import pytest
from release_stream import released
from typer.testing import CliRunner
from visit_stream import WriteSpec, spec_writer

import evertally as et
from evertally.cli.app import app
from evertally.errors import ConfigurationError
from evertally.runtime import load_spec, plan
from evertally.runtime.certificate import certificate
from spec_text import queries_text


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    return spec_writer(tmp_path)


_SMALLER = (("share = 0.25", "share = 0.2"), ("share = 0.75", "share = 0.2"))
_WEIGHED = queries_text(
    {"name": "day", "kind": "counter", "share": 0.2, "workload": {"window": 24}},
    {
        "name": "fresh",
        "kind": "histogram",
        "share": 0.2,
        "column": "ward",
        "categories": ["north", "south"],
        "workload": {"decay": "0.90"},
    },
    {
        "name": "late",
        "kind": "counter",
        "share": 0.2,
        "column": "minutes",
        "max_weight": 9,
        "workload": {"weights": [1] * 24 + [2] * 24},
    },
)


def test_a_stream_of_workloads(write_spec: WriteSpec) -> None:
    path = write_spec(*_SMALLER, append=_WEIGHED)
    spec = load_spec(path)
    assert [row.mechanism for row in plan(spec).queries] == ["bank", "bank", "root", "bank", "bank"]
    filed = {query["name"]: query for query in certificate(spec)["queries"]}
    assert filed["day"]["in_plain_words"] == "Sum of events, over the last 24 ticks"
    assert filed["fresh"]["in_plain_words"] == "Events by ward, each tick back counting 0.9 times as much"
    assert filed["late"]["in_plain_words"] == "Sum of minutes, ticks weighed by declared numbers"
    assert filed["late"]["proved_in"]["built_on"] == "factorization-counting 6.10, additions 11"
    assert "built_on" not in filed["all"]["proved_in"]
    for tick, (_, releases) in enumerate(released(spec, 3), 1):
        assert isinstance(releases["day"].value, int)
        assert list(releases["fresh"].value) == ["north", "south"]
        assert releases["late"].tick == tick
    shown = CliRunner().invoke(app, ["plan", str(path)])
    assert shown.exit_code == 0
    assert "root" in shown.output


def test_one_stream_has_one_spelling(write_spec: WriteSpec) -> None:
    digests = {
        load_spec(write_spec(*_SMALLER, append=_WEIGHED.replace('"0.90"', spelling))).digest
        for spelling in ('"0.9"', '"9/10"', '"0.90"')
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("{decay = 0.9}", "exact number"),
        ('{decay = "0.9", resolution = "1/16"}', "whole numbers"),
        ("{weights = [1, -1]}", "Negative weights"),
        ("{weights = [1, 2]}", "weights for 2 ticks"),
        ("{toeplitz = [0, 1]}", "above 0"),
        ('"0.9"', "must be a table"),
        ("{window = 24, decay = 2}", "workload is None"),
    ],
)
def test_refused_with_its_line(write_spec: WriteSpec, workload: str, said: str) -> None:
    path = write_spec(*_SMALLER, append=_WEIGHED.replace("{window = 24}", workload))
    with pytest.raises(ConfigurationError, match=said) as refused:
        plan(load_spec(path))
    assert f"{path.name}:" in str(refused.value)


def test_sparse_counts_have_none(write_spec: WriteSpec) -> None:
    path = write_spec(*_SMALLER, append=_WEIGHED.replace("{window = 24}", '{window = 24}\nmechanism = "sparse"'))
    with pytest.raises(ConfigurationError, match="workload of a counter goes with another mechanism"):
        load_spec(path)


def test_a_kind_reads_what_the_class_reads() -> None:
    assert et.Counter(workload={"window": 3}, guarantee=et.ZCDP(1), horizon=5, key=et.simulation(1)).workload == (
        et.workloads.Window(3)
    )
