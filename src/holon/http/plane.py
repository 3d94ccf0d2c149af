"""What the handlers work with.

Owns:  the bundle: a host, who it is, and how to end it. No logic.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from holon.adapters.system.process_usage import ProcessUsage, process_usage
from holon.http.event_frames import EventFrames
from holon.http.event_tally import EventTally
from holon.http.outside_door import OutsideDoor
from holon.http.token_watch import TokenWatch
from holon.http.traffic import Traffic
from holon.model.ids import AgentId
from holon.model.limits import PROMPT_WAITS_COUNT_MAX
from holon.ports.clock import Clock
from holon.runtime.host import Host


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeFacts:
    """Who this runtime is, for whoever asks."""

    version: str
    pid: int
    home_dir: str
    socket_path: str
    http_addr: str
    base_url: str
    started_at: datetime
    config_fingerprint: str
    default_agent: AgentId
    workspace_dir: str | None = None
    advertise_url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plane:
    """Everything a handler may touch."""

    host: Host
    clock: Clock
    facts: RuntimeFacts
    request_shutdown: Callable[[], None]
    outside: OutsideDoor
    frames: EventFrames = field(default_factory=EventFrames)
    token_watch: TokenWatch = field(default_factory=TokenWatch)
    tally: EventTally = field(default_factory=EventTally)
    traffic: Traffic = field(default_factory=Traffic)
    usage: Callable[[], ProcessUsage] = process_usage
    prompt_waits: anyio.Semaphore = field(
        default_factory=lambda: anyio.Semaphore(PROMPT_WAITS_COUNT_MAX)
    )
