"""Records of kinds: one name for one thing, proofs that exist, and answers that stand in one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from release_stream import released, spec_of_all_kinds
from visit_stream import WriteSpec, spec_writer

import evertally as et
from evertally.errors import ConfigurationError
from evertally.histogram.ways import NAMES
from evertally.kinds import AMOUNTS, OURS, Card, Kind, Query, find, forget_kind, is_ours, known, register_kind
from evertally.runtime import load_spec
from evertally.runtime.releases import unpacked
from evertally.runtime.sinks.parquet import release_schema, release_table
from evertally.runtime.spec import StreamSpec
from evertally.statistics.streaming import MECHANISMS

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
NEIGHBOURS = ("add_remove", "replace", "independent")
# They refuse one: what is counted has no value, or its ends are two columns.
USERS = ("retention", "period_users", "present_items")
WITHOUT_COLUMN = ("dynamic_count", *USERS, *(kind.name for kind in OURS if "columns" in kind.options.model_fields))
# words that mean other things elsewhere, too
ORDINARY = {"query", "min", "max", "sum", "components", "dashboard", "retention", "present"}
EACH = pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.name)


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    return spec_writer(tmp_path)


@pytest.fixture
def everything(write_spec: WriteSpec) -> StreamSpec:
    return spec_of_all_kinds(write_spec)


@EACH
def test_the_name_of_a_kind_is_that_of_its_class(kind: Kind) -> None:
    words = re.findall(r"[A-Z][a-z]*", kind.statistic.__name__)
    assert kind.name == "_".join(words).lower()
    homes = (et, et.graph, et.strings)
    assert [getattr(home, kind.statistic.__name__) for home in homes if hasattr(home, kind.statistic.__name__)] == [
        kind.statistic
    ]
    assert is_ours(kind)
    for spelling in kind.spellings:
        assert find(spelling) is kind


def test_every_spelling_is_one_stream(write_spec: WriteSpec) -> None:
    for kind in OURS:
        if kind.result.brings_labels or kind.name in ("counter", "histogram", "running_mean", *USERS):
            continue
        if kind.reads is AMOUNTS:  # their columns have no categories: test_value_kinds.py, test_value_quantile_kinds.py
            continue
        if len(kind.spellings) == 1 and (kind.records is not None or kind.name == "dashboard"):
            continue
        if kind.statistic.user_rule({}):  # their streams say whose an event is; see test_distinct_kinds.py
            continue
        if "watch" in kind.options.model_fields:  # it takes no categories; see test_sketch_kinds.py
            continue
        more = {"sum_quantile": "q = 0.5", "monotone_query": 'expression = {column = "north"}'}.get(kind.name, "")
        more = "k = 2" if "k" in kind.options.model_fields else more
        specs = [
            load_spec(
                write_spec(
                    ('kind = "histogram"', f'kind = "{spelling}"\n{more}'),
                    ("horizon = 48", "horizon = 48\nmax_events_per_tick = 9"),
                )
            )
            for spelling in kind.spellings
        ]
        assert {spec.queries[1].kind for spec in specs} == {kind.name}
        assert len({spec.digest for spec in specs}) == 1


def test_the_digest_is_the_one_it_has_always_been(write_spec: WriteSpec) -> None:
    """Of the kinds that there were before things could come and go."""
    assert (
        spec_of_all_kinds(write_spec, present="").digest
        == "4c6334fe3dde2ecaef7b262f3f99e4b1699646a80abc8eeff2caf6adeeff6d66"
    )


def test_nothing_above_the_room_knows_a_kind_by_name() -> None:
    spellings = "|".join(sorted({s for kind in OURS for s in kind.spellings} - ORDINARY, key=len)[::-1])
    named = re.compile(rf"""["'`](?:{spellings})["'`]""")
    asked = re.compile(r"\.kind (?:[!=]==?|(?:not )?in) [^a-z]")
    source = ROOT / "src" / "evertally"
    files = [path for room in ("runtime", "service", "cli") for path in (source / room).rglob("*.*")]
    readers = [path for path in files if path.suffix in (".py", ".js", ".css")]
    assert len(readers) > 60
    for path in readers:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            # Examples, and lines of a spec that is written (`evertally init`).
            example = re.search(r"""^\s*(?:>>>|\.\.\.)|(?:^\s*|["'])kind = ["']""", line)
            assert example or not (named.search(line) or asked.search(line)), f"{path}:{number}: {line}"


@EACH
def test_every_mechanism_has_a_proof_that_exists(kind: Kind) -> None:
    if "meta" in kind.proofs:
        assert set(kind.proofs) == (set(MECHANISMS) if "sparse-gumbel" in kind.proofs else {"tree", "meta"})
    elif kind.rate_with is None:
        assert set(kind.proofs) == set(NAMES)
    cited = [proof.under("add_remove") for proof in kind.proofs.values()]
    cited += [kind.proof_of_change(neighbours, unit) for neighbours in NEIGHBOURS for unit in ("event", "user")]
    for text in cited:
        found = re.findall(r"([a-z][a-z-]+) (\d[\d.]*(?:(?:, | and )\d[\d.]*)*)", text)
        assert found
        for name, numbers in found:
            headings = set(re.findall(r"(?m)^#+ (\d[\d.]*?)\.? ", (THEORY / f"{name}.md").read_text()))
            items = set(re.findall(r"(?m)^(\d+)\. ", (THEORY / f"{name}.md").read_text()))
            for number in re.findall(r"\d[\d.]*", numbers):
                section, _, item = number.rpartition(".")
                assert number in headings or (section in headings and item in items), (name, number)


def test_a_mechanism_without_a_proof_of_ours_says_so() -> None:
    counter = find("counter")
    assert counter is not None
    assert "not ours" in counter.mechanism_proof("my-own-noise", "add_remove")


def test_the_number_of_rows_is_the_number_of_rows(everything: StreamSpec) -> None:
    """A release has as many as its record says, wherever they are counted: columns, rows of files."""
    *_, (kept, _) = released(everything, 3)
    for query, columns in unpacked(everything, kept):
        said = query.result.numbers(query.parameters)
        shown = len(columns["value"]) if isinstance(columns["value"], list) else 1
        assert said is None or (shown <= said if query.result.brings_labels else shown == said)
        assert query.rows == said if said is not None else query.rows >= 1
        assert shown == (1 if query.categories is None else len(query.categories)) or query.result.brings_labels
        alone = replace(kept, payloads={query.name: kept.payloads[query.name]})
        assert release_table(everything, release_schema(everything), alone).num_rows == shown
    assert everything.rows == sum(query.rows for query in everything.queries)


def test_the_last_tick_is_the_earlier_of_two(write_spec: WriteSpec) -> None:
    end = ('tick = "1h"', 'tick = "1h"\nend = 2013-01-02T00:00:00Z')
    assert load_spec(write_spec()).last_tick == 48
    assert load_spec(write_spec(end)).last_tick == 24
    assert load_spec(write_spec(end, ("horizon = 48\n", ""))).last_tick == 24
    assert load_spec(write_spec(("horizon = 48\n", ""))).last_tick is None


@EACH
def test_words_are_whole_sentences_about_the_column(kind: Kind) -> None:
    options: Mapping[str, Any] = {"period": 7, "k": 3, "q": "1/3", "threshold": 5, "above": 9}
    options = {**options, "windows": [1, 7]}
    words = kind.card.shown("ward", options)
    assert "ward" in words or kind.name in WITHOUT_COLUMN
    assert "{" not in words
    if kind.options.model_fields["column"].is_required() is False:
        assert "None" not in kind.card.shown(None, options)
    if kind.card.together:
        assert "ward" in kind.card.shown("ward", options, several=True)
        assert kind.card.order(options) == pytest.approx(1 / 3)


def test_braces_in_a_column_are_only_text() -> None:
    assert Card("figure", "Sum of {column}").shown("{k}{0}{column.__class__}", {}) == (
        "Sum of {k}{0}{column.__class__}"
    )


def test_what_may_not_be_registered() -> None:
    class Counter:
        """Another counter."""

    class Leader:
        """A name that is a spelling already."""

    counter = find("counter")
    assert counter is not None
    for statistic in (Counter, Leader):
        with pytest.raises(ConfigurationError, match="already"):
            register_kind(replace(counter, statistic=statistic))
    with pytest.raises(ConfigurationError, match="record"):
        register_kind("counter")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="inherit"):
        register_kind(replace(counter, options=dict))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="stays"):
        forget_kind(counter)
    assert known() == OURS
    assert all(issubclass(kind.options, Query) for kind in known())
