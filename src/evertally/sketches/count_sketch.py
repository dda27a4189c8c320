"""How often any label occurred, in memory that does not depend on how many labels there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evertally.contract.guarded import exclusive
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.encode.door import declared_labels
from evertally.errors import ConfigurationError
from evertally.sketches.estimates import Estimate, Estimates, SketchRelease, TableForm, WatchForm, estimated
from evertally.sketches.options import LabelSketch, sketch_rows
from evertally.sketches.table import SketchColumns


@statistic
class CountSketch(LabelSketch):
    """How often any label occurred, from one table of `rows` times `width` numbers, whatever the number of labels.

    In every row a label has one bucket and one sign, by keyed hashes that are fixed for life; an event adds its amount
    with that sign. The table is released at every tick with noise, so any label may be asked for, at any tick and as
    often as one likes, for nothing: no threshold, no delta, no list of labels. An estimate is the median over rows.
    `watch` declares labels whose estimates are the value of a release; without it that is the table.

    Theorem (users-and-domains 5.1 [R]): R rows, b labels in an event, weights up to m: l2^2 = R b m^2, l1 = R b m under
    "add_remove"; 4 R b m^2 under "replace" (2 R b m^2 without signs, a Count-Min sketch), l1 = 2 R b m; w events of a
    user: w^2 times that; `max_labels_per_user` = p in place of b, once for the whole life. What labels of one event add
    to a bucket is clipped to m. For every hash, key, and stream, chosen as it may be. Exactness tier "exact".

    Error: the noise of an estimate has the standard deviation c_R/sqrt(R) of a bucket's, in all c_R = 1.2 times that of
    a histogram (`stddev`); other labels in its buckets add ||f||/sqrt(width) in each row. `error_bound` is about noise
    alone, that is about the estimate of the same table without noise; intervals have room for collisions, as estimated
    from the released table. They hold for streams that were chosen without looking at releases: a sender who reads
    them can hide or fake a label. Time O(labels of the tick + R width), memory as `VectorCounter` with R width columns.

    >>> import evertally as et
    >>> pages = et.CountSketch(width=1024, watch=["/home"], guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> release = pages.step_events(["/home"] * 500 + [f"/user/{i}" for i in range(300)])
    >>> list(release.value), release.estimate("/home").value == release.value["/home"], release.table.shape
    (['/home'], True, (5, 1024))
    >>> lower, upper = release.estimate("/user/7").interval(beta=0.05)  # nobody has declared it
    >>> lower <= 1 <= upper, pages.sensitivity.l2_squared
    (True, 5)
    """

    rows: int = option("How many rows the table has: an odd number.", default=5)
    width: int = option("How many buckets a row has: so many that ||f||/sqrt(width) is below the noise.", default=2**16)
    signs: bool = option(
        "Whether labels have signs, so that others in their bucket cancel; False is a Count-Min sketch, cheaper under "
        '"replace" alone.',
        default=True,
    )
    watch: Sequence[str] | None = option("Labels whose estimates are shown in every release.", default=None)

    def _blueprint(self) -> Blueprint:
        self.rows, self.width = sketch_rows(self.rows, self.width)
        if self.watch is not None:
            if isinstance(self.watch, str | bytes) or not isinstance(self.watch, Sequence):
                raise ConfigurationError('watch is a list of labels, e.g. ["/home", "/help"]')
            self.watch = declared_labels(self.watch)
        columns = SketchColumns(self.rows, self.width, self.signs)
        self._estimates = Estimates(columns)
        form = TableForm(columns) if self.watch is None else WatchForm(columns, self.watch)
        settled = None if self.watch is None else {"watch": list(self.watch)}
        # What is watched decides nothing about the table.
        return self._sketched("CountSketch", columns, self._given("rows", "width", "signs"), form, settled)

    @property
    def hash_key(self) -> str:
        """The public key of the hashes: with it anybody can ask a released table about labels."""
        seed = self._estimates.columns.seed
        assert seed is not None
        return seed.hex()

    @exclusive
    def estimate(self, label: Any) -> Estimate:
        """How often a label occurred up to the last release."""
        return self._last_release().estimate(label)

    @exclusive
    def estimates(self, labels: Iterable[Any]) -> dict[Any, Estimate]:
        """The same for many labels."""
        return self._last_release().estimates(labels)

    def _last_release(self) -> SketchRelease:
        if not self.tick:
            raise ConfigurationError("estimates are of released tables: take a step first")
        made = self._release(self._kept.played.recent[-1], self._engine.accuracy(self.tick))
        assert isinstance(made, SketchRelease)
        return made

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        plain = super()._release(row, accuracy)
        table = row.reshape(self.rows, self.width).copy()
        answers = estimated(self._estimates, table.ravel(), accuracy)
        return SketchRelease(
            plain.tick, plain.value, plain.stddev, plain.private, plain.bounds, plain.about, answers, table
        )
