"""The exact detector of minimal occurrences (factorization-counting 6.7).

An occurrence of an episode is a subsequence equal to it; it is minimal if no other one lies strictly inside. One ends
at a letter if and only if the latest start of an occurrence seen so far grows there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.records import Record

Letters = tuple[str, ...]

_ROOT = -1  # the empty prefix in the trie, and the place of a sequence's length in the table


def prefixes(words: Sequence[Letters]) -> list[Letters]:
    """All prefixes of some words, but the empty one: the nodes of their trie.

    >>> prefixes([("a", "b"), ("a", "c")])
    [('a',), ('a', 'b'), ('a', 'c')]
    """
    return list(dict.fromkeys(word[:end] for word in words for end in range(1, len(word) + 1)))


class EpisodeDetector(Encoder):
    """At how many letters of a tick a minimal occurrence of each word ends.

    A record is (letter,), or (user, letter) where each user has a sequence. `coordinates` names the words in `changes`.
    `once`: the first occurrence of a word in each sequence, and no other.

    >>> detector = EpisodeDetector([("x", "y", "z")], ["xyz"])
    >>> for letter in "xyxyzz":
    ...     changes = {}
    ...     detector.encode((letter,), changes)
    ...     print(letter, changes)
    x {}
    y {}
    x {}
    y {}
    z {'xyz': 1}
    z {}
    """

    def __init__(self, words: Sequence[Letters], coordinates: Sequence[Hashable], *, once: bool = False) -> None:
        super().__init__()
        self._starts = self.table()  # (user, prefix) -> latest start of an occurrence; (user, root) -> letters so far
        self._once = once
        nodes = prefixes(words)
        number = {word: i for i, word in enumerate(nodes)}
        named = dict(zip(words, coordinates, strict=True))
        self._ending: dict[str, list[tuple[int, int, Hashable]]] = {}
        # Longer prefixes first: each reads its parent as it was before this letter, and both may end in it.
        for node in sorted(nodes, key=len, reverse=True):
            parent = number.get(node[:-1], _ROOT)
            self._ending.setdefault(node[-1], []).append((number[node], parent, named.get(node)))

    def encode(self, record: Record, changes: Changes) -> None:
        owner, letter = record[:-1], record[-1]
        ending = self._ending.get(letter)
        if ending is None:
            return  # a letter of no word; occurrences do not see gaps
        here = self._starts.add((*owner, _ROOT), 1)
        for node, parent, coordinate in ending:
            start = here if parent == _ROOT else self._starts.get((*owner, parent))
            before = self._starts.get((*owner, node))
            if start is None or (before is not None and start <= before):
                continue
            self._starts.put((*owner, node), start)
            if coordinate is not None and not (self._once and before is not None):
                add(changes, coordinate, 1)
