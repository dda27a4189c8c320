"""`evertally spark`: streams on a cluster."""

from __future__ import annotations

from pathlib import Path

from evertally.runtime import load_spec
from evertally.spark.protections import conf


def properties(spec_file: Path) -> list[str]:
    """Lines of a spark-defaults.conf: name, blank, value."""
    return [f"{name} {value}" for name, value in conf(load_spec(spec_file)).items()]
