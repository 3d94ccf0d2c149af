"""The end of a turn is one commit, and it says everything."""

import itertools
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import pytest

from holon.decide.turns.closure import closure_facts, derive_closure
from holon.decide.turns.commits import entry_of
from holon.decide.turns.failures import (
    ABORTED_KINDS,
    failure_of,
    operator_abort,
    poison_turn,
    round_limit,
)
from holon.decide.turns.settlement import SettlementFacts, settle_turn
from holon.model.agents import AgentFocus, AgentStatus
from holon.model.commits import (
    AgentGeneration,
    AppendBrief,
    AppendDeliverySummary,
    AppendTranscript,
    Change,
    Commit,
    MoveWait,
    PutWorkItem,
    RecordClosure,
    RecordEvent,
    SetAgentStatus,
    SettleMessage,
    SettleTurn,
    WorkItemAtRevision,
)
from holon.model.events.briefs import BriefKind, BriefRecord, FailureArtifact
from holon.model.events.event import RuntimeErrorRecorded
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.providers.attempts import ContextTooLongError, ProviderTimeoutError, TokenUsage
from holon.model.queue import MessageState
from holon.model.turns.transcript import AssistantRound, RuntimeFailure
from holon.model.turns.turn import (
    Completed,
    Completion,
    Continuable,
    Failed,
    Finish,
    RuntimePosture,
    TerminalKind,
    Waiting,
)
from holon.model.values import BriefId, SummaryId, TaskId, WaitId, WorkItemId, WorkspaceId
from holon.model.wake import WaitKind, WaitState
from holon.model.work import ActivationMemory, WorkItemState
from tests.decide.sample_rows import (
    AGENT_ID,
    HEAD,
    HINT,
    ITEM,
    MESSAGE_ID,
    NOW,
    agent_in,
    seconds,
    wait_of,
    weighed,
)
from tests.decide.turn_rows import TIMELINE, TURN, USAGE, prompt, running_snapshot, spoke

C = TypeVar("C")
VAIN = ActivationMemory(
    agent_id=AGENT_ID,
    work_item_id=ITEM.id,
    revision_seen=ITEM.revision,
    no_progress_count=1,
    last_at=NOW,
    not_before=NOW + seconds(60),
)
HELD = weighed(activation=VAIN)  # runnable, but it was offered a moment ago
TIMEOUT = failure_of(ProviderTimeoutError("no answer", hint="try again"))
COMPLETED_ITEM = WeighedItem(
    item=msgspec.structs.replace(
        ITEM, state=WorkItemState.COMPLETED, revision=4, workspace_id=WorkspaceId("space_1")
    )
)
REPORTED = Finish(last_text="bye", completions=(Completion(work_item_id=ITEM.id, report="mended"),))
FAILURES: list[FailureArtifact] = [
    TIMEOUT,
    failure_of(ContextTooLongError("too long")),
    failure_of(ValueError("a bug")),
    round_limit(),
    operator_abort("enough"),
    poison_turn(8),
]
FACTS = SettlementFacts(
    generation=7,
    message=prompt(),
    turn=TURN,
    finish=Finish(last_text="all done"),
    usage=USAGE,
    round_count=2,
    duration_ms=40,
    next_position=5,
    snapshot=running_snapshot(),
    brief_id=BriefId("brief_1"),
    summary_ids=(SummaryId("sum_1"), SummaryId("sum_2")),
    report_brief_ids=(BriefId("brief_2"), BriefId("brief_3")),
)


def settle(facts: SettlementFacts = FACTS, **changed: object) -> Commit:
    return settle_turn(msgspec.structs.replace(facts, **changed), now=NOW)


def failed(failure: FailureArtifact = TIMEOUT) -> Commit:
    return settle(finish=Finish(last_text="half", failure=failure), timeline=TIMELINE)


def of_type(commit: Commit, kind: type[C]) -> list[C]:
    return [change for change in commit.changes if isinstance(change, kind)]


def one(commit: Commit, kind: type[C]) -> C:
    (change,) = of_type(commit, kind)
    return change


