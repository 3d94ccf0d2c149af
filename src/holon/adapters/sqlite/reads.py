"""Every query, as one object."""

from holon.adapters.sqlite.agents import SqliteAgentReads
from holon.adapters.sqlite.budgets import SqliteUsageReads
from holon.adapters.sqlite.guidance import SqliteSkillReads
from holon.adapters.sqlite.memory import SqliteMemorySourceReads, SqliteWorkingMemoryReads
from holon.adapters.sqlite.queue import SqliteQueueReads
from holon.adapters.sqlite.records import SqliteHistoryReads, SqliteSurfaceReads
from holon.adapters.sqlite.wake import SqliteTriggerReads, SqliteWheelReads
from holon.adapters.sqlite.work import SqliteWorkReads
from holon.adapters.sqlite.workspaces import SqliteWorkspaceReads


class SqliteReads(
    SqliteQueueReads,
    SqliteAgentReads,
    SqliteWheelReads,
    SqliteWorkReads,
    SqliteSurfaceReads,
    SqliteHistoryReads,
    SqliteTriggerReads,
    SqliteUsageReads,
    SqliteWorkspaceReads,
    SqliteSkillReads,
    SqliteMemorySourceReads,
    SqliteWorkingMemoryReads,
):
    """The reads of the store port, on one connection that cannot write."""
