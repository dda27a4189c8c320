"""What `evertally audit` concludes, for tests that call it."""

from __future__ import annotations

from typing import Any

from evertally.cli.audit import EXIT_STATUS


def last_line(result: Any) -> str:
    return str(result.output.strip().splitlines()[-1])


def conclusion(result: Any) -> str:
    """How many of its queries have which verdict; the exit status is that of the verdict of the whole."""
    word, _, queries = last_line(result).partition(": ")
    assert result.exit_code == {name.lower(): status for name, status in EXIT_STATUS.items()}[word.lower()], (
        result.output + result.stderr
    )
    return queries.partition(";")[0].rstrip(".")