def brief_of(commit: Commit) -> BriefRecord:
    return one(commit, AppendBrief).brief


def with_snapshot(**changed: object) -> AgentSnapshot:
    return msgspec.structs.replace(running_snapshot(), **changed)


def every_facts() -> Iterator[SettlementFacts]:
    """Finishes × bound items × what else is there to do × message waits."""
    finishes = [Finish(), REPORTED, *(Finish(failure=failure) for failure in FAILURES)]
    bounds = [None, WeighedItem(item=ITEM), COMPLETED_ITEM]
    rest = wait_of(WaitKind.REST)
    snapshots = [
        running_snapshot(),
        with_snapshot(heads=(HEAD,)),
        with_snapshot(hints=(HINT,)),
        with_snapshot(agent_waits=(rest, wait_of(WaitKind.OPERATOR)), current=weighed()),
        AgentSnapshot(agent=agent_in(AgentStatus.PAUSED)),
    ]
    messages = [prompt(), msgspec.structs.replace(prompt(), wait_id=rest.id)]
    for finish, bound, snapshot, message in itertools.product(
        finishes, bounds, snapshots, messages
    ):
        yield msgspec.structs.replace(
            FACTS,
            finish=finish,
            bound=bound,
            completed=() if bound is None else (bound.item,),
            snapshot=snapshot,
            message=message,
        )


@pytest.mark.requirement("settlement:one-commit")
@pytest.mark.requirement("brief:every-turn-is-told")
def test_every_end_is_one_commit_with_one_of_each() -> None:
    for facts in every_facts():
        commit = settle_turn(facts, now=NOW)
        assert commit.commit_id == "settle:msg_1"
        assert commit.at == NOW
        for kind in (SettleTurn, SettleMessage, RecordClosure):
            assert len(of_type(commit, kind)) == 1, kind
        briefs = [change.brief for change in of_type(commit, AppendBrief)]
        assert briefs
        assert len({brief.id for brief in briefs}) == len(briefs)
        failures = [brief for brief in briefs if brief.kind is BriefKind.FAILURE]
        assert len(failures) == (facts.finish.failure is not None)
        assert len(of_type(commit, SetAgentStatus)) <= 1
        fence = AgentGeneration(agent_id=AGENT_ID, generation=7)
        assert commit.expects[0] == fence
        assert bool(of_type(commit, AppendTranscript)) is (facts.finish.failure is not None)


@pytest.mark.requirement("settlement:last-round-in-the-same-commit")
def test_the_last_round_is_part_of_the_commit_and_comes_first() -> None:
    said = AssistantRound(round=2, spoke=spoke("all done"))
    last: Change = AppendTranscript(entry=entry_of(TURN, position=4, at=NOW, data=said))
    commit = settle(final_round=(last,), finish=Finish(failure=TIMEOUT))
    assert commit.changes[0] == last
    assert [each.entry.position for each in of_type(commit, AppendTranscript)] == [4, 5]


# --- how the turn ended ---------------------------------------------------------------------------


@pytest.mark.requirement("turn:terminal-record")
def test_a_drained_turn_is_completed_with_its_last_words() -> None:
    settled = one(settle(), SettleTurn)
    assert settled.terminal.kind is TerminalKind.COMPLETED
    assert settled.terminal.reason is None
    assert settled.terminal.last_assistant_message == "all done"
    assert (settled.terminal.turn_id, settled.terminal.turn_index) == (TURN.turn_id, 3)
    assert (settled.terminal.completed_at, settled.terminal.duration_ms) == (NOW, 40)
    assert (settled.usage, settled.round_count) == (USAGE, 2)


@pytest.mark.requirement("turn:failure-is-aborted")
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_turn_is_aborted_and_says_why(failure: FailureArtifact) -> None:
    settled = one(failed(failure), SettleTurn)
    assert settled.terminal.kind is TerminalKind.ABORTED
    assert settled.terminal.reason == failure.summary
    assert settled.terminal.last_assistant_message == "half"


