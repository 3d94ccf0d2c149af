"""The commits of a lane: each is one unit, and none is written by a lane that was fenced."""

from typing import TypeVar

import msgspec
import pytest

from holon.decide.turns.commits import (
    ClaimFacts,
    InterjectionFacts,
    LaneLease,
    RoundFacts,
    claim_commit,
    finish_call,
    interjection_commit,
    liveness_commit,
    resume_commit,
    round_commit,
    tool_done_commit,
)
from holon.decide.turns.recovery import interrupt_call
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAdmits,
    AgentGeneration,
    AgentInStatus,
    AppendTranscript,
    Change,
    ClaimMessage,
    Commit,
    FinishToolCall,
    MarkSeen,
    MessageInState,
    MoveWait,
    OpenTurn,
    ResumeTurn,
    SetAgentStatus,
    SettleMessage,
    StartToolCall,
)
from holon.model.events.reads import AgentSnapshot
from holon.model.queue import MessageState, TextBody
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
)
from holon.model.turns.turn import (
    CallModel,
    ClosureOutcome,
    Finish,
    LivenessOnly,
    Reentry,
    ReentryClass,
    RunTools,
    SafePoint,
    TriggerKind,
    TurnStep,
)
from holon.model.values import MessageId, TurnId
from holon.model.wake import WaitKind, WaitState
from tests.decide.sample_rows import AGENT_ID, MESSAGE_ID, NOW, agent_in, wait_of, weighed
from tests.decide.turn_rows import TURN, bad, ok, prompt, running_snapshot, spoke, use

C = TypeVar("C", bound=Change)
LEASE = LaneLease(agent_id=AGENT_ID, turn_id=TURN.turn_id, generation=4)
REENTRY = Reentry(
    continuation_class=ReentryClass.LOCAL_CONTINUATION,
    trigger_kind=TriggerKind.OPERATOR_INPUT,
    prior_outcome=ClosureOutcome.COMPLETED,
    matched_waiting_reason=False,
    evidence=("test",),
)


def the(commit: Commit, kind: type[C]) -> C:
    """The one change of this kind."""
    [found] = [change for change in commit.changes if isinstance(change, kind)]
    return found


def claim_facts(
    *, snapshot: AgentSnapshot | None = None, reentry: Reentry = REENTRY, unseen_count: int = 0
) -> ClaimFacts:
    """A message about to be taken."""
    unseen = tuple(
        msgspec.structs.replace(prompt(), id=MessageId(f"msg_u{n}")) for n in range(unseen_count)
    )
    return ClaimFacts(
        snapshot=snapshot or AgentSnapshot(agent=agent_in(AgentStatus.ASLEEP)),
        message=prompt(),
        turn_id=TurnId("turn_1"),
        continuation=reentry,
        passed_over=3,
        unseen=unseen,
    )


def test_a_claim_takes_the_message_fences_older_lanes_and_opens_the_turn() -> None:
    commit = claim_commit(claim_facts(), now=NOW)
    assert commit.commit_id == "claim:msg_1:2"
    claimed = the(commit, ClaimMessage)
    assert (claimed.message_id, claimed.generation, claimed.passed_over) == (MESSAGE_ID, 2, 3)
    turn = the(commit, OpenTurn).turn
    assert (turn.turn_index, turn.message_id, turn.opened_at) == (1, MESSAGE_ID, NOW)
    status = the(commit, SetAgentStatus)
    assert (status.status, status.wake_reason) == (AgentStatus.AWAKE_RUNNING, "operator_prompt")
    entry = the(commit, AppendTranscript).entry
    assert (entry.position, entry.data) == (0, IncomingMessage(message=prompt()))
    assert commit.expects == (
        AgentGeneration(agent_id=AGENT_ID, generation=1),
        AgentInStatus(agent_id=AGENT_ID, statuses=(AgentStatus.ASLEEP,)),
        MessageInState(message_id=MESSAGE_ID, state=MessageState.QUEUED),
    )


