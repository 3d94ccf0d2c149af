"""Every query, as one object."""

from holon.adapters.sqlite.agent_reads import SqliteAgentReads
from holon.adapters.sqlite.history_reads import SqliteHistoryReads
from holon.adapters.sqlite.queue_reads import SqliteQueueReads
from holon.adapters.sqlite.surface_reads import SqliteSurfaceReads
from holon.adapters.sqlite.trigger_reads import SqliteTriggerReads
from holon.adapters.sqlite.usage_reads import SqliteUsageReads
from holon.adapters.sqlite.wheel_reads import SqliteWheelReads
from holon.adapters.sqlite.work_reads import SqliteWorkReads


class SqliteReads(
    SqliteQueueReads,
    SqliteAgentReads,
    SqliteWheelReads,
    SqliteWorkReads,
    SqliteSurfaceReads,
    SqliteHistoryReads,
    SqliteTriggerReads,
    SqliteUsageReads,
):
    """The reads of the store port, on one connection that cannot write."""
