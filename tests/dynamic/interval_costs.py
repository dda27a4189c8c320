"""What a pair of neighbouring streams costs in the interval tree, over *all* restart schedules at once.

Nodes restart independently of each other, so the worst schedule is found node by node, by looking at every segment at
which a round can begin. Inputs come from the product's holders; costs are counted here, from dynamic-data 6.5 and 6.6,
and `test_interval_privacy` compares them with what the product's nodes release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement, product

from interval_runs import Stream, Update

from evertally.dynamic.holders import Counts, Holders
from evertally.dynamic.interval_index import level, window_end
from evertally.dynamic.ledgers import Allocation, Shares

Differences = list[tuple[Counter[int], Counter[int]]]  # of content and of deletions, at each segment of a window


def views(stream: Stream, named: bool) -> dict[int, list[tuple[Counts, Counts]]]:
    """For every node, at each segment of its window: what it holds, and what was deleted from it."""
    stack = Holders(named=named)
    seen: dict[int, list[tuple[Counts, Counts]]] = {}
    for segment, updates in enumerate(stream, start=1):
        for sign, cell, item in updates:
            stack.apply(cell, sign, item)
        closed = stack.close(segment)
        seen[segment] = [(closed.content, {})]
        for number, deleted in closed.deleted.items():
            seen[number].append((stack.content(number), deleted))
    return seen


def differences(one: Stream, other: Stream, named: bool) -> dict[int, Differences]:
    """Of the nodes whose inputs differ."""
    ours, theirs = views(one, named), views(other, named)
    found = {}
    for number, view in ours.items():
        if view == theirs[number]:
            continue
        found[number] = [
            (_minus(content, other_content), _minus(deleted, other_deleted))
            for (content, deleted), (other_content, other_deleted) in zip(view, theirs[number], strict=True)
        ]
    return found


def _minus(a: Counts, b: Counts) -> Counter[int]:
    left = Counter(a)
    left.subtract(b)
    return Counter({cell: copies for cell, copies in left.items() if copies})


@dataclass(frozen=True)
class Prices:
    """An allocation, in floats."""

    leaf: float
    shares: Callable[[int, int], Shares]
    rounds: int

    @classmethod
    def like(cls, shares: Allocation) -> Prices:
        return cls(float(shares.leaf), shares.shares, shares.rounds)

    def of(self, at: int, round_: int) -> tuple[float, float, float, float]:
        return _floats(self.shares, at, round_)


@cache
def _floats(shares: Callable[[int, int], Shares], at: int, round_: int) -> tuple[float, float, float, float]:
    s = shares(at, round_)
    return float(s.size), float(s.content), float(s.counted), float(s.deleted)


def cost(one: Stream, other: Stream, prices: Prices, *, named: bool, restarts: bool = True) -> float:
    """The sum of budget times distance over all releases, for the worst restart schedule (or without restarts)."""
    return cost_of(differences(one, other, named), prices, restarts=restarts)


def cost_of(
    found: dict[int, Differences],
    prices: Prices,
    *,
    restarts: bool = True,
    settled: bool = True,
    power: int = 1,
) -> float:
    """The same from the inputs that differ. `settled=False` charges what dynamic-data 14.5 has since left out: the
    release of deletions at a restart, and the size of a round that begins in the last segment of a window. The figures
    of 13.6 are older than it. `power=2`: in rho, which is paid for squares of distances."""
    return sum(worst_node(number, d, prices, restarts, settled, power) for number, d in found.items())


def worst_node(number: int, found: Differences, prices: Prices, restarts: bool, settled: bool, power: int = 1) -> float:
    at, steps = level(number), window_end(number) - number
    if at == 1:
        return prices.leaf * _l1(found[0][0]) ** power

    @cache
    def from_round(start: int, round_: int) -> float:
        size, content, counted, deleted = prices.of(at, round_)
        held, left = found[start][0], steps - start
        if left == 0:
            return content * _l1(held) ** power + (0 if settled else size * abs(sum(held.values())) ** power)
        opening = size * abs(sum(held.values())) ** power + content * _l1(held) ** power
        height = left.bit_length()
        spent, worst = 0.0, 0.0
        for s in range(start + 1, len(found)):
            u = s - start
            covered: Counter[int] = Counter()
            for earlier in range(u - (u & -u) + 1, u + 1):
                covered.update(found[start + earlier][1])
            spent += counted / height * abs(sum(covered.values())) ** power
            fed = deleted / height * _l1(covered) ** power
            if restarts and round_ < prices.rounds:
                worst = max(worst, spent + (0 if settled else fed) + from_round(s, round_ + 1))
            spent += fed
        return opening + max(worst, spent)

    return from_round(0, 1)


def _l1(counts: Counter[int]) -> int:
    return sum(abs(copies) for copies in counts.values())


def removals(stream: list[list[Update]]) -> Iterator[tuple[int, list[list[Update]]]]:
    """Every stream with one update less, and the segment of that update."""
    for j, updates in enumerate(stream):
        for k in range(len(updates)):
            yield j + 1, [*stream[:j], [*updates[:k], *updates[k + 1 :]], *stream[j + 1 :]]


def one_value_streams(segments: int, updates: int) -> Iterator[list[list[Update]]]:
    """All of them: where each update falls, and its sign."""
    for places in combinations_with_replacement(range(segments), updates):
        for signs in product((+1, -1), repeat=updates):
            stream: list[list[Update]] = [[] for _ in range(segments)]
            for place, sign in zip(places, signs, strict=True):
                stream[place].append((sign, 0, -1))
            yield stream


def lifetimes(segments: int, inserted: int, deletions: Sequence[int]) -> list[list[Update]]:
    """One item, inserted once, with deletions that name it in these segments."""
    stream: list[list[Update]] = [[] for _ in range(segments)]
    stream[inserted - 1].append((+1, 0, 0))
    for segment in deletions:
        stream[segment - 1].append((-1, 0, 0))
    return stream