@pytest.mark.requirement("settlement:a-turn-is-bound-to-the-focus")
def test_a_claim_binds_the_turn_to_the_focus_of_that_moment() -> None:
    agent = agent_in(AgentStatus.AWAKE_IDLE)
    focused = msgspec.structs.replace(
        agent,
        focus=msgspec.structs.replace(agent.focus, current_work_item_id=weighed().item.id),
    )
    commit = claim_commit(claim_facts(snapshot=AgentSnapshot(agent=focused)), now=NOW)
    assert the(commit, OpenTurn).turn.work_item_id == "work_1"


def test_a_claim_shows_what_was_not_seen_yet_and_marks_it_seen() -> None:
    commit = claim_commit(claim_facts(unseen_count=2), now=NOW)
    shown = the(commit, AppendTranscript).entry.data
    assert isinstance(shown, IncomingMessage)
    assert [m.id for m in shown.unseen] == ["msg_u0", "msg_u1"]
    assert the(commit, MarkSeen).message_ids == ("msg_u0", "msg_u1")


@pytest.mark.parametrize("trigger", list(TriggerKind))
def test_only_the_operators_word_ends_waits_for_the_operator(trigger: TriggerKind) -> None:
    asked = msgspec.structs.replace(weighed(), waits=(wait_of(WaitKind.OPERATOR),))
    other = msgspec.structs.replace(weighed("work_2"), waits=(wait_of(WaitKind.TASK),))
    own = msgspec.structs.replace(wait_of(WaitKind.OPERATOR), id="wait_own", work_item_id=None)
    far = msgspec.structs.replace(wait_of(WaitKind.OPERATOR), id="wait_far", work_item_id="work_9")
    snapshot = AgentSnapshot(
        agent=agent_in(AgentStatus.ASLEEP),
        current=asked,
        queued=(other,),
        agent_waits=(own,),
        unweighed_waits=(far,),
    )
    reentry = msgspec.structs.replace(REENTRY, trigger_kind=trigger)
    commit = claim_commit(claim_facts(snapshot=snapshot, reentry=reentry), now=NOW)
    moved = [change for change in commit.changes if isinstance(change, MoveWait)]
    answers = trigger is TriggerKind.OPERATOR_INPUT
    assert [m.wait_id for m in moved] == (
        ["wait_own", "wait_operator", "wait_far"] if answers else []
    )
    assert all((m.state, m.by) == (WaitState.RESOLVED, MESSAGE_ID) for m in moved)


@pytest.mark.parametrize(
    ("trigger", "text", "unseen"),
    [
        (TriggerKind.EXTERNAL_EVENT, "news", True),
        (TriggerKind.SYSTEM_TICK, "  ", False),
        (None, "news", False),
    ],
    ids=["an event with words", "a blank tick", "no trigger at all"],
)
def test_a_message_without_a_turn_ends_and_is_shown_later_if_it_said_something(
    trigger: TriggerKind | None, text: str, unseen: bool
) -> None:
    liveness = LivenessOnly(
        trigger_kind=trigger, prior_outcome=ClosureOutcome.WAITING, evidence=("test",)
    )
    commit = liveness_commit(prompt(TextBody(text=text)), liveness, passed_over=3, now=NOW)
    settled = the(commit, SettleMessage)
    assert settled.passed_over == 3
    assert (settled.state, settled.reason) == (MessageState.PROCESSED, "liveness_only")
    assert settled.unseen is unseen
    assert commit.expects == (MessageInState(message_id=MESSAGE_ID, state=MessageState.QUEUED),)


def round_facts(step: TurnStep, *, tools: tuple[str, ...] = ()) -> RoundFacts:
    """A round that asked for these tools."""
    uses = (use(name, f"c{n}") for n, name in enumerate(tools))
    return RoundFacts(
        lease=LEASE, turn=TURN, round_number=2, position=5, spoke=spoke("hm", *uses), step=step
    )


