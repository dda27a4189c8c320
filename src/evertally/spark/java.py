"""Which Java runs Spark."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from evertally.errors import ConfigurationError

OLDEST = 17
_INSTALL = f"Spark needs Java {OLDEST} or newer; on Debian: apt-get install openjdk-17-jre-headless"


def find_java() -> Path:
    """The home of the Java to use: JAVA_HOME, the one on the PATH, or the oldest of /usr/lib/jvm that will do."""
    said = os.environ.get("JAVA_HOME")
    if said:
        version = java_version(Path(said))
        if version is None:
            raise ConfigurationError(f"there is no Java at JAVA_HOME={said}. {_INSTALL}")
        if version < OLDEST:
            raise ConfigurationError(f"the Java at JAVA_HOME={said} is of version {version}. {_INSTALL}")
        return Path(said)
    for homes in (_on_path(), _installed()):
        found = [(version, home) for home in homes if (version := java_version(home)) is not None and version >= OLDEST]
        if found:
            return min(found)[1]
    raise ConfigurationError(f"there is no Java here. {_INSTALL}, or set JAVA_HOME")


def java_version(home: Path) -> int | None:
    """Of the Java in a folder; None: there is none.

    >>> java_version(Path("/no/such/place")) is None
    True
    """
    if not os.access(home / "bin/java", os.X_OK):
        return None
    try:
        written = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text(errors="replace"), re.M)
    except OSError:
        return None
    return int(written[1]) if written else None


def _on_path() -> Iterator[Path]:
    java = shutil.which("java")
    if java is not None:
        yield Path(java).resolve().parent.parent


def _installed() -> Iterator[Path]:
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
