"""What the routes share: the stream's parts behind one name."""

from __future__ import annotations

from dataclasses import dataclass

from evertally.runtime.pump import Pump
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.runtime.windows import Windows
from evertally.service.about import About
from evertally.service.access import Doorman
from evertally.service.bodies import ReadingRoom
from evertally.service.limits import RateLimit
from evertally.service.live_events import LiveEvents
from evertally.service.metrics import Metrics
from evertally.service.workers import Workers


@dataclass(frozen=True)
class Parts:
    """Made once for each application."""

    spec: StreamSpec
    pump: Pump
    history: History
    doorman: Doorman
    about: About
    metrics: Metrics
    live_events: LiveEvents
    workers: Workers
    reading_room: ReadingRoom
    rows: RateLimit  # that callers may send
    windows: Windows