def test_a_round_is_recorded_with_every_call_it_starts() -> None:
    calls = (use("Read", "c0"),)
    step = RunTools(calls=calls, refused=(bad("Nope", "c1"),))
    commit = round_commit(round_facts(step, tools=("Read", "Nope")), now=NOW)
    assert commit.commit_id == "round:turn_1:2"
    assert commit.expects == (LEASE.fence,)
    entry, first, second, refused = commit.changes
    assert isinstance(entry, AppendTranscript)
    assert isinstance(entry.entry.data, AssistantRound)
    assert entry.entry.position == 5
    for position, started in enumerate((first, second)):
        assert isinstance(started, StartToolCall)
        assert started.call.effect_id == f"turn_1.2.{position}"
        assert (started.call.state, started.call.work_item_id) == (
            ToolCallState.STARTED,
            TURN.work_item_id,
        )
    assert isinstance(refused, FinishToolCall)
    assert (refused.effect_id, refused.state) == ("turn_1.2.1", ToolCallState.FAILED)


def test_a_nudge_is_recorded_behind_its_round() -> None:
    commit = round_commit(round_facts(CallModel(nudge="go on")), now=NOW)
    entry = commit.changes[-1]
    assert isinstance(entry, AppendTranscript)
    assert (entry.entry.position, entry.entry.data) == (6, ContinuationPrompt(text="go on"))


@pytest.mark.parametrize("step", [CallModel(), Finish()])
def test_a_round_without_calls_is_one_entry(step: TurnStep) -> None:
    assert len(round_commit(round_facts(step), now=NOW).changes) == 1


def test_what_a_tool_changed_and_its_result_are_one_commit_of_the_lane() -> None:
    started = round_commit(
        round_facts(RunTools(calls=(use("Read", "c0"),)), tools=("Read",)), now=NOW
    )
    call = the(started, StartToolCall).call
    done = finish_call(call, ok("Read", "c0"), state=ToolCallState.SUCCEEDED, duration_ms=7)
    effect = MarkSeen(agent_id=AGENT_ID, message_ids=())
    guard = AgentAdmits(agent_id=AGENT_ID)
    commit = tool_done_commit(LEASE, done, effects=(effect,), expects=(guard,), now=NOW)
    assert commit.commit_id == "tool:turn_1.2.0:done"
    assert commit.changes == (effect, done)
    assert commit.expects == (LEASE.fence, guard)


def test_a_resume_answers_open_calls_and_takes_a_new_generation() -> None:
    started = round_commit(
        round_facts(RunTools(calls=(use("Read", "c0"),)), tools=("Read",)), now=NOW
    )
    answered = interrupt_call(the(started, StartToolCall).call)
    commit = resume_commit(TURN, (answered,), held=4, now=NOW)
    assert commit.commit_id == "resume:turn_1:1"
    assert commit.changes[0] == answered
    resumed = the(commit, ResumeTurn)
    assert (resumed.generation, resumed.resume_count) == (5, 1)
    assert commit.expects == (AgentGeneration(agent_id=AGENT_ID, generation=4),)


@pytest.mark.parametrize("point", list(SafePoint))
def test_an_interjection_enters_the_transcript_and_leaves_the_queue_together(
    point: SafePoint,
) -> None:
    waiting = msgspec.structs.replace(wait_of(WaitKind.OPERATOR), work_item_id=None)
    facts = InterjectionFacts(
        lease=LEASE,
        turn=TURN,
        message=prompt(),
        text="wait",
        point=point,
        position=9,
        snapshot=msgspec.structs.replace(running_snapshot(), agent_waits=(waiting,)),
    )
    commit = interjection_commit(facts, now=NOW)
    settled = the(commit, SettleMessage)
    assert (settled.state, settled.point) == (MessageState.INTERJECTED, point)
    entry = the(commit, AppendTranscript).entry
    assert entry.position == 9
    assert isinstance(entry.data, Interjection)
    assert entry.data.interjected.text == "wait"
    assert the(commit, MoveWait).state is WaitState.RESOLVED
    assert LEASE.fence in commit.expects
    assert MessageInState(message_id=MESSAGE_ID, state=MessageState.QUEUED) in commit.expects
