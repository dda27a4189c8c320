"""How many labels are remembered of those that nobody listed: a limit that is kept by a rule which is itself private.

To drop labels by their counts, or to take none that come when the table is full, is not private: one event more may
decide about all later events of another label (streaming-selection 7.1). Here labels are dropped by two things alone:
a keyed hash of the label, and what was released. How large a part of all labels is followed is decided from the
*noisy* number of labels in the table, which is paid for (7.5 there).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from evertally.counting.process import node_law
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import DiscreteGaussian, ItemSource
from evertally.privacy import ApproxZCDP, Change
from evertally.secret import Secret

_PART = Fraction(1, 16)  # of rho, for the looks at the number of labels
_SAFE = 8  # standard deviations: one look is off by more with probability below 2^-50
_ROOM = 32  # standard deviations that a limit must have, or noise alone would fill a table that is half empty
_FINEST = 64  # bits of the hash
_LANE = "labels"

Addresses = NDArray[np.uint64]


class LabelLimit:
    """A limit before there is a key, from public numbers alone: what it costs, and the noise of its looks.

    `moved`: how many labels exist in one of two neighbouring streams only. Every tick looks once.

    >>> limit = LabelLimit(20_000, ApproxZCDP(0.02, 1e-6), moved=1, ticks=500)
    >>> round(limit.left.rho, 5), round(limit.law.stddev()), limit.at
    (0.01875, 447, 16422)
    """

    def __init__(self, most: int, charge: ApproxZCDP, moved: int, ticks: int) -> None:
        rho = charge.exact_rho * _PART
        paid = ApproxZCDP(rho, charge.exact_delta, adversary=charge.adversary, force=True).to_zcdp()
        law = node_law(paid, Change(moved, moved**2, moved), ticks)
        assert isinstance(law, DiscreteGaussian)
        self.law = law
        self.left = ApproxZCDP(charge.exact_rho - rho, charge.exact_delta, adversary=charge.adversary, force=True)
        self.most = whole("max_labels", most, 1, 2**40)
        sigma = float(law.sigma_squared) ** 0.5
        if self.most < _ROOM * sigma:
            raise ConfigurationError(
                f"max_labels={self.most} is less than the noise of a look at the number of labels allows: at least "
                f"{int(_ROOM * sigma) + 1} with this guarantee and horizon, and {moved} labels that may be there "
                "because of one protected event or user alone. Choose a larger one, or a sketch, whose memory does not "
                "grow"
            )
        self.at = self.most - int(_SAFE * sigma) - 1  # a noisy number above this lowers the part that is followed


class FollowedLabels(Secret):
    """Which labels are followed now: 1 in 2^level of all of them, by their keyed hash, and what was released when the
    level last rose. The level is public: it follows from noisy numbers. It never falls, so whatever is followed was
    counted from the first tick on, and what was dropped never comes back."""

    def __init__(self, limit: LabelLimit, source: ItemSource) -> None:
        self._limit, self._source = limit, source
        self.level = 0

    def passes(self, addresses: Addresses) -> NDArray[np.bool_]:
        """Which labels the hash lets in: a rule that looks at one label and a public number."""
        if not self.level:
            return np.ones(len(addresses), dtype=np.bool_)
        found: NDArray[np.bool_] = addresses[:, 0] >> np.uint64(_FINEST - self.level) == 0
        return found

    def look(self, tick: int, labels: int) -> int | None:
        """The noisy number of labels after a tick, if it is so large that the level has to rise; otherwise None."""
        noisy = labels + int(self._source.draws(_LANE, self._limit.law, [tick])[0, 0])
        return noisy if noisy > self._limit.at and self.level < _FINEST - 1 else None

    def rise(self, noisy: int, released: int) -> int:
        """Raises the level so far that the labels will fill about half of what `released` ones leave free; says how
        many of the released ones stay, whatever their hashes are."""
        kept = min(released, self._limit.most // 2)
        others, room = (noisy - kept) // 2, (self._limit.at - kept) // 2
        self.level += 1
        while self.level < _FINEST - 1 and others > room:
            others //= 2
            self.level += 1
        return kept
