"""Reading what memory search is made of.

Owns:  the pages of changed records, and the records of a page, one query for each kind.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.read_session import ReadSession, at_most
from holon.adapters.sqlite.row_codec import (
    BRIEFS,
    ITEMS,
    CallRow,
    RowDecoder,
    TaskRow,
    recorded_call,
    task_record,
)
from holon.adapters.sqlite.statements import Row
from holon.adapters.sqlite.workspace_reads import workspace_entry
from holon.decide.authority import AUTHORITY_ORDER
from holon.model.ids import AgentId
from holon.model.limits import MEMORY_FEED_COUNT
from holon.model.memory import EpisodeRecord
from holon.model.memory_index import MemoryKind, MemorySource, SourcePage, SourceRecord

_EPISODES: Final = RowDecoder[EpisodeRecord](EpisodeRecord)


class SqliteMemorySourceReads(ReadSession):
    """The memory sources' part of the port."""

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
