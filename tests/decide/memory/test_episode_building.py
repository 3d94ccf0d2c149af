"""Episodes close where the work breaks off, never change, and are found by what they touch."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.memory.documents import documents_of
from holon.decide.memory.episodes import TurnBoundary, next_episode, relevant_episodes
from holon.model.memory.index import MemoryKind, MemorySource
from holon.model.memory.records import (
    EPISODE_SUMMARY_CHARS_MAX,
    EPISODE_TURNS_COUNT_MAX,
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    EpisodeBoundary,
    EpisodeBuilder,
    EpisodeRecord,
    TurnMemoryDelta,
)
from holon.model.queue import AuthorityClass
from holon.model.values import TurnId, WorkItemId, WorkspaceId
from holon.wire.codec import decode, encode
from tests.decide.memory_rows import OPERATOR, OUTSIDE, an_episode, turn_delta
from tests.decide.sample_rows import AGENT_ID, NOW

ROOF = WorkItemId("work_1")
DOOR = WorkItemId("work_2")


def boundary(
    index: int = 1,
    *,
    focus: WorkItemId | None = None,
    is_waiting: bool = False,
    task_rejoined: bool = False,
) -> TurnBoundary:
    return TurnBoundary(
        turn_id=TurnId(f"turn_{index}"),
        began_at=NOW,
        focus=focus,
        is_waiting=is_waiting,
        task_rejoined=task_rejoined,
    )


def opened(delta: TurnMemoryDelta) -> EpisodeBuilder:
    """A builder with one turn in it."""
    built = next_episode(
        None, delta, boundary(delta.turn_index, focus=delta.work_item_id), agent_id=AGENT_ID
    )
    assert built.builder is not None
    return built.builder


@pytest.mark.requirement("episode:turns-are-merged")
def test_each_turn_that_ends_is_added_to_the_open_episode() -> None:
    builder = opened(
        turn_delta(3, item=ROOF, objective="mend the roof", working_set_files=("a.py",))
    )
    built = next_episode(
        builder,
        turn_delta(
            4,
            item=ROOF,
            authority_class=OUTSIDE,
            working_set_files=("b.py", "a.py"),
            commands=("pytest (exit 0)",),
            work_summary="on it",
        ),
        boundary(4, focus=ROOF),
        agent_id=AGENT_ID,
    )
    assert built.closed == ()
    assert built.builder is not None
    assert built.builder.id == "ep_3"
    assert (built.builder.start_turn_index, built.builder.turns_count) == (3, 2)
    total = built.builder.total
    assert total.turn_index == 4
    assert total.objective == "mend the roof"
    assert total.working_set_files == ("b.py", "a.py")
    assert total.authority_class is OUTSIDE


@pytest.mark.requirement("memory-index:authority-travels")
@pytest.mark.parametrize("shown", AuthorityClass)
def test_an_episode_is_worth_what_memory_search_says_it_is(shown: AuthorityClass) -> None:
    builder = opened(turn_delta(1, item=ROOF, authority_class=shown))
    [episode] = next_episode(
        builder, turn_delta(2, authority_class=shown), boundary(2), agent_id=AGENT_ID
    ).closed
    source = MemorySource(
        change_seq=1,
        agent_id=AGENT_ID,
        kind=MemoryKind.EPISODE,
        source_id=episode.id,
        authority_class=shown,
        record=episode,
    )
    [document] = documents_of(source)
    assert episode.authority_class is document.authority_class
    assert episode.authority_class is not AuthorityClass.OPERATOR_INSTRUCTION


@pytest.mark.requirement("episode:boundaries")
@pytest.mark.parametrize(
    ("delta", "behind", "reasons"),
    [
        (turn_delta(2, item=ROOF), boundary(2, focus=ROOF), []),
        # Before the turn: other work, or a task that came back.
        (
            turn_delta(2, item=DOOR),
            boundary(2, focus=DOOR),
            [EpisodeBoundary.ACTIVE_WORK_SWITCHED],
        ),
        (turn_delta(2), boundary(2), [EpisodeBoundary.ACTIVE_WORK_SWITCHED]),
        (
            turn_delta(2, item=ROOF),
            boundary(2, focus=ROOF, task_rejoined=True),
            [EpisodeBoundary.TASK_REJOINED],
        ),
        # Behind it: the item is left, or the agent waits.
        (turn_delta(2, item=ROOF), boundary(2), [EpisodeBoundary.ACTIVE_WORK_SWITCHED]),
        (turn_delta(2, item=ROOF), boundary(2, focus=ROOF, is_waiting=True), []),
        (
            turn_delta(2, item=ROOF, commands=("ls (exit 0)",)),
            boundary(2, focus=ROOF, is_waiting=True),
            [EpisodeBoundary.WAIT_BOUNDARY],
        ),
        # Both.
        (
            turn_delta(2, item=DOOR, working_set_files=("a.py",)),
            boundary(2, focus=DOOR, is_waiting=True),
            [EpisodeBoundary.ACTIVE_WORK_SWITCHED, EpisodeBoundary.WAIT_BOUNDARY],
        ),
    ],
)
def test_an_episode_closes_where_the_work_breaks_off(
    delta: TurnMemoryDelta, behind: TurnBoundary, reasons: list[EpisodeBoundary]
) -> None:
    built = next_episode(opened(turn_delta(1, item=ROOF)), delta, behind, agent_id=AGENT_ID)
    assert [episode.boundary_reason for episode in built.closed] == reasons


@pytest.mark.requirement("workspace-attribution:one-episode-one-workspace")
@pytest.mark.parametrize(
    ("before", "now", "breaks"),
    [("ws_a", "ws_b", True), ("ws_a", "ws_a", False), (None, "ws_a", False), ("ws_a", None, True)],
)
def test_an_episode_ends_where_the_agent_goes_on_in_another_workspace(
    before: str | None, now: str | None, breaks: bool
) -> None:
    def there(index: int, name: str | None) -> TurnMemoryDelta:
        return turn_delta(
            index, item=ROOF, workspace_id=None if name is None else WorkspaceId(name)
        )

    built = next_episode(
        opened(there(3, before)), there(4, now), boundary(4, focus=ROOF), agent_id=AGENT_ID
    )
    assert [closed.workspace_id for closed in built.closed] == ([before] if breaks else [])


def test_picking_work_up_goes_on_with_the_episode_that_led_to_it() -> None:
    talked = opened(turn_delta(1))
    built = next_episode(
        talked, turn_delta(2, item=ROOF), boundary(2, focus=ROOF), agent_id=AGENT_ID
    )
    assert built.closed == ()
    assert built.builder is not None
    assert built.builder.total.work_item_id == ROOF


@pytest.mark.requirement("episode:hard-turn-cap")
def test_an_episode_has_twelve_turns_at_most() -> None:
    builder: EpisodeBuilder | None = None
    for index in range(1, EPISODE_TURNS_COUNT_MAX + 1):
        built = next_episode(builder, turn_delta(index), boundary(index), agent_id=AGENT_ID)
        builder = built.builder
    assert builder is None
    (episode,) = built.closed
    assert episode.boundary_reason is EpisodeBoundary.HARD_TURN_CAP
    assert (episode.start_turn_index, episode.end_turn_index) == (1, 12)
    assert (episode.start_message_count, episode.end_message_count) == (1, 12)


@pytest.mark.requirement("episode:carries")
def test_a_closed_episode_says_what_was_done_for_what_and_what_is_left() -> None:
    built = next_episode(
        None,
        turn_delta(
            5,
            item=ROOF,
            workspace_id=WorkspaceId("ws_1"),
            objective="mend the roof",
            work_summary="tiles are laid",
            working_set_files=("roof.py",),
            commands=("pytest (exit 0)", "ls (exit 0)"),
            verification=("pytest (exit 0)",),
            decisions=("completed work item work_1",),
            carry_forward=("pending: clean up",),
            waiting_on=("operator: the colour",),
        ),
        boundary(5),
        agent_id=AGENT_ID,
    )
    (episode,) = built.closed
    assert episode.id == "ep_5"
    assert episode.work_item_id == ROOF
    assert episode.workspace_id == "ws_1"
    assert episode.working_set_files == ("roof.py",)
    assert episode.verification == ("pytest (exit 0)",)
    assert episode.summary == (
        "Objective: mend the roof. Changed: roof.py. Checked: pytest (exit 0)."
        " Decided: completed work item work_1. Said last: tiles are laid"
        " Waiting on: operator: the colour. Left: pending: clean up."
    )


@pytest.mark.requirement("episode:relevant")
@pytest.mark.parametrize(
    ("episodes", "chosen"),
    [
        ([], []),
        ([an_episode(1)], []),
        ([an_episode(1, work_item_id=DOOR)], []),
        ([an_episode(1, work_item_id=ROOF)], ["ep_1"]),
        ([an_episode(1, workspace_id=WorkspaceId("ws_1"))], ["ep_1"]),
        ([an_episode(1, working_set_files=("a.py",))], ["ep_1"]),
        # The same item before shared files, files before the workspace; then newest first.
        (
            [
                an_episode(9, workspace_id=WorkspaceId("ws_1")),
                an_episode(8, workspace_id=WorkspaceId("ws_1")),
                an_episode(7, working_set_files=("a.py",)),
                an_episode(6),
                an_episode(5, work_item_id=ROOF),
            ],
            ["ep_9", "ep_7", "ep_5"],
        ),
        # Those behind the newest twelve are not weighed.
        (
            [*(an_episode(30 - n) for n in range(12)), an_episode(1, work_item_id=ROOF)],
            [],
        ),
    ],
)
def test_episodes_are_relevant_by_item_files_and_workspace(
    episodes: list[EpisodeRecord], chosen: list[str]
) -> None:
    found = relevant_episodes(
        episodes, work_item_id=ROOF, workspace_id=WorkspaceId("ws_1"), files=("a.py", "b.py")
    )
    assert [episode.id for episode in found] == chosen


def test_an_agent_without_work_or_place_has_no_relevant_episodes() -> None:
    episodes = [an_episode(1), an_episode(2, work_item_id=ROOF)]
    assert relevant_episodes(episodes, work_item_id=None, workspace_id=None, files=()) == ()


_WORDS = st.text(max_size=300)
_LISTS = st.lists(_WORDS, max_size=6).map(tuple)
_STEPS = st.tuples(
    st.sampled_from([None, ROOF, DOOR]),
    st.sampled_from([None, ROOF, DOOR]),
    st.booleans(),
    st.booleans(),
    _LISTS,
    st.sampled_from([OPERATOR, OUTSIDE]),
)


@pytest.mark.requirement("episode:turns-are-merged")
@settings(max_examples=60)
@given(st.lists(_STEPS, max_size=30))
def test_over_any_turns_episodes_cover_each_turn_once_in_order_and_stay_bounded(
    steps: list[
        tuple[WorkItemId | None, WorkItemId | None, bool, bool, tuple[str, ...], AuthorityClass]
    ],
) -> None:
    builder: EpisodeBuilder | None = None
    closed: list[EpisodeRecord] = []
    for index, (item, focus, waits, rejoined, words, authority) in enumerate(steps, start=1):
        delta = turn_delta(
            index, item=item, authority_class=authority, commands=words, working_set_files=words
        )
        behind = boundary(index, focus=focus, is_waiting=waits, task_rejoined=rejoined)
        built = next_episode(builder, delta, behind, agent_id=AGENT_ID)
        assert built == next_episode(builder, delta, behind, agent_id=AGENT_ID)
        builder = built.builder
        closed.extend(built.closed)
    covered = [n for each in closed for n in range(each.start_turn_index, each.end_turn_index + 1)]
    if builder is not None:
        covered.extend(range(builder.start_turn_index, builder.total.turn_index + 1))
        assert builder.turns_count < EPISODE_TURNS_COUNT_MAX
    assert covered == list(range(1, len(steps) + 1))
    assert len({episode.id for episode in closed}) == len(closed)
    for episode in closed:
        assert episode.end_turn_index - episode.start_turn_index < EPISODE_TURNS_COUNT_MAX
        assert len(episode.summary) <= EPISODE_SUMMARY_CHARS_MAX
        assert len(episode.commands) <= MEMORY_ENTRIES_COUNT_MAX
        assert len(episode.working_set_files) <= MEMORY_FILES_COUNT_MAX


@pytest.mark.requirement("episode:boundaries")
def test_a_checkpoint_closed_episodes_once_and_such_records_are_still_read() -> None:
    told = encode(an_episode(1)).replace(b"hard_turn_cap", b"result_checkpoint")
    episode: EpisodeRecord = decode(told, EpisodeRecord)
    assert episode.boundary_reason is EpisodeBoundary.RESULT_CHECKPOINT
