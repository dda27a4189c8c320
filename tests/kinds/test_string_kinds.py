"""Kinds of strings: from the words of a spec to counts of words in the letters of a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kind_runs import QUIET, by_hand, hour, lines_of, values, with_more, written
from visit_stream import save

from evertally.errors import ConfigurationError
from evertally.kinds import OURS, find
from evertally.kinds.string_tables import StringQuery
from evertally.kinds.strings import records
from evertally.noise import Key
from evertally.runtime import certificate, plan, run
from made_keys import save_bound
from spec_text import ALL

PAGES = {"column": "page", "alphabet": ["home", "cart", "pay"]}
MINE = {**PAGES, "sequence": "user", "by": "visitor"}
# By name: the table of the spec; Python says the same, without the columns.
QUERIES: dict[str, dict[str, Any]] = {
    "pairs": {"kind": "substring_counts", **PAGES, "sequence": "stream", "longest": 2},
    "moves": {"kind": "substring_counts", **MINE, "longest": 3, "show": [["cart", "pay"], "home cart pay"], "gap": 1},
    "twos": {"kind": "substring_counts", **PAGES, "sequence": "stream", "longest": 2, "only_longest": True},
    "buyers": {"kind": "substring_counts", **MINE, "words": [["home", "cart"], "pay"], "once_per_user": True},
    "often": {"kind": "frequent_substrings", **MINE, "longest": 3, "above": 2, "most": 100},
    "funnel": {"kind": "episode_counts", **MINE, "words": ["home pay", "home cart pay"], "other": "home"},
    "letters": {"kind": "episode_counts", "column": "key", "alphabet": "ab", "sequence": "stream", "longest": 2},
}
SPEC = [{"name": name, **table} for name, table in QUERIES.items()]
# (tick, visitor, page, key)
CLICKS: list[tuple[int, Any, Any, Any]] = [
    (1, "ann", "home", "a"),
    (1, "bob", "home", "b"),
    (1, "ann", "cart", "a"),
    (2, "ann", "pay", "b"),
    (2, "bob", "cart", "b"),
    (2, "ann", "home", "a"),
    (4, "bob", "pay", "?"),
    (4, "ann", "cart", "b"),
]
UNTIL = hour(5)


def rows(clicks: list[tuple[int, Any, Any, Any]] = CLICKS) -> list[dict[str, Any]]:
    return [
        {"time": hour(tick, minute), "visitor": who, "page": page, "key": key}
        for minute, (tick, who, page, key) in enumerate(clicks)
    ]


def test_every_kind_of_string_is_here() -> None:
    strings = {kind.name for kind in OURS if issubclass(kind.options, StringQuery)}
    assert {table["kind"] for table in QUERIES.values()} == strings


def total(found: list[dict[str, int]], word: str) -> list[int]:
    return [counts.get(word, 0) for counts in found]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_kind_counts_what_a_file_holds(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, *SPEC)
    assert len(plan(spec).queries) == len(SPEC)
    run(spec, save(rows(), tmp_path / f"clicks{suffix}"), until=UNTIL)
    pairs = values(spec, "pairs")
    assert list(pairs[0]) == [*PAGES["alphabet"], *(f"{a} {b}" for a in PAGES["alphabet"] for b in PAGES["alphabet"])]
    # home home cart | pay cart home | | pay cart: one sequence of all visitors
    assert total(pairs, "home") == [2, 3, 3, 3]
    assert total(pairs, "home home") == [1, 1, 1, 1]
    assert total(pairs, "cart pay") == [0, 1, 1, 1]
    assert total(pairs, "pay cart") == [0, 1, 1, 2]
    assert "home" not in values(spec, "twos")[0]
    assert total(values(spec, "twos"), "pay cart") == [0, 1, 1, 2]
    # ann: home cart | pay home | | cart. bob: home | cart | | pay, which is two ticks after his cart
    assert values(spec, "moves") == [
        {"cart pay": 0, "home cart pay": 0},
        {"cart pay": 1, "home cart pay": 1},
        {"cart pay": 1, "home cart pay": 1},
        {"cart pay": 1, "home cart pay": 1},
    ]
    assert values(spec, "buyers") == [
        {"home cart": 1, "pay": 0},
        {"home cart": 2, "pay": 1},
        {"home cart": 2, "pay": 1},
        {"home cart": 2, "pay": 2},
    ]
    often = values(spec, "often")
    assert often[0] == {"home": 2}
    assert often[3] == {"cart": 3, "home": 3, "home cart": 3, "home cart pay": 2, "cart pay": 2, "pay": 2}
    assert values(spec, "funnel")[3] == {"home pay": 2, "home cart pay": 2}
    # a b a | b b a | | (null) b: minimal occurrences end at each letter that a first one came before
    assert values(spec, "letters")[1] == {"a": 3, "b": 3, "aa": 2, "ab": 2, "ba": 2, "bb": 2}


def test_found_words_come_largest_first(tmp_path: Path) -> None:
    spec = with_more(
        written(tmp_path, SPEC[4]), '\n[[sink]]\nfile = "visits.csv"\n\n[[sink]]\nfile = "visits.parquet"\n'
    )
    run(spec, save(rows(), tmp_path / "clicks.csv"), until=UNTIL)
    assert spec.output_file is not None
    lines = lines_of(spec.output_file)
    assert [(row["category"], row["value"]) for row in lines if row["tick"] == 4] == [
        ("cart", 3),
        ("home", 3),
        ("home cart", 3),
        ("cart pay", 2),
        ("home cart pay", 2),
        ("pay", 2),
    ]
    table = pq.read_table(tmp_path / "visits.parquet").to_pylist()
    assert [(row["category"], row["value"]) for row in table] == [(row["category"], row["value"]) for row in lines]
    assert len((tmp_path / "visits.csv").read_text().splitlines()) == 1 + len(lines)
    assert plan(spec).queries[0].error_bound is not None


def test_a_run_that_is_cut_in_two_goes_on(tmp_path: Path) -> None:
    """Words go over the cut: the last letters of each sequence are kept."""
    found = []
    for parts in ([CLICKS], [CLICKS[:3], CLICKS[3:]]):
        folder = tmp_path / f"in-{len(parts)}"
        folder.mkdir()
        spec = written(folder, *SPEC, guarantee=QUIET)
        if found:  # the same key: the same noise
            save_bound(Key.load(tmp_path / "in-1" / "visits.key"), spec.path)
        for number, clicks in enumerate(parts):
            until = UNTIL if clicks is parts[-1] else hour(2)
            run(spec, save(rows(clicks), folder / f"clicks-{number}.csv"), until=until)
        assert spec.output_file is not None
        found.append(spec.output_file.read_bytes())
    assert found[0] == found[1]


def test_a_spec_is_what_python_says(tmp_path: Path) -> None:
    """The same key and the same letters: the same noisy values; hostile cells are letters that nobody declared."""
    odd: list[tuple[int, Any, Any, Any]] = [
        (1, None, "pay", "a"),  # nobody's letter is in no visitor's sequence
        (2, "ann", None, 1.5),
        (3, "ann", 7.5, ["a"]),
        (3, ["x"], {"home": 1}, {"a": 1}),
        (3, 2.5, "home", None),
        (4, "", "", "ab"),
    ]
    clicks = sorted([*CLICKS, *odd], key=lambda click: click[0])
    spec = written(tmp_path, *SPEC, guarantee=QUIET)
    run(spec, save(rows(clicks), tmp_path / "clicks.jsonl"), until=UNTIL)
    options = {
        name: {option: value for option, value in table.items() if option not in ("kind", "column", "by")}
        for name, table in QUERIES.items()
    }
    made = by_hand(spec, options)
    for name, table in QUERIES.items():
        at = 2 if table["column"] == "page" else 3
        expected = []
        for tick in range(1, 5):
            here = [click for click in clicks if click[0] == tick]
            letters = [(click[1], click[at]) if "by" in table else click[at] for click in here]
            expected.append(made[name].step(letters).value)
        assert values(spec, name) == expected, name


USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "visitor", "max_events_per_user": 3}


def test_users_are_protected_by_the_column_of_the_stream(tmp_path: Path) -> None:
    """One column says whose a letter is, for the cap and for the sequence."""
    mine = {"name": "moves", "kind": "substring_counts", **PAGES, "sequence": "user", "longest": 2}
    spec = written(tmp_path, mine, {"name": "all", **QUERIES["pairs"]}, stream=USERS)
    run(spec, save(rows(), tmp_path / "clicks.csv"), until=UNTIL)
    assert total(values(spec, "moves"), "cart pay") == [0, 1, 1, 2], "the fourth letter of ann is not counted"
    assert total(values(spec, "moves"), "home") == [2, 2, 2, 2]
    assert total(values(spec, "all"), "home") == [2, 2, 2, 2]
    filed = certificate(spec)
    assert filed["queries"][0]["protects"] == "one user: the first 3 events that bear a name"
    made = by_hand(
        spec,
        {
            "moves": {k: v for k, v in mine.items() if k not in ("name", "kind", "column")},
            "all": {option: value for option, value in QUERIES["pairs"].items() if option not in ("kind", "column")},
        },
    )
    assert made["moves"].sensitivity.l2_squared > 0
    first = [click for click in CLICKS if click[0] == 1]
    expected = made["moves"].step_events([click[2] for click in first], users=[click[1] for click in first]).value
    assert values(spec, "moves")[0] == expected
    with pytest.raises(ConfigurationError, match=r"by is not needed: .*user_column says whose an event is"):
        written(tmp_path, {**mine, "by": "visitor"}, stream=USERS)


def test_records_are_made_of_cells() -> None:
    assert records(2, {"column": ["a", None]}, {}) == ["a", None]
    assert records(1, {"column": [["a"]], "by": [None]}, {}) == [(None, ["a"])]
    assert records(0, {"column": [], "by": []}, {}) == []


@pytest.mark.parametrize(
    ("query", "change", "without", "problem"),
    [
        ("pairs", {}, "column", "needs 'column' for a substring_counts"),
        ("pairs", {}, "alphabet", "needs 'alphabet'"),
        ("pairs", {}, "sequence", "needs 'sequence'"),
        ("pairs", {"sequence": "person"}, None, "sequence must be one of 'stream', 'user'"),
        ("pairs", {"alphabet": []}, None, "alphabet must be a list of labels such as"),
        ("pairs", {"alphabet": 3}, None, "alphabet must be a list of labels such as"),
        ("pairs", {"alphabet": ["a", "a"]}, None, "different letters"),
        ("pairs", {"other": "elsewhere"}, None, "other is a letter of the alphabet"),
        ("pairs", {}, "longest", "needs 'longest'"),
        ("pairs", {"longest": 0}, None, "longest must be an integer of at least 1"),
        ("pairs", {"longest": 65}, None, "longest"),
        ("pairs", {"by": "visitor"}, None, 'by names the column of the user, and goes with sequence = "user"'),
        ("pairs", {"show": ["home away"]}, None, "each of them a letter of the alphabet"),
        ("pairs", {"show": ["home home home"]}, None, "lengths 1 to 2"),
        ("pairs", {"show": []}, None, "show must be a list of words"),
        ("pairs", {"words": "home"}, None, "words must be a list of words"),
        ("pairs", {"once_per_user": True}, None, "once_per_user needs a sequence for each user"),
        ("pairs", {"above": 3}, None, "has no option 'above'"),
        ("pairs", {"removal": "null"}, None, "has no option 'removal'"),
        ("pairs", {"mechanism": "magic"}, None, "unknown mechanism 'magic'"),
        ("moves", {}, "by", "needs 'by', the column that says whose a record is"),
        ("moves", {"max_words": 3}, None, "max_words goes with once_per_user"),
        ("moves", {"gap": 0}, None, "gap must be an integer of at least 1"),
        ("often", {}, "above", "needs 'above' for a frequent_substrings"),
        ("often", {"most": 2}, None, "most=2"),
        ("often", {"show": ["home"]}, None, "has no option 'show'"),
        ("funnel", {}, "words", "needs 'longest'"),
        ("funnel", {"gap": 2}, None, "has no option 'gap'"),
        ("funnel", {"once_per_user": True}, None, "once_per_user"),
        ("letters", {"longest": 30}, None, "episodes"),
    ],
)
def test_what_is_refused_says_where_and_why(
    tmp_path: Path, query: str, change: dict[str, Any], without: str | None, problem: str
) -> None:
    table = {option: value for option, value in {**QUERIES[query], **change}.items() if option != without}
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: ") as refused:
        plan(written(tmp_path, {"name": query, **table}))
    assert problem in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["visits.toml"], "nothing is made before that"


def test_the_certificate_says_what_one_unit_is(tmp_path: Path) -> None:
    filed = certificate(written(tmp_path, ALL, *SPEC, guarantee=QUIET))
    assert filed["unit"]["protects"] == "event"
    assert {query["protects"] for query in filed["queries"]} == {"one event"}
    assert filed["composition"]["within_guarantee"] is True
    words = {query["name"]: query["in_plain_words"] for query in filed["queries"]}
    assert words["often"] == "Words of page that occurred often, above 2 with noise"
    for query in filed["queries"][1:]:
        assert query["error_bound"] > query["stddev"] > 0
        assert query["proved_in"]["change_of_one_unit"].startswith("factorization-counting 6.0 and 6.")


@pytest.mark.parametrize(
    ("query", "neighbours", "squared"),
    [("pairs", "add_remove", 4), ("pairs", "replace", 8), ("moves", "replace", 44), ("letters", "add_remove", 7)],
)
def test_what_is_paid_is_what_the_table_says(tmp_path: Path, query: str, neighbours: str, squared: int) -> None:
    """A replaced record of a visitor may be another visitor's: more than another letter in its place."""
    table = {option: value for option, value in QUERIES[query].items() if option != "gap"}
    stream = {"name": "visits", "horizon": 1, "neighbours": neighbours}
    planned = plan(written(tmp_path, {"name": query, **table}, guarantee={"rho": 1e-4}, stream=stream))
    assert planned.queries[0].stddev == pytest.approx((squared / 2e-4) ** 0.5, rel=0.01)


def test_cards() -> None:
    for name, view, words in (
        ("substring_counts", "bars", "Words of page, by how often they occurred"),
        ("frequent_substrings", "ranking", "Words of page that occurred often, above 9 with noise"),
        ("episode_counts", "bars", "Episodes of page, by how often they occurred"),
    ):
        kind = find(name)
        assert kind is not None
        assert (kind.card.view, kind.card.shown("page", {"above": 9})) == (view, words)
