"""Real Spark applications, for tests that are asked for by their place: `make test-spark`. Without Java they fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spec_text import ALL, WARD, spec_text

if TYPE_CHECKING:
    from apart import Driver
    from cluster import Cluster
    from pyspark.sql import SparkSession

_HERE = Path(__file__).resolve().parent
# Each Java of these tests runs for seconds. Most of what the second compiler and a collector with threads of its own do
# would be for a time that never comes: more than a third of all that Java does here.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
collect_ignore_glob = ["drivers/*"]  # scripts, which start applications when they are imported


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    asked = (config.invocation_params.dir / argument.split("::")[0] for argument in config.args)
    return None if any(place.resolve().is_relative_to(_HERE) for place in asked) else True


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("JDK_JAVA_OPTIONS", _SHORT_LIVED)  # of drivers, masters, workers and their executors
    # What is used of it works: tests/spark/test_application.py.
    config.addinivalue_line("filterwarnings", "ignore:PySpark does not yet fully support pandas:FutureWarning")
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")  # sockets of PySpark to its JVM


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under `--dist loadfile` all files that use the shared application go to one process, so that there is one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneApplication(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "one application" if file in shared else file

    uses = {path: "spark: SparkSession" in path.read_text() for path in _HERE.glob("test_*.py")}
    shared = {path.relative_to(config.rootpath).as_posix() for path, does in uses.items() if does}
    return OneApplication(config, log)


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec, for an application that has to be for some stream."""
    path = tmp_path_factory.mktemp("visits") / "visits.toml"
    path.write_text(spec_text({**ALL, "share": 0.5}, {**WARD, "share": 0.5}))
    return path


@pytest.fixture(scope="session")
def spark(visits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One hardened application for all tests of a process: starting it takes longer than most of them. A task that
    fails is tried once more and not three times: each attempt is a Python process anew."""
    from apart import path_of_tests

    from evertally.spark import application

    os.environ["PYTHONPATH"] = path_of_tests()  # tasks are functions of test modules
    more = {"spark.local.dir": str(tmp_path_factory.mktemp("local")), "spark.sql.shuffle.partitions": "2"}
    session = application(visits, "local[2,2]", **more)
    yield session
    session.stop()


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Runs scripts as drivers of their own: apart(script, *arguments, name="open"). All are killed in the end."""
    from apart import Driver

    started: list[Driver] = []

    def run(
        script: Path, *arguments: object, name: str = "driver", environment: dict[str, str] | None = None
    ) -> Driver:
        started.append(Driver(script, arguments, tmp_path / f"{name}.log", environment or {}))
        return started[-1]

    yield run
    for driver in started:
        driver.kill()


@pytest.fixture
def real_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Starts standalone clusters on loopback: real_cluster(workers=2). All of it is killed in the end."""
    from cluster import Cluster

    started: list[Cluster] = []

    def start(workers: int = 2, **properties: str) -> Cluster:
        cluster = Cluster(tmp_path / f"cluster{len(started)}", properties)
        started.append(cluster)
        cluster.start(workers)
        return cluster

    yield start
    for cluster in started:
        cluster.kill()
