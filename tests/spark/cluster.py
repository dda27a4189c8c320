"""A real standalone cluster on loopback, authenticated and encrypted; not a test."""

from __future__ import annotations

import os
import re
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path

from apart import Apart, path_of_tests

from evertally.spark.java import find_java


class Cluster:
    """A master and its workers, each leading a session of its own with the executors that it starts."""

    def __init__(self, folder: Path, properties: dict[str, str]) -> None:
        self.folder, self.workers = folder, list[Apart]()
        self.master: Apart | None = None
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        self.url = ""
        usual = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_urlsafe(24),
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.saslFallback": "false",
            "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        }
        descriptor = os.open(self.conf / "spark-defaults.conf", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.writelines(f"{name} {value}\n" for name, value in (usual | properties).items())

    @property
    def environment(self) -> dict[str, str]:
        """For its parts and for drivers: where the secret is, and which Python and Java."""
        package = find_spec("pyspark")
        assert package is not None
        assert package.origin is not None
        return {
            "SPARK_HOME": str(Path(package.origin).parent),
            "SPARK_CONF_DIR": str(self.conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "JAVA_HOME": str(find_java()),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": path_of_tests(),
        }

    def start(self, workers: int, cores: int = 1, memory: str = "1g") -> None:
        """Returns when all workers are registered. Ports are those that the system gives."""
        self.master = self._part("Master", "--port", "0")
        self.master.until_said("Starting Spark master at spark://")
        found = re.search(r"Starting Spark master at (spark://[\w.:-]+)", self.master.said())
        assert found is not None
        self.url = found[1]
        for number in range(1, workers + 1):
            place = ("--work-dir", str(self.folder / f"work{number}"))
            size = ("--cores", str(cores), "--memory", memory)
            # Each is a machine of its own for Spark: it tries no task twice on one.
            address = f"127.0.0.{1 + number}"
            part = self._part("Worker", *place, *size, self.url, log=f"worker{number}.log", address=address)
            self.workers.append(part)
        self.master.until_said("Registering worker", workers)

    def _part(self, kind: str, *arguments: str, log: str = "master.log", address: str = "127.0.0.1") -> Apart:
        script = str(Path(self.environment["SPARK_HOME"]) / "bin/spark-class")
        usual = (
            "--host",
            address,
            "--webui-port",
            "0",
            "--properties-file",
            str(self.conf / "spark-defaults.conf"),
        )
        command = [script, f"org.apache.spark.deploy.{kind.lower()}.{kind}", *usual, *arguments]
        return Apart(command, self.folder / log, self.environment | {"SPARK_LOCAL_IP": address}, self.folder)

    def kill(self) -> None:
        """All of it, executors too."""
        for part in (*self.workers, *([self.master] if self.master is not None else [])):
            part.kill()
