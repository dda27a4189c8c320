"""Labels of a large domain that occur often, found by their prefixes."""

from __future__ import annotations

from typing import Any, Literal

from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.sketches.descent import HeavyForm, PrefixRelease
from evertally.sketches.levels import PrefixColumns
from evertally.sketches.options import WIDEST, LabelSketch, sketch_rows
from evertally.sketches.spelling import SPELLINGS


@statistic
class HeavyPrefixes(LabelSketch):
    """The labels that occur often, out of all that could: found by their prefixes, without a list and without a delta.

    A label is a string of `symbols` symbols out of `fanout`: a text byte by byte, an IPv4 address octet by octet, a
    whole number digit by digit (`labels`). Every prefix of it is counted: in a column of its own where a length has at
    most `width` prefixes, in a sketch of `rows` times `width` numbers otherwise. At every tick the table is released;
    from the root every prefix is followed into those of its children whose released estimate is at least `threshold`,
    at most `most` of each length. Labels that are reached are the value of a release, with their estimates; `prefixes`
    of a release are sums over everything that begins alike. Texts longer than `symbols` bytes are found by their
    beginnings, shown with a star.

    Theorem (users-and-domains 5.2 [R]): l2^2 = m^2 (1 for each exact level, R for each sketched one), l1 = m times the
    same, b labels of an event: b times; "replace": 2 for an exact level, 4 R for a sketched one; w events of a user:
    w^2 times; `max_labels_per_user` = p: p times that of one label. What is followed and shown is read off released
    numbers alone, and so is the time that it takes. Exactness tier "exact".

    Error: `error_bound` bounds the noise of all columns at all ticks; with alpha = that plus the collisions of sketched
    levels (||f||/sqrt(width) in a row, estimated in intervals from the released table) every label that occurs at least
    threshold + alpha times is found, and none below threshold - alpha. No bound on collisions holds for streams that
    were chosen after looking at releases. Time O(labels of the tick + columns), and fanout times the prefixes that are
    kept for a release; memory as a `VectorCounter` with all columns.

    >>> import evertally as et
    >>> senders = et.HeavyPrefixes(labels="ipv4", symbols=4, width=4096, threshold=200, guarantee=et.ZCDP(0.5),
    ...                            horizon=100, key=et.simulation(1))
    >>> release = senders.step_events(["10.0.0.1"] * 900 + [f"10.0.{i % 7}.{i % 250}" for i in range(1500)])
    >>> list(release.value), list(release.prefixes)[:3]
    (['10.0.0.1'], ['10.*', '10.0.*', '10.0.0.*'])
    >>> lower, upper = release.interval(beta=0.05)
    >>> lower["10.0.0.1"] <= 900 <= upper["10.0.0.1"], senders.sensitivity.l2_squared
    (True, 16)
    """

    symbols: int = option("How many symbols a label has at most.")
    threshold: int = option(
        "The released estimate from which on a prefix is followed. Public: never chosen by the data."
    )
    fanout: int = option("How many symbols there are.", default=256)
    labels: Literal["text", "ipv4", "number"] = option(
        'How labels are spelt: a "text" in UTF-8, byte by byte; "ipv4", by octets; a whole "number" in base `fanout`.',
        default="text",
    )
    rows: int = option("How many rows a sketched level has: an odd number.", default=5)
    width: int = option("How many buckets a row has; levels with no more prefixes are counted exactly.", default=2**16)
    most: int = option(
        "How many prefixes of each length are followed at most: those with the largest estimates.", default=1000
    )
    show: Literal["labels", "prefixes"] = option(
        'What the value of a release is: "labels", or all "prefixes".', default="labels"
    )

    def _blueprint(self) -> Blueprint:
        self.rows, self.width = sketch_rows(self.rows, self.width)
        self.symbols = whole("symbols", self.symbols, 1, 1024)
        self.fanout = whole("fanout", self.fanout, 2, WIDEST)
        self.threshold = whole("threshold", self.threshold, 1, 2**61)
        self.most = whole("most", self.most, 1, 2**20)
        if self.labels not in SPELLINGS:
            raise ConfigurationError(f"labels is one of {', '.join(SPELLINGS)}; got something else")
        if self.show not in ("labels", "prefixes"):
            raise ConfigurationError('show is "labels" or "prefixes"')
        if self.most * self.fanout > 2**26:
            raise ConfigurationError("most times fanout is what is looked at for each length: not above 2^26")
        columns = PrefixColumns(SPELLINGS[self.labels](self.symbols, self.fanout), self.rows, self.width)
        form = HeavyForm(columns, self.threshold, self.most, self.show == "prefixes")
        # What is followed and shown decides nothing about the table.
        address = self._given("symbols", "fanout", "labels", "rows", "width")
        return self._sketched("HeavyPrefixes", columns, address, form)

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        plain, form, table = super()._release(row, accuracy), self._form, row.copy()
        assert isinstance(form, HeavyForm)

        def looked() -> dict[str, int]:
            return form.named(form.found(table), everything=True)

        return PrefixRelease(plain.tick, plain.value, plain.stddev, plain.private, plain.bounds, plain.about, looked)
