"""A TOML file beside its text: what it says, and on which line it says it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from evertally.errors import ConfigurationError
from evertally.runtime.spec_options import Check


class SpecFile:
    """The parsed file beside its text, to find the line of whatever is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot read the spec {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{path}: a spec is a TOML file in UTF-8") from None
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            where = re.search(r"at line (\d+)", str(error))
            line = where[1] if where else str(text.count("\n") + 1)
            raise ConfigurationError(f"{path}:{line}: this is not valid TOML: {error}") from None
        self._lines = _lines_of(text)

    def line(self, section: str, option: str | None = None, number: int = 1) -> int:
        """The line of an option, of its section if it is not written out, or 1."""
        for place in ((section, number, option), (section, number, None), ("", 1, section)):
            if place in self._lines:
                return self._lines[place]
        return 1

    def refuse(self, problem: str, section: str, option: str | None = None, number: int = 1) -> NoReturn:
        raise ConfigurationError(f"{self.path}:{self.line(section, option, number)}: {problem}")

    def checked(self, given: object, allowed: Mapping[str, Check], section: str, number: int = 1) -> dict[str, Any]:
        shown = f"[[{section}]]" if section == "query" else f"[{section}]"
        if not isinstance(given, dict):
            self.refuse(f"{shown} must be a table", section, None, number)
        values = {}
        for option, value in given.items():
            if option not in allowed:
                hint = nearest(option, allowed)
                self.refuse(f"{shown} has no option {option!r}.{hint}", section, option, number)
            try:
                values[option] = allowed[option](value)
            except ConfigurationError as error:
                self.refuse(f"{shown} {option} {error}", section, option, number)
        return values


def _lines_of(text: str) -> dict[tuple[str, int, str | None], int]:
    lines: dict[tuple[str, int, str | None], int] = {}
    section, number = "", 1
    seen: dict[str, int] = {}
    for position, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line):
            section = header[1]
            number = seen[section] = seen.get(section, 0) + 1
            lines.setdefault((section, number, None), position)
        elif option := re.match(r"""\s*["']?([\w-]+)["']?\s*[.=]""", line):
            lines.setdefault((section, number, option[1]), position)
    return lines


def nearest(option: str, allowed: Iterable[str]) -> str:
    close = difflib.get_close_matches(option, list(allowed), 1)
    return f" Did you mean {close[0]!r}?" if close else f" It has: {', '.join(allowed)}"
