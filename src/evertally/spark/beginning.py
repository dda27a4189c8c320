"""How a stream on Spark is taken up, new or again: lock, key, log, mechanisms, the file for the workers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key, WorkerKey
from evertally.runtime.certificate import certificate_of
from evertally.runtime.mechanisms import Mechanisms, build
from evertally.runtime.spec import StreamSpec, load_spec
from evertally.runtime.state.fence import fence, keep_key, obtain_key
from evertally.runtime.state.shelf import open_shelf
from evertally.runtime.state.sidecar import Mark, Sidecar, sidecar_path, write_atomically
from evertally.spark.job import Stand
from evertally.spark.root import Log, Record, written
from evertally.spark.ways import Recipe, Way, needs_users, ways_of

FORMAT = 2  # 2: what a batch closes is sealed, and may be taken back


@dataclass(frozen=True)
class Taken:
    """A stream that this driver holds."""

    spec: StreamSpec
    key: Key
    log: Log
    stand: Stand
    mechanisms: Mechanisms  # before their first tick: to be asked about errors


@contextmanager
def taken(spec: StreamSpec) -> Iterator[Taken]:
    """Takes a stream up, and holds it for this process. What is refused leaves nothing behind."""
    if spec.clock.floating:
        raise ConfigurationError(
            f"{spec.path}: [clock] a stream on Spark needs a start that is known, not its first serve"
        )
    root, home = open_shelf(spec.engine.root), open_shelf(spec.engine.home)
    open_shelf(spec.engine.public)
    with fence(spec.key_file) as hold_key:
        key, new = _key(spec)
        log = Log(root, home, key)
        genesis = None if new else log.genesis()
        if genesis is None:
            mechanisms = build(spec, key)
            plan = _plan(spec, mechanisms)
            genesis = _genesis(spec, mechanisms, plan, _interrupted(log, new))
            root.put_new(f"plan-{genesis['plan']}", plan)
            if new:
                keep_key(key, spec.key_file, lambda: _bind(spec, key, log, genesis))
                hold_key()
            else:
                _bind(spec, key, log, genesis)
        elif root.read(f"plan-{genesis['plan']}") is None:
            _plan_again(spec, key, log, genesis)
        stand, mechanisms = _stand(spec, key, log, genesis)
        log.check()
        _check_remembered(spec, key, log)
        yield Taken(spec, key, log, stand, mechanisms)


def looked_at(spec: StreamSpec, key: Key) -> Taken:
    """A stream that has begun, to be asked and not to be moved: it may run elsewhere at the same time."""
    log = Log(open_shelf(spec.engine.root), open_shelf(spec.engine.home), key)
    genesis = log.genesis()
    if genesis is None:
        raise StateError(f"the stream of {spec.path} has not begun on Spark")
    stand, mechanisms = _stand(spec, key, log, genesis)
    return Taken(spec, key, log, stand, mechanisms)


def _key(spec: StreamSpec) -> tuple[Key, bool]:
    """The key, and whether it is new. One that serves a stream in one process is refused."""
    home = open_shelf(spec.engine.home)
    known = home.read("genesis") is not None
    if spec.key_file.exists() and not known:
        raise StateError(
            f"the key {spec.key_file} is there, and {spec.engine.home}, the home of its marks, is not: nothing says "
            "how far this stream has come, or it runs in one process. Bring the marks back; a new stream needs a new "
            "key. The same noise on other events would reveal the difference"
        )
    if not spec.key_file.exists() and (home.names("mark") or (known and not Path(f"{spec.key_file}.new").exists())):
        raise StateError(
            f"the key file {spec.key_file} is missing, and {spec.engine.home} is there: this stream has begun. Bring "
            "the key back; without it the stream cannot go on. A new stream needs new places"
        )
    if spec.state_file.exists():
        raise StateError(f"{spec.state_file} is there: this stream runs in one process, and the two cannot share a key")
    return obtain_key(spec.key_file, spec.state_file)


def _interrupted(log: Log, new: bool) -> str:
    """The root id of a beginning that was interrupted, or a new one."""
    if new:
        found = log.home.read("genesis")
        if found is not None:
            said: Record = json.loads(found)["said"]
            return str(said["root"])
    return os.urandom(16).hex()


def _genesis(spec: StreamSpec, mechanisms: Mechanisms, plan: bytes, root_id: str) -> Record:
    clock = spec.clock
    return {
        "format": FORMAT,
        "root": root_id,
        "stream": spec.name,
        "spec": spec.digest,
        "plan": hashlib.sha256(plan).hexdigest(),
        "clock": [clock.column, clock.start, clock.length, clock.close],
        "user_buckets": spec.engine.user_buckets,
        "label_shards": spec.engine.label_shards,
        "ledger": [
            [query.name, str(query.share), str(made.charge), made.noise_fingerprint]
            for query in spec.queries
            for made in [mechanisms[query.name]]
        ],
    }


def _bind(spec: StreamSpec, key: Key, log: Log, genesis: Record) -> None:
    # One process that finds it beside the key is told that ticks were released whose state it has not. It comes
    # first: with it, a key that is only half kept is found again after a crash, and not made anew.
    chain = hashlib.sha256(genesis["root"].encode()).hexdigest()
    _sidecar(spec, key).write(Mark(generation=0, tick=1, chain=chain))
    log.begin(genesis)


def _sidecar(spec: StreamSpec, key: Key) -> Sidecar:
    return Sidecar(key, spec.key_file, spec.digest, spec.name, spec.parts)


def remember(taken: Taken, through: int) -> None:
    """Writes beside the key how far the marks have come: a home and a root that are restored together, to before that,
    cannot go on. A driver that sleeps may move it back; that makes it a weaker witness, and no wrong one."""
    sidecar = _sidecar(taken.spec, taken.key)
    known = sidecar.read()
    if known is not None and known.tick < through + 1:
        sidecar.write(replace(known, tick=through + 1))  # one more: at 1 nothing was released


def _check_remembered(spec: StreamSpec, key: Key, log: Log) -> None:
    known, through = _sidecar(spec, key).read(), log.marked_through()
    if known is not None and known.ended:
        raise StateError(f"{sidecar_path(spec.key_file)} says that this stream was ended for good; it does not go on")
    if known is not None and known.tick > through + 1:
        raise StateError(
            f"{sidecar_path(spec.key_file)} says that {known.tick - 1} ticks were released, and the marks know of "
            f"{through}: they are older ones. Bring home and root back as they were last; going on would release the "
            "same ticks from other events"
        )


def _plan(spec: StreamSpec, mechanisms: Mechanisms) -> bytes:
    """All that was settled, found by floats or chosen: it is not found or chosen again."""
    ways = ways_of(spec, mechanisms)
    recipes = [Recipe.of(mechanisms[query.name]).options for query in spec.queries]
    return written({"recipes": recipes, "ways": [asdict(way) for way in ways], "width": spec.engine.slice_width})


def _plan_again(spec: StreamSpec, key: Key, log: Log, genesis: Record) -> None:
    """A root that was lost before anything was released is begun again; the genesis knows what its plan was."""
    _check_same(spec, genesis)
    plan = _plan(spec, build(spec, key))
    if hashlib.sha256(plan).hexdigest() == genesis["plan"]:
        log.root.put_new(f"plan-{genesis['plan']}", plan)


def _stand(spec: StreamSpec, key: Key, log: Log, genesis: Record) -> tuple[Stand, Mechanisms]:
    _check_same(spec, genesis)
    data = log.root.read(f"plan-{genesis['plan']}")
    if data is None or hashlib.sha256(data).hexdigest() != genesis["plan"]:
        raise StateError(f"the plan of the stream under {spec.engine.root} is missing or damaged; bring the root back")
    found = json.loads(data)
    recipes = [Recipe(query.record.statistic, text) for query, text in zip(spec.queries, found["recipes"], strict=True)]
    mechanisms = {query.name: recipe.made(key) for query, recipe in zip(spec.queries, recipes, strict=True)}
    for name, share, charge, noise in genesis["ledger"]:
        made = mechanisms[name]
        if (str(made.charge), made.noise_fingerprint) != (charge, noise):
            raise StateError(
                f"query {name!r} would not draw the noise, or pay the share {share}, that this stream began with: "
                "another version, or another key. Go on with the one that began it"
            )
    ways = [_recut(Way(**way), spec.engine.slice_width) for way in found["ways"]]
    worker = WorkerKey.of(key, spec.name, [mechanisms[query.name]._path for query in spec.queries])
    _write_worker_key(spec, worker)
    stand = Stand(
        spec=Stand.stripped(spec),
        recipes=tuple(recipes),
        ways=tuple(ways),
        by_user=needs_users(mechanisms, ways),
        buckets=genesis["user_buckets"],
        key_file=str(spec.engine.worker_key),
        fingerprint=worker.fingerprint(),
        root=spec.engine.root,
        root_id=genesis["root"],
        digest=hashlib.sha256(
            written({"genesis": genesis, "width": spec.engine.slice_width, "release": spec.engine.release})
        ).hexdigest(),
    )
    return stand, mechanisms


def _recut(way: Way, width: int) -> Way:
    """The same slices in another width: state is kept by column."""
    return way if way.place != "slices" else Way(**asdict(way) | {"parts": -(-way.columns // width)})


def _check_same(spec: StreamSpec, genesis: Record) -> None:
    now = {
        "format": FORMAT,
        "spec": spec.digest,
        "clock": [spec.clock.column, spec.clock.start, spec.clock.length, spec.clock.close],
        "user_buckets": spec.engine.user_buckets,
        "label_shards": spec.engine.label_shards,
    }
    changed = [name for name, value in now.items() if genesis[name] != value]
    if changed:
        raise StateError(
            f"{spec.path} is not what this stream began with: {', '.join(changed)} changed. Undo the change; what is "
            "asked anew needs a stream of its own, with its own key"
        )


def _write_worker_key(spec: StreamSpec, worker: WorkerKey) -> None:
    path, data = spec.engine.worker_key, worker.to_bytes()
    if path.exists():
        if WorkerKey.load(path).fingerprint() != worker.fingerprint() or path.read_bytes() != data:
            raise StateError(f"{path} is the worker key of something else; take it away, or name another place")
        return
    write_atomically(path, data)


def certificate(spec: str | os.PathLike[str]) -> Record:
    """What a stream on Spark promises: the certificate of its mechanisms, which is that of one process, and where it is
    played. Which protections each batch had stands in what was shown of it."""
    settled = load_spec(spec)
    if not settled.key_file.exists():
        mechanisms = build(settled, None)
        ways = [asdict(way) for way in ways_of(settled, mechanisms)]
        played: Record = {"kind": "spark", "queries": {q.name: w for q, w in zip(settled.queries, ways, strict=True)}}
        return certificate_of(settled, mechanisms) | {"engine": played}
    key = Key.load(settled.key_file)
    held = looked_at(settled, key)
    return certificate_of(settled, held.mechanisms, key.public_key) | {"engine": certified(held.stand, None)}


def certified(stand: Stand, protections: Any) -> Record:
    """What the certificate says about where the stream is played."""
    engine = stand.spec.engine
    return {
        "kind": "spark",
        "slice_width": engine.slice_width,
        "release": engine.release,
        "user_buckets": stand.buckets if stand.by_user else None,
        "queries": {
            query.name: {"place": way.place, "travels": way.travels, "parts": way.parts}
            for query, way in zip(stand.spec.queries, stand.ways, strict=True)
        },
        "protections": protections,
        "meaning": "the cluster, its operator, and whoever can submit code to it are inside the trust boundary; "
        "`evertally spark verify` checks what it shows",
    }
