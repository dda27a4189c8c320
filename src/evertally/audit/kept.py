"""What was audited already, in files: an audit of everything that was interrupted goes on.

There is one file for each mechanism, in a folder named after all that its reports depend on: the effort and the seed,
every file of this package and of the libraries that compute in it. Of another program, or other games, nothing is
taken over: nobody reads a verdict about code that is not there any more.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import evertally
from evertally.audit.report import Report
from evertally.contract.snapshot import guarantee_from_json, guarantee_to_json

_LIBRARIES = ("numpy", "numba", "python-flint")  # that numbers of an audit come from
# Fields of a report, and how they are read back; scores are not kept, they are for pictures.
_READ: dict[str, Callable[[Any], Any]] = {
    "mechanism": str,
    "guarantee": guarantee_from_json,
    "adversary": str,
    "method": str,
    "unit": str,
    "claimed": float,
    "audited": float,
    "delta": float,
    "error": float,
    "trials": int,
    "stopped": str,
    "seconds": float,
    "aspect": str,
    "power": float,
    "undecided": bool,
}
assert {field.name for field in fields(Report)} == {*_READ, "scores"}


def report_to_json(report: Report) -> dict[str, Any]:
    """A report without its scores.

    >>> import evertally as et
    >>> report = Report("Counter()", et.PureDP(1.0), "change of tick 1", "event", "epsilon", 1.0, 0.1 + 0.2, 0, 1e-6, 9)
    >>> report_from_json(json.loads(json.dumps(report_to_json(report)))) == report
    True
    """
    plain = {name: read(getattr(report, name)) for name, read in _READ.items() if name != "guarantee"}
    # JSON has no infinite numbers; float() reads their names.
    named = {k: repr(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in plain.items()}
    return named | {"guarantee": guarantee_to_json(report.guarantee)}


def report_from_json(data: Mapping[str, Any]) -> Report:
    """The way back: floats are written with all their digits, so nothing is lost."""
    return Report(**{name: read(data[name]) for name, read in _READ.items()})


@cache
def program() -> str:
    """A name of the program: other code, another interpreter or library, another name."""
    digest = hashlib.sha256()
    root = Path(evertally.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    for library in _LIBRARIES:
        digest.update(f"{library} {importlib.metadata.version(library)}\0".encode())
    digest.update(f"{platform.python_version()} {platform.machine()}".encode())
    return digest.hexdigest()


def _sum(reports: Any) -> str:
    """Tells what was damaged or edited by hand; it is no proof against somebody who computes it anew."""
    return hashlib.sha256(json.dumps(reports, sort_keys=True).encode()).hexdigest()


class Kept:
    """The reports of one audit of everything, as far as it came.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Kept(Path(folder), {"effort": "short", "seed": 0})
    ...     report = Report("Counter()", evertally.PureDP(1.0), "tick 1", "event", "epsilon", 1.0, 0.3, 0, 1e-6, 9)
    ...     kept.keep("a counter", [report])
    ...     found = kept.reports("a counter")
    ...     found == [report], kept.reports("another"), Kept(Path(folder), {"seed": 1}).reports("a counter")
    (True, None, None)
    """

    def __init__(self, folder: Path, audit: Mapping[str, Any]) -> None:
        """`audit`: what its reports depend on, besides the program."""
        self._identity = {"program": program(), **audit}
        text = json.dumps(self._identity, sort_keys=True)
        self._all, self._effort = folder / "kept", audit.get("effort")
        self._folder = self._all / hashlib.sha256(text.encode()).hexdigest()[:16]

    def keep(self, name: str, reports: Sequence[Report]) -> None:
        """A mechanism that is done. An interruption leaves the whole file or none."""
        self._folder.mkdir(parents=True, exist_ok=True)
        data = {"audit": {"name": name, **self._identity}, "reports": [report_to_json(report) for report in reports]}
        data["sum"] = _sum(data["reports"])
        unfinished = self._path(name).with_suffix(".new")
        unfinished.write_text(json.dumps(data, indent=1, allow_nan=False), encoding="utf-8")
        os.replace(unfinished, self._path(name))

    def reports(self, name: str) -> list[Report] | None:
        """What was found, if it was audited by this program in this way, and the file is whole."""
        identity, reports = self._read(self._path(name))
        return reports if identity == {"name": name, **self._identity} else None

    def seconds(self, name: str) -> float:
        """How long it took any program, with this effort; infinity if nobody knows. Only the order of work depends on
        it: a verdict about other code is not taken over, the time that it took is as good a guess as there is."""
        found = [self._read(path) for path in self._all.glob(f"*/{self._path(name).name}")]
        times = [sum(report.seconds for report in reports) for identity, reports in found if self._alike(identity)]
        return max(times, default=math.inf)

    def _alike(self, identity: Any) -> bool:
        return isinstance(identity, dict) and identity.get("effort") == self._effort

    @staticmethod
    def _read(path: Path) -> tuple[Any, list[Report]]:
        """What a file is about, and its reports; nothing of one that is missing, or not as it was written."""
        try:
            data = json.loads(path.read_bytes())
            if not data["reports"] or data["sum"] != _sum(data["reports"]):
                return None, []
            return data["audit"], [report_from_json(report) for report in data["reports"]]
        except Exception:  # whatever somebody has written there, it is audited anew
            return None, []

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"
