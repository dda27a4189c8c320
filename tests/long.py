"""Whether tests run at length, as `make audit` lets them: more trials and larger sizes of what each of them checks."""

import os
from collections.abc import Hashable, Mapping

LONG = bool(os.environ.get("EVERTALLY_LONG"))


def telling(paths: Mapping[str, set[Hashable]]) -> set[str]:
    """The names of entries of a list that go through every path of it, found one by one: the one with most new paths,
    and the first of several. What takes long is played with these, and at length with all.

    >>> sorted(telling({"a tree": {"tree"}, "a bank": {"bank"}, "a bank of users": {"bank", "users"}}))
    ['a bank of users', 'a tree']
    """
    left: set[Hashable] = set().union(*paths.values())
    found: set[str] = set()
    while left:
        name = max(paths, key=lambda name: len(paths[name] & left))
        found.add(name)
        left -= paths[name]
    return found
