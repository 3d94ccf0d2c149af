"""The reads of the store port: one reader per room, on one connection that cannot write."""

import apsw

from holon.adapters.sqlite.agents import SqliteAgentReads
from holon.adapters.sqlite.budgets import SqliteBudgetReads
from holon.adapters.sqlite.events import SqliteEventReads
from holon.adapters.sqlite.guidance import SqliteSkillReads
from holon.adapters.sqlite.memory import SqliteMemoryReads
from holon.adapters.sqlite.queue import SqliteQueueReads
from holon.adapters.sqlite.tasks import SqliteTaskReads
from holon.adapters.sqlite.turns import SqliteTurnReads
from holon.adapters.sqlite.wake import SqliteWakeReads
from holon.adapters.sqlite.work import SqliteWorkReads
from holon.adapters.sqlite.workspaces import SqliteWorkspaceReads


class SqliteReads:
    """Every room's reads on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.queue = SqliteQueueReads(connection)
        self.turns = SqliteTurnReads(connection)
        self.work = SqliteWorkReads(connection)
        self.tasks = SqliteTaskReads(connection)
        self.wake = SqliteWakeReads(connection)
        self.memory = SqliteMemoryReads(connection)
        self.workspaces = SqliteWorkspaceReads(connection)
        self.guidance = SqliteSkillReads(connection)
        self.budgets = SqliteBudgetReads(connection)
        self.events = SqliteEventReads(connection)
        self.agents = SqliteAgentReads(
            connection,
            work=self.work,
            tasks=self.tasks,
            wake=self.wake,
            memory=self.memory,
            workspaces=self.workspaces,
            events=self.events,
        )
