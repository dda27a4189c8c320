"""A TOML file beside its text: what it says, and on which line it says it."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evertally.errors import ConfigurationError

Model = TypeVar("Model", bound=BaseModel)

SEVERAL = ("query", "source", "sink")  # sections of which there may be several: [[query]]
# What TOML itself takes without quotes: numbers, truth values, dates and times.
_VALUE = re.compile(
    r"true|false|[+-]?(?:inf|nan)|[+-]?[\d._]+(?:[eE][+-]?\d+)?|0[xob][\da-fA-F_]+|[\d:TtZz.+-]+(?: [\d:.+Zz-]+)?"
)


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
            why = _in_other_words(text.splitlines(), int(line)) or f"this is not valid TOML: {error}"
            raise ConfigurationError(f"{path}:{line}: {why}") from None
        self._lines = _lines_of(text)

    def line(self, section: str, option: str | None = None, number: int = 1) -> int:
        """The line of an option, of its section if it is not written out, or 1."""
        for place in ((section, number, option), (section, number, None), ("", 1, section)):
            if place in self._lines:
                return self._lines[place]
        return 1

    def refuse(self, problem: str, section: str, option: str | None = None, number: int = 1) -> NoReturn:
        """A ConfigurationError that points into the file and names the section."""
        shown = f"[[{section}]]" if isinstance(self.content.get(section), list) else f"[{section}]"
        raise ConfigurationError(f"{self.path}:{self.line(section, option, number)}: {shown} {problem}")

    def read(self, model: type[Model], given: object, section: str, number: int = 1, purpose: str = "") -> Model:
        """A table of the file as its model; the first mistake in it, top to bottom, is refused at its line."""
        try:
            return model.model_validate(given)
        except ValidationError as error:
            self._refuse_first(error.errors(), list(model.model_fields), section, number, purpose)

    def _refuse_first(
        self, mistakes: list[ErrorDetails], allowed: list[str], section: str, number: int, purpose: str
    ) -> NoReturn:
        def order(mistake: ErrorDetails) -> tuple[bool, int]:
            # What is missing comes last: a misspelt option is the cause more often than not.
            return mistake["type"] == "missing", self.line(section, _option_of(mistake), number)

        first = min(mistakes, key=order)
        option = _option_of(first)
        self.refuse(_problem(first, option, allowed, purpose), section, option, number)


def _option_of(mistake: ErrorDetails) -> str | None:
    if mistake["loc"]:
        return str(mistake["loc"][0])
    cause = mistake.get("ctx", {}).get("error")
    return getattr(cause, "option", None)


def _problem(mistake: ErrorDetails, option: str | None, allowed: list[str], purpose: str) -> str:
    kind, context = mistake["type"], mistake.get("ctx", {})
    if kind == "missing":
        return f"needs {option!r}{purpose}"
    if kind == "extra_forbidden":
        return f"has no option {option!r}.{nearest(str(option), allowed)}"
    if not mistake["loc"]:
        return str(context["error"]) if "error" in context else "must be a table"
    if kind == "literal_error":
        return f"{option} must be one of {context['expected'].replace(' or ', ', ')}"
    return f"{option} {context['error']}"


def _in_other_words(lines: list[str], number: int) -> str | None:
    """What is wrong with a line that is no TOML, where it is one of the usual mistakes, and what to write."""
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    header = re.match(r"\s*(\[\[?)\s*([\w.-]+)\s*\]", line)
    if header:
        name, earlier = header[2], [_header(other) for other in lines[: number - 1]]
        if name in SEVERAL and (name, header[1]) != (name, "[["):
            return f"write [[{name}]], with two brackets: there may be several"
        if any(other == (name, "[") for other in earlier):
            better = f"write [[{name}]] with two brackets each time" if name in SEVERAL else "put its options into one"
            return f"there is a section [{name}] already; {better}"
    bare = re.match(r"""\s*["']?([\w-]+)["']?\s*=\s*([^\s"'\[{#][^"'#]*?)\s*(?:#.*)?$""", line)
    if bare and bare[2].lower() in ("true", "false") and not bare[2].islower():
        return f"truth values are written small: {bare[1]} = {bare[2].lower()}"
    if bare and re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+", bare[2]):
        return f"numbers are written without commas: {bare[1]} = {bare[2].replace(',', '_')}"
    if bare and not _VALUE.fullmatch(bare[2]):
        return f'a text stands in quotes: write {bare[1]} = "{bare[2]}"'
    listed = re.match(r"""\s*["']?([\w-]+)["']?\s*=\s*\[\s*[A-Za-z]""", line)
    if listed:
        return f'texts stand in quotes, in a list too: write {listed[1]} = ["...", "..."]'
    colon = re.match(r"""\s*([\w-]+)\s*:\s*\S""", line)
    if colon:
        return f"options are written with =, not with a colon: {colon[1]} = ..."
    return None


def _header(line: str) -> tuple[str, str] | None:
    found = re.match(r"\s*(\[\[?)\s*([\w.-]+)\s*\]", line)
    return (found[2], found[1]) if found else None


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
    """What a misspelt word may have meant, or all that it could be.

    >>> nearest("Horizn", ["name", "horizon"]), nearest("x", ["name", "horizon"])
    (" Did you mean 'horizon'?", ' It has: name, horizon')
    """
    allowed = list(allowed)
    close = difflib.get_close_matches(option.lower(), allowed, 1)
    return f" Did you mean {close[0]!r}?" if close else f" It has: {', '.join(allowed)}"
