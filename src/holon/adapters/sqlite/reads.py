"""Every query, as one object."""

from holon.adapters.sqlite.agent_reads import SqliteAgentReads
from holon.adapters.sqlite.queue_reads import SqliteQueueReads
from holon.adapters.sqlite.record_reads import SqliteRecordReads
from holon.adapters.sqlite.wheel_reads import SqliteWheelReads


class SqliteReads(SqliteQueueReads, SqliteAgentReads, SqliteWheelReads, SqliteRecordReads):
    """The reads of the store port, on one connection that cannot write."""
