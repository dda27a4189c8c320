"""The row "kept in a store" finds what would let a stream go on with files that are not its own, or show others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evertally.audit.faults.kept import Plays, kept_report
from evertally.audit.report import Report
from evertally.errors import StateError
from evertally.runtime import load_spec
from evertally.runtime.live import Live
from evertally.runtime.state import database, fence, public_log
from evertally.runtime.state.history import History
from evertally.runtime.state.inventory import Inventory
from evertally.runtime.state.log import Proof
from evertally.runtime.state.sidecar import Sidecar
from evertally.runtime.state.store import Store
from spec_text import ALL, WARD, spec_text


def report(folder: Path, **sections: Any) -> Report:
    file = folder / "visits.toml"
    file.write_text(spec_text({**ALL, "share": 0.5}, {**WARD, "share": 0.5}, **sections), "utf-8")
    return kept_report(load_spec(file))


@pytest.mark.parametrize("horizon", [1, 2, 5, 48])
def test_the_product_keeps_its_streams(tmp_path: Path, horizon: int) -> None:
    """Also where a stream ends before the last of the six ticks that are played."""
    found = report(tmp_path, stream={"name": "visits", "horizon": horizon})
    assert found.verdict == "holds (tight)", found.stopped
    assert "no batch" not in found.stopped


def _no_inventory(self: Inventory, said: Any) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("place", "name", "wrong", "told"),
    [
        (Inventory, "differs", _no_inventory, "without its last row"),
        (database, "check_schema", lambda *given: None, "more in the state"),
        (Proof, "genuine", lambda self, rows: rows, "while the stream runs"),
        (Store, "_check_current", lambda *given: None, "come again"),
        (History, "_check_whole", lambda *given: None, "while the stream runs"),
        (public_log, "_signed", lambda said: b"", "nobody has signed"),
    ],
)  # fmt: skip
def test_what_is_not_checked_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, wrong: Any, told: str
) -> None:
    monkeypatch.setattr(place, name, wrong)
    found = report(tmp_path)
    assert found.verdict == "broken"
    assert told in found.stopped


def test_a_damaged_sidecar_that_is_as_good_as_none_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows only where the state is lost as well, and the output: each alone would be in the way."""
    honest = Sidecar.read

    def lenient(self: Sidecar) -> Any:
        try:
            return honest(self)
        except StateError:
            return None

    monkeypatch.setattr(Sidecar, "read", lenient)
    found = report(tmp_path)
    assert found.verdict == "broken"
    assert "no state beside an empty sidecar, and no output" in found.stopped


def test_a_batch_that_counts_twice_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables themselves take no second batch of an id."""
    monkeypatch.setattr(Store, "batch", lambda *given: None)
    assert report(tmp_path).verdict == "broken"


def _twice_in_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch that is new to the store is: it goes to the journal once, and waits for its tick twice."""
    honest = Live.accept

    def forgetful(self: Live, batches: Any, marks: Any = None) -> Any:
        new = [given for batch_id, given in batches if self._store.batch(batch_id) is None]
        tick, answers = self.open_tick, honest(self, batches, marks)
        for given in new[1:]:
            for at, _, part in self.encoded(given).entering(tick, self.spec).parts:
                self._waiting.add(at, part)
        return answers

    monkeypatch.setattr(Live, "accept", forgetful)


def test_a_batch_that_counts_twice_within_a_call_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _twice_in_a_call(monkeypatch)
    found = report(tmp_path)
    assert found.verdict == "broken"
    assert "twice in one call" in found.stopped


def test_a_batch_that_is_lost_beside_one_that_came_before_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Live.accept

    def careless(self: Live, batches: Any, marks: Any = None) -> Any:
        came = any(self._store.batch(batch_id) is not None for batch_id, _ in batches)
        return honest(self, batches[:1] if came else batches, marks)

    monkeypatch.setattr(Live, "accept", careless)
    found = report(tmp_path)
    assert found.verdict == "broken"
    assert "twice in one call" in found.stopped


def test_a_machine_that_cannot_write_is_no_broken_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise StateError("the disk is full") from OSError(28, "no space")

    monkeypatch.setattr(Plays, "undisturbed", full)
    with pytest.raises(StateError, match="full"):
        report(tmp_path)


def test_a_key_file_that_is_not_locked_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = fence._held

    def only_the_lock_file(path: Path, flags: int, stack: Any) -> int:
        return held(path, flags, stack) if path.suffix == ".lock" else 0

    monkeypatch.setattr(fence, "_held", only_the_lock_file)
    found = report(tmp_path)
    assert found.verdict == "broken"
    assert "without the lock file" in found.stopped
