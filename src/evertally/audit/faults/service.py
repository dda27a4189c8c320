"""State faults against the running service: a real process that is killed, started twice, put back.

Two services play the same batches under the same key: one is left alone, the other is killed at random moments and in
the middle of its writes, started beside itself, given an older state, robbed of the file that knows how far it has
come, sent a batch again with another content. Whoever reads the outputs, at any moment, must see what the calm one
shows: no tick missing, none different, none twice.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evertally.audit.faults.findings import Found, held, leak, not_here
from evertally.audit.faults.service_copy import KEY, OUTPUT, STATE, batch, write_copy
from evertally.audit.faults.service_process import Service
from evertally.audit.report import Report
from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.spec import StreamSpec

KILLS = {"short": 4, "long": 60}
_TRIES, _PAUSE = 200, 0.05  # of one request to a service that keeps dying, and seconds between them
Rows = list[tuple[str, Callable[[], Report]]]


class Stream:
    """The stream, as reports name it."""

    def __init__(self, spec: StreamSpec) -> None:
        self.audited_as, self.horizon = f"service of {spec.name}", spec.horizon
        self.guarantee = self.charge = spec.guarantee


def service_audits(spec: StreamSpec, effort: Literal["short", "long"] = "short", seed: int = 0) -> Rows:
    """The rows of a campaign against the service of a spec. It is played when the first of them is asked for."""
    campaign, stream = Campaign(spec, KILLS[effort], seed), Stream(spec)

    def report(name: str) -> Report:
        return campaign.found.get(name, not_here(campaign.why)).report(stream, name)

    return [(name, partial(report, name)) for name in NAMES]


NAMES = (
    "a second process",
    "a batch again with another content",
    "killed",
    "an older state",
    "no sidecar",
    "releases",
)


class Campaign:
    """One stream, killed so often; `found` are its findings by name, `why` there are none."""

    def __init__(self, spec: StreamSpec, kills: int, seed: int) -> None:
        self._spec, self._kills, self._random = spec, kills, np.random.default_rng(seed)
        self._wrong: list[str] = []  # what readers saw otherwise
        self.why = ""

    @cached_property
    def found(self) -> dict[str, Found]:
        with tempfile.TemporaryDirectory() as folder:
            place, services = Path(folder), list[Service]()
            Key.generate().save(place / KEY)
            try:
                for name in ("calm", "without", "hurt"):
                    copy = write_copy(self._spec, place / name, place / KEY)
                    services.append(Service(copy, *services[:1]))
                return self._play(*services)
            except StateError as error:
                self.why = str(error)
                return {}
            finally:
                for service in services:
                    service.kill()

    def _play(self, calm: Service, without: Service, hurt: Service) -> dict[str, Found]:
        last = self._spec.last_tick
        ticks = self._kills + 5 if last is None else min(last, self._kills + 5)
        self._calm(calm, ticks, ticks)
        self._calm(without, ticks, ticks - 1)
        right = _output(calm)
        if right == _output(without):
            raise StateError("no batch that was made up for this spec shows in a release")
        self._right = right
        if not hurt.start():
            raise StateError(f"a second stream under the same key does not start: {hurt.reason}")
        found = {"a second process": self._second(hurt), "a batch again with another content": self._other(hurt)}
        older, kills = self._kill_often(hurt, ticks)
        found["killed"] = kills
        hurt.kill()
        found["an older state"] = self._refused(hurt, older, "an older state")
        found["no sidecar"] = self._refused(hurt, None, "no sidecar")
        found["releases"] = self._compare(hurt, ticks)
        return found

    # -- plays ---------------------------------------------------------------------------------------------------------

    def _calm(self, service: Service, ticks: int, sent: int) -> None:
        if not service.start():
            raise StateError(f"a stream of this spec does not start as a service: {service.reason}")
        for tick in range(1, ticks + 1):
            if tick <= sent:
                self._insist(service, partial(service.send, f"batch-{tick}", batch(service.spec, tick)))
            self._insist(service, partial(service.close, tick))
        service.stop()

    def _insist(self, service: Service, ask: Callable[[], int | None]) -> None:
        """The same request until it is answered, by whichever process runs then."""
        for _ in range(_TRIES):
            if not service.running and not service.start():
                raise StateError(f"the service does not start again: {service.reason}")
            status = ask()
            if status is not None and status < 300:
                return
            if status is not None and status not in (429, 503):
                raise StateError(f"the service answers {status} to a request of this audit")
            threading.Event().wait(_PAUSE)
        raise StateError("the service does not answer")

    def _kill_often(self, service: Service, ticks: int) -> tuple[Path, Found]:
        """A kill in every tick: at once, after some time, or when one of its files changes; the first state of all."""
        older = service.folder / "older"
        files = [service.folder / name for name in (f"{STATE}-wal", f"{KEY}.bound", OUTPUT)]
        kills = 0
        for tick in range(2, ticks + 1):
            content = batch(service.spec, tick)
            if tick <= self._kills + 1:
                self._kill_while(service, files, partial(service.send, f"batch-{tick}", content))
                kills += 1
            self._insist(service, partial(service.send, f"batch-{tick}", content))
            if tick % 2 and tick <= self._kills + 1:
                self._kill_while(service, files, partial(service.close, tick))
                kills += 1
            self._insist(service, partial(service.close, tick))
            self._look(service)
            if not older.exists():
                service.kill()
                shutil.copytree(service.folder, older)
                self._insist(service, partial(service.close, tick))
        told = f"after {kills} kills the stream goes on"
        return older, leak(self._wrong[0]) if self._wrong else held(f"{told}, and no reader saw another release")

    def _kill_while(self, service: Service, files: list[Path], ask: Callable[[], Any]) -> None:
        """Kills the process while it works on a request; what readers find then must be what the calm one shows."""
        if not service.running:
            if self._random.random() < 0.3:  # one that has only begun to start
                service.begin()
                threading.Event().wait(self._random.uniform(0, 1))
                service.kill()
            self._insist(service, lambda: 200)
        asking = threading.Thread(target=ask)
        asking.start()
        if self._random.random() < 0.5:
            service.kill_after_change(files[self._random.integers(len(files))], int(self._random.integers(1, 4)), 0.5)
        else:
            threading.Event().wait(self._random.uniform(0, 0.1))
            service.kill()
        asking.join()
        self._look(service)

    def _look(self, service: Service) -> None:
        shown = _output(service)
        whole = shown[: shown.rfind(b"\n") + 1]
        if not self._right.startswith(whole):
            self._wrong.append(f"a reader saw {_parting(whole, self._right)} otherwise than the undisturbed stream")

    # -- moves ---------------------------------------------------------------------------------------------------------

    def _second(self, service: Service) -> Found:
        """Another process on the same files, while the first one runs."""
        second = service.beside()
        if second.start():
            second.kill()
            return leak("a second process served the same stream at the same time")
        if not service.running:
            return leak("a second process ended the first one")
        return held("a second process on the same files is refused, and the first one goes on")

    def _other(self, service: Service) -> Found:
        """The first batch twice, then under the same id with another content; then a tick that is over, again."""
        content, other = batch(service.spec, 1), batch(service.spec, 2)
        for _ in range(2):
            self._insist(service, partial(service.send, "batch-1", content))
        statuses = [service.send("batch-1", other)]
        self._insist(service, partial(service.close, 1))
        statuses.append(service.send("batch-1", other))
        self._insist(service, partial(service.close, 1))
        self._look(service)
        if self._wrong:
            return leak(f"a batch that came again moved a release: {self._wrong[0]}")
        return held(f"answers {statuses}; a batch counts once, by its first content, and a tick ends once")

    def _refused(self, service: Service, older: Path | None, what: str) -> Found:
        """An older state in the place of the last one, with the outputs of then, or no sidecar: the stream does not go
        on."""
        files = [name for name in (STATE, f"{STATE}-wal", f"{STATE}-shm", OUTPUT) if older] or [f"{KEY}.bound"]
        with tempfile.TemporaryDirectory() as kept:
            for name in files:
                if (file := service.folder / name).exists():
                    shutil.move(file, Path(kept) / name)
                if older is not None and (older / name).exists():
                    shutil.copy2(older / name, service.folder / name)
            went_on = service.start()
            if went_on:
                self._look(service)
                service.kill()
            for name in files:
                (service.folder / name).unlink(missing_ok=True)
                if (Path(kept) / name).exists():
                    shutil.move(Path(kept) / name, service.folder / name)
        if went_on:
            return leak(f"with {what} the service went on: the ticks since would be released again, for other events")
        return held(f"with {what} the service does not start: {service.reason[:90]}")

    def _compare(self, service: Service, ticks: int) -> Found:
        """In the end, in good order: the outputs are the same bytes."""
        if not service.start():
            return leak(f"the stream does not go on after all that: {service.reason}")
        self._insist(service, partial(service.close, ticks))
        service.stop()
        shown = _output(service)
        if shown != self._right:
            return leak(
                f"{_parting(shown, self._right)} is not as in the undisturbed stream: missing, twice or different"
            )
        return leak(self._wrong[0]) if self._wrong else held(f"{ticks} ticks, the same bytes as without a fault")


def _output(service: Service) -> bytes:
    file = service.folder / OUTPUT
    return file.read_bytes() if file.exists() else b""


def _parting(shown: bytes, right: bytes) -> str:
    """The first line that differs, by its number: lines hold releases, which the report need not repeat."""
    pairs = zip(shown.splitlines(), right.splitlines(), strict=False)
    number = next((i for i, (one, other) in enumerate(pairs, start=1) if one != other), None)
    return f"line {number}" if number is not None else f"the number of lines ({shown.count(10)}, {right.count(10)})"
