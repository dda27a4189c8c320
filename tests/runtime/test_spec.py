"""Every mistake in a spec is refused before anything else happens, at its line, with a remedy."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from visit_stream import COLUMN_QUERIES, SPEC, WITH_COLUMN_QUERIES, WriteSpec

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.runtime import load_spec, plan, run
from evertally.runtime.spec_options import KINDS, SELECTION


def test_a_good_spec(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec())
    assert spec.name == "visits"
    assert spec.horizon == 48
    assert spec.guarantee == ZCDP(rho=0.5)
    assert spec.key_file == tmp_path / "visits.key"
    assert [query.share for query in spec.queries] == [Fraction(1, 4), Fraction(3, 4)]
    assert spec.queries[1].parameters == {"categories": ["north", "south"], "other": "elsewhere"}
    assert spec.columns() == ["time", "ward"]
    assert (spec.neighbours, spec.unit, spec.beta) == ("add_remove", "event", 0.05)


def test_forms_of_the_guarantee(write_spec: WriteSpec) -> None:
    assert load_spec(write_spec(("rho = 0.5", "epsilon = 2"))).guarantee == PureDP(epsilon=2)
    both = load_spec(write_spec(("rho = 0.5", "epsilon = 1.0\ndelta = 1e-9")))
    assert both.guarantee == ApproxDP(epsilon=1.0, delta=1e-9)


def test_shares_are_read_as_written_and_are_equal_when_left_out(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(("share = 0.25", "share = 0.1"), ("share = 0.75", 'share = "9/10"')))
    assert [query.share for query in spec.queries] == [Fraction(1, 10), Fraction(9, 10)]
    spec = load_spec(write_spec(("share = 0.25\n", ""), ("share = 0.75\n", "")))
    assert [query.share for query in spec.queries] == [Fraction(1, 2), Fraction(1, 2)]


def test_end_gives_the_horizon(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(("horizon = 48\n", ""), ('tick = "1h"', 'tick = "1h"\nend = 2013-01-02')))
    assert spec.horizon == spec.clock.ticks == 24
    assert load_spec(write_spec(("horizon = 48\n", ""))).horizon is None


def test_the_digest_covers_what_is_public_and_not_the_places(write_spec: WriteSpec) -> None:
    digest = load_spec(write_spec()).digest
    same = [
        ("visits.key", "other.key"),
        ("visits.state", "other.state"),
        ("visits.jsonl", "other.csv"),
        ("# ", "# "),
    ][:3]
    for change in [*same, ("[stream]", "# a remark\n[stream]"), ('tick = "1h"', "tick = '60m'")]:
        assert load_spec(write_spec(change)).digest == digest
    different = [
        ('name = "visits"', 'name = "calls"'),
        ("horizon = 48", "horizon = 49"),
        ("rho = 0.5", "rho = 0.6"),
        ("2013-01-01T00:00:00Z", "2013-01-01T01:00:00Z"),
        ('"north", "south"', '"south", "north"'),
        ('column = "ward"', 'column = "room"'),
        ("share = 0.25", "share = 0.2"),
        ('file = "visits.jsonl"', 'file = "visits.jsonl"\nbeta = 0.1'),
        ("horizon = 48", "horizon = 48\nmax_events_per_tick = 7"),
        ("horizon = 48", "horizon = 48\nmax_events_per_tick = 8"),
    ]
    digests = {load_spec(write_spec(change)).digest for change in different}
    assert len(digests) == len(different)
    assert digest not in digests


LINE_OF = {line: number for number, line in reversed(list(enumerate(SPEC.splitlines(), 1)))}

MISTAKES = [
    # (text, its replacement, the line that is blamed, words of the message)
    ("horizon = 48", "horizon = 0", "horizon = 48", "at least 1"),
    ("horizon = 48", 'horizon = "48"', "horizon = 48", "integer"),
    ("horizon = 48", "horizn = 48", "horizon = 48", "Did you mean 'horizon'"),
    ("horizon = 48", "colour = 1", "horizon = 48", "It has: name, horizon"),
    ('name = "visits"\n', "", "[stream]", "needs 'name'"),
    ('name = "visits"', 'name = "a b"', 'name = "visits"', "letters"),
    ("horizon = 48", 'neighbours = "all"', "horizon = 48", "'add_remove'"),
    ("horizon = 48", 'unit = "user"', "horizon = 48", "needs max_events_per_user"),
    ("horizon = 48", "max_events_per_user = 3", "horizon = 48", 'needs unit = "user"'),
    ("rho = 0.5", "rho = -1", "rho = 0.5", "rho"),
    ("rho = 0.5", "rho = true", "rho = 0.5", "number"),
    ("rho = 0.5", "rho = 0.5\nepsilon = 1", "[guarantee]", "exactly one of"),
    ("rho = 0.5", "delta = 1e-9", "[guarantee]", "exactly one of"),
    ("rho = 0.5", "epsilon = 1\ndelta = 2", "rho = 0.5", "delta"),
    ("rho = 0.5\n", "", "[guarantee]", "exactly one of"),
    ('tick = "1h"', 'tick = "1 hour"', 'tick = "1h"', '"15m"'),
    ('tick = "1h"', "tick = 3600", 'tick = "1h"', '"15m"'),
    ("start = 2013-01-01T00:00:00Z", "start = 0", 'tick = "1h"', "positive integer"),
    ("start = 2013-01-01T00:00:00Z", "start = 1.5", "start = 2013-01-01T00:00:00Z", "a time such as"),
    ("start = 2013-01-01T00:00:00Z", 'start = "today"', "start = 2013-01-01T00:00:00Z", "a time such as"),
    ('tick = "1h"', 'tick = "1h"\nend = 2013-01-01T00:30:00Z', "", "tick boundary"),
    ('tick = "1h"', 'tick = "1h"\nend = 2012-01-01', "", "after start"),
    ('tick = "1h"', 'tick = "1h"\nend = 2013-02-01', "", "raise the horizon"),
    ('column = "time"\n', "", "[clock]", "needs 'column'"),
    ('file = "visits.key"', "file = 7", 'file = "visits.key"', "text"),
    ('file = "visits.jsonl"', 'file = "visits.xlsx"', 'file = "visits.jsonl"', ".csv"),
    ('file = "visits.jsonl"', 'file = "visits.jsonl"\nbeta = 1', "", "between 0 and 1"),
    ('file = "visits.state"', 'file = "visits.key"', 'file = "visits.state"', "different files"),
    ('kind = "counter"', 'kind = "sum"', 'kind = "counter"', "'counter', 'histogram', 'mean'"),
    ('kind = "counter"\n', "", "[[query]]", "needs 'kind'"),
    ("share = 0.25", "share = 0", "share = 0.25", "above 0"),
    ("share = 0.25", 'share = "a third"', "share = 0.25", "fraction"),
    ("share = 0.25", "share = 0.26", "share = 0.75", "add up to 1.01"),
    ("share = 0.75\n", "", 'name = "ward"', "needs 'share'"),
    ("share = 0.25", "share = 0.25\nmax_weight = 5", "", "needs a column"),
    ("share = 0.25", 'categories = ["a"]', "share = 0.25", "no option 'categories'"),
    ('column = "ward"\n', "", 'name = "ward"', "needs 'column' for a histogram"),
    ('categories = ["north", "south"]\n', "", 'name = "ward"', "needs 'categories'"),
    (
        'categories = ["north", "south"]',
        "categories = []",
        'categories = ["north", "south"]',
        "list of labels",
    ),
    ('other = "elsewhere"', "other = 1.5", 'other = "elsewhere"', "label"),
    ('name = "ward"', 'name = "all"', 'name = "ward"', "is taken"),
    ('kind = "histogram"', 'kind = "mean"', 'categories = ["north", "south"]', "no option 'categories'"),
    ("share = 0.25", "share = 0.25\nlargest = 9", "", 'goes with mechanism = "sparse"'),
    ('column = "ward"', 'column = "ward"\nsplit = ["1/3", "1/3", "1/3"]', "", 'goes with mechanism = "sparse"'),
    ('other = "elsewhere"', 'signed = true\nmechanism = "sparse"', 'other = "elsewhere"', "only grow"),
    ('kind = "histogram"', 'kind = "top"', 'name = "ward"', "needs 'k' for a top"),
    ('kind = "histogram"', 'kind = "leaders"\nk = 0', "", "at least 1"),
    ('kind = "histogram"', 'kind = "quantile"\nq = 0', "", "above 0"),
    ('kind = "histogram"', 'kind = "quantile"\nq = "half"', "", "fraction"),
    ('kind = "histogram"', 'kind = "max"\nsplit = ["1/3", "1/3"]', "", "three shares"),
    ('kind = "histogram"', 'kind = "max"\nsplit = ["1/3", "1/3", "1/2"]', "", "add up to 1"),
    ('kind = "histogram"', 'kind = "max"\nbeta = 1', "", "between 0 and 1"),
    ('kind = "histogram"', 'kind = "max"\nsigned = true', "", "no option 'signed'"),
    ('kind = "histogram"', 'kind = "max"', "[stream]", "needs 'max_events_per_tick' for a max"),
    ('kind = "histogram"', 'kind = "query"', 'name = "ward"', "either 'expression' (one) or 'expressions'"),
    ('kind = "histogram"', 'kind = "query"\nexpression = "max"', "", "must be a table"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {columm = 1}', "", "not the JSON form"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {column = 1.5}', "", "not the JSON form"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {column = -1}', "", "from 0 on"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {constant = "0", plus = [1]}', "", "not the JSON form"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {ranks = [5, 5], of = [{column = 0}]}', "", "do not exist"),
    ('kind = "histogram"', 'kind = "query"\nexpressions = {}', "", "table of names"),
    ('kind = "histogram"', 'kind = "query"\nexpressions = {"a b" = {column = 0}}', "", "letters"),
    ("rho = 0.5", 'rho = 0.5\nadversary = "nobody"', "", "'adaptive', 'oblivious'"),
    ("rho = 0.5", 'adversary = "oblivious"', "[guarantee]", "exactly one of"),
    ('kind = "histogram"', 'kind = "unknown-histogram"', 'categories = ["north", "south"]', "no option 'categories'"),
    ('kind = "counter"', 'kind = "unknown-histogram"', "[[query]]", "needs 'column' for an unknown-histogram"),
    ('kind = "counter"', 'kind = "unknown-histogram"\ncolumn = "ward"', 'kind = "counter"', "epsilon and delta"),
    ('kind = "counter"', 'kind = "unknown-top"\ncolumn = "ward"', "[[query]]", "needs 'k'"),
    ('kind = "counter"', 'kind = "unknown-histogram"\nthreshold = "low"', "", "'sum', 'per_tick', 'paper'"),
    ('kind = "counter"', 'kind = "unknown-histogram"\nsticky = 1', "", "true or false"),
    ('kind = "counter"', 'kind = "unknown-histogram"\ncolumn = "a"\nkbar = 5', "+2", 'goes with mechanism = "meta"'),
    (
        'kind = "counter"',
        'kind = "unknown-histogram"\ncolumn = "a"\nsticky = true\nmechanism = "meta"',
        "+2",
        'goes with another mechanism than "meta"',
    ),
    ('kind = "histogram"', 'kind = "streaming-top"', 'name = "ward"', "needs 'k'"),
    ('kind = "histogram"', 'kind = "streaming-top"\nswitches = -1', "", "at least 0"),
    ('kind = "histogram"', 'kind = "streaming-top"\naccounting = "best"', "", "'adaptive', 'paper'"),
    ('kind = "histogram"', 'kind = "streaming-top"\nk = 1\nmechanism = "meta"', "[stream]", "'max_events_per_tick'"),
    ('kind = "histogram"', 'kind = "streaming-top"\nk = 1\neta = 3\nmechanism = "meta"', "+2", "another mechanism"),
    ("[state]", "[sate]", "[state]", ""),
    ("[stream]", "[stream", "[stream]", "TOML"),
]


@pytest.mark.parametrize(("old", "new", "blamed", "words"), MISTAKES)
def test_mistakes_are_refused_at_their_line(write_spec: WriteSpec, old: str, new: str, blamed: str, words: str) -> None:
    path = write_spec((old, new))
    with pytest.raises(ConfigurationError) as refusal:
        load_spec(path)
    text = str(refusal.value)
    assert words in text
    assert str(path) in text
    if old == "[state]":
        assert "[state] is missing" in text
        return
    line = int(re.match(rf"{re.escape(str(path))}:(\d+): ", text)[1])  # type: ignore[index]
    added = blamed.startswith("+") or not blamed  # a line below the old one
    expected = LINE_OF[old] + int(blamed or 1) if added else LINE_OF[blamed]
    if blamed == 'name = "ward"' and old != blamed:
        expected = [n for n, text_line in enumerate(path.read_text().splitlines(), 1) if text_line == "[[query]]"][1]
    elif not added and LINE_OF[blamed] > LINE_OF.get(old.rstrip("\n"), 99):
        expected += new.count("\n") - old.count("\n")
    if new.startswith("epsilon = 1\ndelta"):
        expected += 1
    assert line == expected


def test_sections_that_do_not_exist(write_spec: WriteSpec) -> None:
    path = write_spec(append='\n[outputs]\nfile = "x"\n')
    with pytest.raises(ConfigurationError, match=r"no section \[outputs\].*'output'"):
        load_spec(path)
    with pytest.raises(ConfigurationError, match="at least one"):
        load_spec(_without_queries(path))


def _without_queries(path: Path) -> Path:
    path.write_text(SPEC[: SPEC.index("[[query]]")])
    return path


def test_a_missing_or_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the spec"):
        load_spec(tmp_path / "nothing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        load_spec(tmp_path / "binary.toml")


def test_the_documented_spec_is_a_good_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    (tmp_path / "documented.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    spec = load_spec(tmp_path / "documented.toml")
    assert [query.kind for query in spec.queries] == ["counter", "counter", "histogram", "mean"]
    assert sum(query.share for query in spec.queries) == 1


def test_queries_on_column_sums(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES))
    assert spec.max_events_per_tick == 4
    assert [query.kind for query in spec.queries[2:]] == ["max", "leader", "leaders", "query", "counter"]
    assert spec.queries[5].parameters["expressions"]["south"] == {"column": "south"}
    changed = COLUMN_QUERIES.replace('south = {column = "south"}', 'south = {column = "north"}')
    assert load_spec(write_spec(*WITH_COLUMN_QUERIES, append=changed)).digest != spec.digest


def test_a_quantile_is_read_as_written(write_spec: WriteSpec) -> None:
    for q, read in (("0.07", "7/100"), ('"1/3"', "1/3"), ("1", "1")):
        change = ('kind = "histogram"', f'kind = "quantile"\nq = {q}')
        spec = load_spec(write_spec(change, ("horizon = 48", "max_events_per_tick = 1")))
        assert spec.queries[1].parameters["q"] == read


def test_the_documented_queries_on_column_sums_run(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    path = tmp_path / "wards.toml"
    path.write_text(page.split("```toml\n")[2].split("```")[0])
    spec = load_spec(path)
    assert {query.kind for query in spec.queries} == set(KINDS) - {"histogram", "mean", "min", *SELECTION}
    assert len(plan(spec).queries) == len(spec.queries)
    events = "".join(
        f"2013-01-0{1 + i // 40}T{i % 24:02d}:00:00Z,{('north', 'south')[i % 3 // 2]}\n" for i in range(200)
    )
    (tmp_path / "events.csv").write_text("time,ward\n" + events)
    run(spec, tmp_path / "events.csv")
    assert len((tmp_path / "wards.jsonl").read_text().splitlines()) == 168 * (1 + 1 + 2 + 1 + 2 + 3 + 1)


def test_the_documented_selections_run(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    path = tmp_path / "searches.toml"
    path.write_text(page.split("```toml\n")[3].split("```")[0])
    spec = load_spec(path)
    assert {query.kind for query in spec.queries} == set(SELECTION)
    found = {query.name: query.discovery for query in plan(spec).queries}
    assert found["words"] is not None
    texts = ["the weather", "weather in Oslo", "cheap flights", "the news", "weather", "maps"]
    with open(tmp_path / "events.jsonl", "w") as file:
        for i in range(20_000):
            words = [*texts[i % 6].split(), f"word {i}"]
            record = {"time": f"2013-01-01T{i % 24:02d}:00:00Z", "words": words, "country": "no" if i % 3 else "se"}
            file.write(json.dumps(record) + "\n")
    run(spec, tmp_path / "events.jsonl", until="2013-01-02")
    rows = [json.loads(line) for line in (tmp_path / "searches.jsonl").read_text().splitlines()]
    last = {(row["query"], row["category"]) for row in rows if row["tick"] == 24}
    assert {("words", "weather"), ("words", "the"), ("tags", "weather"), ("countries", "no")} <= last
    assert not any("word " in row["category"] for row in rows)
