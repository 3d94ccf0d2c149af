"""Writing changes to agents and what they tell their operator.

Owns:  the rows of `agents` and `briefs`.
"""

from typing import TypeAlias, assert_never

from holon.adapters.sqlite.change_codec import encode, micros_or_none
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.agent import IdentityStatus
from holon.model.commit import (
    AppendBrief,
    ArchiveAgent,
    CreateAgent,
    FocusWorkItem,
    RecordClosure,
    SetAgentStatus,
    SetModelOverride,
)
from holon.model.instant import to_micros

AgentChange: TypeAlias = (
    CreateAgent
    | SetAgentStatus
    | FocusWorkItem
    | SetModelOverride
    | ArchiveAgent
    | RecordClosure
    | AppendBrief
)

_MISSING = "agents_row_missing"


class AgentChanges:
    """Writes what changes about an agent itself."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("agents")

    def write(self, change: AgentChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case CreateAgent():
                self._create(change, at=at)
            case SetAgentStatus():
                self._set_status(change, at=at)
            case FocusWorkItem(agent_id=agent_id, work_item_id=item_id):
                self._update("set_focus", agent_id, item_id)
            case SetModelOverride(agent_id=agent_id, model=model):
                self._update("set_model_override", agent_id, model)
            case ArchiveAgent(agent_id=agent_id):
                self._statements.change_one(self._sql["archive"], (agent_id,), missing=_MISSING)
            case RecordClosure(agent_id=agent_id, closure=closure):
                self._update("record_closure", agent_id, encode(closure))
            case AppendBrief():
                self._append_brief(change)
            case _:
                assert_never(change)

    def _update(self, name: str, agent_id: str, value: str | int | None) -> None:
        self._statements.change_one(self._sql[name], (agent_id, value), missing=_MISSING)

    def _create(self, change: CreateAgent, *, at: int) -> None:
        identity = change.identity
        archived = identity.status is IdentityStatus.ARCHIVED
        self._statements.run(
            self._sql["create_agent"],
            (identity.agent_id, encode(identity), int(archived), change.status.value, at),
        )

    def _set_status(self, change: SetAgentStatus, *, at: int) -> None:
        self._statements.change_one(
            self._sql["set_status"],
            {
                "agent_id": change.agent_id,
                "status": change.status.value,
                "at": at,
                "reason": change.reason,
                "sleeping_until": micros_or_none(change.sleeping_until),
                "new_generation": change.new_generation,
                "wake_reason": change.wake_reason,
            },
            missing=_MISSING,
        )

    def _append_brief(self, change: AppendBrief) -> None:
        brief = change.brief
        told_at = to_micros(brief.created_at)
        self._statements.run(
            self._sql["append_brief"],
            (brief.id, brief.agent_id, brief.turn_id, brief.kind.value, told_at, encode(brief)),
        )
        self._update("brief_told", brief.agent_id, told_at)
