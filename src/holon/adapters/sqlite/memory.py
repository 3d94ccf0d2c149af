"""Memory: working memory, episodes, and the changes that feed the search index.

Owns:  the reads of working memory and episodes; pages of changed index sources and their records,
       one query per kind; the rows of `working_memories`, `episodes`, `memory_sources` and
       `turn_evidence`.
Rule 1: source marks are part of the commit they describe. Removals are recorded in the transaction
        that removes the records, and forgotten once every index has had time to read them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, assert_never

from holon.adapters.sqlite.database.row_codec import (
    BRIEFS,
    ITEMS,
    CallRow,
    RowDecoder,
    TaskRow,
    encode,
    recorded_call,
    task_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    at_most,
    named_queries,
)
from holon.adapters.sqlite.workspaces import workspace_entry
from holon.decide.queue.authority import AUTHORITY_ORDER
from holon.model.limits import (
    MEMORY_FEED_COUNT,
    MEMORY_TOMBSTONES_KEPT_MS,
)
from holon.model.memory.index import (
    MemoryKind,
    MemoryMark,
    MemorySource,
    SourceChanged,
    SourcePage,
    SourceRecord,
    TurnShown,
)
from holon.model.memory.records import (
    EPISODES_PAGE_COUNT_MAX,
    ArchiveEpisode,
    EpisodeRecord,
    MemoryChange,
    MemoryFigures,
    MemoryState,
    PromptedMemory,
    RememberedPlace,
    RememberWork,
    WorkingMemory,
)
from holon.model.values import (
    AgentId,
    EpisodeId,
    WorkspaceId,
    to_micros,
)

_STATES: Final = RowDecoder[MemoryState](MemoryState)
_EPISODES: Final = RowDecoder[EpisodeRecord](EpisodeRecord)
_EVERY_TURN: Final = 2**63 - 1
_NOTED: Final = {
    "turns": ("gone_turn_briefs", "gone_turn_calls"),
    "briefs": ("gone_briefs",),
    "tasks": ("gone_tasks",),
    "work_items": ("gone_work_items",),
    "episodes": ("gone_episodes",),
}


class SqliteMemoryReads(ReadSession):
    """What agents remember, and the records memory search is made of."""

    async def remembered(self, agent_id: AgentId) -> RememberedPlace:
        """Everything kept of an agent's memory, and the workspace it is in."""
        found = self._one("memory_state", (agent_id,))
        if found is None:
            return RememberedPlace()
        state, workspace_id = found
        return RememberedPlace(
            state=MemoryState() if state is None else _STATES.decode(str(state)),
            workspace_id=None if workspace_id is None else WorkspaceId(str(workspace_id)),
        )

    async def working_memory(self, agent_id: AgentId) -> WorkingMemory:
        """What the agent is in the middle of."""
        return (await self.remembered(agent_id)).state.memory

    async def prompted_memory(self, agent_id: AgentId) -> PromptedMemory:
        """What the agent's next prompt shows of its working memory."""
        state = (await self.remembered(agent_id)).state
        return PromptedMemory(
            revision=state.revision,
            base=state.base,
            delta=state.pending_delta,
            compression_epoch=state.base_epoch,
        )

    async def episodes(
        self, agent_id: AgentId, *, limit: int, before_turn: int | None = None
    ) -> Sequence[EpisodeRecord]:
        """Finished episodes, newest first; those that ended before a turn, if one is named."""
        until = _EVERY_TURN if before_turn is None else before_turn
        found = self._all("episodes", (agent_id, until, at_most(limit, EPISODES_PAGE_COUNT_MAX)))
        return [_EPISODES.decode(str(row[0])) for row in found]

    async def newest_episode_agents(self, *, limit: int) -> Sequence[AgentId]:
        """Agents to whom the newest episodes of all belong."""
        return [AgentId(str(row[0])) for row in self._all("newest_episode_agents", (limit,))]

    async def changed_sources(self, agent_id: AgentId, *, after_seq: int, limit: int) -> SourcePage:
        """Records of an agent that were written after a change, in the order of the last one."""
        wanted = at_most(limit, MEMORY_FEED_COUNT)
        with self._moment():
            rows = self._all("memory_sources_after", (agent_id, after_seq, wanted))
            bounds = self._one("memory_sources_bounds", (agent_id,)) or (0, 0)
            last_seq = _number(rows[-1][0]) if rows else after_seq
            left = self._one("memory_sources_left", (agent_id, last_seq)) or (0,)
            records = self._records(agent_id, rows)
        return SourcePage(
            sources=tuple(_source(agent_id, row, records) for row in rows),
            newest_seq=_number(bounds[0]),
            floor_seq=_number(bounds[1]),
            left_count=_number(left[0]),
        )

    async def named_sources(
        self, agent_id: AgentId, named: Sequence[tuple[MemoryKind, str]]
    ) -> Sequence[MemorySource]:
        """These records of an agent, as far as there are such."""
        with self._moment():
            rows = self._all("memory_sources_named", (agent_id, encode(named)))
            records = self._records(agent_id, rows)
        return [_source(agent_id, row, records) for row in rows]

    def figures(self, agent_id: AgentId) -> MemoryFigures:
        match self._one("memory_figures", (agent_id,)):
            case (int() as revision, int() as prompted, int() as archived, active):
                return MemoryFigures(
                    revision=revision,
                    last_prompted_revision=prompted,
                    archived_episode_count=archived,
                    active_episode_id=None if active is None else EpisodeId(str(active)),
                )
            case _:
                return MemoryFigures()

    def _records(
        self, agent_id: AgentId, rows: Sequence[Row]
    ) -> dict[tuple[str, str], SourceRecord]:
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for _, kind, source_id, _ in rows:
            wanted[str(kind)].append(str(source_id))
        return {
            (kind, source_id): record
            for kind, ids in wanted.items()
            for source_id, record in self._of_kind(MemoryKind(kind), agent_id, ids).items()
        }

    def _of_kind(
        self, kind: MemoryKind, agent_id: AgentId, ids: Sequence[str]
    ) -> Mapping[str, SourceRecord]:
        listed = encode(ids)
        match kind:
            case MemoryKind.BRIEF:
                found = self._all("memory_briefs", (listed,))
                return {str(row[0]): BRIEFS.decode(str(row[1])) for row in found}
            case MemoryKind.WORK_ITEM:
                found = self._all("memory_work_items", (listed,))
                return {str(row[0]): ITEMS.decode(str(row[1])) for row in found}
            case MemoryKind.TASK:
                tasks = (
                    task_record(TaskRow._make(row)) for row in self._all("memory_tasks", (listed,))
                )
                return {task.id: task for task in tasks}
            case MemoryKind.TOOL_EXECUTION:
                calls = (
                    recorded_call(CallRow._make(row), agent_id=agent_id).call
                    for row in self._all("memory_calls", (listed,))
                )
                return {call.effect_id: call for call in calls}
            case MemoryKind.WORKSPACE_PROFILE:
                entries = map(workspace_entry, self._all("memory_workspaces", (listed, agent_id)))
                return {entry.workspace_id: entry for entry in entries}
            case MemoryKind.EPISODE:
                found = self._all("memory_episodes", (listed,))
                return {str(row[0]): _EPISODES.decode(str(row[1])) for row in found}
            case MemoryKind.AGENT_MEMORY:
                return {}  # files, not rows


