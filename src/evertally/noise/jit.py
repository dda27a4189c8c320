"""Compilation by numba, with its cache on disk where there is a place for one."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

_one_at_a_time = threading.Lock()  # the setting below is numba's, and one for the whole process


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled function. The import of numba costs seconds: it is left to the first call."""
    from numba import njit
    from numba.core import config

    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # a read-only installation, and no home
        folder = own_folder()
    if folder is not None:
        with _one_at_a_time:
            before = config.CACHE_DIR
            try:
                config.CACHE_DIR = str(folder)
                return njit(cache=True, **options)(function)
            except RuntimeError:
                pass
            finally:
                config.CACHE_DIR = before
    warnings.warn(
        "there is no safe place to keep compiled code, so every process compiles anew, for some seconds: set "
        "NUMBA_CACHE_DIR to a folder that you alone can write",
        RuntimeWarning,
        stacklevel=2,
    )
    return njit(**options)(function)


jit_once: Callable[[Callable[..., Any]], Any] = lru_cache(maxsize=64)(jit)  # for what is compiled when it is needed


def own_folder() -> Path | None:
    """A folder among the temporary files that is this user's alone, or None.

    What lies in it is loaded as code. So one that somebody else owns, may write or could put another in the place of is
    not taken, and neither is a link.
    """
    try:
        user = os.getuid()
        folder = Path(tempfile.gettempdir()).resolve() / f"evertally-compiled-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
        return folder if own and all(_keeps(above.stat(), user) for above in folder.parents) else None
    except (OSError, AttributeError):  # no temporary files; a system without users
        return None


def _keeps(above: os.stat_result, user: int) -> bool:
    """Whether nobody else can rename what is this user's in a folder."""
    sticky = bool(above.st_mode & stat.S_ISVTX)
    return above.st_uid in (0, user) and (sticky or not above.st_mode & 0o022)
