"""A stream that is kept in files: interrupted, taken up again, and its files changed by somebody else.

In one process, on a copy of the spec with a key and a folder of its own (`service_copy`). One stream plays its batches
undisturbed. Whatever another one goes through under the same key, its readers see the same bytes, or it does not go on.
What the moves know of the state file is that it is SQLite (`kept_changes`).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evertally.audit.faults.findings import Found, held, leak, not_here
from evertally.audit.faults.kept_changes import FILES, Change, changes_of
from evertally.audit.faults.service_copy import KEY, OUTPUT, batch, write_copy
from evertally.audit.report import Report
from evertally.errors import ConfigurationError, EvertallyError, StateError
from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live, StreamEnded
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.runtime.verify import Certified, state_of

NAME = "kept in a store"
_TICKS = 6
_EARLY, _LATE = 2, 5  # where states are copied: the copies snapshot every third tick, so a journal is there, too
Shown = list[tuple[int, Mapping[str, bytes]]]  # payloads of queries, by tick


class Leak(Exception):
    """Readers saw, or might have seen, something else than one stream."""


class OfStore:
    """The stream, as reports name it."""

    def __init__(self, spec: StreamSpec) -> None:
        self.audited_as, self.horizon = f"store of {spec.name}", spec.horizon
        self.guarantee = self.charge = spec.guarantee


def kept_report(spec: StreamSpec) -> Report:
    """The row about the files of a stream.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "s.toml"
    ...     _ = file.write_text('''
    ...         stream = {name = "s", horizon = 9}
    ...         guarantee = {rho = 0.5}
    ...         clock = {start = "first serve", tick = "1h"}
    ...         key = {file = "k"}
    ...         state = {file = "s"}
    ...         query = [{name = "all", kind = "counter"}]
    ...     ''')
    ...     kept_report(load_spec(file)).verdict
    'holds (tight)'
    """
    with tempfile.TemporaryDirectory() as folder:
        return _found(spec, Path(folder)).report(OfStore(spec), NAME)


def _found(spec: StreamSpec, place: Path) -> Found:
    plays = Plays(spec, place)
    try:
        plays.begin()
    except ConfigurationError as error:
        return not_here(f"no copy of this stream can be kept: {error}")
    try:
        plays.undisturbed()
    except StateError as error:
        if isinstance(error.__cause__, OSError | sqlite3.Error):
            raise  # the machine: an audit that cannot look does not say that it has
        return leak(f"an undisturbed stream stops when it is taken up again: {type(error).__name__}")
    try:
        told = [play() for play in (plays.interrupted, plays.together, plays.beside, plays.changed, plays.published)]
    except Leak as seen:
        return leak(str(seen))
    if not plays.telling:
        return not_here(f"{'; '.join(told)}; but no batch that was made up for this spec shows in a release")
    return held("; ".join(told))


class Kept:
    """A stream in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spec = folder, load_spec(folder / "stream.toml")

    @property
    def output(self) -> bytes:
        file = self.folder / OUTPUT
        return file.read_bytes() if file.exists() else b""

    def open(self, *, new: bool = False) -> Live:
        return Live(self.spec, nothing_was_released=new)

    def send(self, live: Live, tick: int, content: int | None = None) -> None:
        """The batch of a tick, or another one under its name; after the last tick nothing is taken."""
        self.send_together(live, [(tick, content or tick)])

    def send_together(self, live: Live, batches: Iterable[tuple[int, int]]) -> None:
        """Batches in one call: of each the tick that names it, and that whose content it has."""
        given = [
            (f"batch-{tick}", parse(batch(self.spec, content), "application/json", self.spec))
            for tick, content in batches
        ]
        with suppress(StreamEnded):
            live.accept(given)

    def play(self, live: Live, last: int) -> None:
        """Ticks with their batches; one that came before counts once."""
        for tick in range(live.released + 1, last + 1):
            self.send(live, tick)
            live.publish(live.release_through(tick))

    def copy(self, name: str) -> Kept:
        target = self.folder.parent / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        return Kept(target)

    def over(self, other: Kept) -> None:
        """Makes the files of another folder those of this one."""
        for name in FILES:
            (other.folder / name).unlink(missing_ok=True)
            if (self.folder / name).exists():
                shutil.copy2(self.folder / name, other.folder / name)


