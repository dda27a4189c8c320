"""How far one letter, or one user, can move the counts of minimal occurrences (factorization-counting 6.7, A.3).

Squares are by the sign split (S3), so they hold for factors whose Gram matrix is nowhere negative; `l1` are the S2
values, which hold for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

from evertally.applications.strings.letters import Word
from evertally.privacy import Change


def one_letter(i: int) -> int:
    """q_i: what an episode of length i contributes that holds one of the letters that change.

    >>> [one_letter(i) for i in range(1, 7)]
    [1, 2, 5, 8, 13, 18]
    """
    return int((i + 1) // 2) ** 2 + (i // 2) ** 2


def both_letters(i: int) -> int:
    """q'_i: what an episode contributes that holds the letter and the one in its place.

    >>> [both_letters(i) for i in range(1, 7)]
    [1, 2, 5, 10, 13, 20]
    """
    most = (2 * i + 1) // 3
    return most * most + (i - most) ** 2


def removed_letter(letters: int, longest: int) -> Change:
    """A letter is there or not; all episodes up to a length.

    >>> [removed_letter(u, ell).l2_squared for u, ell in [(2, 2), (2, 3), (3, 3), (10, 2), (10, 3), (26, 3)]]
    [7, 42, 106, 39, 1394, 9858]
    """

    def total(weight: Callable[[int], int]) -> int:
        return sum((letters**i - (letters - 1) ** i) * weight(i) for i in range(1, longest + 1))

    return Change(total(lambda i: i), total(one_letter), longest)


def replaced_letter(letters: int, longest: int) -> Change:
    """Another letter in its place; all episodes up to a length.

    >>> [replaced_letter(u, ell).l2_squared for u, ell in [(2, 2), (2, 3), (3, 3), (10, 2), (10, 3), (26, 3)]]
    [10, 50, 148, 74, 2514, 18962]
    """
    if letters == 1:
        return removed_letter(letters, longest)  # what is in its place is no letter

    def total(one: Callable[[int], int], both: Callable[[int], int]) -> int:
        found = 0
        for i in range(1, longest + 1):
            without, neither = (letters - 1) ** i, (letters - 2) ** i
            found += 2 * (without - neither) * one(i) + (letters**i - 2 * without + neither) * both(i)
        return found

    return Change(total(lambda i: i, lambda i: i), total(one_letter, both_letters), longest)


def removed_listed(words: Sequence[Word]) -> Change:
    """A letter is there or not; episodes of a list.

    >>> removed_listed([(0, 1), (0, 0, 2)])
    Change(l1=5, l2_squared=7, linf=3)
    """
    most = max(map(len, words))
    return Change(max(_by_letter(words, int).values()), max(_by_letter(words, one_letter).values()), most)


def replaced_listed(words: Sequence[Word]) -> Change:
    """Another letter in its place; episodes of a list.

    >>> replaced_listed([(0, 1), (0, 0, 2), (3, 4)])
    Change(l1=7, l2_squared=9, linf=3)
    """
    l1 = _worst_pair(words, int, int)
    return Change(l1, _worst_pair(words, one_letter, both_letters), max(map(len, words)))


def users_listed(w: int, words: Sequence[Word]) -> Change:
    """A user with w letters is there or not, each user with a sequence of their own; episodes of a list.

    Minimal occurrences of one episode end at different letters; (episode, end) names some letters of the user.

    >>> users_listed(5, [(0, 1), (0, 1, 2)])
    Change(l1=7, l2_squared=25, linf=4)
    """
    l1 = squares = linf = 0
    for i in sorted(set(map(len, words))):
        ends = max(0, w - i + 1)
        pairs = min(ends * sum(len(word) == i for word in words), comb(w, i))
        l1, squares, linf = l1 + pairs, squares + ends * pairs, max(linf, ends)
    return Change(l1, squares, linf)


def users_once(w: int, words: Sequence[Word]) -> Change:
    """The same where each episode counts once for each user: |Q|, and never more than w letters can make.

    >>> users_once(2, [(0, 1), (1, 0), (0, 1, 2)])
    Change(l1=1, l2_squared=1, linf=1)
    """
    lengths = sorted(set(map(len, words)))
    most = sum(min(comb(w, i), sum(len(word) == i for word in words)) for i in lengths)
    return Change(most, most, 1)


def _by_letter(words: Sequence[Word], weight: Callable[[int], int]) -> dict[int, int]:
    """The weights of the words that hold each letter, together. `int` as a weight: the length."""
    found: dict[int, int] = {}
    for word in words:
        for letter in sorted(set(word)):
            found[letter] = found.get(letter, 0) + weight(len(word))
    return found


def _worst_pair(words: Sequence[Word], one: Callable[[int], int], both: Callable[[int], int]) -> int:
    """The largest sum over two letters: of each word that holds one of them, or both."""
    alone = sorted(_by_letter(words, one).items(), key=lambda item: (-item[1], item[0]))
    shared: dict[tuple[int, int], int] = {}
    for word in words:
        held = sorted(set(word))
        for i, c in enumerate(held):
            for other in held[i + 1 :]:
                shared[c, other] = shared.get((c, other), 0) + 2 * one(len(word)) - both(len(word))
    worst = alone[0][1]  # in its place a letter of no word, or none at all
    for i, (c, own) in enumerate(alone):
        for other, others in alone[i + 1 :]:
            if own + others <= worst:
                break  # both <= 2 one: no pair from here on has more
            worst = max(worst, own + others - shared.get((min(c, other), max(c, other)), 0))
    return worst