def test_a_failure_named_like_a_terminal_kind_ends_as_that_kind() -> None:
    for kind in TerminalKind:
        named = msgspec.structs.replace(TIMEOUT, kind=kind.value)
        found = one(failed(named), SettleTurn).terminal.kind
        no_failures = (TerminalKind.COMPLETED, TerminalKind.DEFERRED)
        wanted = TerminalKind.ABORTED if kind in no_failures else kind
        assert found is wanted


@pytest.mark.requirement("settlement:failed-message-is-processed")
@pytest.mark.parametrize("failure", [None, *FAILURES])
def test_a_message_is_aborted_only_by_an_end_from_outside(failure: FailureArtifact | None) -> None:
    settled = one(settle() if failure is None else failed(failure), SettleMessage)
    outside = failure is not None and failure.kind in ABORTED_KINDS
    assert settled.state is (MessageState.ABORTED if outside else MessageState.PROCESSED)
    assert settled.reason == ("turn_completed" if failure is None else failure.kind)
    assert (settled.message_id, settled.turn_id) == (MESSAGE_ID, TURN.turn_id)
    assert not settled.unseen


# --- what the operator is told --------------------------------------------------------------------


@pytest.mark.requirement("brief:result-is-the-final-message")
@pytest.mark.requirement("brief:explicit-record")
def test_a_result_brief_is_the_final_message_of_the_turn() -> None:
    brief = brief_of(settle())
    assert (brief.kind, brief.text) == (BriefKind.RESULT, "all done")
    assert (brief.id, brief.turn_id, brief.created_at) == ("brief_1", TURN.turn_id, NOW)
    assert brief.failure is None


@pytest.mark.requirement("brief:empty-result-stays-empty")
def test_a_turn_without_words_gets_an_empty_result() -> None:
    assert brief_of(settle(finish=Finish())).text == ""


@pytest.mark.requirement("brief:report-is-the-result")
@pytest.mark.requirement("settlement:report-is-promoted")
def test_a_promoted_report_is_the_result_brief_too() -> None:
    commit = settle(finish=REPORTED, completed=(COMPLETED_ITEM.item,))
    assert (brief_of(commit).text, brief_of(commit).work_item_id) == ("mended", ITEM.id)
    assert one(commit, PutWorkItem).item.result_summary == "mended"
    assert one(commit, AppendDeliverySummary).summary.text == "mended"
    seen = WorkItemAtRevision(work_item_id=ITEM.id, revision=4)
    assert seen in commit.expects


@pytest.mark.requirement("settlement:only-what-the-turn-completed")
@pytest.mark.parametrize("bound", [None, weighed("work_2"), COMPLETED_ITEM])
def test_an_item_the_turn_did_not_complete_is_left_alone(bound: WeighedItem | None) -> None:
    commit = settle(bound=bound)
    assert brief_of(commit).text == "all done"
    assert of_type(commit, PutWorkItem) == []
    assert of_type(commit, AppendDeliverySummary) == []
    assert len(commit.expects) == 1


OTHER_COMPLETED = msgspec.structs.replace(COMPLETED_ITEM.item, id=WorkItemId("work_2"), revision=2)
BOTH_REPORTED = Finish(
    last_text="bye",
    completions=(
        Completion(work_item_id=ITEM.id, report="mended"),
        Completion(work_item_id=OTHER_COMPLETED.id, report="painted"),
    ),
)


@pytest.mark.requirement("turn-complete:each-round-may-report")
@pytest.mark.requirement("work-done:a-brief-for-each-item")
def test_each_report_of_a_turn_is_kept_and_each_item_has_its_own_brief() -> None:
    completed = (COMPLETED_ITEM.item, OTHER_COMPLETED)
    commit = settle(finish=BOTH_REPORTED, completed=completed)
    briefs = [change.brief for change in of_type(commit, AppendBrief)]
    assert [(each.id, each.work_item_id, each.text) for each in briefs] == [
        ("brief_2", ITEM.id, "mended"),
        ("brief_3", "work_2", "painted"),
    ]
    assert {each.kind for each in briefs} == {BriefKind.RESULT}
    summaries = [change.summary for change in of_type(commit, AppendDeliverySummary)]
    assert [(each.id, each.work_item_id, each.text) for each in summaries] == [
        ("sum_1", ITEM.id, "mended"),
        ("sum_2", "work_2", "painted"),
    ]
    for item_id, revision in ((ITEM.id, 4), ("work_2", 2)):
        seen = WorkItemAtRevision(work_item_id=WorkItemId(item_id), revision=revision)
        assert seen in commit.expects