class Plays:
    """The undisturbed stream, copies of it at two moments, and the moves."""

    def __init__(self, spec: StreamSpec, place: Path) -> None:
        self._spec, self._place = spec, place
        last = spec.last_tick
        self._ticks = _TICKS if last is None else min(last, _TICKS)
        self.telling = False

    def _new(self, name: str, key: str = KEY) -> Kept:
        if not (self._place / key).exists():
            Key.generate().save(self._place / key)
        write_copy(self._spec, self._place / name, self._place / key)
        return Kept(self._place / name)

    def begin(self) -> None:
        """A first tick, which refuses what no service could run."""
        first = self._new("first")
        live = first.open(new=True)
        try:
            first.play(live, 1)
        finally:
            live.abandon()

    def undisturbed(self) -> None:
        """What readers may see; with copies of an early and of a late state, and a stream of another key."""
        calm = self._new("calm")
        live = calm.open(new=True)
        try:
            for tick in range(1, self._ticks + 1):
                if tick in (self._early, self._late):
                    # With a batch that waits; the log of SQLite is folded into the file, which is then the stream.
                    calm.send(live, tick)
                    live.abandon()
                    for name, moment in (("early", self._early), ("late", self._late)):
                        if tick == moment:
                            calm.copy(name)
                    live = calm.open()
                calm.play(live, tick)
        finally:
            live.abandon()
        self._right, self._shown = calm.output, shown(calm)
        self._calm = calm
        self._public_key = Key.load(self._place / KEY).public_key
        foreign = self._new("foreign", "another key")
        live = foreign.open(new=True)
        try:
            foreign.play(live, self._late - 1)
            foreign.send(live, self._late)
        finally:
            live.abandon()
        without = self._new("without")
        live = without.open(new=True)
        try:
            live.publish(live.release_through(self._ticks))
        finally:
            live.abandon()
        self.telling = without.output != self._right

    @property
    def _early(self) -> int:
        return min(_EARLY, self._ticks)

    @property
    def _late(self) -> int:
        return min(_LATE, self._ticks)

    # -- moves ---------------------------------------------------------------------------------------------------------

    def interrupted(self) -> str:
        """Batches that come twice, or with another content; ends before and after a commit, in good order and not."""
        hurt = self._new("hurt")
        for tick in range(1, self._ticks + 1):
            live = hurt.open(new=tick == 1)
            try:
                hurt.send(live, tick)
                for content in (tick, tick + 1):
                    hurt.send(live, tick, content)
                if tick % 3:
                    live.abandon()
                    live = hurt.open()
                released = live.release_through(tick)
                if tick % 2:  # committed, and not published
                    live.abandon()
                    live = hurt.open()
                else:
                    live.publish(released)
                hurt.send(live, tick, tick + 1)
                live.release_through(tick)
                if tick == 4:
                    live.__exit__(None)
            finally:
                live.abandon()
            self._look(hurt, f"after an interrupted tick {tick}")
        live = hurt.open()
        live.abandon()
        if hurt.output != self._right or shown(hurt) != self._shown:
            raise Leak("a stream that was interrupted in every tick is not the undisturbed one")
        return f"interrupted in each of {self._ticks} ticks, the same bytes"

    def together(self) -> str:
        """Calls of several batches, of which some came before: in an earlier call, or in this one. What waits for its
        tick is what was handed in, not what the journal has of it, so nothing is restarted in between."""
        kept = self._new("together")
        live = kept.open(new=True)
        try:
            for tick in range(1, self._ticks + 1):
                own, other = (tick, tick), (tick, tick + 1)
                before, changed = [(tick - 1, tick - 1), (tick - 1, tick)] if tick > 1 else [own, other]
                kept.send_together(live, [before, own, own] if tick % 2 else [own, other, before, own, changed])
                live.publish(live.release_through(tick))
                self._look(kept, f"after a batch that came twice in one call, at tick {tick},")
        finally:
            live.abandon()
        if kept.output != self._right or shown(kept) != self._shown:
            raise Leak("a stream whose batches come twice in one call is not the undisturbed one")
        return "batches that come twice in one call count once"

    def beside(self) -> str:
        """A second process, also where the lock file is gone."""
        first = self._calm.copy("beside")
        lock = first.folder / f"{KEY}.lock"
        live = first.open()
        try:
            for told in ("a second opening", "a second opening without the lock file"):
                try:
                    second = first.open()
                except EvertallyError:
                    pass
                else:
                    second.abandon()
                    raise Leak(f"{told} of a stream that is open was let in")
                lock.unlink(missing_ok=True)
        finally:
            live.abandon()
        return "a second opening is refused"

    def changed(self) -> str:
        """Files that somebody has changed: readers refuse them or show what was released, and the stream does not go on
        or goes on as if nothing had happened."""
        late = Kept(self._place / "late")
        hurt = late.copy("changed")
        changes = list(changes_of(*(self._place / name for name in ("late", "early", "foreign", "calm"))))
        made = refused = 0
        for change in changes:
            late.over(hurt)
            if change.apply(hurt.folder):
                made += 1
                self._readers(hurt, change)
                gone = self._goes_on(hurt, change)
                if change.noticed and not gone:
                    raise Leak(f"{change}: the stream goes on, as if nothing had been changed")
                refused += gone
        late.over(hurt)
        self._while_open(hurt, [change for change in changes if change.undo is not None])
        return f"{made} changes of its files: {refused} refused, the others without effect"

    def _readers(self, hurt: Kept, change: Change) -> None:
        """Those who look at a stream that lies still."""
        try:
            with state_of(hurt.spec) as store:
                wrong = list(store.problems())
                releases = store.releases(1, self._ticks)
                head = store.signed(digests=True)
        except EvertallyError:
            return
        self._same(releases, f"{change}: a reader of the file")
        if change.noticed and not wrong:
            raise Leak(f"{change}: nobody who verifies the state is told")
        if not wrong:
            self._fits(head, str(change))

    def _while_open(self, hurt: Kept, changes: Iterable[Change]) -> None:
        """Those who ask a stream that runs, while somebody changes its file."""
        live = hurt.open()
        published = live.released
        history = History(live.spec, lambda: published, live.proof)
        try:
            for change in changes:
                if change.undo is None or not change.apply(hurt.folder):
                    continue
                try:
                    ticks = history.ticks(1, published)
                    self._same(history.read(ticks), f"{change}, while the stream runs: a reader")
                    for asked in ((), ticks):
                        self._fits(history.head(asked), f"{change}, while the stream runs")
                except EvertallyError:
                    pass
                change.undo(hurt.folder)
        finally:
            history.close()
            live.abandon()

    def _goes_on(self, hurt: Kept, change: Change) -> bool:
        """Whether the stream was refused; if it was not, it must be the undisturbed one."""
        try:
            live = hurt.open()
        except EvertallyError:
            return True
        try:
            if live.released < self._late - 1:
                raise Leak(f"{change}: the stream goes on after tick {live.released}: later ones would come again")
            hurt.play(live, self._ticks)
        except EvertallyError:
            return True
        finally:
            live.abandon()
        if hurt.output != self._right:
            raise Leak(f"{change}: the stream went on, and its output is another one")
        self._same_shown(shown(hurt), f"{change}: the stream went on, and its log")
        return False

    def published(self) -> str:
        """The signed head of the log fits the output, and none that was changed."""
        with state_of(self._calm.spec) as store:
            wrong = list(store.problems())
            head = store.signed(digests=True)
        if wrong:
            raise Leak(f"an undisturbed stream is said to be damaged: {wrong[0]}")
        lines = self._right.splitlines(keepends=True)
        if not lines:
            return "nothing was shown"
        known = certified(self._calm, self._public_key)
        if found := known.checked(head, self._calm.folder / OUTPUT).problems:
            raise Leak(f"an undisturbed output is said to be wrong: {found[0]}")
        if json.loads(lines[0])["tick"] < json.loads(lines[-1])["tick"]:
            self._forged(known, head, lines)
        if not known.checked({**head, "more": 1}, self._calm.folder / OUTPUT).problems:
            raise Leak("a head that nobody has signed is taken")
        return "the signed head fits the output, and no other"

    def _forged(self, known: Certified, head: dict[str, Any], lines: list[bytes]) -> None:
        """Outputs of which a line is gone, or came at another tick."""
        forged = self._place / "forged.jsonl"
        for told, content in (
            ("without its last line", lines[:-1]),
            ("with two lines swapped", [lines[-1], *lines[1:-1], lines[0]]),
            ("with a line twice", [*lines, lines[0]]),
        ):
            forged.write_bytes(b"".join(content))
            with suppress(ConfigurationError):  # no log at all
                if not known.checked(head, forged).problems:
                    raise Leak(f"an output {told} passes for what was released")

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def _fits(self, head: dict[str, Any], told: str) -> None:
        """A head that was signed is one of the undisturbed stream: earlier ones are, too."""
        lines = self._right.splitlines(keepends=True)
        known = self._place / "known.jsonl"
        known.write_bytes(b"".join(line for line in lines if json.loads(line)["tick"] <= head["tick"]))
        if not known.stat().st_size:
            return  # nothing was shown yet, and no file of nothing is a log
        if certified(self._calm, self._public_key).checked(head, known).problems:
            raise Leak(f"{told}: a head is signed that is not that of the log")

    def _look(self, kept: Kept, told: str) -> None:
        if not self._right.startswith(kept.output):
            raise Leak(f"{told} a reader sees another output than that of the undisturbed stream")

    def _same(self, releases: list[TickRelease], told: str) -> None:
        self._same_shown([(one.tick, dict(one.payloads)) for one in releases], told)

    def _same_shown(self, releases: Shown, told: str) -> None:
        known = dict(self._shown)
        for tick, payloads in releases:
            if known.get(tick) != payloads:
                raise Leak(f"{told} shows another release of tick {tick}")


def shown(kept: Kept) -> Shown:
    """What a reader of the state file sees."""
    with state_of(kept.spec) as store:
        return [(one.tick, dict(one.payloads)) for one in store.releases(1, _TICKS)]


def certified(kept: Kept, public_key: bytes) -> Certified:
    """Whose log it should be."""
    names = frozenset(query.name for query in kept.spec.queries)
    return Certified(kept.spec.name, kept.spec.digest, public_key.hex(), names)
