"""Where noise comes from: every lane, node, column and label has draws of its own, and the same for ever.

Closed forms and exact laws read which addresses the code of a mechanism names, and trust that no two of them lead to
the same random bits. Noise that comes again can be subtracted. Here a source is asked for draws that are too wide to
meet by chance, at addresses on both sides of every power of two, in pieces and at once (docs/theory/samplers.md, 4 and
5: a draw is a function of its address alone).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace, Key, item_addresses, keystream, simulation
from evertally.noise.reals import RealLaw

IntArray = NDArray[np.int64]

_WIDE = DiscreteLaplace(1 << 40)
_REAL = RealLaw("normal", "addresses")
_FEW, _MANY = 300, 4200  # sources draw in pieces of 4,096
_POWERS = range(8, 41)
_SETS = (2, 3, 5, 17, 64, 65, 200)  # sizes of sets of nodes
_FAR = 300  # pages; a stream of bits has 256 at hand
_COLUMNS = (
    (1, 0),
    (3, 0),
    (5, -2),
)  # how many of them are asked for, and from which one on, seen from the end of a page
# Labels that are different ones for the product (encode/labels.py), and the same for whoever reads quickly: in case,
# blanks, accents, width, signs that are not seen, kinds of digits, what folding makes of them, and where they are cut.
NEARLY = (
    "Label 1",
    "LABEL 1",
    "label 1 ",
    " label 1",
    "label  1",
    "label\u00a01",
    "label\t1",
    "label1",
    "label 01",
    "label 1.0",
    "l\u00e4bel 1",
    "l\u0430bel 1",
    "\uff4cabel 1",
    "label \uff11",
    "label \u0661",
    "label\u200b 1",
    "\ufefflabel 1",
    "label 1\0",
    "stra\u00dfe",
    "strasse",
    "i",
    "I",
    "\u0131",
    "\u0130",
    "\ufb01",
    "fi",
    "\ud83d",
    "\ude00",
    "\ud83d\ude00",
    "\U0001f600",
    *("x" * 127, "x" * 128, "x" * 129, "x" * 255, "x" * 256, "x" * 1023, "x" * 1024, "x" * 1023 + "y"),
)


def wrong_addresses() -> str:
    """What is wrong with the addresses of draws, in a few words; nothing if all are right.

    >>> wrong_addresses()
    ''
    """
    source = simulation(8).source("addresses")
    for told, draws in _apart(source):
        if np.unique(draws).size != draws.size:
            return f"{told} share a draw"
    return _depends(source) or _wrong_keys()


def _apart(source: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    nodes = sorted({*range(1, _FEW), *(2**k + d for k in _POWERS for d in (-1, 0, 1))})
    yield "two nodes", source.draws("nodes", _WIDE, nodes, 3)
    page = 1 << keystream.PAGE_BITS
    far = source.draws("columns", _WIDE, [1], _MANY, first=page - _MANY // 2)
    yield "two columns", np.concatenate([source.draws("columns", _WIDE, [1], 2 * _MANY), far], axis=1)
    yield "two lanes", np.stack([source.draws(lane, _WIDE, [1], 8) for lane in ("a", "b", "ab")])
    others = [simulation(8).source(path) for path in ("addresses", "query/a", "query/b")] + [
        simulation(9).source("query/a")
    ]
    yield "two queries, or two keys", np.stack([other.draws("nodes", _WIDE, [1], 8) for other in others])
    yield "two real nodes", source.reals("reals", _REAL, range(1, _FEW), 3).value
    yield "two variates", np.stack([source.variates("pick", "gumbel", node, _FEW).lower for node in (1, 2, 257)])
    labels = [None, *(f"label {i}" for i in range(_FEW)), "", "label", *NEARLY]
    items = item_addresses(source, labels)
    yield "two labels", np.array([hash(tuple(pair)) for pair in items.tolist()])
    yield "two nodes of labels", np.stack([source.item_draws("items", _WIDE, node, items) for node in nodes[::9]])
    yield (
        "two variates of labels",
        np.stack([source.item_variates("item pick", "gumbel", node, items).lower for node in (1, 2, 257)]),
    )
    yield "two real draws of labels", source.item_reals("item reals", _REAL, range(1, 9), items).value


def _depends(source: Any) -> str:
    """Whether a draw depends on what else is asked for."""
    begin = (1 << keystream.PAGE_BITS) - _MANY // 2
    for start in (0, begin):
        whole = source.draws("columns", _WIDE, [1, 2], 2 * _MANY, first=start)
        for i in (0, 1, _MANY // 2 - 1, _MANY // 2, 4095, 4096, 4097, 2 * _MANY - 1):
            if (source.draws("columns", _WIDE, [2], 1, first=start + i) != whole[1, i]).any():
                return "a draw depends on how many others are asked for"
    many = source.draws("nodes", _WIDE, range(1, _MANY), 3)
    for node in (1, 2, 256, 257, 1365, 1366, 4097, _MANY - 1):
        if (source.draws("nodes", _WIDE, [node], 3) != many[node - 1]).any():
            return "a draw depends on which other nodes are asked for"
    return _few_at_once(source)


def _few_at_once(source: Any) -> str:
    """Few nodes at once are drawn as each of them alone, wherever a page ends among them. A set of few may go another
    way than one of thousands, and is what a process draws for one tick."""
    page = 1 << keystream.PAGE_BITS
    for columns, beside in _COLUMNS:
        first = page + beside if beside else 0
        alone: dict[int, IntArray] = {}
        for nodes in _across_pages(page):
            for node in {*nodes} - {*alone}:
                alone[node] = source.draws("few", _WIDE, [node], columns, first)[0]
            drawn = source.draws("few", _WIDE, nodes, columns, first)
            if (drawn != [alone[node] for node in nodes]).any():
                return f"draws of {len(nodes)} nodes at once, of several pages, are not those of each alone"
    for size in _SETS:
        nodes = range(page - size // 2, page + size - size // 2)
        drawn = source.reals("few reals", _REAL, nodes, 3).value
        for i in (0, size // 2 - 1, size // 2, size - 1):
            if (source.reals("few reals", _REAL, nodes[i : i + 1], 3).value[0] != drawn[i]).any():
                return f"real draws of {size} nodes at once, of several pages, are not those of each alone"
    return ""


def _across_pages(page: int) -> Iterator[range | list[int]]:
    """Sets of nodes around the end of a page: one behind the other, backwards, from both sides by turns, and of so many
    pages that not all are kept at hand."""
    for size in _SETS:
        for last in {1, size // 2, size - 1}:  # nodes before the end
            near = range(page - last, page - last + size)
            yield near
            yield list(near)
            yield near[::-1]
            yield [near[i // 2 if i % 2 else -1 - i // 2] for i in range(size)]
        yield [1, *range(2 * page, 2 * page + size - 1)]
        yield [k % _FAR * page + 7 for k in range(size)]
    yield [k * page + 7 for k in (*range(_FAR), *range(0, _FAR, 7))]


def _wrong_keys() -> str:
    """Whether a key is what it is said to be: the same bytes, tried and in earnest, are two keys."""
    secret = bytes(range(32))
    earnest, tried = Key(secret), Key(secret, private=False)
    if not earnest.private or tried.private or simulation(1).private:
        return "a key that is for trials is said to be private, or the other way round"
    one, other = (key.source("keys").draws("nodes", _WIDE, [1], 8) for key in (earnest, tried))
    if np.intersect1d(one, other).size:
        return "a trial shares a draw with a stream"
    for wrong in (secret[:31], secret + b"x", "x" * 32, np.zeros(32, dtype=np.uint8), [1] * 32, None):
        try:
            Key(wrong)  # type: ignore[arg-type]
        except ConfigurationError:
            continue
        except Exception as error:
            return f"what is no key ends with {type(error).__name__}, and is not refused"
        return "a key is made of something else than 32 bytes"
    return ""