@pytest.mark.requirement("work-done:also-when-the-turn-fails")
@pytest.mark.parametrize("deferred", [False, True])
def test_a_report_has_its_brief_also_when_the_turn_fails_or_is_put_off(deferred: bool) -> None:
    until = NOW + seconds(3600) if deferred else None
    finish = msgspec.structs.replace(BOTH_REPORTED, failure=TIMEOUT, deferred_until=until)
    commit = settle(finish=finish, completed=(COMPLETED_ITEM.item, OTHER_COMPLETED))
    *reports, ended = [change.brief for change in of_type(commit, AppendBrief)]
    assert [(each.kind, each.text, each.failure) for each in reports] == [
        (BriefKind.RESULT, "mended", None),
        (BriefKind.RESULT, "painted", None),
    ]
    assert ended.kind is (BriefKind.ACK if deferred else BriefKind.FAILURE)
    assert ended.failure == TIMEOUT


@pytest.mark.requirement("work-done:a-question-is-not-lost")
def test_last_words_after_a_report_are_told_where_the_operator_is_asked() -> None:
    asking = with_snapshot(agent_waits=(wait_of(WaitKind.OPERATOR),))
    commit = settle(
        finish=REPORTED, completed=(COMPLETED_ITEM.item,), bound=COMPLETED_ITEM, snapshot=asking
    )
    briefs = [change.brief for change in of_type(commit, AppendBrief)]
    assert [(each.text, each.work_item_id) for each in briefs] == [
        ("mended", ITEM.id),
        ("bye", None),
    ]


@pytest.mark.requirement("brief:bound-to-work-item")
def test_a_brief_names_the_message_the_item_the_task_and_the_workspace() -> None:
    message = msgspec.structs.replace(prompt(), task_id=TaskId("task_1"))
    here = WorkspaceId("space_2")
    brief = brief_of(settle(message=message, bound=COMPLETED_ITEM, workspace_id=here))
    assert (brief.related_message_id, brief.related_task_id) == (MESSAGE_ID, "task_1")
    assert (brief.work_item_id, brief.workspace_id) == (ITEM.id, "space_2")
    turn = msgspec.structs.replace(TURN, work_item_id=None)
    assert brief_of(settle(turn=turn)).work_item_id is None


@pytest.mark.requirement("settlement:failure-brief")
@pytest.mark.requirement("brief:failure-in-operator-language")
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_brief_says_why_and_carries_the_artifact(failure: FailureArtifact) -> None:
    brief = brief_of(failed(failure))
    assert brief.kind is BriefKind.FAILURE
    assert brief.related_message_id == MESSAGE_ID
    assert brief.text.startswith(failure.summary)
    assert (failure.recovery_hint or "") in brief.text
    assert brief.failure == failure
    assert "scripted" not in brief.text


@pytest.mark.requirement("settlement:failure-transcript")
@pytest.mark.requirement("settlement:failure-event")
@pytest.mark.requirement("settlement:failure-attempts")
@pytest.mark.requirement("settlement:failure-token-usage")
def test_a_failed_turn_leaves_transcript_and_event_with_attempts_and_tokens() -> None:
    commit = failed()
    entry = one(commit, AppendTranscript).entry
    spent = USAGE.plus(TokenUsage(input_tokens=5))
    assert entry.position == 5
    assert entry.data == RuntimeFailure(failure=TIMEOUT, timeline=TIMELINE, token_usage=spent)
    assert one(commit, RecordEvent).event == RuntimeErrorRecorded(
        failure=TIMEOUT, turn_id=TURN.turn_id, timeline=TIMELINE, token_usage=spent
    )
    assert one(commit, SettleTurn).usage == spent


