"""`evertally spark`: streams on a cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evertally.spark as es
from evertally.errors import ConfigurationError, HorizonExceeded
from evertally.runtime import load_spec
from evertally.runtime.spec import StreamSpec
from evertally.spark.failures import SparkFailed, withheld
from evertally.spark.protections import conf
from evertally.spark.public import verified

# A cell that cannot be read is null, and a record like others: it must not stop the rest. Columns go by name, in files
# whose headers are alike; quotes in quoted cells are written twice.
_OF_CSV = {"header": "true", "mode": "PERMISSIVE", "enforceSchema": "false", "escape": '"', "maxColumns": "1000000"}
_FORMATS = ("parquet", "json", "csv", "orc")
# What [events] declares, as Spark reads it from JSON. Numbers are texts: what 1.0, 1e3 and "1" are, the door says.
_TYPES = {
    "time": "string",
    "integer": "string",
    "number": "string",
    "text": "string",
    "list of text": "array<string>",
    "counts": "map<string, bigint>",
}


_OVER = "It was over before, and closes no later tick: those are for the next batch"


def properties(spec_file: Path) -> list[str]:
    """Lines of a spark-defaults.conf: name, blank, value."""
    return [f"{name} {value}" for name, value in conf(load_spec(spec_file)).items()]


def run_batch(spec_file: Path, events: str, kind: str, batch: str | None, until: str, master: str | None) -> str:
    """One batch of files, in an application of its own; gives what to say."""
    return _within(spec_file, master, lambda spark: _batch(spark, spec_file, events, kind, batch or events, until))


def _batch(spark: Any, spec_file: Path, events: str, kind: str, batch: str, until: str) -> str:
    spec = load_spec(spec_file)
    loaded = _parsed(_loaded(spark, kind, events), spec, kind)
    done = es.release_batch(loaded, spec_file, batch=batch, until=until)
    ticks = f"ticks {done['opened']} to {done['through']}"
    said = f"{spec.name}: {ticks} are out, batch {done['batch']}; see {spec.engine.public}"
    return said if done["through"] >= spec.clock.tick_before(until) else f"{said}. {_OVER}"


def run_stream(
    spec_file: Path,
    folder: str,
    kind: str,
    every: str,
    master: str | None,
    told: Callable[[], str],
    say: Callable[[str], None],
) -> None:
    """A folder of files as they come, until the input of this process ends. Where ticks close on request, each line of
    it is the time up to which they are over."""

    def run(spark: Any) -> str:
        spec = load_spec(spec_file)
        known = _loaded(spark, kind, folder).schema
        live = _reader(spark.readStream, kind).option("maxFileAge", "100000d")  # Spark would pass over old files
        events = _parsed((live if kind == "json" else live.schema(known)).load(folder), spec, kind)
        with es.release_stream(events, spec_file, every=every) as live:
            if live.spec.clock.close == "wall":
                live.wait()  # who waited for a line would not see that it has stopped
            while line := told():
                try:
                    say(f"ticks up to {live.close(line.strip())} are out")
                except (ConfigurationError, HorizonExceeded) as problem:  # a slip of the pen; nothing was asked for
                    say(f"{problem}")
        return ""

    _within(spec_file, master, run)


def submitted(spec_file: Path, arguments: list[str]) -> int:
    """Calls spark-submit with the properties of the stream, in a file that nobody else reads."""
    command = shutil.which("spark-submit")
    if command is None:
        raise ConfigurationError(
            "there is no spark-submit on the PATH; it comes with Spark, and with pip install pyspark"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "evertally.conf"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as written:
            written.write("\n".join(properties(spec_file)) + "\n")
        environment = os.environ | {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
        return subprocess.call([command, "--properties-file", str(file), *arguments], env=environment)  # noqa: S603


def taken_back(spec_file: Path) -> str:
    batch = es.take_back(spec_file)
    return f"{load_spec(spec_file).name}: batch {batch!r} is taken back, and what it was begun with is forgotten"


def verify(spec_file: Path, public_key: str | None) -> str:
    spec = load_spec(spec_file)
    batches, through = verified(spec, public_key)
    return f"{spec.name}: {batches} batches, ticks 1 to {through}: signatures, chain and files are what was released"


def certificate(spec_file: Path) -> str:
    return json.dumps(es.certificate(spec_file), indent=2)


def _within(spec_file: Path, master: str | None, run: Callable[[Any], str]) -> str:
    spark = es.application(spec_file, master)
    try:
        return run(spark)
    finally:
        spark.stop()


def _loaded(spark: Any, kind: str, place: str) -> Any:
    reader = _reader(spark.read, kind)
    try:
        with withheld("the events"):
            return reader.load(place)
    except SparkFailed as problem:
        raise ConfigurationError(
            f"there are no {kind} files to be read under {place} ({', '.join(problem.kinds)}): is it there, is a file "
            "in it, and of this format? What columns there are is read from it"
        ) from None


def _reader(reader: Any, kind: str) -> Any:
    if kind not in _FORMATS:
        raise ConfigurationError(f"--format is one of {', '.join(_FORMATS)}")
    made = reader.format("text" if kind == "json" else kind)
    for name, value in (_OF_CSV if kind == "csv" else {}).items():
        made = made.option(name, value)
    return made


def _parsed(lines: Any, spec: StreamSpec, kind: str) -> Any:
    """Records of JSON, a line each, in the types that the spec declares: Spark's own reader would look at all records
    for their types."""
    if kind != "json":
        return lines
    if spec.events is None:
        raise ConfigurationError(f"{spec.path.name}: JSON is read with declared types: add [events] with all columns")
    from pyspark.sql.functions import from_json

    shape = ", ".join(f"`{name}` {_TYPES[declared]}" for name, declared in spec.events.items())
    lines = lines.where("trim(value) != ''")  # a blank line is no record
    return lines.select(from_json("value", shape).alias("record")).select("record.*")
