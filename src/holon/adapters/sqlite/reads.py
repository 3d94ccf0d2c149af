"""Every query, as one object."""

from holon.adapters.sqlite.agent_reads import SqliteAgentReads
from holon.adapters.sqlite.history_reads import SqliteHistoryReads
from holon.adapters.sqlite.memory_source_reads import SqliteMemorySourceReads
from holon.adapters.sqlite.queue_reads import SqliteQueueReads
from holon.adapters.sqlite.skill_reads import SqliteSkillReads
from holon.adapters.sqlite.surface_reads import SqliteSurfaceReads
from holon.adapters.sqlite.trigger_reads import SqliteTriggerReads
from holon.adapters.sqlite.usage_reads import SqliteUsageReads
from holon.adapters.sqlite.wheel_reads import SqliteWheelReads
from holon.adapters.sqlite.work_reads import SqliteWorkReads
from holon.adapters.sqlite.working_memory_reads import SqliteWorkingMemoryReads
from holon.adapters.sqlite.workspace_reads import SqliteWorkspaceReads


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
