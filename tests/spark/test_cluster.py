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
        self.folder, self.cluster = folder, cluster
        self.spec = write_spec(folder / "stream", SIZE, horizon=20)
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

    def answer(self, batch: int, times: int = 1, first: bool = False) -> str:
        """How it ended, the last time or the first."""

        def heard() -> bool:
            ended = [line for line in self.driver.said().splitlines() if line.startswith(words)]
            return len(ended) >= times or self.driver.process.poll() is not None

        words = (f"released {batch} ", f"stopped {batch} ")
        until(heard, pause=0.05)
        assert self.driver.process.poll() is None, self.driver.said()
        return [line for line in self.driver.said().splitlines() if line.startswith(words)][0 if first else -1]

    def midway(self, batch: int, parts: int = 1) -> None:
        """Waits until some parts have written their states, and stops all that compute the others."""
        written = self.root / f"state/{batch}"
        until(lambda: written.exists() and len(list(written.glob("[0-9]*"))) >= parts, pause=0.002)
        self._signal(signal.SIGSTOP)
        assert not (self.root / f"manifest/{batch:08d}").exists(), "it was over before it could be stopped"

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
    assert jobs.answer(0) == "released 0 through 1"

    # Tasks that stand still: Spark gives them to the other machine, too. They wake when all is over, and write late.
    jobs.ask(1)
    jobs.midway(1)
    jobs.go_on(but=jobs.at_work())
    assert jobs.answer(1) == "released 1 through 2"
    jobs.go_on()

    # One realisation: machines are lost in mid-job, and what is read again is not what it had been. 5 of 8 parts have
    # written then: some tasks have reported, and others are done again. Spark's own checksums notice it; without them
    # it is noticed all the same.
    for batch, checksums in ((2, True), (3, False)):
        files = jobs.ask(batch, checksums)
        as_it_was = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
        jobs.midway(batch, parts=5)
        jobs.put(batch, seed=7)
        for worker in two_workers.workers:
            kill(worker.executors())
        jobs.go_on()
        assert jobs.answer(batch).startswith(f"stopped {batch} by")
        assert len(batches(load_spec(jobs.spec))) == batch
        for path, (data, when) in as_it_was.items():
            path.write_bytes(data)
            os.utime(path, ns=(when, when))
        jobs.ask(batch, files=files)
        assert jobs.answer(batch, 2) == f"released {batch} through {batch + 1}"
    assert "Spark stopped with" in jobs.answer(2, first=True)
    assert "parts of one job saw different input" in jobs.answer(3, first=True)

    # A worker and its executor die in mid-batch: the job ends by itself.
    jobs.ask(4)
    jobs.midway(4)
    jobs.at_work().kill()
    jobs.go_on()
    assert jobs.answer(4) == "released 4 through 5"
    jobs.driver.go()
    jobs.driver.finished()

    def table(batch: int) -> pa.Table:
        return pa.concat_tables([pq.read_table(tmp_path / f"{batch}-{number}.parquet") for number in range(4)])

    expected = in_one_process(jobs.spec, tmp_path / "one", [(table(batch), batch + 1) for batch in range(5)])
    assert len(expected) == 5
    assert assert_same(jobs.spec, expected) > 5 * SIZE.columns