def test_attempts_that_report_no_tokens_cost_none() -> None:
    silent = msgspec.structs.replace(TIMELINE, aggregated_token_usage=None)
    assert one(settle(timeline=silent), SettleTurn).usage == USAGE


def test_a_failure_after_a_completion_keeps_the_report() -> None:
    finish = msgspec.structs.replace(REPORTED, failure=TIMEOUT)
    commit = settle(finish=finish, completed=(COMPLETED_ITEM.item,))
    kinds = [change.brief.kind for change in of_type(commit, AppendBrief)]
    assert kinds == [BriefKind.RESULT, BriefKind.FAILURE]
    assert one(commit, AppendDeliverySummary).summary.text == "mended"


# --- the agent afterwards -------------------------------------------------------------------------


@pytest.mark.requirement("settlement:sleeps-when-nothing-is-queued")
@pytest.mark.parametrize(
    ("snapshot", "status"),
    [
        (running_snapshot(), AgentStatus.ASLEEP),
        (with_snapshot(heads=(HEAD,)), AgentStatus.AWAKE_IDLE),
        (with_snapshot(hints=(HINT,)), AgentStatus.AWAKE_IDLE),
        (with_snapshot(queued=(weighed(),)), AgentStatus.AWAKE_IDLE),
        (with_snapshot(current=weighed()), AgentStatus.AWAKE_IDLE),
        (with_snapshot(current=weighed(blocked=True)), AgentStatus.ASLEEP),
        (with_snapshot(current=HELD), AgentStatus.ASLEEP),
        (with_snapshot(claimed_message_id=prompt().id), AgentStatus.ASLEEP),
    ],
    ids=["nothing", "a message", "a hint", "an item", "its focus", "blocked", "held", "its own"],
)
def test_an_agent_rests_unless_something_goes_on_at_once(
    snapshot: AgentSnapshot, status: AgentStatus
) -> None:
    commit = settle(snapshot=snapshot)
    assert one(commit, SetAgentStatus).status is status
    assert one(commit, SetAgentStatus).reason == "turn_settled"
    awake = status is AgentStatus.AWAKE_IDLE
    wanted = RuntimePosture.AWAKE if awake else RuntimePosture.SLEEPING
    assert one(commit, RecordClosure).closure.runtime_posture is wanted


@pytest.mark.parametrize("status", [AgentStatus.PAUSED, AgentStatus.STOPPED])
def test_a_posture_the_operator_set_meanwhile_is_kept(status: AgentStatus) -> None:
    commit = settle(snapshot=AgentSnapshot(agent=agent_in(status)))
    assert of_type(commit, SetAgentStatus) == []


@pytest.mark.requirement("settlement:records-why-and-until-when")
def test_a_rest_records_its_reason_and_its_end() -> None:
    early = msgspec.structs.replace(
        wait_of(WaitKind.REST), id=WaitId("wait_2"), deadline_at=NOW + seconds(60)
    )
    endless = msgspec.structs.replace(early, id=WaitId("wait_3"), deadline_at=None)
    over = msgspec.structs.replace(
        early,
        id=WaitId("wait_4"),
        state=WaitState.TRIGGERED,
        deadline_at=NOW + seconds(2),
    )
    other = msgspec.structs.replace(
        early, id=WaitId("wait_5"), kind=WaitKind.SYSTEM, deadline_at=NOW + seconds(1)
    )
    waits = (wait_of(WaitKind.REST), early, endless, over, other)
    finish = Finish(slept=True, sleep_reason="until the build is done")
    commit = settle(finish=finish, snapshot=with_snapshot(agent_waits=waits))
    found = one(commit, SetAgentStatus)
    assert found.reason == "until the build is done"
    assert found.sleeping_until == NOW + seconds(60)
    woken = msgspec.structs.replace(prompt(), wait_id=early.id)
    rested = settle(message=woken, snapshot=with_snapshot(agent_waits=waits))
    assert one(rested, SetAgentStatus).sleeping_until == NOW + seconds(3600)
    busy = settle(finish=finish, snapshot=with_snapshot(agent_waits=waits, heads=(HEAD,)))
    assert one(busy, SetAgentStatus).sleeping_until is None


