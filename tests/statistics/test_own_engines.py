"""Noise processes and engines of somebody else: in Python, in a stream, in a spec, under the checks, not ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import evertally as et
from evertally import checks, kinds
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.linear import LinearEngine
from evertally.counting.processes import PROCESSES
from evertally.errors import ConfigurationError
from evertally.runtime import certificate, load_spec, plan
from evertally.statistics.own_engines import ENGINES
from spec_text import spec_text


def summed(charge: Any, setting: Any, source: Any) -> AccumulatingProcess:
    return AccumulatingProcess(
        charge, setting.change, horizon=setting.horizon, columns=setting.columns, source=source, lane="summed"
    )


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    et.register_process("summed", summed, proof="our report of 2026, lemma 3", pure=True)
    et.register_engine("all at once", lambda *parts: LinearEngine(lambda: summed(*parts)), proof="our report, lemma 4")
    yield
    del PROCESSES["summed"], ENGINES["all at once"]


NAMES = ["summed", "all at once"]


@pytest.mark.parametrize("name", NAMES)
def test_in_python_and_in_a_stream(name: str) -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=20, mechanism=name, key=et.simulation(1))
    assert counter.mechanism == name
    stream = et.Stream("s", guarantee=et.PureDP(1.0), horizon=20, key=et.simulation(1))
    visits = stream.add(et.Histogram, share=1, categories=["a", "b"], mechanism=name, max_window=3)
    visits.run([[1, 2]] * 5)
    assert set(visits.last(3).value) == {"a", "b"}
    again = et.restore(visits.snapshot(), key=et.simulation(1))
    assert again.step([3, 4]).value == visits.step([3, 4]).value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
def test_the_conformance_suite_takes_them(name: str, check: Any) -> None:
    check(
        checks.Subject(
            name=name,
            make=lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=12, mechanism=name, key=key),
            feed=lambda n: [t % 3 for t in range(n)],
            truth=lambda inputs: list(accumulate(inputs)),
            wrong_calls=["seven", 1.5],
            ticks=12,
            runs=200,
        )
    )


def test_a_process_answers_questions_about_columns_too() -> None:
    top = et.MaxSum(3, guarantee=et.PureDP(4.0), horizon=20, mechanism="summed", key=et.simulation(1))
    assert (top.mechanism, top.run([[1, 2, 3]] * 4).shape) == ("summed", (4,))


@pytest.mark.parametrize("name", NAMES)
def test_in_a_spec_and_labelled(name: str, tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(spec_text({"name": "all", "kind": "counter", "share": 1, "mechanism": name}))
    spec = load_spec(path)
    assert plan(spec).queries[0].mechanism == name
    [query] = certificate(spec)["queries"]
    assert "not ours: our report" in str(query)


def test_auto_takes_only_ours() -> None:
    # One tick: nothing has less noise than one draw, so the process would win if it took part.
    assert et.Counter(guarantee=et.PureDP(1.0), horizon=1).mechanism in ("tree", "honaker")
    assert "summed" not in [way.name for way in et.plan(et.Counter, guarantee=et.PureDP(1.0), horizon=9)]


@pytest.mark.parametrize(
    "name", ["auto", "sparse", "tree", "rebased", "intervals", "recompute", "meta", "sparse-gumbel", *NAMES, "", 7]
)
def test_names_that_are_taken(name: Any) -> None:
    with pytest.raises(ConfigurationError):
        et.register_process(name, summed, proof="somewhere")
    with pytest.raises(ConfigurationError):
        et.register_engine(name, summed, proof="somewhere")  # type: ignore[arg-type]


def test_a_proof_is_asked_for() -> None:
    for proof in ("", "  ", None):
        with pytest.raises(ConfigurationError, match="proof"):
            et.register_process("another", summed, proof=proof)  # type: ignore[arg-type]


def test_what_is_foreign_is_never_called_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it got in under one of our names."""
    monkeypatch.setitem(PROCESSES, "rebased", PROCESSES["summed"])
    kind = kinds.find("max_sum")
    assert kind is not None
    assert "not ours" in kind.mechanism_proof("rebased", "add_remove")


def test_a_record_that_looks_like_ours_takes_nothing_away() -> None:
    ours = kinds.find("counter")
    assert ours is not None
    kinds.forget_kind(replace(ours))
    assert kinds.find("counter") is ours
