"""The stream spec: one TOML file, read and checked before anything else happens.

`loading` reads the file section by section; `sections`, `options` and `values` say what may stand there; `checks` what
must fit together; `types` is what the rest of the runtime gets.
"""

from evertally.runtime.spec.checks import check_runnable, check_servable
from evertally.runtime.spec.loading import load_spec
from evertally.runtime.spec.types import QuerySpec, Retention, ServeSpec, SinkSpec, SourceSpec, StreamSpec

__all__ = [
    "QuerySpec",
    "Retention",
    "ServeSpec",
    "SinkSpec",
    "SourceSpec",
    "StreamSpec",
    "check_runnable",
    "check_servable",
    "load_spec",
]
