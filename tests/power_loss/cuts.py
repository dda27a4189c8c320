"""A stream on a disk that loses power: every moment of a recorded play, and what must hold when the power is back. Not a test.

Before the cut the outside has seen acknowledgements, ticks, and files that it read. Afterwards the stream starts; every
acknowledged batch is known; every tick that was seen is the same, also if other events come now; and with the same
events all of it ends, to the byte, as a stream whose power never failed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from disks import Disk, File, losses, read_log, restored

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

SPEC = plain(snapshot_every=2).replace('"visits.key"', '"secret/visits.key"')
_OUTSIDE = ("observed", "visits.state-shm")  # what the outside saw; shared memory, which the first who opens it clears
_LINES = ("visits.jsonl", "visits.csv")


@dataclass(frozen=True)
class Cut:
    """Files as a power cut left them, and what had been seen of the stream."""

    name: str
    files: dict[str, bytes | None]
    lines: dict[str, bytes]  # of the outputs, as a reader saw them
    accepted: int  # the last tick whose batches were acknowledged
    released: int  # the last tick that anybody may have seen

    @property
    def digest(self) -> bytes:
        """Of all that decides what happens next."""
        return hashlib.sha256(repr((sorted(self.files.items()), self.accepted, self.released)).encode()).digest()


class Recording:
    """One play, with every call that moved something to the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "play"
        self.folder.mkdir()
        spec = self.folder / "visits.toml"
        spec.write_text(SPEC)
        library, log = folder / "disk_log.so", folder / "log"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "disk_log.c", "-ldl"], check=True)
        subprocess.run(
            [sys.executable, str(HERE / "recorded_play.py"), str(spec), str(self.folder / "observed")],
            env={**os.environ, "LD_PRELOAD": str(library), "DISK_LOG": str(log), "DISK_LOG_ROOT": f"{self.folder}/"},
            check=True,
        )
        self.calls = read_log(log)
        self.released = _released(load_spec(spec))
        self.key = Key.load(self.folder / "secret" / "visits.key")

    def cuts(self, moments: Iterator[int] | range, several: int) -> Iterator[Cut]:
        """After each of these calls, what a cut may leave; what looks the same comes once."""
        disk, wanted, known = Disk(self.folder), set(moments), set[bytes]()
        disk.put("visits.toml", SPEC.encode())
        for number, call in enumerate(self.calls, 1):
            disk.apply(call)
            if number in wanted:
                for name, loss in losses(number, several):
                    cut = self._cut(f"call {number}, {name} survives", disk, disk.after(loss))
                    if cut.digest not in known:
                        known.add(cut.digest)
                        yield cut

    def _cut(self, name: str, disk: Disk, files: dict[str, bytes | None]) -> Cut:
        observed = disk.at(f"{self.folder}/observed")
        said = observed.seen().decode().splitlines() if isinstance(observed, File) else []
        seen = disk.seen()
        for outside in _OUTSIDE:
            files.pop(outside, None)
        return Cut(
            name,
            files,
            {lines: seen[lines] or b"" for lines in _LINES if lines in seen},
            max((int(part.split()[1]) for part in said if part.startswith("accept")), default=0),
            max((int(part.split()[1]) for part in said if part.startswith("tick")), default=0),
        )


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
        if not (place / name).read_bytes().startswith(before):
            yield f"{name} held what it does not hold now"


def _to_the_end(cut: Cut, recording: Recording, place: Path) -> Iterator[str]:
    """With the events of the recording all of it ends as the recording did."""
    spec_file = _stage(cut, place)
    key_file = place / "secret" / "visits.key"
    if not key_file.exists():  # it had not been made: so that there is something to compare with
        key_file.parent.mkdir(mode=0o700, exist_ok=True)
        recording.key.save(key_file)
    plays.play(spec_file)
    yield from compared(place, recording.folder, load_spec(spec_file))


def _released(spec: StreamSpec) -> list[dict[str, bytes]]:
    history = History(spec, lambda: plays.TICKS)
    try:
        return [dict(release.payloads) for release in history.read(range(1, plays.TICKS + 1))]
    finally:
        history.close()
