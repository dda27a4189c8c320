"""The running service under faults: a real process, killed and put back, shows one stream; any other one is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evertally.audit.faults import service as campaigns
from evertally.audit.faults.service import NAMES, Campaign, service_audits
from evertally.audit.faults.service_copy import OUTPUT, batch, write_copy
from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.spec import StreamSpec
from long import LONG
from spec_text import ALL, WARD, spec_text


@pytest.fixture
def spec(tmp_path: Path) -> StreamSpec:
    users = {"name": "visits", "horizon": 80, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
    (tmp_path / "visits.toml").write_text(spec_text(ALL | {"share": "1/2"}, WARD | {"share": "1/2"}, stream=users))
    return load_spec(tmp_path / "visits.toml")


def test_the_service_shows_one_stream_whatever_happens(spec: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    if not LONG:
        monkeypatch.setitem(campaigns.KILLS, "short", 2)
    found = {name: run() for name, run in service_audits(spec, "long" if LONG else "short")}
    assert list(found) == list(NAMES)
    for report in found.values():
        assert (report.verdict, report.aspect) == ("holds (tight)", "state"), report.stopped
    assert [path.name for path in spec.path.parent.iterdir()] == ["visits.toml"], "the stream itself was touched"


def test_a_tick_that_is_published_twice_is_seen(spec: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is compared here: the processes are stand-ins that write what they are told."""
    monkeypatch.setattr(campaigns, "Service", Standing)
    calm = Campaign(spec, 2, 0).found
    assert {name for name, found in calm.items() if found.leaked} == set()
    monkeypatch.setattr(Standing, "twice", True)
    hurt = Campaign(spec, 2, 0).found
    assert hurt["killed"].leaked
    assert hurt["releases"].leaked


def test_a_service_that_forgets_its_fences_is_seen(spec: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "Service", Standing)
    monkeypatch.setattr(Standing, "fenced", False)
    found = Campaign(spec, 2, 0).found
    assert found["a second process"].leaked
    assert found["an older state"].leaked
    assert found["no sidecar"].leaked


def test_a_batch_that_counts_twice_is_seen(spec: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "Service", Standing)
    monkeypatch.setattr(Standing, "knows_batches", False)
    assert Campaign(spec, 2, 0).found["a batch again with another content"].leaked


def test_events_that_show_nowhere_are_no_evidence(spec: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "Service", Standing)
    monkeypatch.setattr(Standing, "counts", False)
    reports = [run() for _, run in service_audits(spec)]
    assert {report.verdict for report in reports} == {"no power here"}
    assert "shows in a release" in reports[0].stopped


def test_the_copy_has_files_of_its_own(spec: StreamSpec, tmp_path: Path) -> None:
    Key.generate().save(tmp_path / "key")
    copy = write_copy(spec, tmp_path / "copy", tmp_path / "key")
    assert {copy.key_file.parent, copy.state_file.parent, copy.path.parent} == {tmp_path / "copy"}
    assert (copy.guarantee, copy.horizon) == (spec.guarantee, spec.horizon)
    assert [query.parameters for query in copy.queries] == [query.parameters for query in spec.queries]
    assert batch(copy, 3) == batch(copy, 3) != batch(copy, 4)


class Standing:
    """A stand-in: keeps its batches and releases in files of its folder, as a service does, with mistakes on demand."""

    twice, fenced, knows_batches, counts = False, True, True, True

    def __init__(self, spec: StreamSpec, like: Any = None) -> None:
        self.spec, self.folder, self.running, self.reason = spec, spec.path.parent, False, "refused"
        self._batches: dict[str, bytes] = {}
        self._again: list[bytes] = []
        self._begun = False

    def start(self) -> bool:
        state, sidecar = self.folder / "stream.state", self.folder / "stream.key.bound"
        whole = not self._begun or (sidecar.exists() and state.read_text() == sidecar.read_text())
        if not whole and self.fenced:
            return False
        if self._begun and self.twice and self._lines():
            lines = (self.folder / OUTPUT).read_bytes().splitlines(keepends=True)
            (self.folder / OUTPUT).write_bytes(b"".join([*lines, lines[-1]]))
        self._begun = self.running = True
        self._keep()
        return True

    begin = start

    def _lines(self) -> int:
        file = self.folder / OUTPUT
        return len(set(file.read_bytes().splitlines())) if file.exists() else 0

    def _keep(self) -> None:
        (self.folder / "stream.state").write_text(str(self._lines()))
        (self.folder / "stream.key.bound").write_text(str(self._lines()))

    def send(self, name: str, content: bytes) -> int:
        if name in self._batches and not self.knows_batches:
            self._again.append(content)
        return 202 if self._batches.setdefault(name, content) == content else 409

    def beside(self) -> Standing:
        other = Standing(self.spec)
        other.start = lambda: not self.fenced  # type: ignore[method-assign]
        return other

    def close(self, tick: int) -> int:
        if tick > self._lines():
            counted = sum(map(len, [*self._batches.values(), *self._again])) if self.counts else 0
            with (self.folder / OUTPUT).open("ab") as output:
                output.write(f"tick {tick}: {counted}\n".encode())
            self._keep()
        return 200

    def kill(self) -> None:
        self.running = False

    stop = kill

    def kill_after_change(self, file: Path, changes: int, seconds: float) -> None:
        self.kill()
