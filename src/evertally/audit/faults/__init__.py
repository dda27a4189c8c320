"""State faults as moves of the adversary: calls that are interrupted, restores, copies, replays, forks, threads.

The transcript of all releases that anybody saw must be that of one stream; `fault_audits` plays the moves on a
mechanism of any kind, `service` on a running service.
"""

from evertally.audit.faults.rows import FAULTS, fault_audits

__all__ = ["FAULTS", "fault_audits"]
