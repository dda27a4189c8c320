"""A standalone cluster of two workers, authenticated and encrypted: what it shows, and what becomes of jobs whose
machines slow down or die. One cluster for all of it: starting one takes longer than most of these."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apart import Apart, Driver, kill
from campaign import Size, made_events, write_spec
from cluster import Cluster
from one_process import assert_same, in_one_process
from planted import COUNT, found_in

from evertally.runtime import load_spec
from evertally.spark.public import batches
from waiting import until

_DRIVERS = Path(__file__).with_name("drivers")
SIZE = Size(columns=300_000, width=65_536, events=40_000, users=20_000)
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
}
_SHARED = {"spark.sql.shuffle.partitions": "8", "spark.executor.memory": "512m"}


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("machines") / "cluster", {})
    try:
        cluster.start(2)
        yield cluster
    finally:
        cluster.kill()


def test_a_cluster_is_looked_at_too(
    tmp_path: Path, visits: Path, two_workers: Cluster, apart: Callable[..., Driver]
) -> None:
    """The application passes, its executors say themselves how they log, and they write nothing down."""
    script = _DRIVERS / "cluster_job.py"
    driver = apart(script, visits, two_workers.url, tmp_path / "found", environment=two_workers.environment)
    driver.until_said("ready\n")
    workers = [worker for worker in two_workers.workers if worker.executors()]
    assert workers
    assert any(worker.python_workers() for worker in workers)
    for number in (1, 2):
        assert set(found_in(two_workers.folder / f"work{number}", bytes(32))) == set()
    driver.go()
    said = driver.finished()
    assert (tmp_path / "found").read_text() == f"{COUNT} logs,errors,memory on disk"
    assert set(found_in(driver.log, bytes(32))) == set(), said


class Jobs:
    """Batch jobs on a cluster, and what befalls them in the middle."""

    def __init__(self, folder: Path, cluster: Cluster, apart: Callable[..., Driver]) -> None:
        self.folder, self.cluster, self.next = folder, cluster, 1
        self.spec = write_spec(folder / "stream", SIZE, horizon=200)
        engine = load_spec(self.spec).engine
        self.root, self.public = Path(engine.root), Path(engine.public)
        more = [f"{name}={value}" for name, value in (_SPECULATION | _SHARED).items()]
        script = _DRIVERS / "batch_driver.py"
        self.driver = apart(script, self.spec, cluster.url, *more, environment=cluster.environment)
        self.driver.until_said("running\n")

    def put(self, batch: int, seed: int = 0) -> list[Path]:
        """Files of a batch: of one size, whatever the events. Who reads a replaced one does not notice."""
        paths = [self.folder / f"{batch}-{number}.parquet" for number in range(4)]
        for number, path in enumerate(paths):
            table = made_events(SIZE, batch + 1, 1000 * seed + 10 * batch + number)
            filled = [pa.compute.fill_null(table["time"], 0), pa.compute.fill_null(table["page"], -1)]
            texts = [pa.compute.utf8_lpad(pa.compute.fill_null(table[name], ""), 16) for name in ("user", "item")]
            whole = pa.table([filled[0], texts[0], filled[1], texts[1]], names=["time", "user", "page", "item"])
            pq.write_table(whole, path, compression="none", use_dictionary=False, write_statistics=False)
        assert len({path.stat().st_size for path in paths}) == 1
        return paths

    def ask(self, batch: int, checksums: bool = True, files: list[Path] | None = None) -> list[Path]:
        files = self.put(batch) if files is None else files
        self.driver.say(" ".join([str(batch), str(batch + 1), str(checksums).lower(), *map(str, files)]))
        return files

    def ended(self, batch: int) -> list[str]:
        """How it ended, each time that it was asked for."""
        words = (f"released {batch} ", f"stopped {batch} ")
        return [line for line in self.driver.said().splitlines() if line.startswith(words)]

    def over(self, batch: int, times: int = 1) -> bool:
        return len(self.ended(batch)) >= times or self.driver.process.poll() is not None

    def answer(self, batch: int, times: int = 1) -> str:
        """How it ended, the last time."""
        until(lambda: self.over(batch, times), pause=0.05)
        assert self.driver.process.poll() is None, self.driver.said()
        return self.ended(batch)[-1]

    def midway(self, parts: int = 1, checksums: bool = True) -> tuple[int, list[Path]]:
        """A batch, and its files: of which some parts have written their states, and all that compute the others are
        stopped. One that was over before it could be stopped is released, and the next one is tried."""
        while True:
            batch, self.next = self.next, self.next + 1
            files, written = self.ask(batch, checksums), self.root / f"state/{batch}"

            def seen(written: Path = written) -> int:
                return len(list(written.glob("[0-9]*"))) if written.exists() else 0

            until(lambda batch=batch, seen=seen: seen() >= parts or self.over(batch), pause=0.002)
            self._signal(signal.SIGSTOP)
            if seen() < SIZE.parts and not self.ended(batch):
                return batch, files
            self.go_on()
            self.released(batch)

    def released(self, batch: int) -> None:
        assert self.answer(batch) == f"released {batch} through {batch + 1}"

    def go_on(self, but: Apart | None = None) -> None:
        self._signal(signal.SIGCONT, but)

    def _signal(self, number: int, but: Apart | None = None) -> None:
        for worker in self.cluster.workers:
            for process in worker.python_workers() if worker is not but else []:
                with suppress(ProcessLookupError):
                    os.kill(process, number)

    def at_work(self) -> Apart:
        """A worker with a task that stands still."""
        return next(worker for worker in self.cluster.workers if worker.python_workers())


def test_jobs_whose_machines_slow_down_or_die(
    tmp_path: Path, two_workers: Cluster, apart: Callable[..., Driver]
) -> None:
    jobs = Jobs(tmp_path, two_workers, apart)
    jobs.ask(0)
    jobs.released(0)

    # Tasks that stand still: Spark gives them to the other machine, too. They wake when all is over, and write late.
    batch, _ = jobs.midway()
    jobs.go_on(but=jobs.at_work())
    jobs.released(batch)
    jobs.go_on()

    # One realisation: machines are lost in mid-job, and what is read again is not what it had been. 5 of 8 parts have
    # written then: some tasks have reported, and others are done again. Spark's own checksums notice it; without them
    # it is noticed all the same.
    for checksums, words in ((True, "Spark stopped with"), (False, "parts of one job saw different input")):
        batch, files = jobs.midway(5, checksums)
        as_it_was = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
        jobs.put(batch, seed=7)
        for worker in two_workers.workers:
            kill(worker.executors())
        jobs.go_on()
        stopped = jobs.answer(batch)
        assert stopped.startswith(f"stopped {batch} by")
        assert words in stopped
        assert len(batches(load_spec(jobs.spec))) == batch
        for path, (data, when) in as_it_was.items():
            path.write_bytes(data)
            os.utime(path, ns=(when, when))
        jobs.ask(batch, files=files)
        assert jobs.answer(batch, 2) == f"released {batch} through {batch + 1}"

    # A worker and its executor die in mid-batch: the job ends by itself.
    batch, _ = jobs.midway()
    jobs.at_work().kill()
    jobs.go_on()
    jobs.released(batch)
    jobs.driver.go()
    jobs.driver.finished()

    def table(batch: int) -> pa.Table:
        return pa.concat_tables([pq.read_table(tmp_path / f"{batch}-{number}.parquet") for number in range(4)])

    expected = in_one_process(jobs.spec, tmp_path / "one", [(table(number), number + 1) for number in range(jobs.next)])
    assert len(expected) == jobs.next >= 5
    assert assert_same(jobs.spec, expected) > jobs.next * SIZE.columns
