"""What happened, turn by turn."""

import msgspec
import pytest

from holon.decide.turns.receipts import error_receipt
from holon.model.events.briefs import FailureArtifact, FailureCategory
from holon.model.limits import SURFACE_ENTRIES_COUNT_MAX, SURFACE_TEXT_CHARS_MAX
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    ProviderAttempt,
    TokenUsage,
)
from holon.model.queue import JsonBody
from holon.model.record import Record
from holon.model.turns.conversation import TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.turns.tools import ToolCallState, ToolError
from holon.model.turns.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
    RecordedCall,
    RuntimeFailure,
    TranscriptData,
    TurnLog,
    WorkReminder,
)
from holon.model.turns.turn import OperatorInterjected, SafePoint
from holon.model.values import MessageId, WorkItemId
from holon.projections.turns.transcript import transcript_page, turn_view
from tests.support.builders import (
    a_message,
    a_receipt,
    a_round,
    a_terminal,
    a_tool_call,
    a_turn,
    an_entry,
    moment,
)

TURN = a_turn()
TIMELINE = AttemptTimeline(
    attempts=(
        ProviderAttempt(
            provider="p",
            model_ref="p/m",
            attempt=1,
            max_attempts=3,
            started_at=moment(),
            completed_at=moment(5),
            outcome=AttemptOutcome.SUCCEEDED,
        ),
    ),
    requested_model_ref="p/m",
)
FAILURE = FailureArtifact(category=FailureCategory.TRANSPORT, kind="timeout", summary="no answer")


def a_log(*parts: TranscriptData, calls: tuple[RecordedCall, ...] = ()) -> TurnLog:
    entries = tuple(an_entry(TURN, position=number, data=data) for number, data in enumerate(parts))
    return TurnLog(turn=TURN, entries=entries, calls=calls)


def changed(round_: AssistantRound, **fields: object) -> AssistantRound:
    return msgspec.structs.replace(round_, spoke=msgspec.structs.replace(round_.spoke, **fields))


def finished(content: str = "ok") -> RecordedCall:
    call = a_tool_call(TURN)
    done = msgspec.structs.replace(call, state=ToolCallState.SUCCEEDED, finished_at=moment(30))
    return RecordedCall(call=done, receipt=a_receipt(call, content=content))


@pytest.mark.requirement("console:transcript-tells-what-happened-in-order")
def test_a_turn_reads_in_the_order_in_which_it_happened() -> None:
    spoke = changed(
        a_round(),
        blocks=(
            ThinkingBlock(text="hm"),
            TextBlock(text="I look"),
            ToolUseBlock(call_id=finished().call.call_id, name="Enqueue", input={}),
        ),
        timeline=TIMELINE,
    )
    log = a_log(
        IncomingMessage(message=a_message(), unseen=(a_message("msg_0"),)),
        spoke,
        WorkReminder(work_item_id=WorkItemId("work_1"), after_round=1, text="remember"),
        ContinuationPrompt(text="go on"),
        Interjection(
            message_id=MessageId("msg_9"),
            interjected=OperatorInterjected(
                message_id=MessageId("msg_9"), text="stop", point=SafePoint.AFTER_TOOL_RESULTS
            ),
        ),
        RuntimeFailure(failure=FAILURE, timeline=TIMELINE),
        calls=(finished(),),
    )
    entries = turn_view(log).entries
    assert [(entry.kind, entry.text) for entry in entries] == [
        ("incoming_message", "hello"),
        ("incoming_message", "hello"),
        ("assistant_round", "I look"),
        ("tool_results", None),
        ("work_reminder", "remember"),
        ("continuation_prompt", "go on"),
        ("interjection", "stop"),
        ("runtime_failure", "no answer"),
    ]
    assert [entry.related_message_id for entry in entries[:2]] == ["msg_0", "msg_1"]
    assert len({entry.id for entry in entries}) == len(entries)
    (result,) = entries[3].tool_results
    assert (result.tool_name, result.result_preview, result.duration_ms) == ("Enqueue", "ok", 30)
    assert b"hm" not in msgspec.json.encode(entries)


