"""Episodes: finished stretches of work, closed at a boundary in the work itself.

Owns:  the open builder, the boundaries that close it, the archived record and its relevance.
Rule 1: every turn that ends is added to the builder; a builder has EPISODE_TURNS_COUNT_MAX turns at
        most.
Rule 2: an episode is closed before a turn on other work or after a task came back, and behind the
        turn that leaves its work item or begins to wait. A wait closes an episode only if it did
        something: an agent that looks and goes back to sleep has produced no episode yet.
Rule 3: a closed episode never changes. Its id follows from its first turn, so closing it twice
        gives the same one.
Rule 4: an episode is the agent's writing: it has the lowest authority of what its turns were shown,
        and never the operator's. Memory search labels it alike.
"""

from collections.abc import Collection, Sequence

import msgspec

from holon.decide.queue.authority import lowest
from holon.decide.turns.evidence import memory_line, newest_of
from holon.model.memory.records import (
    EPISODE_CANDIDATES_COUNT,
    EPISODE_SUMMARY_CHARS_MAX,
    EPISODE_TURNS_COUNT_MAX,
    EPISODES_SHOWN_COUNT_MAX,
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    EpisodeBoundary,
    EpisodeBuilder,
    EpisodeRecord,
    TurnMemoryDelta,
)
from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.values import (
    AgentId,
    EpisodeId,
    IdPrefix,
    Instant,
    TurnId,
    WorkItemId,
    WorkspaceId,
)

_SUMMARY_ENTRIES_COUNT_MAX = 3


class TurnBoundary(Record, frozen=True, kw_only=True):
    """What the end of a turn contributes to the stretch of work it belongs to."""

    turn_id: TurnId
    began_at: Instant
    task_rejoined: bool = False
    is_waiting: bool = False
    focus: WorkItemId | None = None  # behind the turn


class EpisodeUpdate(Record, frozen=True, kw_only=True):
    """The builder behind a turn, and the episodes the turn has closed, in order."""

    builder: EpisodeBuilder | None = None
    closed: tuple[EpisodeRecord, ...] = ()


def next_episode(
    builder: EpisodeBuilder | None,
    delta: TurnMemoryDelta,
    boundary: TurnBoundary,
    *,
    agent_id: AgentId,
) -> EpisodeUpdate:
    """Add a turn that ended to what was open, closing what breaks off before or behind it."""
    closed: list[EpisodeRecord] = []
    if builder is not None and (before := _broke_off(builder, delta, boundary)) is not None:
        closed.append(finalized(builder, before, agent_id=agent_id, at=delta.ended_at))
        builder = None
    builder = _with(builder, delta, boundary)
    if (behind := _breaks_off(builder, boundary)) is None:
        return EpisodeUpdate(builder=builder, closed=tuple(closed))
    closed.append(finalized(builder, behind, agent_id=agent_id, at=delta.ended_at))
    return EpisodeUpdate(closed=tuple(closed))


def finalized(
    builder: EpisodeBuilder, reason: EpisodeBoundary, *, agent_id: AgentId, at: Instant
) -> EpisodeRecord:
    """Return the episode a builder has become."""
    total = builder.total
    return EpisodeRecord(
        id=builder.id,
        agent_id=agent_id,
        created_at=builder.created_at,
        finalized_at=at,
        start_turn_index=builder.start_turn_index,
        end_turn_index=total.turn_index,
        start_message_count=builder.start_message_count,
        end_message_count=total.message_count,
        boundary_reason=reason,
        summary=_summary(builder),
        workspace_id=total.workspace_id,
        work_item_id=total.work_item_id,
        objective=total.objective,
        work_summary=total.work_summary,
        authority_class=lowest((total.authority_class, AuthorityClass.RUNTIME_INSTRUCTION)),
        scope_hints=total.scope_hints,
        working_set_files=total.working_set_files,
        commands=total.commands,
        verification=total.verification,
        decisions=total.decisions,
        carry_forward=total.carry_forward,
        waiting_on=total.waiting_on,
    )


def relevant_episodes(
    episodes: Sequence[EpisodeRecord],
    *,
    work_item_id: WorkItemId | None,
    workspace_id: WorkspaceId | None,
    files: Collection[str],
    limit: int = EPISODES_SHOWN_COUNT_MAX,
) -> tuple[EpisodeRecord, ...]:
    """Return those that bear on this work, newest first: same item, then files, then workspace.

    `episodes` are newest first; only the newest EPISODE_CANDIDATES_COUNT of them are weighed.
    """
    wanted = frozenset(files)
    weighed = []
    for place, episode in enumerate(episodes[:EPISODE_CANDIDATES_COUNT]):
        weight = (
            work_item_id is not None and episode.work_item_id == work_item_id,
            len(wanted.intersection(episode.working_set_files)),
            workspace_id is not None and episode.workspace_id == workspace_id,
        )
        if any(weight):
            weighed.append((weight, -place, episode))
    best = sorted(weighed, key=lambda each: each[:2], reverse=True)[: max(0, limit)]
    return tuple(episode for _, _, episode in sorted(best, key=lambda each: -each[1]))


