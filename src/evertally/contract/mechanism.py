"""The contract that every running statistic keeps: step, run, replay, horizon, snapshot.

A statistic is its options (fields) and a `Blueprint`: which door, engine and form it is put together from. What is here
never looks at more than the input of the tick, and adds nothing to what the engine releases.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from evertally.contract.erasure import Erasing, digest_of, erasing
from evertally.contract.guarded import Call, Guarded, Kept, exclusive
from evertally.contract.inputs import keep_events
from evertally.contract.kept_options import KeptOptions
from evertally.contract.options import check_guarantee, option, own_option, statistic
from evertally.contract.origin import origin
from evertally.contract.own_inputs import OwnInputs
from evertally.contract.parts import FEW_TICKS, Accuracy, Blueprint, IntArray, Widening, check_beta, plays_numbers
from evertally.contract.paths import Hold, named
from evertally.contract.release import Maker, Release
from evertally.contract.snapshot import guarantee_to_json, pack, restorable
from evertally.contract.ticks import LONGEST_HORIZON, called_tick, checked_tick, last_tick, wanted_ticks
from evertally.encode import SeparatedCap, UserCap, UserTick, own_column, require_column
from evertally.encode.frames import check_same_index, column
from evertally.encode.owners import owners
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused, StateError
from evertally.integers import whole
from evertally.noise import NoiseKey, own_key
from evertally.pictures import html_table
from evertally.privacy import ZCDP, Change, Contribution, Guarantee, Neighbours, PureDP
from evertally.secret import Secret

DEFAULT_STREAM = "stream"
_ABOUT_ALL = Release.about
_ONE = np.zeros(1, dtype=np.int64)
_NOT_KEPT = ("key", "allow_copy")  # options that say nothing about the noise


def by_tick(method: Call) -> Call:
    """Takes `t` for `tick`, as a shorter name."""

    @functools.wraps(method)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        if "t" in options:
            if "tick" in options:
                raise TypeError("t and tick are the same; give one of them")
            options["tick"] = options.pop("t")
        return method(self, *arguments, **options)

    return cast(Call, called)


@dataclass(repr=False, slots=True)
class Committed(Secret):
    """What is committed of an engine: the released rows of its last call (as many as windows look back on), and its
    state. Secret."""

    recent: Any
    state: Any


class CommittedNumber(Committed):
    """The same of an engine of one column that has played one tick: two integers, as arrays when they are asked for.
    Secret."""

    __slots__ = ("shown", "total")

    def __init__(self, shown: int, total: int) -> None:
        self.shown, self.total = shown, total

    @property
    def recent(self) -> IntArray:
        return np.array([[self.shown]], dtype=np.int64)

    @property
    def state(self) -> IntArray:
        return np.array([self.total], dtype=np.int64)


@statistic
class Mechanism(OwnInputs, KeptOptions, Guarded):
    """The contract. Not used directly; see the statistics.

    A mechanism is for one thread at a time. A call that raises, or is interrupted, has used no tick; called again with
    the same input it releases what it would have released.
    """

    guarantee: Guarantee = option(
        "What is promised for all releases together: PureDP, ZCDP, ApproxDP or ApproxZCDP, e.g. et.PureDP(1.0)."
    )
    horizon: int | None = option("How many ticks the stream has at most; None: no limit, at the price of more noise.")
    mechanism: str = option(
        'How the answer is made; "auto" takes the way with the smallest predicted error (et.plan lists all of them).',
        default="auto",
    )
    neighbours: str | Neighbours = option(
        'What must not be told apart: streams with and without one unit ("add_remove"), or with one in place of '
        'another ("replace"); "independent" where the statistic allows it.',
        default="add_remove",
    )
    unit: Literal["event", "user"] = option(
        'What is protected: one "event", or all events of one "user", of which `max_events_per_user` count.',
        default="event",
    )
    max_events_per_user: int | None = option(
        'How many events of a user are counted in the whole stream; goes with unit="user".', default=None
    )
    charging: Literal["users", "events"] = option(
        'What is paid for where a user is replaced: "users" (users-and-domains 1.2); "events" is for streams that an '
        "earlier version began, which go on with its larger noise.",
        default="users",
    )
    key: NoiseKey | None = option(
        "What all noise follows from; None draws a new one, which must be saved if the stream is to be restored.",
        default=None,
    )
    stream: str = option("The name of the stream: part of the address of the noise.", default=DEFAULT_STREAM)
    name: str | None = option(
        "The name of this mechanism within its stream: part of the address of the noise. None: that of its class.",
        default=None,
    )
    allow_copy: bool = option(
        "Says that another mechanism with the same noise sees exactly the same data, and lets both be.", default=False
    )

    exactness: ClassVar[str] = "exact"
    earlier_names: ClassVar[tuple[str, ...]] = ()  # of this class itself: snapshots of theirs come back
    _looks_back = False
    _differs = False
    _maker: Maker | None = None

    @abstractmethod
    def _blueprint(self) -> Blueprint:
        """Which parts this statistic is put together from, by its public options alone."""

    def __post_init__(self) -> None:
        super().__init__()
        check_guarantee(self.guarantee)
        for field in dataclasses.fields(self):
            setattr(self, field.name, own_option(field, getattr(self, field.name)))
        self.horizon = None if self.horizon is None else whole("horizon", self.horizon, 1, LONGEST_HORIZON)
        self.neighbours = relation = Neighbours.parse(self.neighbours)
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _NOT_KEPT}
        plan = self._blueprint()
        # Without its makers, which know this object: it would live on in a circle, and with it the hold on its noise.
        self._plan = replace(plan, door=_made, engine=_made)
        self.charge: Guarantee = plan.charge
        self.sensitivity: Change = plan.sensitivity
        self.contribution = plan.contribution
        self.mechanism = plan.mechanism
        key = self.key = own_key(self.key)
        default = plan.word.lower()
        self.name = named(self.name, key, default) if self.stream == DEFAULT_STREAM else self.name or default
        if not isinstance(self.stream, str) or not isinstance(self.name, str):
            raise ConfigurationError("stream and name are texts: they are part of the address of the noise")
        self._address = (
            plan.address
            | self._version()
            | {
                "guarantee": guarantee_to_json(self.guarantee),
                "horizon": self.horizon,
                "mechanism": plan.named or plan.mechanism,
                "neighbours": relation.value,
                "stream": self.stream,
                "name": self.name,
            }
        )
        self._options = given | {"mechanism": plan.mechanism, "name": self.name} | (plan.settled or {})
        # The address of all noise (design decision 1): version, stream, mechanism, digest of every public parameter.
        digest = hashlib.sha256(json.dumps(self._address, sort_keys=True).encode()).digest()
        self._path = self.stream, self.name, plan.word, _charge_text(plan.charge), digest
        self._source = key.source(*self._path)
        # Releases that are not private have no difference to hide.
        self._private = key.private
        self._hold = Hold(self._source.fingerprint(), self, key.process) if key.private else None
        if self._hold is not None and not self.allow_copy:
            self._hold.begin()
        self._tick_limit = 2**61 // last_tick(self.horizon)
        if plan.contribution.max_weight > self._tick_limit:
            raise ConfigurationError(
                f"totals of a tick are kept below 2^61/horizon = {self._tick_limit} to fit 64 bits, and one event may "
                f"weigh {plan.contribution.max_weight}; choose a shorter horizon or a coarser unit"
            )
        self._users = _cap(plan.contribution)
        self._door = plan.door(self._source, self._tick_limit)
        self._engine = plan.engine(self._source)
        self._plays_numbers = plays_numbers(self._engine)
        self._recognise_erased()
        self._form = plan.form
        self._last_tick, self._said = last_tick(self.horizon), self._about()
        self._kept = Kept(played=Committed(self._form.first(), self._engine.start()))

    def __repr__(self) -> str:
        if "_kept" not in vars(self) or "_form" not in vars(self):
            return f"<{type(self).__name__}, not made>"  # its constructor refused, and somebody looks at the traceback
        of = "" if self.horizon is None else f" of {self.horizon}"
        what = f"{type(self).__name__} {self.name!r} of stream {self.stream!r}"
        return f"<{what}: {self.mechanism}, {self.guarantee}, tick {self.tick}{of}>"

    def _repr_html_(self) -> str:
        if "_kept" not in vars(self) or "_form" not in vars(self):
            return html_table(f"{type(self).__name__}, not made", ["", ""], [])
        of = "" if self.horizon is None else f" of {self.horizon:,}"
        rows = [
            ("stream", self.stream),
            ("mechanism", self.mechanism),
            ("guarantee", str(self.guarantee)),
            ("protects", f"one {self.protected_unit}"),
            ("tick", f"{self.tick:,}{of}"),
        ]
        return html_table(f"{type(self).__name__} {self.name}", ["", ""], rows)

    @property
    def noise_fingerprint(self) -> str:
        """A public name for the noise of this mechanism: the same one means the same noise, under any version."""
        return self._source.fingerprint().hex()

    @property
    def way_name(self) -> str:
        """What the table of ways calls this mechanism ("sparse" counts are kept by "intervals")."""
        return self._plan.named or self.mechanism

    @property
    def protected_unit(self) -> str:
        """What one step of the neighbouring relation is about: all mechanisms of a stream hide the same thing."""
        return self.unit

    @property
    def takes_users(self) -> bool:
        """Whether `step_events` is to be told whose events are whose."""
        return self._users is not None or self._plan.owned

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        """How this statistic with these options bounds what one user may do, in words that follow "of each user"; empty
        where it does not do so by itself, and needs `max_events_per_user`."""
        return ""

    @property
    def differences(self) -> bool:
        """Whether the difference of two releases is what happened in the ticks between them."""
        return False

    @property
    def unbounded_because(self) -> str | None:
        """Why `error_bound` is infinite and what to declare, or None if it is not."""
        return self._plan.open or None

    @exclusive
    def step(self, x: Any, *, tick: int | None = None) -> Release:
        """One tick: its total goes in, the release comes out.

        The total counts events that the caller has bounded; `step_events` does the bounding itself. Mistakes in the
        call raise before the tick is used; totals out of range (below 0 where nothing is signed, beyond 2^61/horizon)
        are clipped silently. With `tick`, the same call for the last tick gives the same release again, and any other
        total for it is refused. Where users are protected there is no `step`: a total does not say whose it is. Where
        there is no total to hand over (values, items), `step` takes the tick's events.
        """
        if self._users is not None:
            self._check_owners()
        if type(x) is not int:
            x = self._loaded(x) if self._takes_totals else self._own_events(x)
        if tick is None:
            return self._step(self._door.total(x, self._kept.tick + 1), None)
        called = called_tick(tick)
        assert called is not None
        return self._step(self._door.total(x, called), called)

    @exclusive
    def step_events(self, events: Any, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from raw events. Whatever is not legal in a record is bounded silently and never raises."""
        tick = called_tick(tick)
        number = self.tick + 1 if tick is None else tick
        check_same_index(events, users)
        events, users = self._own_events(events), column(users)
        if self._plan.owned:
            self._check_tick(number)
            return self._step(cast(Any, self._door).owned(events, users, number), tick)
        if (users is None) != (self._users is None):
            raise TypeError(
                "users go with unit='user' and with nothing else: "
                + ("give one user for each event" if users is None else "this mechanism protects single events")
            )
        self._check_tick(number)
        require_column(events, "events")
        counted: UserTick | None = None
        if self._users is not None:
            require_column(users, "users")
            users, events = own_column(users), own_column(events)
            if len(users) != len(events):
                raise TypeError("users and events differ in length; give exactly one user for each event")
            kept, counted = self._users.look(users, number)
            events = keep_events(events, kept)
        return self._step(self._door.events(events, number), tick, counted)

    @exclusive
    def run(self, x: Any, *, full: bool = False, at: Any = None) -> Any:
        """Many ticks at once: an array (or list) of released values, bit-identical to repeated `step`.

        With `full=True` an Arrow table with tick, (column,) value and the 95 % interval of each value. With `at`, an
        increasing list of ticks of this run, only the releases at those ticks are kept; all ticks are played. Of a
        frame or a Series of another library the values come back as one, with its index (docs/data-frames.md).
        """
        self._check_owners()
        first, x = self.tick + 1, self._loaded(x)
        came_from = origin(x, getattr(self._door, "named", None))
        many = self._door.many(self._own_ticks(x), first)
        count = len(many)
        wanted, kept = self._run(many, at)
        if full:
            ticks = range(first, first + count) if wanted is None else (wanted + first).tolist()
            made = self._form.table(list(ticks), self._form.joined(kept), self._engine.accuracy)
            return made if came_from is None else came_from.with_times(made, first)
        # Shown before they are repeated: a released row may stand for many ticks.
        values = self._form.joined([(self._form.show_many(rows), lasts) for rows, lasts in kept])
        return values if came_from is None else came_from.back(values, wanted, getattr(self._form, "labels", None))

    @exclusive
    def _idle(self, zeros: Any) -> list[Release]:
        """Ticks without events, one release each (`contract.idle`)."""
        first = self.tick + 1
        rows = self._form.joined(self._run(zeros, None)[1])
        return [self._released(row, first + i) for i, row in enumerate(rows)]

    @exclusive
    def _folded(self, totals: Any, tick: int) -> Release:
        """A tick whose events were bounded and added up before (`contract.folding`)."""
        return self._step(totals, tick)

    def _run(self, many: Any, at: Any) -> tuple[IntArray | None, list[tuple[Any, IntArray | None]]]:
        """Plays and commits many ticks: which of them are wanted, and the rows of those."""
        count = len(many)
        if self.tick + count > last_tick(self.horizon):
            raise self._over(count)
        wanted = wanted_ticks(at, self.tick + 1, count)
        kept: list[tuple[Any, IntArray | None]] = []
        if count:
            played, totals = self._moved(count, lambda: self._play_all(many, wanted, kept))
            self._kept = replace(self._kept, tick=self.tick + count, played=played, totals=totals)
        else:
            kept.append((self._form.nothing(), None))
        return wanted, kept

    @by_tick
    def stddev(self, tick: int) -> float | None:
        """Standard deviation of the noise in each number released at a tick; public, known before any data. None where
        none is defined (partitions, selections, ratios)."""
        return self._form.deviation(self._engine.accuracy(checked_tick(tick, self.horizon)))

    @by_tick
    def worst_stddev(self, tick: int | None = None) -> float | None:
        """The largest `stddev` of all ticks of the horizon (with `tick`: of those up to it); public, known before any
        data. Without a horizon `tick` is needed. None where there is no `stddev`, or where the largest is not known:
        beyond 2^12 ticks not every construction has a formula.

        >>> import evertally as et
        >>> tree = et.Counter(guarantee=et.PureDP(1.0), horizon=1000, mechanism="tree", radix=2, key=et.simulation(1))
        >>> tree.worst_stddev() == tree.stddev(511) > tree.stddev(1000)
        True
        """
        if tick is None and self.horizon is None:
            raise ConfigurationError("without a horizon the noise grows for ever: ask for worst_stddev(tick=...)")
        last = checked_tick(self.horizon if tick is None else tick, self.horizon)
        engine, form = self._engine, self._form
        if form.deviation(engine.accuracy(last)) is None:
            return None
        top = engine.widest(last) if isinstance(engine, Widening) else None
        if top is not None:
            return form.deviation(top)
        if last > FEW_TICKS:
            return None
        found = [form.deviation(engine.accuracy(t)) for t in range(1, last + 1)]
        known = [stddev for stddev in found if stddev is not None]
        return max(known) if len(known) == len(found) else None

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None) -> float:
        """With probability at least 1 - beta no number of any tick is further off than this.

        With `tick`, the bound for that tick, all ticks together still failing with probability at most beta. Without a
        horizon `tick` is needed.
        """
        return self._bound(beta, tick)

    @exclusive
    def snapshot(self) -> bytes:
        """The state as bytes for `evertally.restore`. They contain exact sums: keep them as secret as the key."""
        assert self.key is not None
        header = {
            "kind": type(self).__name__,
            "options": {name: self._encoded(name, value) for name, value in self._options.items()},
            "tick": self.tick,
            "last_input": self._last_input().hex(),
            "noise": self.noise_fingerprint,
        }
        users = self._users.to_bytes() if self._users is not None else b""
        rows, state = self._form.save(self._rows_to_keep()), self._kept.played.state
        return pack(header, [self._source.laws(), users, rows, *self._engine.save(state)], self.key)

    @exclusive
    def erase(self, users: Any) -> None:
        """Erasure requests: replaces the names of some users by sealed digests. Nothing is released.

        What was counted stays in the sums. None of their later events counts, whether they had any before or not: a
        user who was forgotten and counted again would move more than was paid for (users-and-domains, trap 7). Only a
        snapshot that is taken afterwards is without the names: earlier ones are to be destroyed. Where users are known
        by name to a rule that cannot erase, the call is refused.

        >>> import evertally as et
        >>> users = {"unit": "user", "max_events_per_user": 5}
        >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=et.noise.ZeroNoise(), **users)
        >>> counter.step_events([1, 1], users=["ann", "bob"]).value
        2
        >>> counter.erase(["ann"])
        >>> b"ann" in counter.snapshot(), counter.step_events([1, 1], users=["ann", "bob"]).value
        (False, 3)
        """
        if not self.takes_users:
            raise ConfigurationError(
                "this mechanism knows no users: it protects single events, or items, and nobody said how to erase an "
                "item that it knows by name. Name items by pseudonyms, made with a secret that you can destroy"
            )
        users = column(users)
        require_column(users, "users")
        _, names = owners(own_column(users))
        rule = erasing(self._engine, self._plan.owned)
        self._last_input()  # the last tick's input as a hash, before it is looked at by name
        if rule is not None:
            self._moved(0, lambda: rule.erase(names))
        if self._users is not None:
            self._users.erase(names)
            self._kept = replace(self._kept, users=self._users.last)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in (cls.__name__, *vars(cls).get("earlier_names", ())):
            restorable(name, f"{cls.__module__}.{cls.__qualname__}", cls._restore)

    @classmethod
    def _restore(cls, header: dict[str, Any], parts: list[bytes], key: NoiseKey, allow_copy: bool) -> Self:
        options = {name: cls._decoded(name, value) for name, value in header["options"].items()}
        options = cls._of_earlier(options) | options
        self: Self = cls(**options, key=key, allow_copy=True)
        self._resume(header, parts, allow_copy)
        return self

    def _resume(self, header: dict[str, Any], parts: list[bytes], allow_copy: bool) -> None:
        """Goes on from what a snapshot holds; `self` was made from its options."""
        if self.noise_fingerprint != header["noise"]:
            raise StateError(
                "this version would draw the noise of this stream from other addresses than the one that began it: a "
                "parameter was added or is computed otherwise. All noise of the past would be drawn anew, and reveal "
                "data. Continue the stream with the version that began it, or start a new stream with its own budget"
            )
        # Laws follow from options, by formulas and planners that another version may have changed.
        self._source.expect(parts[0])
        if self._users is not None:
            self._users = self._users.from_bytes(parts[1])
            self._recognise_erased()
        tick = header["tick"]
        state = self._engine.load(tick, parts[3:])
        recent = self._form.load(parts[2], self._engine, tick)
        if self._hold is not None and not allow_copy:
            self._hold.resume(tick)
        self._kept = Kept(
            tick,
            Committed(recent, state),
            digest=bytes.fromhex(header["last_input"]),
            users=self._users.last if self._users is not None else UserTick(),
        )
        self._engine_tick = tick

    def _bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        check_beta(beta)
        if tick is None and self.horizon is None:
            raise ConfigurationError("without a horizon the error grows for ever: ask for error_bound(beta, tick=...)")
        at = None if tick is None else checked_tick(tick, self.horizon)
        return self._engine.error_bound(beta, at, trust_largest)

    def _settle(self) -> None:
        if self._hold is not None:
            self._hold.check()
        if self._engine_tick != self._kept.tick:
            super()._settle()
        if self._users is not None:
            self._users.last = self._kept.users
        if self._looks_back:
            self._note_releases()

    def _recognise_erased(self) -> None:
        # Of the source alone: a method of this object would keep it alive in a circle.
        digest = functools.partial(digest_of, self._source)
        if self._users is not None:
            self._users.recognise(digest)
        rule = getattr(self._engine, "rule", None)
        if isinstance(rule, Erasing):
            rule.recognise(digest)

    def _note_releases(self) -> None:
        """Notes the rows of the last call where windows look for them; however often, to the same effect."""

    def _go_back(self, kept: Kept) -> None:
        self._engine.go_back(kept.tick, kept.played.state)

    def _handed_out(self, tick: int) -> None:
        if self._hold is not None:
            self._hold.release(tick)

    def _step(self, totals: Any, tick: int | None, users: UserTick | None = None) -> Release:
        kept = self._kept
        self._check_tick(kept.tick + 1 if tick is None else tick)
        if tick is not None and tick == kept.tick:
            if self._door.digest(totals) != self._last_input():
                raise ReplayRefused(
                    f"tick {tick} was already released for another input; releasing it again would reveal the "
                    "difference. Late events go into the current tick."
                )
        else:
            # `_moved`, written out: there is one for every tick
            self._engine.begin(kept.tick)
            self._engine_tick = None
            played = self._play(totals)
            self._engine_tick = kept.tick + 1
            kept = Kept(kept.tick + 1, played, totals, b"", kept.users if users is None else users)
            self._kept = kept
        played = kept.played
        if type(played) is not CommittedNumber:
            return self._released(played.recent[-1], kept.tick)
        row = _ONE.copy()
        row[0] = played.shown
        return self._released(row, kept.tick)

    def _released(self, row: Any, tick: int) -> Release:
        release = self._release(row, self._engine.accuracy(tick))
        own = release.__dict__
        own["tick"] = tick  # of many that were played together, each has its own
        if self._differs:
            own["row"], own["maker"] = row, self._maker  # the row is never written to again
        return release

    def _moved(self, count: int, play: Callable[[], Any]) -> Any:
        self._engine.begin(self._kept.tick)
        return super()._moved(count, play)

    def _play(self, totals: Any) -> Committed:
        if self._plays_numbers and type(totals) is int:
            before = self._kept.played
            total = before.total if type(before) is CommittedNumber else before.state.item()
            return CommittedNumber(*cast(Any, self._engine).play_number(totals, total))
        played = self._engine.play(self._door.batch(totals), self._kept.played.state)
        return Committed(played.rows if played.alone else played.rows[-1:].copy(), played.state)

    def _play_all(self, many: Any, wanted: IntArray | None, kept: list[Any]) -> tuple[Committed, Any]:
        """A whole run, piece by piece; what is wanted of it goes into `kept`. Gives what is to be committed, and the
        totals of the last tick."""
        state, recent, start = self._kept.played.state, None, 0
        for part in self._door.pieces(many):
            played = self._engine.play(part, state)
            rows, lasts, state = played.rows, played.lasts, played.state
            recent = self._looked_back_on(recent, rows, lasts)
            if wanted is not None:
                ends = np.arange(1, len(rows) + 1) if lasts is None else np.cumsum(lasts)
                inside = wanted[(wanted >= start) & (wanted < start + len(part))] - start
                lasts = np.bincount(np.searchsorted(ends, inside, side="right"), minlength=len(rows))
                if isinstance(rows, np.ndarray):  # a copy of what is wanted: wide rows of a long run fill the memory
                    rows, lasts = rows[lasts > 0], lasts[lasts > 0]
            kept.append((rows, lasts))
            start += len(part)
        return Committed(recent, state), self._door.last(part)

    def _looked_back_on(self, before: Any, rows: Any, lasts: IntArray | None) -> Any:
        """The rows of a call that later calls look back on: the last one."""
        return rows[-1:].copy()  # not a view: that would keep the whole run in memory

    def _rows_to_keep(self) -> Any:
        """What a snapshot keeps of the released rows."""
        return self._kept.played.recent[-1:]

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        form = self._form
        return Release(
            self._kept.tick,
            form.show(row),
            form.deviation(accuracy),
            self._private,
            lambda beta: form.interval(row, accuracy, beta),
            self._said,
        )

    def _about(self) -> str:
        """What the numbers of a release are about."""
        most, rule = self.contribution.max_events_per_user, self.contribution.user_rule
        if most is not None:
            return f"what the cap kept: at most {most} events of each user"
        return f"what the rule for users kept: of each user {rule}" if rule else _ABOUT_ALL

    def _check_owners(self) -> None:
        if self._users is not None:
            raise TypeError(
                "this mechanism protects users, and totals do not say whose events they are: no cap could be kept. "
                "Use step_events(events, users=...), one user for each event"
            )

    def _last_input(self) -> bytes:
        """The digest of the last tick's totals. Made when it is first asked for: of a million labels it takes long."""
        kept = self._kept
        if kept.totals is not None:
            self._kept = kept = replace(kept, totals=None, digest=self._door.digest(kept.totals))
        return kept.digest

    def _check_tick(self, tick: int) -> None:
        last = self._kept.tick
        if tick != last + 1 and (tick != last or tick < 1):
            raise ReplayRefused(f"tick {tick} cannot be released now: the last one was {last}, the next is {last + 1}")
        if tick > self._last_tick:
            raise self._over(1)

    def _over(self, count: int) -> HorizonExceeded:
        return HorizonExceeded(
            f"{count} more ticks after tick {self.tick} exceed the horizon {last_tick(self.horizon)} that the noise "
            "was made for; start a new stream with its own budget"
        )


def _cap(contribution: Contribution) -> UserCap | SeparatedCap | None:
    """What keeps some of a user's events, if the contribution names such a rule."""
    if contribution.max_events_per_user is not None:
        return UserCap(contribution.max_events_per_user)
    if not contribution.separated:
        return None
    return SeparatedCap(
        contribution.max_ticks_per_user,
        contribution.min_separation or 1,
        calendar=contribution.calendar,
        first_block=contribution.first_block,
        events=contribution.max_events_per_user_tick,
    )


def _made(*parts: Any) -> Any:
    raise AssertionError("a blueprint is built once")


def _charge_text(charge: Guarantee) -> str:
    if isinstance(charge, PureDP):
        return f"PureDP:{charge.exact_epsilon}"
    if isinstance(charge, ZCDP):
        return f"ZCDP:{charge.exact_rho}"
    return repr(sorted(guarantee_to_json(charge).items()))
