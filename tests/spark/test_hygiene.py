"""What is left of a run, and what can be asked for: a label, an exact count and the key are searched for everywhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apart import Driver
from planted import COUNT, LABEL, found_in

from evertally import Key
from long import LONG

_JOB = Path(__file__).with_name("drivers") / "hygiene_job.py"


def test_the_search_finds_every_way_to_write_them(tmp_path: Path) -> None:
    key = bytes(range(7, 39))
    ways = {
        "raw": (b"x" + key + b"y", "key"),
        "hex": (key.hex().encode(), "key"),
        "base64": (base64.b64encode(key), "key"),
        "within base64": (base64.b64encode(b"1" + key + b"23"), "key"),
        "label": (b'{"label":"' + LABEL.encode() + b'"}', "label"),
        "count": (b"numOutputRows: 135797", "count"),
        "count for people": (b"135,797 rows", "count"),
        "count as a number": (COUNT.to_bytes(8, "little"), "count"),
    }
    for name, (content, what) in ways.items():
        (tmp_path / name).write_bytes(content)
        assert set(found_in(tmp_path / name, key)) == {what}, name
    (tmp_path / "nothing").write_bytes(b"1357970 and canary and " + key[:16])
    assert found_in(tmp_path / "nothing", key) == {}


def planted(folder: Path) -> tuple[Path, Path]:
    """Events of one label, and a key file."""
    (folder / "input").mkdir()
    events = pa.table({"label": [LABEL] * COUNT})
    pq.write_table(events, folder / "input/0.parquet", compression="none")
    Key.generate().save(folder / "key")
    return folder / "input", folder / "key"


# A single protection is taken away: what is found then, and where.
SHOWN = {
    "ui": {"label": {"rest"}, "count": {"rest"}},
    "event log": {"label": {"events"}, "count": {"events"}},
    "shuffle": {"label": {"local"}},
    "logs": {"label": {"log"}},
    "errors": {"label": {"log"}},
}


@pytest.mark.parametrize("protection", SHOWN if LONG else ["shuffle"])
def test_each_protection_holds_something_back(
    protection: str, tmp_path: Path, visits: Path, apart: Callable[..., Driver]
) -> None:
    arguments = planted(tmp_path)
    key = arguments[1].read_bytes()
    driver = apart(_JOB, protection, tmp_path / protection, visits, *arguments, name=protection)
    driver.until_said("ready\n")
    found = found_in(tmp_path / protection, key)
    driver.go()
    driver.finished()
    for what in found_in(tmp_path / f"{protection}.log", key):
        found.setdefault(what, set()).add("log")
    assert found == SHOWN[protection]


def test_an_open_application_shows_them_and_a_hardened_one_does_not(
    tmp_path: Path, visits: Path, apart: Callable[..., Driver]
) -> None:
    arguments = (visits, *planted(tmp_path))
    key = (tmp_path / "key").read_bytes()
    kinds = ("open", "hardened")
    drivers = {kind: apart(_JOB, kind, tmp_path / kind, *arguments, name=kind) for kind in kinds}
    for driver in drivers.values():
        driver.until_said("ready\n")
    while_up = {kind: found_in(tmp_path / kind, key) for kind in kinds}
    shuffled = {kind: list((tmp_path / kind / "local").rglob("shuffle_*.data")) for kind in kinds}
    for driver in drivers.values():
        driver.go()
        driver.finished()
    for kind in kinds:
        assert (tmp_path / f"{kind}.found").read_text() == str([COUNT])
        assert shuffled[kind], "there was no shuffle file to look into"
    assert {"local", "events", "rest", "checkpoint"} <= while_up["open"]["label"]
    assert {"events", "rest"} <= while_up["open"]["count"]
    assert {"events", "rest"} <= while_up["open"]["key"]
    assert {"label", "count"} <= set(found_in(tmp_path / "open.log", key))
    assert while_up["hardened"] == {}
    assert found_in(tmp_path / "hardened", key) == {}
    assert found_in(tmp_path / "hardened.log", key) == {}, drivers["hardened"].said()
    said = drivers["hardened"].said()
    assert said.count("raised SparkFailed") == 3
    assert "a door: Spark stopped with PythonException, PYTHON_EXCEPTION, in door: ValueError at" in said
    assert "a group: Spark stopped with PythonException, PYTHON_EXCEPTION, in task: KeyError at" in said
    assert "a function of Spark's own: Spark stopped with SparkRuntimeException, USER_RAISED_EXCEPTION" in said