def _source(
    agent_id: AgentId, row: Row, records: Mapping[tuple[str, str], SourceRecord]
) -> MemorySource:
    change_seq, kind, source_id, rank = row
    record = records.get((str(kind), str(source_id)))
    return MemorySource(
        change_seq=_number(change_seq),
        agent_id=agent_id,
        kind=MemoryKind(str(kind)),
        source_id=str(source_id),
        authority_class=AUTHORITY_ORDER[_number(rank)],
        record=record,
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


class WorkingMemoryChanges:
    """Writes what changes about memory."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("working_memory")

    def write(self, change: MemoryChange, *, at: int) -> None:
        """Write one change."""
        del at  # the record carries its own moment
        match change:
            case RememberWork(agent_id=agent_id, state=state):
                self._statements.run(
                    self._sql["put_memory"],
                    (
                        agent_id,
                        state.revision,
                        state.last_prompted_revision,
                        None if state.builder is None else state.builder.id,
                        state.archived_episode_count,
                        encode(state),
                    ),
                )
            case ArchiveEpisode(episode=episode):
                kept = (episode.end_turn_index, to_micros(episode.finalized_at), encode(episode))
                self._statements.run(
                    self._sql["archive_episode"], (episode.id, episode.agent_id, *kept)
                )
            case _:
                assert_never(change)


class MemoryMarks:
    """Writes marks."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("memory")

    def write(self, marks: Iterable[MemoryMark], *, at: int) -> None:
        """Write the marks of one change; `at` is the moment of its commit."""
        run = self._statements.run
        for mark in marks:
            match mark:
                case TurnShown(turn_id=turn_id, authority_class=authority):
                    rank = AUTHORITY_ORDER.index(authority)
                    follows = (int(mark.goes_on), mark.root_id)
                    run(self._sql["turn_shown"], (turn_id, rank, *follows))
                case SourceChanged():
                    named = (mark.agent_id, mark.kind.value, mark.source_id)
                    run(self._sql["source_changed"], (*named, mark.turn_id, at))
                    if mark.turns is not None:
                        run(self._sql["source_tells_of"], (*named, *mark.turns))
                case _:
                    assert_never(mark)


class MemoryRetention:
    """Notes what goes, on the writer's connection and thread."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("memory_retention")
        self.noted_count = 0

    def note(self, family: str, keys: str, *, now: datetime) -> None:
        """Say of the rows with these keys, a JSON list, and of what goes with them: gone."""
        connection = self._statements.connection
        for name in _NOTED.get(family, ()):
            before = connection.total_changes()
            self._statements.run(self._sql[name], (keys, to_micros(now)))
            self.noted_count += connection.total_changes() - before

    def forget(self, batch_count: int, *, now: datetime) -> bool:
        """Forget a batch of what went long ago, and return whether there may be more of it.

        An index that is further behind begins anew.
        """
        until = to_micros(now - timedelta(milliseconds=MEMORY_TOMBSTONES_KEPT_MS))
        before = self._statements.connection.total_changes()
        self._statements.run(self._sql["raise_memory_floors"], (batch_count, until))
        self.noted_count += self._statements.connection.total_changes() - before
        self._statements.run(self._sql["delete_gone"], (batch_count, until))
        return self._statements.connection.changes() >= batch_count
