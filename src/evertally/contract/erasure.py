"""Erasure requests: names of users are replaced by sealed digests that are never counted again.

A rule that forgot a user would count him again, and one user would move more than was paid for (users-and-domains,
trap 7: 3.57 times the charge for running distinct users). So a user is not forgotten: what is kept is a digest of his
name under the key of the mechanism, by which later events under the same name are recognised and left out.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from evertally.contract.admission import AdmissionEngine
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest
from evertally.errors import ConfigurationError
from evertally.noise.source import Source


@runtime_checkable
class Erasing(Protocol):
    """What a rule (`Admission`) that knows users by name has besides, if they can be erased from it.

    With a `UserTable` both are one line: `self.table.recognise(digest)`, and `self.table.erase(names)`, after which
    `admit` leaves out whoever is `self.table.erased`.
    """

    def recognise(self, digest: Digest) -> None:
        """How names of erased users are digested. Called before anything else."""

    def erase(self, names: Texts) -> None:
        """Replaces the names by their digests, and never counts these users again, whether they were here or not.
        Between calls. May be interrupted, and is then done again."""


def digest_of(source: Source, name: bytes) -> bytes:
    """The digest of a name under the key of a mechanism: 32 bytes, so that no two names are ever taken for one.

    No name contains the byte 0xff: nothing else that is ordered by this key is the same message.
    """
    return source.order(b"\xff\x00" + name) + source.order(b"\xff\x01" + name)


def erasing(engine: Any, owned: bool) -> Erasing | None:
    """The rule of an engine from which users have to be erased, None if it remembers no records at all.
    ConfigurationError if it does, and cannot."""
    rule: Any = engine.rule if isinstance(engine, AdmissionEngine) else None
    if isinstance(rule, Erasing):
        return rule
    if owned or rule is not None:
        raise ConfigurationError(
            "this statistic remembers records of users, and nobody said how to erase a user from it: its rule has no "
            "`erase`. Send pseudonyms instead of names, made with a secret that you can destroy"
        )
    return None
