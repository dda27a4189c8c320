"""`evertally token`: makes, lists and removes the bearer tokens of a stream. A running service notices."""

from __future__ import annotations

import sys
from pathlib import Path

from evertally.runtime import load_spec
from evertally.service import TokenFile


def _tokens(spec_file: Path) -> TokenFile:
    return TokenFile(load_spec(spec_file).serve.tokens)


def add(spec_file: Path, role: str, name: str) -> None:
    tokens = _tokens(spec_file)
    secret = tokens.add(name, role)
    print(f"This is the only time that the token is shown; {tokens.path} keeps its hash.", file=sys.stderr)
    print(secret)


def show(spec_file: Path) -> None:
    for token in _tokens(spec_file).tokens():
        print(f"{token.id}  {token.role:<6}  {token.created}  {token.name}")


def remove(spec_file: Path, name: str, token_id: str | None) -> None:
    removed = _tokens(spec_file).remove(name, token_id)
    print(f"removed {removed} token{'s' if removed > 1 else ''} of {name}")
