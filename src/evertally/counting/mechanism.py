"""The contract that every running mechanism keeps: step, run, replay, horizon, snapshot.

`Contract` is what holds whatever a tick's input is: addresses of noise, replay, the cap of users, snapshots.
`Mechanism` is the contract for integer rows. A subclass says how a tick's input becomes a row (the door), how rows
become released numbers (the engine: exact sums plus noise, a partition, a recomputation), and how a released row is
shown. What is here never looks at more than the input of the tick, and adds nothing to what the engine releases.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evertally.counting.epochs import LAST_TICK
from evertally.counting.guarded import Guarded, Kept, exclusive
from evertally.counting.inputs import as_integers, keep_events
from evertally.counting.paths import Hold, named
from evertally.counting.process import IntArray
from evertally.counting.release import Release
from evertally.counting.rows import Rows, SparseRows, dense
from evertally.counting.snapshot import guarantee_from_json, guarantee_to_json, pack, restorable
from evertally.encode import UserCap, UserTick, own_column, require_column
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused, StateError
from evertally.noise import Key, NoiseKey
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Contribution, Guarantee, Neighbours, PureDP
from evertally.secret import Secret

LONGEST_HORIZON = 2**40
DEFAULT_STREAM = "stream"
_PIECE = 1 << 22  # numbers handled at once by run

Options = dict[str, Any]
_Rows = tuple[NDArray[Any], IntArray | None]  # rows, and for how many ticks each of them stands (None: one each)


class Accuracy(Protocol):
    """How far a released number may be off, from public numbers only."""

    @property
    def stddev(self) -> float | None:
        """Standard deviation of the noise, None where none is defined."""

    def radius(self, beta: float) -> float:
        """A number that the error exceeds with probability at most `beta`."""


class Contract(Guarded):
    """The contract, whatever a tick's input is. Not used directly; see its subclasses.

    A mechanism is for one thread at a time. A call that raises, or is interrupted, has used no tick; called again with
    the same input it releases what it would have released.
    """

    exactness: ClassVar[str] = "exact"
    # Other engines, by the name that `mechanism=` gives them: rooms above register theirs here, class by class.
    other_engines: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __new__(cls, *arguments: Any, mechanism: str = "auto", **options: Any) -> Any:
        engine = cls.other_engines.get(mechanism)
        return super().__new__(cls) if engine is None else engine(*arguments, **options)

    def __init__(
        self,
        *,
        contribution: Contribution,
        options: Options,
        guarantee: Guarantee,
        charge: Guarantee,
        horizon: int | None,
        mechanism: str,
        key: NoiseKey | None,
        neighbours: Neighbours,
        stream: str,
        name: str | None,
        allow_copy: bool,
    ) -> None:
        super().__init__()
        self.guarantee = guarantee
        self.charge = charge
        self.horizon = horizon
        self.mechanism = mechanism
        self.neighbours = neighbours
        self._key = key if key is not None else Key.generate()
        default = type(self).__name__.lower()
        self.name = named(name, self._key, default) if stream == DEFAULT_STREAM else name or default
        if not isinstance(stream, str) or not isinstance(self.name, str):
            raise ConfigurationError("stream and name are texts: they are part of the address of the noise")
        self.stream = stream
        self._options = options | {
            "guarantee": guarantee_to_json(guarantee),
            "horizon": horizon,
            "mechanism": mechanism,
            "neighbours": neighbours.value,
            "stream": stream,
            "name": self.name,
        }
        # The address of all noise (design decision 1): version, stream, mechanism, digest of every public parameter.
        digest = hashlib.sha256(json.dumps(self._options, sort_keys=True).encode()).digest()
        self._source = self._key.source(stream, self.name, type(self).__name__, _charge_text(charge), digest)
        # Releases that are not private have no difference to hide.
        self._hold = Hold(self._source.fingerprint(), self, self._key.process) if self._key.private else None
        if self._hold is not None and not allow_copy:
            self._hold.begin()
        self._tick_limit = 2**61 // (horizon or LAST_TICK)
        if contribution.max_weight > self._tick_limit:
            raise ConfigurationError(
                f"totals of a tick are kept below 2^61/horizon = {self._tick_limit} to fit 64 bits, and one event may "
                f"weigh {contribution.max_weight}; choose a shorter horizon or a coarser unit"
            )
        self._users = (
            UserCap(contribution.max_events_per_user) if contribution.max_events_per_user is not None else None
        )

    # -- what the subclasses say -----------------------------------------------------------------------------------

    @abstractmethod
    def _totals(self, x: Any, tick: int) -> Any:
        """What `step` was given for a tick, in range; raises TypeError for what is no input."""

    @abstractmethod
    def _event_totals(self, events: Any, tick: int) -> Any:
        """The bounded sum of a tick's events: the door."""

    @abstractmethod
    def _digest(self, totals: Any) -> bytes:
        """A hash of one tick's totals that says whether two inputs are the same."""

    @abstractmethod
    def _play(self, totals: Any) -> Any:
        """The engine: one tick further. Gives what is to be committed as `Kept.played`."""

    @abstractmethod
    def _last_release(self) -> Release:
        """What was released at the last tick."""

    @abstractmethod
    def error_bound(self, beta: float = 0.05, t: int | None = None) -> float:
        """With probability at least 1 - beta no number of any tick is further off than this."""

    @abstractmethod
    def run(self, x: Any, *, full: bool = False, at: Any = None) -> Any:
        """Many ticks at once."""

    @abstractmethod
    def _saved(self) -> list[bytes]:
        """The state for a snapshot; what follows from key and address is left out."""

    @abstractmethod
    def _load_saved(self, tick: int, parts: list[bytes]) -> Any:
        """The way back to the state after `tick`; gives what was committed then as `Kept.played`."""

    # -- the contract ----------------------------------------------------------------------------------------------

    @property
    def key(self) -> NoiseKey:
        """The key in use. One that was drawn here must be saved if the stream is to be restored."""
        return self._key

    def __repr__(self) -> str:
        of = "" if self.horizon is None else f" of {self.horizon}"
        what = f"{type(self).__name__} {self.name!r} of stream {self.stream!r}"
        return f"<{what}: {self.mechanism}, {self.guarantee}, tick {self.tick}{of}>"

    @property
    def noise_fingerprint(self) -> str:
        """A public name for the noise of this mechanism: the same one means the same noise, under any version."""
        return self._source.fingerprint().hex()

    @exclusive
    def step(self, x: Any, *, tick: int | None = None) -> Release:
        """One tick: its total goes in, the release comes out.

        The total counts events that the caller has bounded; `step_events` does the bounding itself. Mistakes in the
        call raise before the tick is used; totals out of range (below 0 where nothing is signed, beyond 2^61/horizon)
        are clipped silently. With `tick`, the same call for the last tick gives the same release again, and any other
        total for it is refused. Where users are protected there is no `step`: a total does not say whose it is.
        """
        self._check_owners()
        tick = _tick(tick)
        return self._step(self._totals(x, self.tick + 1 if tick is None else tick), tick)

    @exclusive
    def step_events(self, events: Any, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from raw events. Whatever is not legal in a record is bounded silently and never raises."""
        tick = _tick(tick)
        number = self.tick + 1 if tick is None else tick
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
        return self._step(self._event_totals(events, number), tick, counted)

    @exclusive
    def snapshot(self) -> bytes:
        """The state as bytes for `evertally.restore`. They contain exact sums: keep them as secret as the key."""
        header = {
            "kind": type(self).__name__,
            "options": self._options,
            "tick": self.tick,
            "last_input": self._last_input().hex(),
            "noise": self.noise_fingerprint,
        }
        users = self._users.to_bytes() if self._users is not None else b""
        return pack(header, [self._source.laws(), users, *self._saved()], self._key)

    # -- machinery -------------------------------------------------------------------------------------------------

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.other_engines = {}
        restorable(cls.__name__, cls._restore)

    @classmethod
    def _restore(cls, header: dict[str, Any], parts: list[bytes], key: NoiseKey, allow_copy: bool) -> Self:
        options = header["options"] | {"guarantee": guarantee_from_json(header["options"]["guarantee"])}
        self: Self = cls(**cls._decoded(options), key=key, allow_copy=True)
        if self.noise_fingerprint != header["noise"]:
            raise StateError(
                "this version would draw the noise of this stream from other addresses than the one that began it: a "
                "parameter was added or is computed otherwise. All noise of the past would be drawn anew, and reveal "
                "data. Continue the stream with the version that began it, or start a new stream with its own budget"
            )
        # Laws follow from options, by formulas and planners that another version may have changed.
        self._source.expect(parts[0])
        if self._users is not None:
            self._users = UserCap.from_bytes(parts[1])
        tick = header["tick"]
        played = self._load_saved(tick, parts[2:])
        if self._hold is not None and not allow_copy:
            self._hold.resume(tick)
        self._kept = Kept(
            tick,
            played,
            digest=bytes.fromhex(header["last_input"]),
            users=self._users.last if self._users is not None else UserTick(),
        )
        self._engine_tick = tick
        return self

    @classmethod
    def _decoded(cls, options: Options) -> Options:
        """Arguments of the constructor from the options of a snapshot, which are JSON."""
        return options

    def _settle(self) -> None:
        if self._hold is not None:
            self._hold.check()
        super()._settle()
        if self._users is not None:
            self._users.last = self._kept.users

    def _handed_out(self, tick: int) -> None:
        if self._hold is not None:
            self._hold.release(tick)

    def _step(self, totals: Any, tick: int | None, users: UserTick | None = None) -> Release:
        kept = self._kept
        self._check_tick(kept.tick + 1 if tick is None else tick)
        if tick is not None and tick == kept.tick:
            if self._digest(totals) != self._last_input():
                raise ReplayRefused(
                    f"tick {tick} was already released for another input; releasing it again would reveal the "
                    "difference. Late events go into the current tick."
                )
        else:
            played = self._moved(1, lambda: self._play(totals))
            self._kept = Kept(kept.tick + 1, played, totals, users=kept.users if users is None else users)
        return self._told(self._last_release())

    def _told(self, release: Release) -> Release:
        """The release with what its interval is about, where that is not everything."""
        if self._users is None:
            return release
        return replace(release, about=f"what the cap kept: at most {self._users.max_events} events of each user")

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
            self._kept = kept = replace(kept, totals=None, digest=self._digest(kept.totals))
        return kept.digest

    def _check_tick(self, tick: int) -> None:
        if tick not in (self.tick, self.tick + 1) or tick < 1:
            raise ReplayRefused(
                f"tick {tick} cannot be released now: the last one was {self.tick}, the next is {self.tick + 1}"
            )
        if tick > (self.horizon or LAST_TICK):
            raise self._over(1)

    def _over(self, count: int) -> HorizonExceeded:
        return HorizonExceeded(
            f"{count} more ticks after tick {self.tick} exceed the horizon {self.horizon or LAST_TICK} that the noise "
            "was made for; start a new stream with its own budget"
        )


@dataclass(frozen=True, repr=False)
class Played(Secret):
    """What an engine of rows has committed: the released rows of its last call (as many as windows look back on), and
    its state. Secret."""

    recent: IntArray
    state: Any


class Mechanism(Contract):
    """The contract for integer rows. Not used directly; see its subclasses."""

    def __init__(
        self, *, columns: int, width: int, contribution: Contribution, max_window: int = 0, **common: Any
    ) -> None:
        super().__init__(contribution=contribution, **common)
        self._columns = columns
        self._signed = contribution.signed
        # Released rows of the last ticks, tick t in place t mod (max_window + 1); those of the last call are in `Kept`.
        self._history = np.zeros((max_window + 1, width), dtype=np.int64)
        self._kept = Kept(played=Played(np.zeros((1, width), dtype=np.int64), self._first_state()))

    # -- what the subclasses say -----------------------------------------------------------------------------------

    @abstractmethod
    def _row(self, x: Any) -> IntArray:
        """One tick's totals as an integer row; raises TypeError for what is not one."""

    @abstractmethod
    def _event_row(self, events: Any, tick: int) -> IntArray:
        """The bounded sum of one tick's events: the door."""

    @abstractmethod
    def _advance(self, rows: Rows, state: Any) -> tuple[IntArray, IntArray | None, Any]:
        """The engine: released rows of the next ticks, and for how many ticks each of them stands (None: one each).

        `state` is what it gave last as the third: a value that is committed with the release, and never changed.
        """

    @abstractmethod
    def _accuracy(self, tick: int) -> Accuracy:
        """How far each number that is released at a tick may be off."""

    @abstractmethod
    def _state(self) -> list[bytes]:
        """The engine's state; what follows from key and address is left out."""

    @abstractmethod
    def _load(self, tick: int, parts: list[bytes]) -> Any:
        """The way back to the state after `tick`; gives the state that `_advance` goes on from."""

    def _first_state(self) -> Any:
        """The state before the first tick."""
        return None

    def _rows(self, x: Any) -> Rows:
        """Many ticks' totals, shape (ticks, columns)."""
        rows: Rows = x if type(x) is SparseRows else as_integers(x)
        if len(rows.shape) != 2 or rows.shape[1] != self._columns:
            raise TypeError(f"run takes integers of shape (ticks, {self._columns}), not of shape {rows.shape}")
        return rows

    def _show(self, values: IntArray) -> Any:
        """A row of released integers as the public value."""
        return values.copy()

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return values

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        radius = math.floor(accuracy.radius(beta))  # releases and truth are integers
        return self._show(values - radius), self._show(values + radius)

    def _deviation(self, accuracy: Accuracy) -> float | None:
        """The standard deviation to show for noise of this accuracy."""
        return accuracy.stddev

    def _labels(self) -> list[str] | None:
        """Names of the shown numbers, if `run(full=True)` should show one line for each."""
        return [str(j) for j in range(self._columns)]

    # -- the contract ----------------------------------------------------------------------------------------------

    @exclusive
    def run(self, x: Any, *, full: bool = False, at: Any = None) -> Any:
        """Many ticks at once: an array of releases, bit-identical to repeated `step`.

        With `full=True` an Arrow table with tick, (column,) value and the 95 % interval of each value. With `at`, an
        increasing list of ticks of this run, only the releases at those ticks are kept; all ticks are played.
        """
        self._check_owners()
        rows = self._rows(x)
        first, count = self.tick + 1, len(rows)
        if self.tick + count > (self.horizon or LAST_TICK):
            raise self._over(count)
        wanted = wanted_ticks(at, first, count)
        kept: list[_Rows] = []
        if count:
            played = self._moved(count, lambda: self._play_all(rows, wanted, kept))
            self._kept = replace(
                self._kept, tick=self.tick + count, played=played, totals=dense(self._clip(rows[count - 1 :]))[0]
            )
        else:
            kept.append((np.empty((0, self._history.shape[1]), dtype=np.int64), None))
        if full:
            ticks = np.arange(first, first + count) if wanted is None else wanted + first
            return self._table(ticks, _joined(kept))
        # Shown before they are repeated: a released row may stand for many ticks.
        return _joined([(self._show_run(values), lasts) for values, lasts in kept])

    # -- machinery -------------------------------------------------------------------------------------------------

    def _totals(self, x: Any, tick: int) -> IntArray:
        return self._in_range(self._row(x))

    def _event_totals(self, events: Any, tick: int) -> IntArray:
        return self._in_range(self._event_row(events, tick))

    def _in_range(self, row: IntArray) -> IntArray:
        clipped: IntArray = self._clip(row[None, :])[0]
        return clipped

    def _digest(self, totals: IntArray) -> bytes:
        return hashlib.sha256(to_bytes(totals)).digest()

    def _play(self, totals: IntArray) -> Played:
        values, _, state = self._advance(totals[None, :], self._kept.played.state)
        return Played(values[-1:].copy(), state)

    def _play_all(self, rows: Rows, wanted: IntArray | None, kept: list[_Rows]) -> Played:
        """A whole run, piece by piece; what is wanted of it goes into `kept`."""
        state, recent = self._kept.played.state, self._history[:0]
        piece = max(1, _PIECE // rows.shape[1])
        for start in range(0, len(rows), piece):
            part = self._clip(rows[start : start + piece])
            values, lasts, state = self._advance(part, state)
            recent = np.concatenate([recent, values])[-len(self._history) :]
            if wanted is not None:
                ends = np.arange(1, len(values) + 1) if lasts is None else np.cumsum(lasts)
                inside = wanted[(wanted >= start) & (wanted < start + len(part))] - start
                lasts = np.bincount(np.searchsorted(ends, inside, side="right"), minlength=len(values))
            kept.append((values, lasts))
        return Played(recent, state)

    def _settle(self) -> None:
        super()._settle()
        # Writes the same rows into the same places, however often: an interruption does no harm.
        for age, row in enumerate(self._kept.played.recent[::-1]):
            self._history[(self.tick - age) % len(self._history)] = row

    @property
    def _last_row(self) -> IntArray:
        """The integers behind the last release."""
        row: IntArray = self._kept.played.recent[-1]
        return row

    def _last_release(self) -> Release:
        return self._release(self._last_row, self._accuracy(self.tick))

    def _saved(self) -> list[bytes]:
        ticks = np.arange(max(0, self.tick + 1 - len(self._history)), self.tick + 1)
        return [to_bytes(self._history[ticks % len(self._history)]), *self._state()]

    def _load_saved(self, tick: int, parts: list[bytes]) -> Played:
        return Played(from_bytes(parts[0]).reshape(-1, self._history.shape[1]), self._load(tick, parts[1:]))

    def _clip(self, rows: Any) -> Any:
        # 1-Lipschitz in every total, hence free; keeps the sums far from the end of int64.
        low = -self._tick_limit if self._signed else 0
        return rows.clip(low, self._tick_limit)

    def _release(self, values: IntArray, accuracy: Accuracy) -> Release:
        return Release(
            self.tick,
            self._show(values),
            self._deviation(accuracy),
            self._key.private,
            lambda beta: self._interval(values, accuracy, beta),
        )

    def _table(self, ticks: IntArray, values: IntArray) -> Any:
        import pyarrow as pa

        labels = self._labels()
        shown, lower, upper = [], [], []
        # Without any tick, one made-up row says which types the columns have.
        rows = values if len(values) else np.zeros_like(self._history[:1])
        for t, row in zip(ticks.tolist() or [1], rows, strict=True):
            low, high = self._interval(row, self._accuracy(t), 0.05)
            shown.append(flat(self._show(row)))
            lower.append(flat(low))
            upper.append(flat(high))
        table: dict[str, Any] = {"tick": np.repeat(ticks, len(labels)) if labels else ticks}
        if labels:
            table["column"] = pa.array(labels * len(values), type=pa.string())
        for name, numbers in (("value", shown), ("lower", lower), ("upper", upper)):
            table[name] = np.concatenate(numbers)[: len(table["tick"])]
        return pa.table(table)


def check_guarantee(guarantee: Any) -> None:
    """Refuses what is no guarantee."""
    # Exactly: a subclass could say one number to the noise and another one to the reader.
    if type(guarantee) not in (PureDP, ZCDP, ApproxDP, ApproxZCDP):
        raise ConfigurationError("guarantee is a PureDP, ZCDP, ApproxDP or ApproxZCDP object, e.g. et.PureDP(1.0)")


def check_neighbours(neighbours: str | Neighbours, guarantee: Guarantee) -> Neighbours:
    """The relation, if it is proved against the guarantee's adversary."""
    relation = Neighbours.parse(neighbours)
    if relation is Neighbours.INDEPENDENT and guarantee.adversary != "oblivious":
        # parameterized-histograms 6: the claim is proved for streams fixed beforehand only (design decision 9)
        raise ConfigurationError(
            "independent neighbours are proved for oblivious streams only; say so in the guarantee, "
            'e.g. ZCDP(0.5, adversary="oblivious")'
        )
    return relation


def check_horizon_option(horizon: Any) -> int | None:
    """A horizon in range, or None."""
    return whole("horizon", horizon, 1, LONGEST_HORIZON) if horizon is not None else None


def flat(value: Any) -> NDArray[Any]:
    """A public value as a flat array, in column order."""
    return np.atleast_1d(np.array(list(value.values()) if isinstance(value, dict) else value))


def to_bytes(array: IntArray) -> bytes:
    """Integers as bytes that mean the same everywhere."""
    return np.ascontiguousarray(array, dtype="<i8").tobytes()


def from_bytes(data: bytes) -> IntArray:
    """The way back."""
    return np.frombuffer(data, dtype="<i8").astype(np.int64)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """An integer option in range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ConfigurationError(f"{name} must be an integer from {low} to {high}; got {value!r}")
    return int(value)


def _tick(tick: Any) -> int | None:
    if tick is not None and (isinstance(tick, bool) or not isinstance(tick, int | np.integer)):
        raise TypeError(f"tick is a whole number, not {type(tick).__name__}")
    return None if tick is None else int(tick)


def wanted_ticks(at: Any, first: int, count: int) -> IntArray | None:
    """The ticks of a run that are kept, counted from 0."""
    if at is None:
        return None
    ticks = np.asarray(at) if len(at) else np.zeros(0, dtype=np.int64)
    if ticks.dtype.kind not in "iu":
        raise TypeError("at is a list of ticks, which are whole numbers")
    ticks = ticks.astype(np.int64)
    inside = (ticks >= first) & (ticks < first + count)
    if ticks.ndim != 1 or not inside.all() or (np.diff(ticks) <= 0).any():
        raise TypeError(f"at is an increasing list of ticks from {first} to {first + count - 1}")
    return ticks - first


def _joined(kept: list[_Rows]) -> NDArray[Any]:
    pieces = [values if lasts is None else np.repeat(values, lasts, axis=0) for values, lasts in kept]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _charge_text(charge: Guarantee) -> str:
    if isinstance(charge, PureDP):
        return f"PureDP:{charge.exact_epsilon}"
    if isinstance(charge, ZCDP):
        return f"ZCDP:{charge.exact_rho}"
    return repr(sorted(guarantee_to_json(charge).items()))