# --- waits and closure ----------------------------------------------------------------------------


def waiting_snapshots() -> list[AgentSnapshot]:
    wait = wait_of(WaitKind.EXTERNAL, WaitState.TRIGGERED)
    item = msgspec.structs.replace(weighed(), waits=(wait,))
    return [
        with_snapshot(agent_waits=(wait,)),
        with_snapshot(current=item),
        with_snapshot(queued=(item,)),
        with_snapshot(due_rechecks=(item,)),
    ]


@pytest.mark.requirement("settlement:resolves-the-wait")
@pytest.mark.parametrize("snapshot", waiting_snapshots())
def test_the_wait_a_message_ended_is_resolved_with_its_turn(snapshot: AgentSnapshot) -> None:
    message = msgspec.structs.replace(prompt(), wait_id=WaitId("wait_external"))
    moved = one(settle(message=message, snapshot=snapshot), MoveWait)
    assert moved.wait_id == "wait_external"
    assert moved.state is WaitState.RESOLVED
    assert moved.by == MESSAGE_ID
    assert of_type(settle(snapshot=snapshot), MoveWait) == []


def test_a_wait_that_ended_otherwise_is_not_moved_again() -> None:
    message = msgspec.structs.replace(prompt(), wait_id=WaitId("wait_external"))
    gone = wait_of(WaitKind.EXTERNAL, WaitState.CANCELLED)
    assert of_type(settle(message=message), MoveWait) == []
    cancelled = settle(message=message, snapshot=with_snapshot(agent_waits=(gone,)))
    assert of_type(cancelled, MoveWait) == []
    elsewhere = with_snapshot(unweighed_waits=(wait_of(WaitKind.EXTERNAL),))
    assert one(settle(message=message, snapshot=elsewhere), MoveWait).state is WaitState.RESOLVED


@pytest.mark.requirement("settlement:closure-of-the-state-after")
def test_the_closure_is_that_of_the_rows_after_the_commit() -> None:
    # Before the commit: an open turn, an old failure, and a wait this message is about to end.
    agent = running_snapshot().agent
    before = msgspec.structs.replace(
        agent,
        focus=AgentFocus(open_turn_id=TURN.turn_id),
        last_terminal=one(failed(), SettleTurn).terminal,
    )
    message = msgspec.structs.replace(prompt(), wait_id=WaitId("wait_external"))
    agent_wait, item_wait, queue_wait = (
        with_snapshot(agent=before, **{field: value})
        for field, value in (
            ("agent_waits", (wait_of(WaitKind.EXTERNAL),)),
            ("current", msgspec.structs.replace(weighed(), waits=(wait_of(WaitKind.EXTERNAL),))),
            ("queued", (msgspec.structs.replace(weighed(), waits=(wait_of(WaitKind.EXTERNAL),)),)),
        )
    )
    assert isinstance(derive_closure(closure_facts(agent_wait)), Failed)
    for snapshot, kind in (
        (agent_wait, Completed),
        (item_wait, Continuable),
        (queue_wait, Continuable),
    ):
        closure = one(settle(message=message, snapshot=snapshot), RecordClosure).closure
        assert isinstance(closure, kind)
        other = one(settle(snapshot=snapshot), RecordClosure).closure
        assert isinstance(other, Completed if snapshot is queue_wait else Waiting)


@pytest.mark.requirement("closure:failure-is-foreground")
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_turn_closes_as_failed_even_with_work_left(failure: FailureArtifact) -> None:
    finish = Finish(failure=failure)
    closure = one(settle(finish=finish, snapshot=with_snapshot(current=weighed())), RecordClosure)
    assert isinstance(closure.closure, Failed)
    assert closure.closure.summary == failure.summary
