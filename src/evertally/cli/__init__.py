"""The command line: `evertally plan`, `run`, `serve` and the others."""

from __future__ import annotations

import gc
import sys

_EXTRA = {"typer", "rich", "pyarrow", "pydantic"}


def main() -> None:
    """The console script. Says what to install if the command line's own requirements are not there."""
    gc.disable()  # a thousand modules are loaded, and none of them is garbage: looking takes a tenth of the start
    try:
        from evertally.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        message = f"evertally: the command line needs {error.name}. Install it with: pip install 'evertally[cli]'"
        print(message, file=sys.stderr)
        raise SystemExit(2) from None
    finally:
        gc.freeze()
        gc.enable()
    app(prog_name="evertally")
