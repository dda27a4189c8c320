"""Audits that begin at the words of a stream spec: what it promises, what each query may cost of that, which streams
are neighbours, and what these show of a query that the runtime itself has built. docs/auditing.md."""

from evertally.audit.spec_down.of_kind import kind_steps
from evertally.audit.spec_down.promise import Charge, Promise
from evertally.audit.spec_down.rows import SpecAudit, content_steps, spec_steps

__all__ = ["Charge", "Promise", "SpecAudit", "content_steps", "kind_steps", "spec_steps"]
