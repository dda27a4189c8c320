"""`evertally verify`, `head` and `rescue`: whether a stream and its log are what they were, and what then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from evertally.errors import ConfigurationError
from evertally.runtime import load_spec
from evertally.runtime.rescue import end, rescue
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.database import Unreadable
from evertally.runtime.verify import Certified, read_json, state_of


def command(subject: Path, logs: Sequence[Path], head: Path | None) -> bool:
    """Whether all of it is as it was released."""
    if subject.suffix != ".json":
        return _state(subject, logs, head)
    if head is None or not logs:
        raise ConfigurationError("with a certificate give --log FILE and --head FILE")
    return _logs(Certified.by(read_json(subject)), read_json(head), logs)


def _state(spec_file: Path, logs: Sequence[Path], head: Path | None) -> bool:
    spec = load_spec(spec_file)
    try:
        return _verified(spec, logs, head)
    except Unreadable as error:
        print(f"WRONG  {spec.state_file}: {error}")
        return False


def _verified(spec: StreamSpec, logs: Sequence[Path], head: Path | None) -> bool:
    with state_of(spec) as store:
        problems = list(store.problems())
        for problem in problems:
            print(f"WRONG  {spec.state_file}: {problem}")
        if problems:
            return False
        print(f"ok     {spec.state_file}: all of it is as it was written, up to tick {store.head.tick}")
        names = frozenset(query.name for query in spec.queries)
        own = Certified(spec.name, spec.digest, store.proof.public_key.hex(), names)
        return not logs or _logs(own, store.signed(digests=True) if head is None else read_json(head), logs)


def _logs(certified: Certified, head: object, logs: Sequence[Path]) -> bool:
    if not isinstance(head, dict):
        raise ConfigurationError("the head is not a JSON object; `evertally head` and /v1/head make one")
    passed = True
    for log in logs:
        found = certified.checked(head, log)
        for problem in found.problems:
            print(f"WRONG  {log}: {problem}")
        if not found.problems:
            ticks = f"ticks {found.first} to {found.last}"
            left = f"; {found.windows} rows of windows were not checked: nobody signs them" if found.windows else ""
            print(f"ok     {log}: {ticks} are what stream {certified.stream} has released{left}")
        passed = passed and not found.problems
    return passed


def print_head(spec_file: Path, digests: bool) -> None:
    with state_of(load_spec(spec_file)) as store:
        print(json.dumps(store.signed(digests), indent=1))


def rescue_stream(spec_file: Path, ends: bool) -> None:
    spec = load_spec(spec_file)
    if ends:
        tick = end(spec)
        print(f"{spec.name}: ended at tick {tick}. What was released stays; nothing is ever released again")
        return
    tick, lost = rescue(spec)
    gone = f"; {lost} damaged ticks are gone from its log, not from outputs" if lost else ""
    print(f"{spec.name}: goes on after tick {tick}{gone}. Start it as before")
