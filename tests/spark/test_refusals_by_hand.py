"""What would put the same noise on other events, or show what nobody vouches for, is refused; and nothing is shown."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from by_hand import by_hand, play

from evertally.errors import ConfigurationError, HorizonExceeded, StateError
from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.live import Live
from evertally.runtime.rescue import end
from evertally.runtime.state.sidecar import Sidecar
from evertally.spark.asking import ask
from evertally.spark.batch import _number as number_of
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine, take_back
from evertally.spark.failures import TaskFailed
from evertally.spark.job import Shop, shop
from evertally.spark.public import batches, shown
from evertally.spark.stream import check_checkpoint
from spec_text import Table
from streams import NARROW, WORDS, begun, events, place, twin, write

__all__ = ["place"]

CONTENT = {"name": "visits", "horizon": 12, "order": "content"}
ALL: Table = {"name": "all", "kind": "counter"}
PAGES: Table = {"name": "pages", "kind": "histogram", "column": "page", "categories": WORDS[:40]}
BATCHES: list[tuple[list[pa.Table], int]] = [([events(40, seed=number)], 2 * number + 2) for number in range(5)]


@pytest.fixture
def spec(place: Path) -> Path:
    """A stream that has come three batches far."""
    path = write(place / "spark", ALL, PAGES, stream=CONTENT)
    play(path, BATCHES[:3])
    return path


def where(spec: Path, name: str) -> Path:
    return Path(getattr(load_spec(spec).engine, name))


def go_on(spec: Path, number: int = 3) -> Any:
    return play(spec, BATCHES[number : number + 1], first=number)


def refused(spec: Path, words: str, number: int = 3) -> None:
    """The next batch is refused, and nothing of it is shown."""
    before = sorted(path for path in where(spec, "public").rglob("*"))
    with pytest.raises(StateError, match=words):
        go_on(spec, number)
    assert sorted(path for path in where(spec, "public").rglob("*")) == before


def test_a_root_that_is_gone(spec: Path) -> None:
    shutil.rmtree(where(spec, "root"))
    refused(spec, "the marks say that this stream has released something, and the root is not there")


def test_a_root_that_is_older_than_the_marks(spec: Path, place: Path) -> None:
    shutil.copytree(where(spec, "root"), place / "backup")
    go_on(spec)
    shutil.rmtree(where(spec, "root"))
    shutil.copytree(place / "backup", where(spec, "root"))
    refused(spec, "the marks say that 4 batches were released, and the root has 3: it is an older one", 4)
    refused(spec, "the marks say that 4 batches were released, and the root has 3: it is an older one", 3)


def test_a_root_that_went_another_way_than_the_marks(spec: Path, place: Path) -> None:
    other = twin(spec, place / "other")
    go_on(spec)
    play(other, [(BATCHES[4][0], 8)], first=3)
    shutil.rmtree(where(spec, "root"))
    shutil.copytree(where(other, "root"), where(spec, "root"))
    refused(spec, "mark of batch 3 does not vouch for the manifest that is there", 4)


def test_a_root_that_went_another_way_where_nothing_is_shown(place: Path) -> None:
    """The chain is over what is released: on demand it is the same whatever came, and answers would not be."""
    spec = write(place / "spark", PAGES, stream=CONTENT, engine={**NARROW, "release": "on demand"})
    play(spec, BATCHES[:2])
    other = twin(spec, place / "other")
    play(spec, BATCHES[2:3], first=2)
    play(other, [(BATCHES[4][0], 6)], first=2)
    first = ask(spec, "pages", categories=WORDS[:5])
    shutil.rmtree(where(spec, "root"))
    shutil.copytree(where(other, "root"), where(spec, "root"))
    with pytest.raises(StateError, match="mark of batch 2 does not vouch for the manifest that is there"):
        ask(spec, "pages", categories=WORDS[:5])
    assert first["value"] != ask(other, "pages", categories=WORDS[:5])["value"]
    refused(spec, "mark of batch 2 does not vouch for the manifest that is there")


@pytest.mark.parametrize("lost", [["root", "home"], ["home/mark", "root"]])
def test_root_and_marks_that_are_both_older_than_what_was_shown(spec: Path, place: Path, lost: list[str]) -> None:
    """Restored together they vouch for each other; what readers have seen does not go back."""
    backup = twin(spec, place / "backup")
    go_on(spec)
    for name in ("root", "home"):
        shutil.rmtree(where(spec, name))
        shutil.copytree(where(backup, name), where(spec, name))
    if "home/mark" in lost:
        shutil.rmtree(where(spec, "home") / "mark")
        for name in ("manifest", "closes", "state", "releases"):
            shutil.rmtree(where(spec, "root") / name)
    number = 0 if "home/mark" in lost else 3
    refused(spec, f"says that 8 ticks were released, and the marks know of {2 * number}", number)
    shutil.copy(f"{load_spec(backup).key_file}.bound", f"{load_spec(spec).key_file}.bound")
    if number:
        refused(spec, "shows batch 3, and root and marks know of none: they are older", number)


def test_a_home_that_was_emptied_and_a_root_that_is_gone(spec: Path) -> None:
    shutil.rmtree(where(spec, "home") / "mark")
    shutil.rmtree(where(spec, "root"))
    shutil.rmtree(where(spec, "public"))
    refused(spec, "says that 6 ticks were released, and the marks know of 0", 0)


def test_what_was_shown_of_another_past(spec: Path, place: Path) -> None:
    other = twin(spec, place / "other")
    go_on(spec)
    play(other, [(BATCHES[4][0], 8)], first=3)
    shutil.rmtree(where(spec, "public"))
    shutil.copytree(where(other, "public"), where(spec, "public"))
    refused(spec, "00000003/about.json is not what root and marks say of this batch", 4)


def test_a_public_folder_has_one_stream(spec: Path, place: Path) -> None:
    other = write(place / "other", ALL, PAGES, stream=CONTENT, engine={**NARROW, "public": str(where(spec, "public"))})
    refused(other, "shows batch 2, and root and marks know of none", 0)
    assert [one["batch"] for one in batches(load_spec(spec))] == [0, 1, 2]


def test_an_older_manifest_is_asked_as_it_was_marked(place: Path) -> None:
    spec = write(place / "spark", PAGES, stream=CONTENT, engine={**NARROW, "release": "on demand", "keep": 4})
    play(spec, BATCHES[:3])
    assert ask(spec, "pages", tick=2, categories=WORDS[:5])["tick"] == 2
    path = where(spec, "root") / "manifest" / "00000000"
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps(record | {"states": record["states"][::-1]}))
    with pytest.raises(StateError, match="mark of batch 0 does not vouch for the manifest that is there"):
        ask(spec, "pages", tick=2, categories=WORDS[:5])
    path.unlink()
    with pytest.raises(StateError, match="the manifest of batch 0 is missing under the root"):
        ask(spec, "pages", tick=2, categories=WORDS[:5])


def test_a_tick_whose_state_is_kept_no_more(place: Path) -> None:
    spec = write(place / "spark", PAGES, stream=CONTENT, engine={**NARROW, "release": "on demand", "keep": 2})
    play(spec, BATCHES[:3])
    assert ask(spec, "pages", tick=4, categories=WORDS[:5])["tick"] == 4
    with pytest.raises(ConfigurationError, match=r"tick 2 can be asked no more: 2 batches came .* keep = 3 will keep"):
        ask(spec, "pages", tick=2, categories=WORDS[:5])


@pytest.mark.parametrize("number", [0, 1])
def test_a_mark_that_is_missing(spec: Path, number: int) -> None:
    (where(spec, "home") / "mark" / f"{number:08d}").unlink()
    refused(spec, "of the marks of 3 batches some are missing")


def without_its_mark(spec: Path, number: int) -> None:
    """As a driver leaves it that dies between manifest and mark."""
    settled = load_spec(spec)
    (where(spec, "home") / "mark" / f"{number:08d}").unlink()
    sidecar = Sidecar(Key.load(settled.key_file), settled.key_file, settled.digest, settled.name, settled.parts)
    known = sidecar.read()
    assert known is not None
    sidecar.write(replace(known, tick=2 * number + 1))


def test_a_mark_that_its_driver_did_not_make_is_made_by_the_next(spec: Path) -> None:
    without_its_mark(spec, 2)
    assert go_on(spec)[0]["batch"] == 3


def test_a_mark_that_was_made_and_is_gone(spec: Path) -> None:
    (where(spec, "home") / "mark" / "00000002").unlink()
    refused(spec, "says that 6 ticks were released, and the marks know of 4")


def test_marks_that_are_missing(spec: Path) -> None:
    for name in ("00000001", "00000002"):
        (where(spec, "home") / "mark" / name).unlink()
    refused(spec, "of the marks of 3 batches some are missing")


def test_a_home_that_is_gone(spec: Path) -> None:
    shutil.rmtree(where(spec, "home"))
    refused(spec, "the home of its marks, is not: nothing says how far this stream has come")


def test_a_genesis_that_is_gone(spec: Path) -> None:
    (where(spec, "home") / "genesis").unlink()
    refused(spec, "the home of its marks, is not")


def test_the_home_of_another_stream(spec: Path, place: Path) -> None:
    other = write(place / "other", ALL, PAGES, stream=CONTENT)
    play(other, BATCHES[:3])
    shutil.rmtree(where(spec, "home"))
    shutil.copytree(where(other, "home"), where(spec, "home"))
    refused(spec, "the genesis is damaged, or was written under another key")


def test_the_root_of_another_stream(spec: Path, place: Path) -> None:
    other = write(place / "other", ALL, PAGES, stream=CONTENT)
    play(other, BATCHES[:3])
    shutil.rmtree(where(spec, "root"))
    shutil.copytree(where(other, "root"), where(spec, "root"))
    refused(spec, "the genesis is damaged, or was written under another key")


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"root": "x", "home": "y/../x"}, "are five different places"),
        ({"root": "link"}, "are five different places"),
        ({"public": "x", "root": "file://{}/x"}, "are five different places"),
        ({"worker_key": "visits.key"}, "are five different places"),
        ({"public": "x", "root": "x/root"}, "root lies in public: readers see all of it"),
        ({"public": "."}, "lies in public: readers see all of it"),
        ({"public": "s3://bucket/a/", "root": "s3://bucket/a/b"}, "root lies in public"),
        ({"root": "x", "home": "x/marks"}, "home lies in root: a backup of it must not hold marks"),
    ],
)
def test_places_that_are_not_apart(place: Path, engine: dict[str, str], words: str) -> None:
    """Whatever they are called: the root in what readers see is everything in what readers see."""
    folder = place / "spark"
    spec = write(folder, ALL, engine={name: text.format(folder) for name, text in engine.items()})
    (folder / "link").symlink_to(folder / "visits.public")
    (folder / "y").mkdir()
    with pytest.raises(ConfigurationError, match=words):
        load_spec(spec)


def changed(spec: Path, old: str, new: str) -> Path:
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new))
    return spec


def test_a_second_root_under_one_key(spec: Path) -> None:
    changed(spec, "[engine]", '[engine]\nroot = "second"')
    refused(spec, "has released something, and the root is not there", 0)
    changed(spec, 'root = "second"', 'root = "second"\nhome = "second-home"')
    refused(spec, "the key .* is there, and .*second-home, the home of its marks, is not", 0)


def test_a_second_stream_under_the_key(spec: Path) -> None:
    changed(spec, "word-39", "word-59")
    refused(spec, "is not what this stream began with: spec changed")


@pytest.mark.parametrize("clock", ["start = 1", "start = 0\nend = 10"])
def test_another_clock(spec: Path, clock: str) -> None:
    changed(spec, "start = 0", clock)
    refused(spec, "is not what this stream began with: .*(clock|spec) changed")


def test_another_length_of_a_tick(spec: Path) -> None:
    changed(spec, "tick = 1", "tick = 2")
    refused(spec, "is not what this stream began with: .*clock changed")


@pytest.mark.parametrize(("number", "words"), [(3, "nothing of it is released yet"), (2, "it is released")])
def test_another_input_under_a_number(spec: Path, number: int, words: str) -> None:
    def dies(job: Any) -> Any:
        raise KeyboardInterrupt

    tables, through = BATCHES[number]
    with taken(load_spec(spec)) as held:
        engine = Engine(held)
        if number == 3:
            with pytest.raises(KeyboardInterrupt):
                engine.advance(dies, number, through, {"id": "3"})
        with pytest.raises(StateError, match=f"batch {number} comes from another input than before.*{words}"):
            engine.advance(by_hand(tables), number, through, {"id": "something else"})
        assert engine.last == 2
        assert engine.advance(by_hand(tables), number, through, {"id": str(number)})["batch"] == number


@pytest.mark.parametrize("number", [4, 7])
def test_a_number_that_does_not_follow(spec: Path, number: int) -> None:
    with taken(load_spec(spec)) as held, pytest.raises(StateError, match=f"batch {number} does not follow batch 2"):
        Engine(held).advance(by_hand(BATCHES[3][0]), number, 8, {"id": "x"})


def test_a_tick_beyond_the_end(spec: Path) -> None:
    with pytest.raises(HorizonExceeded, match="tick 13 is beyond 12"):
        play(spec, [(BATCHES[3][0], 13)], first=3)
    assert play(spec, [(BATCHES[3][0], 12)], first=3)[0]["through"] == 12


def test_time_that_went_back_closes_nothing(spec: Path) -> None:
    record = play(spec, [(BATCHES[3][0], 1)], first=3)[0]
    assert (record["opened"], record["through"]) == (7, 6)


# damage


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(data))


def test_a_damaged_worker_key(spec: Path) -> None:
    file = where(spec, "worker_key")
    kept = file.read_bytes()
    file.write_bytes(kept[:-20])
    refused(spec, "is no worker key, or is damaged; copy it anew")
    file.write_bytes(kept)
    file.chmod(0o644)
    refused(spec, "is open to others .*; chmod 600 it")
    file.unlink()  # the driver writes it anew
    go_on(spec)
    assert file.read_bytes() == kept


def test_the_worker_key_of_another_stream(spec: Path, place: Path) -> None:
    other = begun(write(place / "other", ALL, PAGES, stream=CONTENT))
    shutil.copy(where(other, "worker_key"), where(spec, "worker_key"))
    refused(spec, "is the worker key of something else")


def test_a_worker_with_the_key_of_another_stream(spec: Path, place: Path) -> None:
    """The driver has the right one, and a machine an old one."""
    other = begun(write(place / "other", ALL, PAGES, stream=CONTENT))
    with taken(load_spec(spec)) as held:
        shutil.copy(where(other, "worker_key"), where(spec, "worker_key"))
        shop.__globals__["_shop"].cache_clear()  # a worker that has just been started
        with pytest.raises(TaskFailed, match=r"door: StateError at job.py"):
            Engine(held).advance(by_hand(BATCHES[3][0]), 3, 8, {"id": "3"})
        with pytest.raises(StateError, match="is not the one of the stream; copy the file that the driver has written"):
            shop(held.stand)


def test_a_damaged_state(spec: Path) -> None:
    for name in sorted((where(spec, "root") / "state" / "2").iterdir())[:2]:
        flip(name)
    with pytest.raises(TaskFailed, match=r"part: StateError at worker_key.py"):
        go_on(spec)
    assert len(batches(load_spec(spec))) == 3


def test_a_state_that_is_gone(spec: Path) -> None:
    shutil.rmtree(where(spec, "root") / "state" / "2")
    with pytest.raises(TaskFailed, match=r"part: StateError at job.py"):
        go_on(spec)
    assert len(batches(load_spec(spec))) == 3


def test_the_state_of_another_place_is_no_state_of_this_one(spec: Path) -> None:
    """Sealed for root, batch and place: states that were exchanged open nothing."""
    one, other = sorted((where(spec, "root") / "state" / "2").iterdir())[:2]
    states = one.read_bytes(), other.read_bytes()
    other.write_bytes(states[0])
    one.write_bytes(states[1])
    with pytest.raises(TaskFailed, match=r"part: StateError at worker_key.py"):
        go_on(spec)


def test_a_state_is_sealed_for_its_batch_and_its_root(spec: Path) -> None:
    """An older state under a newer manifest would release ticks anew, under the same noise, and forget caps."""
    with taken(load_spec(spec)) as held:
        record = held.log.manifest(2)
        assert record is not None
        name, at = record["states"][0], "-".join(map(str, record["parts"][0]))
        assert Shop(held.stand).state(name, at, 2)
        with pytest.raises(StateError, match="belong to another key, batch or place"):
            Shop(held.stand).state(name, at, 1)
        with pytest.raises(StateError, match="belong to another key, batch or place"):
            Shop(replace(held.stand, root_id="0" * 32)).state(name, at, 2)


def test_sizes_of_states_do_not_tell_what_is_in_them(spec: Path) -> None:
    """At 12 bytes a user, they would tell how many there are."""
    with taken(load_spec(spec)) as held:
        own = Shop(held.stand)

        def size(state: bytes) -> int:
            kept = own.shelf.read(own.keep("0-0-0", 9, "state", state))
            assert kept is not None
            return len(kept)

        assert len({size(bytes(length)) for length in (0, 12, 24, 1000)}) == 1
        assert len({size(bytes(length)) for length in (100_000, 100_012, 112_000)}) == 1


@pytest.mark.parametrize("field", ["values", "through", "chain", "before", "states", "releases", "release"])
def test_a_manifest_that_was_changed(spec: Path, field: str) -> None:
    path = where(spec, "root") / "manifest" / "00000002"
    record = json.loads(path.read_bytes())
    lists = {name: record[name][::-1] for name in ("values", "states", "releases")}
    record[field] = {**lists, "through": 5, "release": "on demand"}.get(field, "ab" * 32)
    path.write_text(json.dumps(record))
    refused(spec, "the mark of batch 2 does not vouch for the manifest that is there")


def test_a_manifest_that_is_cut(spec: Path) -> None:
    path = where(spec, "root") / "manifest" / "00000002"
    path.write_bytes(path.read_bytes()[:50])
    refused(spec, "manifest/00000002 under the root is damaged")


def test_a_manifest_without_a_mark_is_held_against_itself(spec: Path) -> None:
    without_its_mark(spec, 2)
    path = where(spec, "root") / "manifest" / "00000002"
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps(record | {"values": record["values"][::-1]}))
    refused(spec, "the manifest of batch 2 under the root is damaged")
    path.write_text(json.dumps(record))
    assert go_on(spec)[0]["batch"] == 3  # no mark was made for what was damaged


@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_mark(spec: Path, number: int) -> None:
    path = where(spec, "home") / "mark" / f"{number:08d}"
    path.write_bytes(path.read_bytes().replace(b'"through":', b'"through":1'))
    refused(spec, f"the mark of batch {number} is damaged, or was written under another key")


def test_a_damaged_plan(spec: Path) -> None:
    flip(next(where(spec, "root").glob("plan-*")))
    refused(spec, "the plan of the stream under .* is missing or damaged")


def test_a_release_that_was_damaged_before_it_was_shown(spec: Path) -> None:
    shutil.rmtree(where(spec, "public") / "00000002")
    for path in (where(spec, "root") / "releases" / "2").iterdir():
        flip(path)
    with pytest.raises(StateError, match="is missing or damaged, and its batch is not shown yet"):
        go_on(spec)


# readers


@pytest.mark.parametrize(
    ("old", "new"), [(b'"through":4', b'"through":5'), (b'"signature":"', b'"signature":"00'), (b"{", b"")]
)
def test_what_is_said_about_a_batch_is_signed(spec: Path, old: bytes, new: bytes) -> None:
    path = where(spec, "public") / "00000001" / "about.json"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(StateError, match=r"00000001/about.json is damaged, or of another stream"):
        list(shown(load_spec(spec), "all"))


def test_batches_of_two_streams_do_not_follow_each_other(spec: Path, place: Path) -> None:
    other = write(place / "other", ALL, PAGES, stream=CONTENT)
    play(other, BATCHES[:3])
    shutil.rmtree(where(spec, "public") / "00000001")
    shutil.copytree(where(other, "public") / "00000001", where(spec, "public") / "00000001")
    with pytest.raises(StateError, match="batch 00000001 does not follow the one before it"):
        batches(load_spec(spec))


def test_a_batch_that_is_missing_in_what_was_shown(spec: Path) -> None:
    shutil.rmtree(where(spec, "public") / "00000001")
    with pytest.raises(StateError, match="batch 00000002 does not follow the one before it"):
        batches(load_spec(spec))


def test_a_batch_that_says_nothing_before_others_that_do(spec: Path) -> None:
    (where(spec, "public") / "00000001" / "about.json").unlink()
    with pytest.raises(StateError, match=r"00000001/about.json is missing"):
        batches(load_spec(spec))


def test_what_lies_beside_batches_hides_none(spec: Path) -> None:
    (where(spec, "public") / "000").mkdir()
    (where(spec, "public") / "_SUCCESS").write_text("")
    assert len(batches(load_spec(spec))) == 3
    (where(spec, "root") / "state" / "lost+found").mkdir()
    go_on(spec)
    assert len(batches(load_spec(spec))) == 4


@pytest.mark.parametrize(("shelf", "folder"), [("root", "manifest"), ("home", "mark")])
def test_a_stranger_among_manifests_or_marks(spec: Path, shelf: str, folder: str) -> None:
    (where(spec, shelf) / folder / "00000002~").write_text("")
    refused(spec, f"{folder} has a file in it that is none of this stream")


def test_a_batch_that_is_released_from_an_input_that_nobody_knows(spec: Path) -> None:
    (where(spec, "root") / "closes" / "00000002").unlink()
    with taken(load_spec(spec)) as held:
        with pytest.raises(StateError, match="nothing says from which input"):
            Engine(held).advance(by_hand(BATCHES[3][0]), 2, 6, {"id": "other"})
        with pytest.raises(StateError, match=r"nothing says from which input.* might be the same, and count twice"):
            number_of(Engine(held), held.log, {"id": "2", "input": {"snapshot": "two"}})


def test_a_snapshot_that_is_no_text_is_still_the_same_input(spec: Path) -> None:
    envelope = {"id": "3", "input": {"snapshot": ("table", 7)}}
    with taken(load_spec(spec)) as held:
        first = Engine(held).advance(by_hand(BATCHES[3][0]), 3, 8, envelope)
        assert Engine(held).advance(by_hand(BATCHES[3][0]), 3, 8, envelope) == first


@pytest.mark.parametrize("query", ["all", "pages"])
def test_files_that_were_shown_are_what_they_were(spec: Path, query: str) -> None:
    path = next((where(spec, "public") / "00000001").glob(f"{query}-*"))
    flip(path)
    with pytest.raises(StateError, match="of what was shown is missing or damaged"):
        list(shown(load_spec(spec), query))
    path.unlink()
    with pytest.raises(StateError, match="of what was shown is missing or damaged"):
        list(shown(load_spec(spec), query))


# one key, one engine


def test_a_key_of_one_process_does_not_go_to_spark(place: Path) -> None:
    spec = write(place / "spark", ALL, PAGES, stream=CONTENT)
    with Live(load_spec(spec)) as live:
        live.release_through(2)
    with pytest.raises(StateError, match="or it runs in one process"):
        play(spec, BATCHES[:1])
    load_spec(spec).state_file.unlink()
    with pytest.raises(StateError, match="or it runs in one process"):
        play(spec, BATCHES[:1])
    assert not where(spec, "root").exists()


def test_a_state_of_one_process_beside_a_stream_on_spark(spec: Path) -> None:
    load_spec(spec).state_file.write_bytes(b"")
    refused(spec, "this stream runs in one process, and the two cannot share a key")


@pytest.mark.parametrize("far", [0, 3])
def test_a_key_of_spark_does_not_go_to_one_process(place: Path, far: int) -> None:
    spec = write(place / "spark", ALL, PAGES, stream=CONTENT)
    play(spec, BATCHES[:far])
    for word in (False, True):
        with pytest.raises(StateError), Live(load_spec(spec), nothing_was_released=word) as live:
            live.release_through(1)
    play(spec, BATCHES[far : far + 1], first=far)  # and nothing of it is harmed


def test_one_process_leaves_nothing_behind_that_stops_the_other(spec: Path) -> None:
    with pytest.raises(StateError, match="this stream runs on Spark"), Live(load_spec(spec), replay=True):
        pass
    assert not load_spec(spec).state_file.exists()
    assert go_on(spec)[0]["batch"] == 3


def test_a_stream_that_was_ended(spec: Path) -> None:
    end(load_spec(spec))
    refused(spec, "says that this stream was ended for good")


def test_a_key_that_is_gone(spec: Path) -> None:
    load_spec(spec).key_file.unlink()
    refused(spec, "the key file .* is missing, and .* is there: this stream has begun")


def test_another_key(spec: Path, place: Path) -> None:
    other = begun(write(place / "other", ALL, PAGES, stream=CONTENT))
    shutil.copy(load_spec(other).key_file, load_spec(spec).key_file)
    refused(spec, "the genesis is damaged, or was written under another key")


def test_a_clock_that_starts_with_its_first_serve(place: Path) -> None:
    floating = {"start": "first serve", "tick": "1h"}
    spec = write(place / "spark", ALL, stream={"name": "visits", "horizon": 12}, clock=floating)
    with pytest.raises(ConfigurationError, match="needs a start that is known"):
        play(spec, [])


# beginnings that were interrupted


def test_a_beginning_that_was_interrupted_goes_on_under_its_key(place: Path) -> None:
    spec = begun(write(place / "spark", ALL, PAGES, stream=CONTENT))
    settled, genesis = load_spec(spec), (where(spec, "root") / "genesis").read_bytes()
    half = Path(f"{settled.key_file}.new")
    for lost in ([], ["root"], ["root", "home"]):
        settled.key_file.rename(half)  # it had no name of its own yet
        for name in lost:
            (where(spec, name) / "genesis").unlink()
        begun(spec)
        assert settled.key_file.exists()
        assert not half.exists()
        assert (where(spec, "root") / "genesis").exists()
        if lost != ["root", "home"]:
            assert (where(spec, "root") / "genesis").read_bytes() == genesis
    assert go_on(spec, 0)[0]["through"] == 2


def test_a_root_without_a_genesis_goes_on_as_long_as_nothing_is_released(place: Path) -> None:
    spec = begun(write(place / "spark", ALL, PAGES, stream=CONTENT))
    (where(spec, "root") / "genesis").unlink()
    assert go_on(spec, 0)[0]["batch"] == 0


def test_a_root_that_is_gone_as_long_as_nothing_is_released(place: Path) -> None:
    spec = begun(write(place / "spark", ALL, PAGES, stream=CONTENT))
    shutil.rmtree(where(spec, "root"))
    assert go_on(spec, 0)[0]["batch"] == 0


def test_a_beginning_that_was_interrupted_may_be_of_another_spec(place: Path) -> None:
    """What was half begun has released nothing: a spec that was wrong may be mended."""
    spec = begun(write(place / "spark", ALL, PAGES, stream=CONTENT))
    load_spec(spec).key_file.rename(f"{load_spec(spec).key_file}.new")
    shutil.rmtree(where(spec, "root"))
    shutil.rmtree(where(spec, "home"))
    where(spec, "worker_key").unlink()
    changed(spec, "word-39", "word-59")
    go_on(spec, 0)
    assert go_on(spec, 1)[0]["batch"] == 1


# a batch that cannot be finished


def begin(engine: Engine, number: int, name: str) -> None:
    """Begins a batch, and dies."""

    def dies(job: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.advance(dies, number, BATCHES[number][1], {"id": name})


def test_a_batch_that_is_taken_back(spec: Path) -> None:
    """What was begun with one input, and with another, is released from a third."""
    tables, through = BATCHES[3]
    for name in ("bad", "worse"):
        with taken(load_spec(spec)) as held:
            begin(Engine(held), 3, name)
        assert take_back(spec) == name
    with taken(load_spec(spec)) as held:
        assert Engine(held).advance(by_hand(tables), 3, through, {"id": "good"})["turn"] == 2
        assert held.log.closes(3)["envelope"] == {"id": "good"}
    with pytest.raises(StateError, match="nothing to take back"):
        take_back(spec)
    assert go_on(spec, 4)[0]["turn"] == 0


def test_a_driver_that_is_quicker_than_who_takes_its_batch_back(spec: Path) -> None:
    tables, through = BATCHES[3]
    with taken(load_spec(spec)) as held:
        engine, other = Engine(held), Engine(held)

        def while_it_works(job: Any) -> Any:
            other.take_back()
            return by_hand(tables)(job)

        engine.advance(while_it_works, 3, through, {"id": "first"})
        assert held.log.closes(3)["envelope"] == {"id": "first"}
        with pytest.raises(StateError, match="it is released, and those events would be lost"):
            other.advance(by_hand(tables), 3, through, {"id": "second"})
        with pytest.raises(StateError, match="nothing to take back"):
            other.take_back()


def test_who_comes_after_a_batch_was_taken_back_is_told_that_another_won(spec: Path) -> None:
    """Nothing that is released tells them apart, where events wait or no tick is over."""
    tables, _ = BATCHES[3]
    with taken(load_spec(spec)) as held:
        engine, other = Engine(held), Engine(held)

        def slow(job: Any) -> Any:
            other.take_back()

            def slower(again: Any) -> Any:
                done = by_hand(tables)(again)
                finished.append(engine_commits(by_hand(tables)(job)))
                return done

            with pytest.raises(StateError, match="its first driver was quicker"):
                other.advance(slower, 3, 6, {"id": "second"})
            raise KeyboardInterrupt

        finished: list[Any] = []

        def engine_commits(done: Any) -> Any:
            closed, before = held.log._closes(3, 0), held.log.manifest(2)
            assert closed is not None
            return engine._committed(lambda _job: done, closed, before, None)

        with pytest.raises(KeyboardInterrupt):
            engine.advance(slow, 3, 6, {"id": "first"})
        assert finished[0]["turn"] == 0


def test_a_batch_that_has_not_begun_is_not_taken_back(place: Path) -> None:
    spec = write(place / "spark", ALL)
    with pytest.raises(StateError, match="has not begun"):
        take_back(spec)
    assert sorted(path.name for path in spec.parent.iterdir()) == [spec.name]


@pytest.mark.parametrize(
    ("old", "new"), [(b'"through":8', b'"through":9'), (b'"turn":0', b'"turn":1'), (None, b"{}"), (None, b"null")]
)
def test_what_a_batch_closes_is_sealed(spec: Path, old: bytes | None, new: bytes) -> None:
    with taken(load_spec(spec)) as held:
        begin(Engine(held), 3, "3")
    path = where(spec, "root") / "closes" / "00000003"
    data = path.read_bytes()
    changed = new if old is None else data.replace(old, new)
    assert changed != data
    path.chmod(0o600)
    path.write_bytes(changed)
    refused(spec, "closes/00000003 under the root is damaged")


@pytest.mark.parametrize("content", [b"null", b"[]", b"{}"])
def test_a_manifest_that_is_nothing(spec: Path, content: bytes) -> None:
    path = where(spec, "root") / "manifest" / "00000002"
    path.chmod(0o600)
    path.write_bytes(content)
    refused(spec, "manifest/00000002 under the root is damaged")


def test_a_clock_that_went_back(spec: Path) -> None:
    """The stamp of a batch is never before the first tick that is not released: caps of users have counted that."""
    stamps = []

    def run(job: Any) -> Any:
        stamps.append(job.stamp)
        return by_hand(BATCHES[3][0])(job)

    with taken(load_spec(spec)) as held:
        record = Engine(held).advance(run, 3, BATCHES[3][1], {"id": "3"}, stamp=2)
    assert stamps == [record["opened"]]
    assert record["opened"] > 2


# the checkpoint of Spark


def planned(spec: Path, offsets: int, commits: int) -> Path:
    folder = where(spec, "root") / "checkpoint"
    for name, count in (("offsets", offsets), ("commits", commits)):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            (folder / name / str(number)).write_text("v1\n")
    return folder


def test_a_driver_that_died_before_its_first_batch_is_no_other_stream(place: Path) -> None:
    spec = begun(write(place / "spark", ALL, PAGES, stream=CONTENT))
    with taken(load_spec(spec)) as held:
        check_checkpoint(held.log, planned(spec, 1, 0))  # refuses nothing
        assert held.log.last() == -1


def test_a_stream_beside_a_batch_that_was_begun(place: Path) -> None:
    spec = begun(write(place / "spark", ALL, PAGES, stream=CONTENT))
    with taken(load_spec(spec)) as held:
        begin(Engine(held), 0, "0")
        with pytest.raises(StateError, match="this root takes batches of files"):
            check_checkpoint(held.log, planned(spec, 1, 0))


def test_a_stream_beside_batches(spec: Path) -> None:
    """It would count the files of the batches once more."""
    with taken(load_spec(spec)) as held, pytest.raises(StateError, match="this root takes batches of files"):
        check_checkpoint(held.log, planned(spec, 1, 0))


@pytest.mark.parametrize(("offsets", "commits"), [(2, 0), (1, 1), (3, 2)])
def test_a_checkpoint_that_the_root_does_not_know(spec: Path, offsets: int, commits: int) -> None:
    folder = planned(spec, offsets, commits)
    with taken(load_spec(spec)) as held, pytest.raises(StateError, match="one of them is not of this stream"):
        check_checkpoint(held.log, folder)


def test_a_root_that_has_lost_which_query_of_spark_it_belongs_to(spec: Path) -> None:
    """With a new checkpoint all files of its source would come again, and count twice."""
    with taken(load_spec(spec)) as held:
        Engine(held).advance(by_hand(BATCHES[3][0]), 3, 8, {"offsets": [], "files": [], "query": "one"})
        with pytest.raises(StateError, match="the file `query` in it is missing"):
            check_checkpoint(held.log, where(spec, "root") / "checkpoint")
        with pytest.raises(StateError, match="this root is fed by a stream of Spark"):
            number_of(Engine(held), held.log, {"id": "other", "input": {"snapshot": "other"}})
        held.log.root.put_new("query", b'{"first":3,"id":"one"}')
        check_checkpoint(held.log, where(spec, "root") / "checkpoint")
