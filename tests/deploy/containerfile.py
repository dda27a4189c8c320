"""The container file read, and its image made without an engine: a folder put together of this machine. Not a test.

Each step is run as it stands, in a chroot: the base is this machine's own system and Python, bound read-only. Only the
installation of the pinned packages may be left out (`packages`): then those of the tests are seen instead.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FILE = PROJECT / "deploy" / "Containerfile"
_CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin") or "chroot"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_SETTINGS = (
    "alternatives",
    "group",
    "hosts",
    "ld.so.cache",
    "nsswitch.conf",
    "passwd",
    "pip.conf",
    "resolv.conf",
    "ssl",
)


@dataclass(frozen=True)
class Step:
    """One instruction and the rest of its line."""

    word: str
    rest: str

    @property
    def listed(self) -> list[str]:
        """The rest as a list: [\"...\", ...]."""
        return json.loads(self.rest[self.rest.index("[") :])


def steps() -> list[list[Step]]:
    """The stages; what comes before the first is one too."""
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(), flags=re.MULTILINE)
    stages: list[list[Step]] = [[]]
    for line in filter(None, re.sub(r"\\\n\s*", " ", text).splitlines()):
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            stages.append([])
        stages[-1].append(Step(word, rest))
    return stages


def only(stage: list[Step], word: str) -> Step:
    (found,) = [step for step in stage if step.word == word]
    return found


class Image:
    """A root folder. Use it in a mount namespace of its own (`unshare --mount`): nothing is unmounted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for place in (*_SYSTEM, sys.base_prefix):
            path = Path(place)
            if path.is_symlink():
                self.path(place).symlink_to(path.readlink())
            elif path.is_dir():
                self.bind(path, place)
        self.path("/etc/evertally").mkdir(parents=True)
        for name in filter(lambda name: Path("/etc", name).exists(), _SETTINGS):
            subprocess.run(["cp", "-a", f"/etc/{name}", self.path("/etc")], check=True)
        for place in ("/tmp", "/src", "/opt", "/var/lib", "/var/cache", "/dev", "/proc"):
            self.path(place).mkdir(parents=True, exist_ok=True)
        mount("-t", "proc", "proc", self.path("/proc"))
        mount("-t", "tmpfs", "tmpfs", self.path("/tmp"))
        for device in ("null", "urandom", "random", "zero"):
            self.path(f"/dev/{device}").touch()
            mount("--bind", f"/dev/{device}", self.path(f"/dev/{device}"))

    def path(self, place: str) -> Path:
        return self.root / place.lstrip("/")

    def bind(self, source: Path, place: str, *, writable: bool = False) -> None:
        self.path(place).mkdir(parents=True, exist_ok=True)
        mount("--bind", source, self.path(place))
        if not writable:
            mount("-o", "remount,bind,ro", self.path(place))

    def build(self, *, packages: bool) -> None:
        """The steps of both stages, in their order."""
        _, build, last = steps()
        for step in (*build, *last):
            if step.word == "COPY" and not step.rest.startswith("--from"):
                *sources, target = step.rest.split()
                for source in sources:
                    self._copy(source, self.path("/src") / target)
            elif step.word == "RUN":
                for command in step.rest.split(" && "):
                    if packages or "requirements/" not in command:
                        self._run(f"cd /src && {command}")
                    else:
                        self._see_packages_of_tests()

    @staticmethod
    def _copy(source: str, target: Path) -> None:
        if (PROJECT / source).is_dir():
            shutil.copytree(PROJECT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            place = target / source if target.is_dir() else target
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / source, place)

    def _see_packages_of_tests(self) -> None:
        sites = [place for place in sys.path if place.endswith("site-packages")]
        for site in sites:
            self.bind(Path(site), site)
        (packages,) = self.path("/opt/evertally/lib").glob("python*/site-packages")
        (packages / "of-tests.pth").write_text("\n".join(sites))

    def _run(self, command: str) -> None:
        environment = {"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        subprocess.run(
            [_CHROOT, self.root, "/bin/sh", "-c", command], env=environment, check=True, stdout=subprocess.DEVNULL
        )

    def start(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        """A process as the file says: its user, its variables, without a right that it could get back."""
        user, _, group = only(steps()[2], "USER").rest.partition(":")
        given = dict(pair.split("=", 1) for pair in only(steps()[2], "ENV").rest.split()) | environment
        return subprocess.Popen(
            [
                _CHROOT,
                self.root,
                "/usr/bin/setpriv",
                f"--reuid={user}",
                f"--regid={group}",
                "--clear-groups",
                "--no-new-privs",
                "--bounding-set=-all",
                "--inh-caps=-all",
                *command,
            ],
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def close(self, volumes: list[str]) -> None:
        """From here on only the volumes can be written."""
        kept = [(place, self.root.parent / f"volume{number}") for number, place in enumerate(volumes)]
        for place, own in kept:
            shutil.copytree(self.path(place), own)
            shutil.copystat(self.path(place), own)
            status = self.path(place).stat()
            shutil.chown(own, status.st_uid, status.st_gid)
        mount("--rbind", self.root, self.root)
        mount("-o", "remount,bind,ro", self.root)
        for place, own in kept:
            mount("--bind", own, self.path(place))


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)
