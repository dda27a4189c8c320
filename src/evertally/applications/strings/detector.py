"""The exact detector of minimal occurrences (factorization-counting 6.7).

An occurrence of an episode is a subsequence equal to it; it is minimal if no other one lies strictly inside. One ends
at a letter if and only if the latest start of an occurrence seen so far grows there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.records import Record
from evertally.applications.strings.letters import Word

_ROOT = -1  # the empty prefix in the trie, and the place of a sequence's length in the table


def prefixes(words: Sequence[Word]) -> list[Word]:
    """All prefixes of some words, but the empty one: the nodes of their trie.

    >>> prefixes([(0, 1), (0, 2)])
    [(0,), (0, 1), (0, 2)]
    """
    return list(dict.fromkeys(word[:end] for word in words for end in range(1, len(word) + 1)))


class EpisodeDetector(Encoder):
    """At how many letters of a tick a minimal occurrence of each word ends.

    Records are (owner of the sequence, number of the letter). `words`: the numbers of the words, and their letters.
    `once`: the first occurrence of a word in each sequence, and no other. Time: as many steps as prefixes of words end
    in the letter; it remembers one number for each prefix that occurred.

    >>> detector = EpisodeDetector({7: (0, 1, 2)})
    >>> for letter in [0, 1, 0, 1, 2, 2]:
    ...     changes = {}
    ...     detector.encode(("", letter), changes)
    ...     print(letter, changes)
    0 {}
    1 {}
    0 {}
    1 {}
    2 {7: 1}
    2 {}
    """

    def __init__(self, words: Mapping[int, Word], *, once: bool = False) -> None:
        super().__init__()
        self._starts = self.table()  # (owner, prefix) -> latest start of an occurrence; (owner, root) -> letters so far
        self._once = once
        named = {word: number for number, word in words.items()}
        nodes = {prefix: i for i, prefix in enumerate(prefixes(list(named)))}
        self._ending: dict[int, list[tuple[int, int, int | None]]] = {}
        # Longer prefixes first: each reads its parent as it was before this letter, and both may end in it.
        for prefix in sorted(nodes, key=len, reverse=True):
            parent = nodes.get(prefix[:-1], _ROOT)
            self._ending.setdefault(prefix[-1], []).append((nodes[prefix], parent, named.get(prefix)))

    def encode(self, record: Record, changes: Changes) -> None:
        owner, letter = record
        ending = self._ending.get(letter)
        if ending is None:
            return  # null, or a letter of no word; occurrences do not see gaps
        here = self._starts.add((owner, _ROOT), 1)
        for node, parent, word in ending:
            start = here if parent == _ROOT else self._starts.get((owner, parent))
            before = self._starts.get((owner, node))
            if start is None or (before is not None and start <= before):
                continue
            self._starts.put((owner, node), start)
            if word is not None and not (self._once and before is not None):
                add(changes, word, 1)
