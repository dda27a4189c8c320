"""Several statistics of one stream in one counter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evertally.applications.encoded import Certified, Encoded
from evertally.applications.encoder import EncodedEngine, Encoder, Rule
from evertally.applications.graph.linear import FromPublicGraph
from evertally.applications.records import RecordDoor, with_owners
from evertally.applications.stack_options import (
    check_alike,
    read_by_event,
    read_by_user,
    read_multipliers,
    read_parts,
    settled,
)
from evertally.applications.stacked_form import Shown, StackedForm, StackedRelease, divided
from evertally.applications.stacking import Counted, Part, StackedEncoder, joint, part_by_name
from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism, by_tick
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.contract.ticks import checked_tick, last_tick
from evertally.counting.processes import Gram, proved_of
from evertally.encode.frames import check_same_index, column
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.privacy import ZCDP, Change, Contribution, Neighbours, PureDP


@dataclass(frozen=True)
class _Together(Certified):
    """What the parts are certified for, together."""

    unit: Change | None = None

    def of_unit(self, relation: Neighbours, contribution: Contribution) -> Change:
        assert self.unit is not None
        return self.unit


@statistic
class Stacked(Encoded):
    """Several statistics of the same records in one counter, under one guarantee.

    The numbers of part i are multiplied by a whole number c_i and stand side by side in one row with one noise; what is
    shown of it is divided by c_i again. One unit moves the row by Gamma^2 = sum of c_i^2 Gamma_i^2 at most, l1 = sum of
    c_i l1_i (factorization-counting 12, trap 11). A large c_i makes part i accurate, at the price of the others.

    `multipliers="auto"` balances: c_i in the ratio sqrt(w_i)/Gamma_i (w_i/l1_i under a pure guarantee), w_i the
    `weights`. Then the variance of part i is sum(w)/w_i times what it would be alone with the whole guarantee (pure:
    the standard deviation is), and the sum over parts of w_i^2 times that ratio is as small as it can be.

    Against mechanisms of a `Stream` with shares w_i/sum(w) the noise is the same, with one entry of the ledger instead
    of many. It is less than with (epsilon, delta) split by hand, where each part is converted for itself.

    Each part reads the records in its own way; a record that no part can use is dropped. Exactness tier "exact"; error,
    time and memory are those of the parts together, as a VectorCounter with all their numbers has them.

    >>> import evertally as et
    >>> stack = et.Stacked(
    ...     {"letters": et.part(et.Histogram, categories=["a", "b"]),
    ...      "orders": et.part(et.strings.EpisodeCounts, alphabet="ab", words=["ab", "aab"], sequence="stream")},
    ...     guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1)
    ... )
    >>> stack.multipliers, stack.sensitivity.l2_squared  # of the parts: 1 and 7
    ({'letters': 8, 'orders': 3}, 127)
    >>> release = stack.step(["a", "a", "b"])
    >>> list(release.value), list(release["orders"].value), release["letters"].stddev < release["orders"].stddev
    (['letters', 'orders'], ['ab', 'aab'], True)
    """

    parts: Mapping[str, Part] = option(
        "The statistics by name, each made by `et.part(class, option=...)`.", kw_only=False
    )
    weights: Mapping[str, Any] | None = option(
        "How important parts are to multipliers that are found: shares of the guarantee, 1 where none is given.",
        default=None,
    )
    multipliers: str | Mapping[str, int] = option(
        'The whole number that each part is multiplied by in the counter; "auto" balances parts by `weights`.',
        default="auto",
    )

    def certified(self) -> Certified:
        event = joint([part.event for part in self._counted], self._by)
        unit = joint([part.unit for part in self._counted], self._by)
        return _Together(event, "factorization-counting 12, trap 11", unit=unit)

    def encoder(self) -> Encoder:
        return StackedEncoder(self._counted, self._by)

    @property
    def protected_unit(self) -> str:
        return self._counted[0].made.protected_unit

    @exclusive
    def step_events(self, events: Any, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from raw records, in their order; with `unit="user"`, and the user of each."""
        if self.unit == "user" and users is not None:
            check_same_index(events, users)
            events, users = with_owners(self._own_events(events), column(users))
        plain: Any = Mechanism.step_events
        release: Release = plain.__wrapped__(self, events, users=users, tick=tick)
        return release

    @by_tick
    def stddevs(self, tick: int) -> dict[str, float | None]:
        """The standard deviation of each part's numbers at a tick."""
        accuracy = self._engine.accuracy(checked_tick(tick, self.horizon))
        return {part.name: part.deviation(accuracy) for part in self._shown}

    @by_tick
    def error_bounds(self, beta: float = 0.05, tick: int | None = None) -> dict[str, float]:
        """With probability at least 1 - beta no number of any tick and any part is further off than its part's."""
        bound = self._bound(beta, tick)
        return {part.name: divided(bound, part.by) for part in self._shown}

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None) -> float:
        """The largest of `error_bounds`."""
        return max(self.error_bounds(beta, tick).values())

    def _blueprint(self) -> Blueprint:
        relation = self._relation()
        given = read_parts(self.parts)
        common = self._given("horizon", "unit", "max_events_per_user", "memory_limit")
        # Parts are asked how far a unit moves them, which no amount of budget changes; noise is that of the stack.
        pure, adversary = isinstance(self.guarantee, PureDP), self.guarantee.adversary
        common["guarantee"] = PureDP(1, adversary=adversary) if pure else ZCDP(1, adversary=adversary)
        common |= {"neighbours": relation, "mechanism": "epoch-tree" if self.horizon is None else "tree"}
        counted = self._counted = [Counted.of(part, common) for part in given.values()]
        check_alike(counted)
        units = {name: part.unit for name, part in zip(given, counted, strict=True)}
        self._by = read_multipliers(self.multipliers, self.weights, units, self.guarantee)
        self.multipliers = dict(zip(given, self._by, strict=True))
        firsts = [sum(part.width for part in counted[:i]) for i in range(len(counted))]
        self._shown = [
            Shown(name, first, part.width, by, part.form)
            for name, first, part, by in zip(given, firsts, counted, self._by, strict=True)
        ]
        width = sum(part.width for part in counted)
        contribution = self._contributing(protects=counted[0].made.contribution.protects)
        change = self.certified().of_unit(relation, contribution)

        by_user = self.unit == "user"

        def door(source: ItemSource, limit: int) -> RecordDoor:
            for part in counted:
                part.made._source = source  # whose order cuts long events
            return RecordDoor(read_by_user(counted) if by_user else read_by_event(counted), width)

        # Which coordinate a column is, too: coordinates on demand have noise by their names, and no column, elsewhere.
        address = [
            [name, part.made._plan.word, part.made._plan.address, by, *([part.named] if part.named else [])]
            for name, part, by in zip(given, counted, self._by, strict=True)
        ]
        rows = self._linear(
            "Stacked",
            width,
            change,
            contribution,
            {"parts": address} | self._given("unit", "max_events_per_user"),
            door,
            StackedForm(self._shown),
            split=joint([part.by_split or part.unit for part in counted], self._by),
            settled={
                "parts": {name: settled(one, part) for (name, part), one in zip(given.items(), counted, strict=True)},
                "multipliers": self.multipliers,
                "weights": None,
            },
        )
        if proved_of(rows.mechanism) is Gram.UNKNOWN:
            # Another row of the table may hold for it, which the parts know.
            found = [Counted.of(part, common | {"mechanism": rows.mechanism}).unit for part in given.values()]
            if found != [part.unit for part in counted]:
                raise ConfigurationError(f'mechanism "{rows.mechanism}" has other sensitivities; take one of ours')
        limit = 2**61 // last_tick(self.horizon)
        base = np.concatenate([by * part.base for part, by in zip(counted, self._by, strict=True)])

        def engine(source: ItemSource) -> EncodedEngine:
            made = EncodedEngine(Rule(self.encoder(), width, limit), rows.engine(source))
            return FromPublicGraph.around(made, base) if base.any() else made

        return replace(rows, engine=engine)

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        plain = super()._release(row, accuracy)

        def one(part: Shown) -> Release:
            return replace(
                plain,
                value=part.form.show(part.rows(row)),
                stddev=part.deviation(accuracy),
                bounds=lambda beta: part.interval(row, accuracy, beta),
            )

        parts = {part.name: one(part) for part in self._shown}
        return StackedRelease(**{**vars(plain), "parts": parts})

    @classmethod
    def _encoded(cls, name: str, value: Any) -> Any:
        if name == "parts":
            # A list: a snapshot sorts what is in a mapping, and the order of parts is the order of the row.
            return [
                [label, part.kind.__name__, {key: part.kind._encoded(key, one) for key, one in part.options.items()}]
                for label, part in value.items()
            ]
        return dict(value) if name == "multipliers" and not isinstance(value, str) else super()._encoded(name, value)

    @classmethod
    def _decoded(cls, name: str, value: Any) -> Any:
        if name != "parts":
            return super()._decoded(name, value)
        found = {}
        for label, kind, options in value:
            made = part_by_name(kind, options)
            found[label] = Part(made.kind, {key: made.kind._decoded(key, one) for key, one in options.items()})
        return found
