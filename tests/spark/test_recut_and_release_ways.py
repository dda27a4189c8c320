"""How a stream is cut, and which of its numbers are made, decides about no number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from by_hand import by_hand, play
from one_process import assert_same, in_one_process

from evertally.errors import StateError
from evertally.runtime import load_spec
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine
from evertally.spark.public import shown
from long import LONG
from spec_text import Table
from streams import NARROW, WORDS, Batches, begun, check_equal, events, in_pieces, place, three_batches, twin, write

__all__ = ["place"]

CONTENT = {"name": "visits", "horizon": 24, "max_events_per_tick": 500, "order": "content"}
PAGES: Table = {"name": "pages", "kind": "histogram", "column": "page", "categories": WORDS[:50], "other": "elsewhere"}
SKETCH: Table = {
    "name": "sketch", "kind": "count_sketch", "column": "page", "watch": WORDS[:4], "rows": 3, "width": 24,
}  # fmt: skip
ALL: Table = {"name": "all", "kind": "counter"}
APPROXIMATE = {"epsilon": 40.0, "delta": 1e-5}


def batches() -> Batches:
    return three_batches(events(150))


def another(spec: Path, **engine: Any) -> Path:
    """The same stream with other words in [engine]."""
    text = spec.read_text()
    start = text.index("[engine]")
    stop = text.index("\n\n", start)
    section = "\n".join(["[engine]", *(f"{name} = {value!r}".replace("'", '"') for name, value in engine.items())])
    spec.write_text(text[:start] + section + text[stop:])
    return spec


def play_all(spec: Path, given: Batches, ways: list[dict[str, Any]]) -> None:
    """A driver for each batch, with words of its own in [engine]; one for all, if these are the same."""
    if len(ways) == 1:
        play(another(spec, **{**NARROW, **ways[0]}), in_pieces(given, 3, seed=1))
        return
    for number, batch in enumerate(in_pieces(given, 3, seed=1)):
        another(spec, **{**NARROW, **ways[number % len(ways)]})
        play(spec, [batch], first=number)


# cut


@pytest.mark.parametrize("mechanism", ["bank", "tree", "honaker", "sqrt", "auto"])
def test_another_width_in_every_batch_gives_the_same_numbers(place: Path, mechanism: str) -> None:
    spec = write(place / "spark", {**PAGES, "mechanism": mechanism}, SKETCH, ALL, stream=CONTENT)
    widths: list[dict[str, Any]] = [{"slice_width": width} for width in (32, 16, 48, 16, 32)]
    play_all(spec, batches(), widths)
    expected = in_one_process(spec, place / "one", batches())
    assert assert_same(spec, expected) == 12 * (51 + 4 + 1)


def test_a_width_beyond_all_columns_makes_one_slice_of_what_was_begun_in_several(place: Path) -> None:
    spec = write(place / "spark", PAGES, stream=CONTENT)
    play_all(spec, batches(), [{"slice_width": 16}, {"slice_width": 4096}])
    assert_same(spec, in_one_process(spec, place / "one", batches()))


@pytest.mark.parametrize("changed", ["label_shards", "user_buckets"])
def test_shards_and_buckets_stay_as_they_began(place: Path, changed: str) -> None:
    spec = write(place / "spark", PAGES, stream=CONTENT)
    play(spec, in_pieces(batches()[:1], 1, seed=1))
    another(spec, **{**NARROW, changed: 4})
    with pytest.raises(StateError, match=f"is not what this stream began with: {changed} changed"):
        play(spec, in_pieces(batches()[1:2], 1, seed=1), first=1)
    another(spec, **NARROW)
    assert play(spec, in_pieces(batches()[1:2], 1, seed=1), first=1)[0]["batch"] == 1


@pytest.mark.parametrize("changed", [{"slice_width": 32}, {"release": "every 2"}])
def test_a_batch_that_was_begun_is_finished_as_it_was_begun(place: Path, changed: dict[str, Any]) -> None:
    spec = write(place / "spark", PAGES, stream=CONTENT)
    first, second, *_ = in_pieces(batches(), 1, seed=1)
    play(spec, [first])

    def dies(job: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), taken(load_spec(spec)) as held:
        Engine(held).advance(dies, 1, second[1], {"id": "1"})
    another(spec, **{**NARROW, **changed})
    words = "batch 1 was begun with slice_width = 16 and release = 'dense': finish it with these"
    with pytest.raises(StateError, match=words):
        play(spec, [second], first=1)
    another(spec, **NARROW)
    play(spec, [second], first=1)
    another(spec, **{**NARROW, **changed})  # and now it may
    assert play(spec, [([], 5)], first=2)[0]["through"] == 5


# releases


WAYS: list[tuple[Table, Table]] = [
    *(({"mechanism": name}, {"rho": 0.5}) for name in ("bank", "tree", "honaker", "sqrt")),
    *(({"mechanism": name}, {"epsilon": 3.0}) for name in ("tree", "pure-blocks")),
    ({}, APPROXIMATE),
]


def rows(spec: Path, query: str = "pages") -> dict[int, dict[str, Any]]:
    return dict(shown(load_spec(spec), query))


@pytest.mark.parametrize(("mechanism", "guarantee"), WAYS)
def test_what_is_shown_in_part_is_part_of_what_would_be_shown(place: Path, mechanism: Table, guarantee: Table) -> None:
    spec = write(place / "spark", {**PAGES, **mechanism}, SKETCH, ALL, stream=CONTENT, guarantee=guarantee)
    begun(spec)
    least_shown = {"above 2": 2} | ({"above 50": 50} if LONG else {})
    ways = {way: twin(spec, place / way) for way in ("every 3", "on demand", *least_shown)}
    play_all(spec, batches(), [{}])
    dense = rows(spec)
    assert_same(spec, in_one_process(spec, place / "one", batches()))
    for way, other in ways.items():
        play_all(other, batches(), [{"release": way}])
        for query in ("sketch", "all"):  # is small, or made of whole rows: shown as ever
            assert rows(other, query) == rows(spec, query)
    assert rows(ways["every 3"]) == {tick: dense[tick] for tick in (3, 6, 9, 12)}
    assert rows(ways["on demand"]) == {}
    for way, least in least_shown.items():
        found = rows(ways[way])
        assert sorted(found) == sorted(dense)
        for tick, row in dense.items():
            kept = [i for i, value in enumerate(row["value"]) if value > least]
            for name in ("category", "value", "lower", "upper"):
                assert found[tick][name] == [row[name][i] for i in kept]
            assert found[tick]["stddev"] == row["stddev"]
    assert any(len(row["value"]) < 51 for row in rows(ways["above 2"]).values())


def test_what_is_released_may_change_from_batch_to_batch(place: Path) -> None:
    """Sums go on without noise, and noise is found again where some is asked for."""
    spec = write(place / "spark", {**PAGES, "mechanism": "bank"}, stream=CONTENT)
    begun(spec)
    other = twin(spec, place / "other")
    play_all(spec, batches(), [{}])
    ways = ["on demand", "on demand", "dense", "every 4", "above 0"]
    play_all(other, batches(), [{"release": way} for way in ways])
    dense, found = rows(spec), rows(other)
    assert sorted(found) == [4, 5, 8, 10, 11, 12]
    assert all(found[tick] == dense[tick] for tick in (4, 5, 8))
    assert all(min(found[tick]["value"], default=1) > 0 for tick in (10, 11, 12))


def test_rows_of_rules_are_shown_in_part_and_what_is_played_in_one_place_is_not(place: Path) -> None:
    users = {**CONTENT, "unit": "user", "user_column": "user", "max_events_per_user": 2}
    apart = {**PAGES, "min_separation": 2, "max_ticks_per_user": 3}
    faded = {**PAGES, "name": "faded", "workload": {"decay": "0.8"}}
    spec = write(place / "spark", apart, faded, stream=users)
    begun(spec)
    other = twin(spec, place / "other")
    assert check_equal(spec, batches()) == 12 * 102
    play_all(other, batches(), [{"release": "every 5"}])
    dense = rows(spec)
    assert rows(other) == {tick: dense[tick] for tick in (5, 10)}
    assert rows(other, "faded") == rows(spec, "faded")


def test_kept_states_are_as_many_as_asked_for(place: Path) -> None:
    spec = write(place / "spark", PAGES, ALL, stream=CONTENT, engine={**NARROW, "keep": 3})
    records = play(spec, in_pieces(batches(), 1, seed=1))
    root = Path(load_spec(spec).engine.root)
    for record in records:
        kept = record["batch"] > records[-1]["batch"] - 3
        assert all((root / name).exists() == kept for name in record["states"])


def test_the_same_run_under_another_order_of_rows(place: Path) -> None:
    spec = write(place / "spark", PAGES, stream=CONTENT)
    begun(spec)
    given, through = batches()[0]
    done = []
    for seed in range(3):
        other = twin(spec, place / str(seed))
        with taken(load_spec(other)) as held:
            done.append(Engine(held).advance(by_hand([given], seed), 0, through, {"id": "0"}))
    assert done[0] == done[1] == done[2]
