"""Tables of names, and the loops under them, against dictionaries.

Which user an event belongs to, and how many events of a user have counted, is decided by hash tables in compiled loops.
They are compared with Python's own dictionaries here: more names than loops take at once (1,024) and more than twice
that, lengths around every limit, names that share a hash (sharing.py). Loops are played as Python runs them first,
where a step outside of an array is an error, and as they are compiled after that, where it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from evertally.audit.ways.sharing import families
from evertally.encode import name_index, name_kernels
from evertally.encode.name_index import NameIndex, distinct, fixed
from evertally.encode.owners import decimals, owners, rank_within_code
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.encode.user_table import UserTable
from evertally.encode.users import UserCap
from evertally.errors import StateError

_CROWD = 2600  # names: more than two blocks of 1,024
_MANY = 256  # from here on loops are compiled
_CAP = 3
_ENDS = (1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 63, 64, 65, 255, 256, 257, LONGEST_LABEL - 9, LONGEST_LABEL - 8)


def wrong_names() -> str:
    """What a table of names does that a dictionary does not; nothing, if all is well."""
    for look in (_hashes_apart, _index, _coded, _written_numbers, _table, _cap, _damaged_caps):
        found = look()
        if found:
            return found
    return ""


@cache
def crowd() -> list[bytes]:
    """Many names, each once: short and long ones, and pairs that share their hash."""
    plain = [b"user %d" % (i * i) for i in range(_CROWD)]
    lengths = [*_ENDS, LONGEST_LABEL - 1, LONGEST_LABEL, LONGEST_LABEL + 1, 3 * LONGEST_LABEL]
    long = [bytes([letter]) * length + end for length in lengths for letter in b"ab" for end in (b"", b"c", b"d")]
    return list(dict.fromkeys([*plain, *long, *(name for pair in _pairs() for name in pair)]))


@cache
def _pairs() -> list[tuple[bytes, bytes]]:
    return families(name_index._multipliers(0).tolist())


def _hashes_apart() -> str:
    """A name whose only difference is far behind must not share its hash by rule: whoever could send such names would
    make a search as long as he likes."""
    names = [b"n" * place + b"o" + b"n" * (LONGEST_LABEL - place - 1) for place in range(0, LONGEST_LABEL, 7)]
    names += [b"n" * (LONGEST_LABEL - 1) + bytes([letter]) for letter in b"nop"]
    hashes = name_index._hashes(Texts.of_bytes(names), 0)
    if len(name_index._multipliers(0)) < LONGEST_LABEL or len(set(hashes.tolist())) < len(names):
        return f"names of {LONGEST_LABEL} bytes that differ in one byte share a hash"
    return ""


# -- the index ---------------------------------------------------------------------------------------------------------


def _index() -> str:
    """Entering and finding, in calls of few and of many names, some of them twice; and what is hidden or cut off."""
    names, pairs = crowd(), _pairs()
    for compiled in (False, True):
        index, known = NameIndex(), dict[bytes, int]()
        firsts = [one for one, _ in pairs]
        for call in (names[:30] * 2, firsts, names[:1500], names[1000:][::-1], names + names[:50], names):
            for name in call:
                known.setdefault(name, len(known))
            numbers = _entered(index, call, compiled)
            if numbers != [known[name] for name in call]:
                return f"of {len(call)} names some have other numbers than in a dictionary{_how(compiled)}"
        strangers = [b"nobody %d" % i for i in range(1100)]
        for asked in (names[::-1], strangers, [*strangers, *names]):
            if _found(index, asked, compiled) != [known.get(name, -1) for name in asked]:
                return f"of {len(asked)} names some are found elsewhere than in a dictionary{_how(compiled)}"
        hidden = np.zeros(index.size, np.uint8)
        hidden[[known[name] for name in firsts]] = 1
        if _found(index, names, compiled, hidden) != [-1 if hidden[known[n]] else known[n] for n in names]:
            return f"names that are hidden are found, or others are not{_how(compiled)}"
        again = NameIndex(0, Texts.of_bytes(list(known)))  # as a snapshot brings it back
        if _found(again, names, compiled) != [known[name] for name in names]:
            return f"{len(known)} names that were put away are not found again{_how(compiled)}"
        index.truncate(700)
        if _found(index, names, compiled) != [known[name] if known[name] < 700 else -1 for name in names]:
            return f"names that were cut off are found, or others are not{_how(compiled)}"
    return ""


def _how(compiled: bool) -> str:
    return " (compiled)" if compiled else " (interpreted)"


def _found(index: NameIndex, names: Sequence[bytes], compiled: bool, hidden: Any = None) -> list[int]:
    texts = Texts.of_bytes(names)
    hidden = np.zeros(max(1, index.size), np.uint8) if hidden is None else hidden
    if compiled:
        return list(index.find(texts, hidden).tolist())
    numbers = np.empty(len(names), np.int64)
    slots, data, offsets = index._slots, index._data, index._offsets
    with np.errstate(all="ignore"):
        hashes = name_index._hashes(texts, 0)
        name_kernels.find_names(*fixed(texts), hashes, slots, data, offsets, hidden, True, numbers)
    return list(numbers.tolist())


def _entered(index: NameIndex, names: Sequence[bytes], compiled: bool) -> list[int]:
    texts, found = Texts.of_bytes(names), np.array(_found(index, names, compiled))
    if compiled:
        return list(index.enter(texts, found).tolist())
    which, numbers = np.flatnonzero(found < 0), found.copy()
    most = index.size + len(which)
    known, slots = index.texts(), np.zeros(1 << max(6, (2 * most).bit_length()), np.int64)
    name_kernels.fill_slots(np.arange(index.size), name_index._hashes(known, 0), slots)
    data = name_index.grown(known.data, int(known.offsets[-1] + texts.size))
    offsets = name_index.grown(known.offsets, most + 1)
    hashes = name_index._hashes(texts, 0)
    size, _ = name_kernels.enter_names(which, *fixed(texts), hashes, slots, data, offsets, index.size, numbers)
    index._slots, index._data, index._offsets, index.size = slots, data, offsets, int(size)
    return list(numbers.tolist())


# -- columns of names --------------------------------------------------------------------------------------------------


def _coded() -> str:
    """Names of a column as numbers in the order of first places; ranks and first entries of each."""
    names = crowd()
    column = [names[i * i % len(names)] for i in range(1300)] + names[1200:1900]
    number = {name: i for i, name in enumerate(dict.fromkeys(column))}
    codes = np.array([number[name] for name in column])
    seen = Counter[int]()
    ranks = [(seen.update([code]), seen[code] - 1)[1] for code in codes.tolist()]
    for compiled in (False, True):
        found, ordered = _distinct_of(column, compiled)
        if found != codes.tolist() or ordered != list(number):
            return f"a column of {len(column)} names has other numbers than in a dictionary{_how(compiled)}"
        counted = np.zeros(len(codes), np.int64)
        work = name_kernels.kernel(name_kernels.rank_codes, _MANY) if compiled else name_kernels.rank_codes
        work(codes, np.zeros(len(number), np.int64), counted)
        if counted.tolist() != ranks:
            return f"entries of one name are numbered otherwise than by counting{_how(compiled)}"
        kept, counts = np.zeros(len(codes), np.bool_), np.zeros(len(number), np.int64)
        work = name_kernels.kernel(name_kernels.keep_first, _MANY) if compiled else name_kernels.keep_first
        work(codes, _CAP, counts, kept)
        if kept.tolist() != [rank < _CAP for rank in ranks]:
            return f"a cap of {_CAP} keeps other entries than the first {_CAP} of each name{_how(compiled)}"
    if rank_within_code(codes, len(number)).tolist() != ranks:
        return "entries of one name are numbered otherwise than by counting"
    texts = [name.decode() for name in column]
    for users in (texts, np.array(texts, object), [None, *texts, None], texts[:200]):
        known = {name: i for i, name in enumerate(dict.fromkeys(user for user in users if user is not None))}
        codes_of, names_of = owners(users)
        if codes_of.tolist() != [-1 if user is None else known[user] for user in users] or names_of.list() != list(
            known
        ):
            return f"{len(users)} users are others than in a dictionary"
    return ""


def _distinct_of(column: list[bytes], compiled: bool) -> tuple[list[int], list[bytes]]:
    texts, count = Texts.of_bytes(column), len(column)
    if compiled:
        found, names = distinct(texts)
        return list(found.tolist()), names.names()
    codes, firsts = np.empty(count, np.int64), np.empty(count, np.int64)
    slots = np.zeros(1 << (2 * count).bit_length(), np.int64)
    size, _ = name_kernels.distinct_names(*fixed(texts), name_index._hashes(texts, 0), slots, codes, firsts)
    return list(codes.tolist()), [column[i] for i in firsts[:size].tolist()]


def _written_numbers() -> str:
    """Whole numbers as names are their decimals."""
    small = [0, 7, 10, 99, 100, 12345, -1, -10, -99, -12345]
    edges = [edge + d for k in range(3, 19) for edge in (10**k, -(10**k)) for d in (-1, 0, 1)]
    for values in (small, small * 30, [*small, *edges, 2**63 - 1, -(2**63)], edges * 6):
        if decimals(np.array(values, np.int64)).list() != [str(value) for value in values]:
            return f"{len(values)} whole numbers are not written as their decimals"
    return ""


# -- what is remembered of users ---------------------------------------------------------------------------------------


def _ticks() -> Iterator[list[bytes]]:
    """Users of some ticks, event by event."""
    names = crowd()
    yield names[:40] + names[:20]
    yield [one for one, _ in _pairs()] * 2
    yield []
    yield names[:1400] + names[700:1100]
    yield names + names[::-3]
    yield names[::-1]


def _table() -> str:
    """Fields of users, calls that are taken back, users who are forgotten, tables that are put away."""
    table, known = UserTable(fields=2), dict[bytes, tuple[int, int]]()
    for tick, call in enumerate(_ticks(), start=1):
        for undone in (True, False):
            table.begin()
            users = list(dict.fromkeys(call))
            numbers = table.enter(Texts.of_bytes(users))
            for field in range(2):
                table.write(field, numbers, table.read(field, numbers) + tick + field)
            if undone:
                table.undo()
            else:
                for name in users:
                    a, b = known.get(name, (0, 0))
                    known[name] = a + tick, b + tick + 1
            if wrong := _other_fields(table, known):
                return f"{wrong}, after {tick} ticks{' and one that was taken back' if undone else ''}"
        gone = users[::5]
        table.begin()
        table.forget(table.find(Texts.of_bytes(gone)))
        for name in gone:
            del known[name]
        if wrong := _other_fields(table, known):
            return f"{wrong}, after some users were forgotten"
        again = UserTable(fields=2)
        again.load(table.save())
        if wrong := _other_fields(again, known):
            return f"{wrong}, after it was put away and taken up"
        if tick % 2:
            table = again
    return ""


def _other_fields(table: UserTable, known: dict[bytes, tuple[int, int]]) -> str:
    names = crowd()
    numbers = table.find(Texts.of_bytes(names))
    here = [i for i, name in enumerate(names) if name in known]
    if (numbers >= 0).nonzero()[0].tolist() != here or len(table) != len(known):
        return f"a table of {len(known)} users has others than a dictionary"
    fields = [table.read(field, numbers[here]).tolist() for field in range(2)]
    if list(zip(*fields, strict=True)) != [known[names[i]] for i in here]:
        return f"a table of {len(known)} users remembers other numbers than a dictionary"
    return ""


def _cap() -> str:
    """The first events of each user count, over ticks and restores, whatever form the column has."""
    caps: dict[str, Any] = {"as lists": UserCap(_CAP), "restored": UserCap(_CAP), "as arrays": UserCap(_CAP)}
    counted = Counter[bytes]()
    for tick, call in enumerate(_ticks(), start=1):
        kept = []
        for name in call:
            kept.append(counted[name] < _CAP)
            counted[name] += kept[-1]
        users: list[Any] = [name.decode() for name in call]
        for way, cap in caps.items():
            if way == "restored":
                cap = caps[way] = UserCap.from_bytes(cap.to_bytes())
            given = np.array(users, object) if way == "as arrays" else users
            for _ in range(2):  # asked again, the same
                if cap.keep(given, tick).tolist() != kept:
                    return f"a cap of {_CAP} events keeps others than the first of each of {len(counted)} users ({way})"
    return ""


def _damaged_caps() -> str:
    """A state that names nobody, somebody twice, or a tick before the first is refused, and not with another error."""
    cap = UserCap(_CAP)
    cap.keep(["ann", "bob"], 1)
    whole = cap.to_bytes()
    words = len(UserCap.format) + 8 * np.arange(5)  # number of options, the cap; tick, users of the tick, first of them
    damaged = [whole[:-1], whole + b"\0", whole[: len(UserCap.format) + 12]]
    for place, value in ((2, -1), (3, 2**40), (4, 7), (4, 1), (4, -1)):
        start = int(words[place])
        damaged.append(whole[:start] + value.to_bytes(8, "little", signed=True) + whole[start + 8 :])
    for state in damaged:
        try:
            UserCap.from_bytes(state)
        except StateError:
            continue
        except Exception as error:
            return f"a damaged state of a cap ends with {type(error).__name__}"
        return "a damaged state of a cap is taken up"
    return ""
