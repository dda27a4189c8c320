"""Which probes a planted bug concerns: those that run what it changes.

Probes draw by fixed seeds: one that runs nothing of what a bug changes sees what it sees on the product.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import CodeType, FrameType
from typing import Any

from audit.bugs import Mutant
from audit.probes import PROBES

Code = tuple[str, str, int]  # file, name, line: the same in all processes


@dataclass(frozen=True)
class Run:
    """What a probe ran of whatever Python runs, and all names that stand in there."""

    codes: frozenset[Code]
    names: frozenset[str]
    seconds: float = 0.0  # of one core, watched, with nothing left over from others


def traced(probe: str) -> Run:
    """A probe, played on the product.

    >>> ("Counter" in traced("one tick, pure").names, "Histogram" in traced("one tick, pure").names)
    (True, False)
    """
    for clear in _caches():  # what another probe has left would not be run
        clear()
    codes: set[CodeType] = set()

    def called(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    began = time.process_time()
    threading.setprofile(called)
    sys.setprofile(called)
    try:
        PROBES[probe]()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    names = frozenset(name for code in codes for name in code.co_names)
    return Run(frozenset(map(_place, codes)), names, time.process_time() - began)


def concerned(mutant: Mutant, runs: Mapping[str, Run]) -> list[str]:
    """The probes that a bug may change. All, if it is not known what it changes."""
    before = product_names()
    with mutant.patch():
        after = product_names()
    loaded = {module for module, *_ in before}  # a patch may be the first that needs another one
    names = [name for name in before | after if name[0] in loaded]
    changed = {name: before.get(name) for name in names if before.get(name) is not after.get(name)}
    if not changed:
        return list(runs)
    return [probe for probe, run in runs.items() if any(_runs(run, name, old) for name, old in changed.items())]


def affordable(mutant: Mutant, runs: Mapping[str, Run], seconds: float) -> list[str]:
    """The probe that must find it, then the others that it concerns, quick ones first, for as long as they take."""
    own = next(probe.name for probe in PROBES.values() if probe is mutant.detect)
    others = sorted((probe for probe in concerned(mutant, runs) if probe != own), key=lambda one: runs[one].seconds)
    until = accumulate(runs[one].seconds for one in others)
    return [own, *(one for one, so_far in zip(others, until, strict=True) if so_far <= seconds)]


def _runs(run: Run, name: tuple[str, ...], old: Any) -> bool:
    """Whether something is run that has been replaced: a function, or anything else that is named somewhere."""
    if old is None and name[-1].startswith("__"):
        return True  # nobody names what Python calls by itself
    code = _code(old)
    return name[-1] in run.names if code is None else _place(code) in run.codes


def _place(code: CodeType) -> Code:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _code(value: Any) -> CodeType | None:
    """Of a function, a method, a property, or what a cache is for."""
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return code
    inner = (getattr(value, name, None) for name in ("__func__", "__wrapped__", "fget", "func"))
    return next((_code(part) for part in inner if part is not None), None)


def product_names() -> dict[tuple[str, ...], Any]:
    """Every name of every product module and class, and what it is."""
    found: dict[tuple[str, ...], Any] = {}
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("evertally.") or module_name.startswith("evertally.audit"):
            continue
        for name, value in vars(module).items():
            found[module_name, name] = value
            if isinstance(value, type) and value.__module__ == module_name:
                found |= {(module_name, name, part): held for part, held in _members(value).items()}
    return found


def _members(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_abc")}


def _caches() -> Iterator[Callable[[], None]]:
    for value in product_names().values():
        clear = getattr(getattr(value, "__func__", value), "cache_clear", None)
        if callable(clear):
            yield clear
