"""Rules whose memory is one table of users: what comes before an engine that counts what they let through."""

from __future__ import annotations

import numpy as np

from evertally.contract.parts import IntArray
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.secret import Secret


class UserRule(Secret):
    """The memory of a rule (`contract.admission.Admission`, but for `admit`). Everything that a call changes can be
    taken back, and who was erased is never counted again."""

    def __init__(self, fields: int) -> None:
        self.users = UserTable(fields=fields)

    def begin(self, tick: int) -> None:
        self.users.begin()

    def undo(self, tick: int) -> None:
        self.users.undo()

    def recognise(self, digest: Digest) -> None:
        self.users.recognise(digest)

    def erase(self, names: Texts) -> None:
        self.users.erase(names)

    def save(self) -> bytes:
        return self.users.save()

    def load(self, tick: int, data: bytes) -> None:
        self.users.load(data)


def rank_within(codes: IntArray) -> IntArray:
    """For each entry, how many earlier ones are the same.

    >>> rank_within(np.array([5, 3, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    starts = np.searchsorted(in_order, in_order)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - starts
    return rank
