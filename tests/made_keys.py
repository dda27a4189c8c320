"""Keys that are made before their stream; not a test."""

from __future__ import annotations

from pathlib import Path

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.state.sidecar import Mark, Sidecar


def save_bound(key: Key, spec_file: Path) -> None:
    """Saves the key of a spec, and the sidecar of a stream that has not begun: a key without one is refused."""
    spec = load_spec(spec_file)
    spec.key_file.parent.mkdir(mode=0o700, exist_ok=True)
    key.save(spec.key_file)
    Sidecar(key, spec.key_file, spec.digest, spec.name).write(Mark())