def _broke_off(
    builder: EpisodeBuilder, delta: TurnMemoryDelta, boundary: TurnBoundary
) -> EpisodeBoundary | None:
    """Why the open episode does not continue into this turn."""
    open_item = builder.total.work_item_id
    if open_item is not None and delta.work_item_id != open_item:
        return EpisodeBoundary.ACTIVE_WORK_SWITCHED
    # An episode belongs to one workspace: what was done in the next one is another episode.
    if builder.total.workspace_id not in (None, delta.workspace_id):
        return EpisodeBoundary.ACTIVE_WORK_SWITCHED
    return EpisodeBoundary.TASK_REJOINED if boundary.task_rejoined else None


def _breaks_off(builder: EpisodeBuilder, boundary: TurnBoundary) -> EpisodeBoundary | None:
    """Why what is open ends with this turn."""
    total = builder.total
    if total.work_item_id is not None and boundary.focus != total.work_item_id:
        return EpisodeBoundary.ACTIVE_WORK_SWITCHED
    did_something = bool(total.working_set_files or total.commands or total.decisions)
    if boundary.is_waiting and did_something:
        return EpisodeBoundary.WAIT_BOUNDARY
    if builder.turns_count >= EPISODE_TURNS_COUNT_MAX:
        return EpisodeBoundary.HARD_TURN_CAP
    return None


def _with(
    builder: EpisodeBuilder | None, delta: TurnMemoryDelta, boundary: TurnBoundary
) -> EpisodeBuilder:
    if builder is None:
        return EpisodeBuilder(
            id=_episode_id(boundary.turn_id),
            created_at=boundary.began_at,
            start_turn_index=delta.turn_index,
            start_message_count=delta.message_count,
            turns_count=1,
            total=delta,
        )
    return msgspec.structs.replace(
        builder, turns_count=builder.turns_count + 1, total=_merged(builder.total, delta)
    )


def _merged(total: TurnMemoryDelta, delta: TurnMemoryDelta) -> TurnMemoryDelta:
    """What the turns have added up to; lists are newest first, what is open now replaces."""

    def both(newer: tuple[str, ...], older: tuple[str, ...]) -> tuple[str, ...]:
        if not newer:
            return older  # bounded already
        return newest_of((*newer, *older), count_max=MEMORY_ENTRIES_COUNT_MAX)

    return TurnMemoryDelta(
        turn_index=delta.turn_index,
        ended_at=delta.ended_at,
        message_count=delta.message_count,
        authority_class=lowest((total.authority_class, delta.authority_class)),
        work_item_id=delta.work_item_id or total.work_item_id,
        workspace_id=delta.workspace_id or total.workspace_id,
        objective=delta.objective or total.objective,
        work_summary=delta.work_summary or total.work_summary,
        scope_hints=both(delta.scope_hints, total.scope_hints),
        working_set_files=newest_of(
            (*delta.working_set_files, *total.working_set_files),
            count_max=MEMORY_FILES_COUNT_MAX,
        ),
        commands=both(delta.commands, total.commands),
        verification=both(delta.verification, total.verification),
        decisions=both(delta.decisions, total.decisions),
        carry_forward=delta.carry_forward,
        waiting_on=delta.waiting_on,
    )


def _episode_id(turn_id: TurnId) -> EpisodeId:
    return EpisodeId(f"{IdPrefix.EPISODE}_{turn_id.removeprefix(f'{IdPrefix.TURN}_')}")


def _summary(builder: EpisodeBuilder) -> str:
    """One bounded line: the objective, what was done, the last text, what is left."""
    total = builder.total
    parts = [
        f"Objective: {total.objective}." if total.objective else "",
        _listed("Changed", total.working_set_files),
        _listed("Checked", total.verification) or _listed("Ran", total.commands),
        _listed("Decided", total.decisions),
        f"Said last: {total.work_summary}" if total.work_summary else "",
        _listed("Waiting on", total.waiting_on),
        _listed("Left", total.carry_forward),
    ]
    summary = " ".join(part for part in parts if part) or f"{builder.turns_count} turns"
    return memory_line(summary, chars_max=EPISODE_SUMMARY_CHARS_MAX)


def _listed(label: str, entries: tuple[str, ...]) -> str:
    if not entries:
        return ""
    listed = ", ".join(entries[:_SUMMARY_ENTRIES_COUNT_MAX])
    more_count = len(entries) - _SUMMARY_ENTRIES_COUNT_MAX
    return f"{label}: {listed}{f' and {more_count} more' if more_count > 0 else ''}."
