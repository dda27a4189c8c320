"""Who may do what: bearer tokens, kept as hashes in one private file.

A token is 32 random bytes with its role written in front. It is shown once, when it is made. The file holds its
SHA-256 (no salt and no slow hash: nobody guesses 256 random bits) and is read again when it changes, so tokens come and
go without a restart.

Tokens of one name belong to one client: batch ids count within a name. To rotate, add a second token of the same name,
hand it over, remove the first by its id; a batch that is sent again under the new token is still known.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from evertally.errors import ConfigurationError
from evertally.runtime.state.sidecar import write_atomically

Role = Literal["read", "ingest", "admin"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Token:
    """What the file knows about a token. The id is public and tells tokens of one name apart."""

    id: str
    name: str
    role: Role
    created: str
    sha256: str

    def may(self, role: Role) -> bool:
        """Whether this token opens what `role` opens; an administrator may do everything."""
        return self.role in (role, "admin")


class TokenFile:
    """The tokens of one stream.

    >>> import pathlib, tempfile
    >>> tokens = TokenFile(pathlib.Path(tempfile.mkdtemp()) / "visits.tokens")
    >>> secret = tokens.add("dashboard", "read")
    >>> secret.startswith("evt_read_"), tokens.identify(secret).name, tokens.identify("evt_read_guess")
    (True, 'dashboard', None)
    >>> tokens.remove("dashboard")
    1
    >>> tokens.identify(secret) is None
    True
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def tokens(self) -> tuple[Token, ...]:
        """All tokens, as they are in the file now. ConfigurationError if the file is open to others or broken."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            self._version, self._tokens = None, ()
            return ()
        except OSError as error:
            raise ConfigurationError(f"cannot read the tokens {self.path}: {error.strerror}") from None
        version = (status.st_ino, status.st_size, status.st_mtime_ns)
        if status.st_mode & 0o077:
            raise ConfigurationError(f"others may read or write the tokens {self.path}; run: chmod 600 {self.path}")
        if version != self._version:
            self._tokens = _read(self.path)
            self._version = version
        return self._tokens

    def identify(self, secret: str) -> Token | None:
        """The token whose secret this is. Every stored hash is compared, in constant time."""
        digest = hashlib.sha256(secret.encode(errors="replace")).hexdigest()
        found = None
        for token in self.tokens():
            if hmac.compare_digest(token.sha256, digest):
                found = token
        return found

    def add(self, name: str, role: str) -> str:
        """Makes a token and returns its secret, which is kept nowhere."""
        if not _NAME.fullmatch(name):
            raise ConfigurationError("a token's name has letters, digits, '.', '_' and '-', at most 64")
        if role not in get_args(Role):
            raise ConfigurationError(f"a token's role is one of {', '.join(get_args(Role))}")
        secret = f"evt_{role}_{secrets.token_urlsafe(32)}"
        token = Token(
            id=secrets.token_hex(4),
            name=name,
            role=cast(Role, role),
            created=dt.datetime.now(dt.UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z"),
            sha256=hashlib.sha256(secret.encode()).hexdigest(),
        )
        with self._alone():
            known = self.tokens()
            if any(other.name == name and other.role != role for other in known):
                raise ConfigurationError(f"there is a token {name!r} with another role; give this one another name")
            self._write((*known, token))
        return secret

    def remove(self, name: str, token_id: str | None = None) -> int:
        """Removes all tokens of a name, or the one with this id. Returns how many."""
        with self._alone():
            known = self.tokens()
            kept = tuple(t for t in known if t.name != name or token_id not in (None, t.id))
            if len(kept) == len(known):
                which = f"no token {name!r}" if token_id is None else f"no token {name!r} with the id {token_id!r}"
                raise ConfigurationError(f"there is {which} in {self.path}")
            self._write(kept)
        return len(known) - len(kept)

    def _write(self, tokens: tuple[Token, ...]) -> None:
        text = json.dumps({"format": 1, "tokens": [asdict(token) for token in tokens]}, indent=1) + "\n"
        write_atomically(self.path, text.encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two commands at once would each write what it has read, and lose the token of the other."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise ConfigurationError(f"cannot write the tokens {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _read(path: Path) -> tuple[Token, ...]:
    try:
        content = json.loads(path.read_bytes())
        tokens = tuple(Token(**fields) for fields in content["tokens"])
        right = content["format"] == 1 and all(
            t.role in get_args(Role) and _NAME.fullmatch(t.name) and re.fullmatch("[0-9a-f]{64}", t.sha256)
            for t in tokens
        )
    except OSError as error:
        raise ConfigurationError(f"cannot read the tokens {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise ConfigurationError(f"{path} is not a file of tokens; bring it back, or remove it and make new tokens")
    return tokens
