"""The constructions, by name: one line each."""

from __future__ import annotations

from evertally.dynamic.parts import Construction

CONSTRUCTIONS: dict[str, Construction] = {}