@pytest.mark.requirement("console:transcript-keeps-provider-attempts")
def test_every_attempt_at_a_provider_is_in_the_transcript() -> None:
    log = a_log(changed(a_round(), timeline=TIMELINE), RuntimeFailure(failure=FAILURE))
    spoken, failed = turn_view(log).entries
    assert spoken.provider_attempt_timeline == TIMELINE
    assert failed.failure == FAILURE


def test_a_message_keeps_its_provenance_and_json_reads_as_json() -> None:
    message = a_message(body=JsonBody(value={"n": 1}))
    (entry,) = turn_view(a_log(IncomingMessage(message=message))).entries
    assert entry.text == '{"n":1}'
    assert (entry.origin, entry.authority_class) == (message.origin, message.authority_class)


def test_long_texts_are_cut_and_say_so() -> None:
    log = a_log(a_round(text="x" * 9_000), calls=(finished("y" * 9_000),))
    spoken, results = turn_view(log).entries
    assert spoken.text is not None
    assert (len(spoken.text), spoken.truncated) == (SURFACE_TEXT_CHARS_MAX, True)
    assert results.truncated


def test_a_turn_of_very_many_entries_shows_its_beginning_and_its_end() -> None:
    count = SURFACE_ENTRIES_COUNT_MAX + 7
    view = turn_view(a_log(*(ContinuationPrompt(text=str(n)) for n in range(count))))
    assert len(view.entries) == SURFACE_ENTRIES_COUNT_MAX
    assert view.omitted_entry_count == 7
    assert (view.entries[0].text, view.entries[-1].text) == ("0", str(count - 1))


def test_a_page_says_where_the_next_one_begins() -> None:
    logs = [TurnLog(turn=a_turn(f"turn_{n}", index=n)) for n in (5, 4, 3)]
    assert transcript_page(logs, limit=3).next_before == 3
    assert transcript_page(logs, limit=4).next_before is None
    assert transcript_page([], limit=4).next_before is None


def test_an_open_turn_has_no_end_and_a_settled_one_has() -> None:
    assert turn_view(TurnLog(turn=TURN)).terminal is None
    settled = msgspec.structs.replace(TURN, terminal=a_terminal(TURN))
    view: Record | None = turn_view(TurnLog(turn=settled)).terminal
    assert view is not None


@pytest.mark.requirement("console:rounds-carry-their-tokens")
def test_a_round_carries_its_tokens_twice_and_none_where_none_are_known() -> None:
    usage = TokenUsage(input_tokens=70, output_tokens=8)
    spoke = msgspec.structs.replace(a_round().spoke, usage=usage)
    counted = turn_view(a_log(msgspec.structs.replace(a_round(), spoke=spoke))).entries[0]
    told = msgspec.to_builtins(counted)
    assert (told["input_tokens"], told["output_tokens"]) == (70, 8)
    assert told["data"]["token_usage"] == told["token_usage"] == msgspec.to_builtins(usage)
    silent = msgspec.structs.replace(a_round().spoke, usage=TokenUsage())
    unknown = turn_view(a_log(msgspec.structs.replace(a_round(), spoke=silent))).entries[0]
    assert not {"input_tokens", "token_usage", "data"} & set(msgspec.to_builtins(unknown))


@pytest.mark.requirement("console:messages-keep-their-admission")
def test_a_message_keeps_where_it_was_delivered_and_how_it_was_admitted() -> None:
    message = a_message()
    [entry] = turn_view(a_log(IncomingMessage(message=message))).entries
    assert entry.delivery_surface is message.delivery_surface
    assert entry.admission_context is message.admission_context


@pytest.mark.requirement("console:tool-failures-are-structured")
def test_a_failed_call_says_why_what_to_do_and_whether_to_try_again() -> None:
    call = msgspec.structs.replace(a_tool_call(TURN), state=ToolCallState.FAILED)
    error = ToolError(kind="not_found", message="no such file", hint="list the folder")
    receipt = error_receipt(call.call_id, call.name, error)
    log = a_log(a_round(), calls=(RecordedCall(call=call, receipt=receipt),))
    [result] = turn_view(log).entries[-1].tool_results
    told = msgspec.to_builtins(result)
    assert told["status"] == "error"
    assert told["error"] == {
        "kind": "not_found",
        "message": "no such file",
        "recovery_hint": "list the folder",
        "retryable": False,
    }
