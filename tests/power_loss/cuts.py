"""A stream on a disk that loses power, at any moment of a recorded play, and what must hold afterwards. Not a test.

Before the cut the outside has seen acknowledgements, ticks, and files that it read. Afterwards the stream starts; every
batch that was acknowledged is known; every tick that was seen is the same, also if other events come now; and with the
same events all of it ends, to the byte, as a stream whose power never failed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from disks import Disk, File, Files, losses, read_log, restored

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(HERE.parent / "crash")]

import plays  # noqa: E402
from crash_stream import body, events, plain  # noqa: E402
from driver import compared  # noqa: E402

from evertally.errors import EvertallyError  # noqa: E402
from evertally.noise import Key  # noqa: E402
from evertally.runtime import load_spec  # noqa: E402
from evertally.runtime.input.batches import parse  # noqa: E402
from evertally.runtime.live import Live  # noqa: E402
from evertally.runtime.spec import StreamSpec  # noqa: E402
from evertally.runtime.state.history import History  # noqa: E402
from evertally.runtime.state.log import Proof  # noqa: E402
from evertally.runtime.state.sidecar import sidecar_path  # noqa: E402
from made_keys import save_bound  # noqa: E402

SPEC = plain(snapshot_every=2).replace('"visits.key"', '"keys/secret/visits.key"')
KEY = Path("keys/secret/visits.key")  # its folder is made by the stream
_OUTSIDE = ("observed", "visits.state-shm")  # what the outside saw; shared memory, which the first who opens it clears
_LINES = ("visits.jsonl", "visits.csv")


@dataclass(frozen=True)
class Cut:
    """Files as a power cut left them, and what had been seen of the stream."""

    name: str
    files: Files
    lines: dict[str, bytes]  # of the outputs, as a reader saw them
    accepted: int  # the last tick whose batches were acknowledged
    released: int  # the last tick that anybody may have seen

    @property
    def digest(self) -> bytes:
        """Of all that decides what happens next."""
        return hashlib.sha256(repr((sorted(self.files.items()), self.accepted, self.released)).encode()).digest()


NEW = Cut("a new stream", {"visits.toml": SPEC.encode(), "keys": None}, {}, 0, 0)


class Recording:
    """One play, new or after a power cut, with every call that moved something to the disk."""

    def __init__(self, folder: Path, before: Cut = NEW) -> None:
        self._before = before
        self.folder = folder / "play"
        self.folder.mkdir(parents=True)
        restored(before.files, self.folder)
        library, log, spec = folder / "disk_log.so", folder / "log", self.folder / "visits.toml"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "disk_log.c", "-ldl"], check=True)
        subprocess.run(
            [sys.executable, str(HERE / "recorded_play.py"), str(spec), str(self.folder / "observed")],
            env={**os.environ, "LD_PRELOAD": str(library), "DISK_LOG": str(log), "DISK_LOG_ROOT": str(self.folder)},
            check=True,
        )
        self.calls = read_log(log)
        self.left = {str(path.relative_to(self.folder)): _content(path) for path in self.folder.rglob("*")}
        self.released = _released(load_spec(spec))
        self.key = Key.load(self.folder / KEY)

    @property
    def before_syncs(self) -> list[int]:
        """The moments at which most can be lost."""
        return [number for number, call in enumerate(self.calls) if call.kind == "s"]

    def without_syncs_of(self, name: str) -> Recording:
        """The same play by a program that forgets to sync something."""
        forgetful, opened = copy(self), dict[int, str]()
        forgetful.calls = []
        for call in self.calls:
            if call.kind == "o":
                opened[call.descriptor] = call.path
            forgotten = call.kind == "s" and opened[call.descriptor] == str(self.folder / name)
            forgetful.calls.append(replace(call, kind="-") if forgotten else call)
        return forgetful

    def adds_up_to(self) -> Files:
        """What all calls together leave on the disk."""
        disk = self._disk()
        for call in self.calls:
            disk.apply(call)
        return disk.seen()

    def _disk(self) -> Disk:
        disk = Disk(self.folder)
        disk.put(self._before.files)
        return disk

    def cuts(self, moments: Iterable[int], several: int) -> Iterator[Cut]:
        """After so many calls each, what a cut may leave; what looks the same comes once."""
        disk, wanted, known = self._disk(), set(moments), set[bytes]()
        for number, call in enumerate(self.calls, 1):
            disk.apply(call)
            if number in wanted:
                for name, loss in losses(number, several):
                    cut = self._cut(f"{self._before.name}, call {number}, {name} survives", disk, disk.after(loss))
                    if cut.digest not in known:
                        known.add(cut.digest)
                        yield cut

    def _cut(self, name: str, disk: Disk, files: Files) -> Cut:
        observed = disk.at(f"{self.folder}/observed")
        said = observed.seen().decode().splitlines() if isinstance(observed, File) else []
        seen = disk.seen()
        for outside in _OUTSIDE:
            files.pop(outside, None)
        return Cut(
            name,
            files,
            {lines: max(seen.get(lines) or b"", self._before.lines.get(lines, b""), key=len) for lines in _LINES},
            _last(said, "accept", self._before.accepted),
            _last(said, "tick", self._before.released),
        )


def _content(path: Path) -> bytes | None:
    return None if path.is_dir() else path.read_bytes()


def _last(said: list[str], what: str, before: int) -> int:
    return max([before, *(int(part.split()[1]) for part in said if part.startswith(what))])


def wrong_after(cut: Cut, recording: Recording, place: Path) -> list[str]:
    """What does not hold after a power cut."""
    try:
        return [*_with_other_events(cut, recording, place), *_to_the_end(cut, recording, place)]
    except EvertallyError as error:
        return [f"the stream does not start: {error}"]


def _stage(cut: Cut, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    restored(cut.files, place)
    return place / "visits.toml"


def _with_other_events(cut: Cut, recording: Recording, place: Path) -> Iterator[str]:
    """What was acknowledged is known. Whatever else comes now, what was seen stays."""
    spec = load_spec(_stage(cut, place))
    with Live(spec) as live:
        for tick in range(1, cut.accepted + 1):
            for answer, name in zip(live.accept(plays.batches(spec, tick)), ("first", "second"), strict=True):
                if not getattr(answer, "duplicate", False):
                    yield f"the {name} batch of tick {tick} was acknowledged, and is not known"
        for tick in range(1, plays.TICKS + 1):
            live.accept([(f"canary-other-{tick}", parse(*body(events(2, 7, tick), 0), spec))])
            live.publish(live.release_through(tick))
    for tick, (now, before) in enumerate(zip(_released(spec), recording.released, strict=True), 1):
        if tick <= cut.released and now != before:
            yield f"tick {tick} was seen, and comes out otherwise"
    for name, before in cut.lines.items():
        if before and not (place / name).read_bytes().startswith(before):
            yield f"{name} held what it does not hold now"


def _to_the_end(cut: Cut, recording: Recording, place: Path) -> Iterator[str]:
    """With the events of the recording all of it ends as the recording did."""
    spec_file = _stage(cut, place)
    if not (place / KEY).exists() and not sidecar_path(place / KEY).exists():
        save_bound(recording.key, spec_file)  # it had not been made: so that there is something to compare with
    plays.play(spec_file)
    yield from compared(place, recording.folder, load_spec(spec_file))


def _released(spec: StreamSpec) -> list[dict[str, bytes]]:
    history = History(spec, lambda: plays.TICKS, Proof(Key.load(spec.key_file), spec))
    try:
        return [dict(release.payloads) for release in history.read(range(1, plays.TICKS + 1))]
    finally:
        history.close()
