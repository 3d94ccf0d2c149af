"""What the control plane answers when it did as asked.

Owns:  the small receipts; pages are in surface_responses, views of records are projections.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from holon.model.brief import BriefRecord
from holon.model.ids import AgentId, MessageId, TaskId
from holon.model.instant import Instant
from holon.model.message import MessageState
from holon.model.record import Record
from holon.projections.agent_summary import ClosureView


class Done(Record, frozen=True, kw_only=True):
    """It is so now."""

    ok: Literal[True]
    agent_id: AgentId | None = None


class Enqueued(Record, frozen=True, kw_only=True):
    """The message is durable. `duplicate`: it already was, under the same key."""

    ok: Literal[True]
    agent_id: AgentId
    message_id: MessageId
    duplicate: bool = msgspec.field(default_factory=bool)


class WaitEnd(StrEnum):
    """Why a wait ended before the message did."""

    TIME_IS_UP = "time_is_up"
    HELD = "held"  # nothing happens to the message before `held_until`
    TOO_MANY_WAITS = "too_many_waits"
    RUNTIME_ENDS = "runtime_ends"


class HoldReason(StrEnum):
    """What keeps a message from having its turn now."""

    BUDGET_USED_UP = "budget_used_up"
    PROVIDER_DEFERRED = "provider_deferred"


class Prompted(Enqueued, frozen=True, kw_only=True):
    """The message is durable; with `wait_ms`, also what came of it by the end of the wait.

    `answered`: the message has ended, and the turn it entered has settled. `closure` is the
    agent's, as its rows stand at that moment.
    """

    answered: bool | None = None  # left out where no wait was asked for
    wait_end: WaitEnd | None = None  # where it is not answered
    ended: MessageState | None = None
    briefs: tuple[BriefRecord, ...] = ()  # that answer it, oldest first
    closure: ClosureView | None = None
    held_until: Instant | None = None
    held_by: HoldReason | None = None


class FrontLinks(Record, frozen=True, kw_only=True):
    """Where to go on from the root."""

    handshake: str
    openapi: str


class Front(Record, frozen=True, kw_only=True):
    """What is served at the root."""

    ok: Literal[True]
    name: str
    version: str
    links: FrontLinks


class Protocol(Record, frozen=True, kw_only=True):
    """Which protocol this server speaks."""

    name: str
    version: int


class AuthFacts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a caller needs in order to be let in, on the socket it came through."""

    mode: str
    required: bool


class HandshakeRuntime(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Who is there; only for a caller that was let in."""

    default_agent: AgentId
    workspace_dir: str | None
    home_dir: str
    listen: str
    advertise_url: str | None


class Handshake(Record, frozen=True, kw_only=True):
    """The first answer to any client."""

    ok: Literal[True]
    protocol: Protocol
    auth: AuthFacts
    capabilities: tuple[str, ...]
    version: str
    runtime: HandshakeRuntime | None = None


class ModelListing(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The runtime's model, and the ones it falls back to."""

    default_model: str
    fallback_models: tuple[str, ...]


class TaskStopAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the stop set in motion. Asked a second time, it is carried out for certain."""

    ok: Literal[True]
    task_id: TaskId
    stop_requested: bool
    force_stop_requested: bool
