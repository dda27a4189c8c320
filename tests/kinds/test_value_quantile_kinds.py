"""Specs with quantiles and histograms of values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from visit_stream import WriteSpec, spec_writer

import evertally as et
from evertally.errors import ConfigurationError
from evertally.kinds.registry import find
from evertally.runtime.spec import load_spec
from spec_text import queries_text

RUN: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 3, "key": et.simulation(1)}
EDGES = {"from": 1, "to": 100, "ratio": 1.5}


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    return spec_writer(tmp_path)


def spec_with(write_spec: WriteSpec, **query: Any) -> Any:
    text = queries_text({"name": "stays", "share": 0.01, "column": "minutes", **query})
    return load_spec(write_spec(("share = 0.75", "share = 0.5"), append=text))


@pytest.mark.parametrize("kind", ["value_quantile", "value_histogram"])
def test_both_spellings_are_one_stream(write_spec: WriteSpec, kind: str) -> None:
    digests = {spec_with(write_spec, kind=k, edges=EDGES).digest for k in (kind, kind.replace("_", "-"))}
    assert len(digests) == 1


def test_categories_are_shares_and_bins(write_spec: WriteSpec) -> None:
    assert spec_with(write_spec, kind="value-quantile", bits=16).queries[-1].categories == ["0.5", "0.95", "0.99"]
    some = spec_with(write_spec, kind="value-quantile", edges=[0, 1], q=[0.25, 1], every=24).queries[-1]
    assert some.categories == ["0.25", "1.0"]
    bins = spec_with(write_spec, kind="value-histogram", edges=[0, 2.5, 10], outside="cells").queries[-1]
    assert bins.categories == ["<= 0", "0 to 2.5", "2.5 to 10", "> 10"]
    same = spec_with(write_spec, kind="histogram", edges=[0, 2.5, 10], outside="cells").queries[-1]
    assert same.categories == bins.categories
    assert [column.reads.use for column in same.columns] == ["amounts"]
    labelled = spec_with(write_spec, kind="histogram", categories=["a"]).queries[-1]
    assert [column.reads.use for column in labelled.columns] == ["labels"]
    record = find("value-quantile")
    assert record is not None
    assert list(record.statistic(edges=[0, 1], q=[0.25, 1], **RUN).step([]).value) == [0.25, 1.0]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"kind": "value-quantile"}, "edges"),
        ({"kind": "value-quantile", "edges": [0, 1], "bits": 8}, "not both"),
        ({"kind": "value-quantile", "edges": [1, 0]}, "each above"),
        ({"kind": "value-quantile", "edges": {"from": 1}}, "ratio"),
        ({"kind": "value-quantile", "edges": [0, 1], "q": [0]}, "share"),
        ({"kind": "value-quantile", "edges": [0, 1], "q": []}, "list of shares"),
        ({"kind": "value-quantile", "edges": [0, 1], "outside": "x"}, "outside"),
        ({"kind": "value-histogram"}, "edges"),
        ({"kind": "histogram"}, "needs 'categories' .* or 'edges'"),
        ({"kind": "histogram", "edges": [0, 1], "categories": ["a"]}, "categories or edges, not both"),
        ({"kind": "histogram", "edges": [1, 0]}, "each above"),
        ({"kind": "histogram", "edges": [0, 1], "other": "rest"}, "other goes with categories"),
        ({"kind": "histogram", "edges": [0, 1], "max_weight": 3}, "max_weight goes with categories"),
        ({"kind": "histogram", "categories": ["a"], "outside": "cells"}, "outside goes with edges"),
    ],
)
def test_refused(write_spec: WriteSpec, query: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        spec_with(write_spec, **query)
