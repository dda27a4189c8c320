"""Where the privacy of mechanisms is proved: sections of docs/theory, by the name of the mechanism.

A kind puts its own table together from these. A test looks every section up.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """That this noise hides a change of the given size.

    `one_way`: what is proved beside it where an event is there or not: it then moves counts one way, and less noise
    is needed.
    """

    sections: str
    one_way: str = ""

    def under(self, neighbours: str) -> str:
        """The sections for a neighbouring relation.

        >>> Proof("parameterized-histograms 2.2", "additions 7").under("add_remove")
        'parameterized-histograms 2.2, additions 7'
        """
        further = f", {self.one_way}" if self.one_way and neighbours == "add_remove" else ""
        return f"{self.sections}{further}"


def _partition(sections: str) -> Proof:
    return Proof(f"parameterized-histograms {sections}", "additions 7")


NOISE_PROCESSES = {
    "tree": Proof("streaming-selection 3.1 and 3.2, price-of-continual-release 3.2"),
    "sqrt": Proof("factorization-counting 4 and 11, square-root-counter 1 and 2"),
    "bank": Proof("optimal-counting 2.2 and 2.4, samplers 8"),
    "bank-open": Proof("optimal-counting 2.2 and 5, samplers 8"),
    "pure-blocks": Proof("optimal-counting 6, samplers 8"),
    "epoch-blocks": Proof("optimal-counting 6 and 6.1, samplers 8"),
    "honaker": Proof("factorization-counting 8.3"),
    "epoch-tree": Proof("price-of-continual-release 9.1, parameterized-histograms 3.5"),
}
# Users whose ticks are apart, and nothing else.
APART = {"banded": Proof("users-and-domains 1.3, square-root-counter 1 and 2")}
WORKLOADS = "factorization-counting 6.10, additions 11"
ROUNDED = "additions 12"  # amounts, to whole steps
BY_AGE = {"root": Proof(WORKLOADS), "input": Proof(WORKLOADS)}
PARTITIONS = {
    "intervals": _partition("2.2 and 7.2"),
    "rebased": _partition("2.2 and 7.2"),
    "bounded": _partition("2.2 and 4"),
    "noisy-ladders": _partition("2.2 and 2.3"),
    "doubling": _partition("2.2 and 5.1"),
    "two-level": _partition("2.5 and 5.4"),
}
COUNTS = NOISE_PROCESSES | {"sparse": PARTITIONS["intervals"]} | PARTITIONS
COLUMN_SUMS = (
    NOISE_PROCESSES
    | PARTITIONS
    | {"recompute": Proof("price-of-continual-release 3.5 and 3.6"), "trivial": Proof("price-of-continual-release 3.1")}
)

CHANGE_OF_COLUMNS = "factorization-counting 6.3, price-of-continual-release 9.4"
CHANGE_OF_ITEMS = "streaming-selection 1.3"
REPLACED_AND_APART = "users-and-domains 1.2 and 1.3"
CHANGE_OF_USERS = "price-of-continual-release 9.5"
INDEPENDENT_COLUMNS = "parameterized-histograms 1.2 and 6"
