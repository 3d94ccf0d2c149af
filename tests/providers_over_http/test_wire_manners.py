"""Differences between compatible servers, over real sockets."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.providers.attempts import AttemptOutcome, ProviderAttempt
from holon.model.providers.models import TransportKind
from holon.model.turns.conversation import (
    AssistantMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    UserMessage,
    text_of,
)
from holon.model.turns.turn import ModelAnswered, ModelFailed
from tests.adapters.providers.anthropic_messages.sample_streams import FOUND, answer
from tests.adapters.providers.anthropic_messages.sample_streams import SEARCH as SEARCHED
from tests.adapters.providers.anthropic_messages.sample_streams import streamed as events_of
from tests.providers_over_http.switchboard import (
    CHAT,
    CODEX,
    HELLO,
    MESSAGES,
    RESPONSES,
    WIRES,
    line_to,
    open_switchboard,
)
from tests.support.wire_server.faults import AnswerFault, Fault, Raw, Refuse, html_page
from tests.support.wire_server.server import WireServer, open_wire_server

SCRIPT: Final = Script(rounds=tuple(ScriptedRound(text=f"Answer {n}.") for n in range(9)))
JSON: Final = {"content-type": "application/json"}
USAGE: Final = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def instead(body: Any) -> Fault:
    """A 200 with another body."""
    return Fault(instead=Raw(headers=JSON, body=msgspec.json.encode(body)))


def response(*output: dict[str, Any]) -> Fault:
    """A finished response with these items."""
    told = {"id": "resp_x", "object": "response", "status": "completed", "model": "m"}
    return instead({**told, "output": list(output), "usage": USAGE})


def streamed(*events: dict[str, Any]) -> Fault:
    """A stream of these events."""
    lines = b"".join(b"data: %b\n\n" % msgspec.json.encode(event) for event in events)
    return Fault(instead=Raw(headers={"content-type": "text/event-stream"}, body=lines))


def said(text: str, **others: str) -> dict[str, Any]:
    """A message item."""
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    told = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return {**told, "content": parts, **others}


def chat_answer(text: str) -> Fault:
    """A chat completion that says this."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return instead({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage})


def sent(server: WireServer, number: int = -1) -> dict[str, Any]:
    """The body of a request."""
    body = server.requests[number].json
    assert isinstance(body, dict)
    return body


def after(spoke: ModelAnswered) -> tuple[UserMessage | AssistantMessage, ...]:
    """The conversation that goes on behind an answer."""
    more = UserMessage(blocks=(TextBlock(text="go on"),))
    return (*HELLO, AssistantMessage(blocks=spoke.blocks), more)


def attempts_of(came: ModelAnswered | ModelFailed) -> tuple[ProviderAttempt, ...]:
    """Every attempt of a round."""
    assert came.timeline is not None
    return came.timeline.attempts


def notes_of(came: ModelAnswered | ModelFailed) -> str:
    """What the last attempt remarks."""
    diagnostics = attempts_of(came)[-1].transport_diagnostics
    assert diagnostics is not None
    return "\n".join(diagnostics.notes)


# --- Phases ---------------------------------------------------------------------------------------


@pytest.mark.requirement("provider-wire:phases-are-sent-back")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", [RESPONSES, CODEX])
async def test_the_phase_of_an_answer_goes_back_with_it(
    tmp_path: Path, kind: TransportKind, stream: bool
) -> None:
    items = (
        said("On my way.", phase="commentary"),
        said("Done.", id="msg_2", phase="final_answer"),
    )
    done = [{"type": "response.output_item.done", "output_index": n, "item": item}
            for n, item in enumerate(items)]  # fmt: skip
    end = {"type": "response.completed", "response": {"id": "r", "output": [], "usage": USAGE}}
    fault = streamed(*done, end) if stream or kind is CODEX else response(*items)
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, kind, stream=stream)) as board,
    ):
        spoke = await board.succeed()
        await board.succeed(after(spoke))
    kept = msgspec.json.decode(msgspec.json.encode(spoke), type=ModelAnswered)
    assert kept.blocks == spoke.blocks
    past = [item for item in sent(server)["input"] if item.get("role") == "assistant"]
    assert [item["phase"] for item in past] == ["commentary", "final_answer"]


@pytest.mark.requirement("provider-wire:phases-are-sent-back")
async def test_a_phase_is_not_told_to_another_provider(tmp_path: Path) -> None:
    fault = response(said("Done.", phase="final_answer"))
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_wire_server(SCRIPT) as other,
        open_switchboard(
            tmp_path,
            line_to(server, RESPONSES),
            line_to(other, RESPONSES, provider="elsewhere"),
            fallback_disabled=True,
        ) as board,
    ):
        spoke = await board.succeed()
        await board.ask(after(spoke), override=board.lines[1].ref)
    assert "phase" not in msgspec.json.encode(sent(other)).decode()


# --- Parameters -----------------------------------------------------------------------------------


@pytest.mark.requirement("provider-wire:unknown-servers-get-no-extras")
async def test_only_a_provider_known_to_take_them_is_sent_extras(tmp_path: Path) -> None:
    async with (
        open_wire_server(SCRIPT) as server,
        open_switchboard(
            tmp_path,
            line_to(server, RESPONSES),
            line_to(server, RESPONSES, provider="own"),
            fallback_disabled=True,
        ) as board,
    ):
        await board.succeed()
        await board.ask(override=board.lines[1].ref)
    known, own = sent(server, 0), sent(server, 1)
    assert known["parallel_tool_calls"] is False
    assert known["prompt_cache_key"]
    assert not {"parallel_tool_calls", "prompt_cache_key"} & set(own)
    assert set(known) - set(own) == {"parallel_tool_calls", "prompt_cache_key"}


REFUSALS: Final = (
    Refuse(status=400, message="Unsupported parameter: 'prompt_cache_key'",
           code="unsupported_parameter", details={"param": "prompt_cache_key"}),
    Refuse(status=400, message="Validation: Unsupported parameter(s): `prompt_cache_key`"),
    Refuse(status=400, message="property 'prompt_cache_key' is unsupported"),
    Refuse(status=400, message="Unrecognized request argument supplied: prompt_cache_key"),
    Refuse(status=422, message="body.prompt_cache_key: property 'body.prompt_cache_key' is"
           " unsupported"),
    Raw(status=422, headers=JSON, body=b'{"detail":[{"type":"extra_forbidden","loc":["body",'
        b'"prompt_cache_key"],"msg":"Extra inputs are not permitted"}]}'),
)  # fmt: skip


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
@pytest.mark.parametrize("refusal", REFUSALS, ids=range(len(REFUSALS)))
@pytest.mark.parametrize("kind", [RESPONSES, CODEX])
async def test_a_refused_parameter_is_left_out_at_once_and_from_then_on(
    tmp_path: Path, kind: TransportKind, refusal: Refuse | Raw
) -> None:
    async with (
        open_wire_server(SCRIPT, faults=[Fault(instead=refusal)]) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        first = await board.succeed()
        second = await board.succeed()
    assert ["prompt_cache_key" in sent(server, n) for n in range(3)] == [True, False, False]
    assert len(server.requests) == 3
    assert [each.outcome for each in attempts_of(first)] == [AttemptOutcome.SUCCEEDED]
    assert "`prompt_cache_key`" in notes_of(first)
    assert notes_of(second) == ""
    assert any("refuses `prompt_cache_key`" in line for line in board.logged)


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
async def test_several_are_dropped_one_after_the_other_and_then_it_fails(tmp_path: Path) -> None:
    def refuse(name: str) -> Fault:
        return Fault(instead=Refuse(status=400, message=f"Unsupported parameter: {name}"))

    names = ("prompt_cache_key", "parallel_tool_calls", "prompt_cache_key")
    async with (
        open_wire_server(SCRIPT, faults=[refuse(name) for name in names]) as server,
        open_switchboard(tmp_path, line_to(server, RESPONSES)) as board,
    ):
        failed = await board.fail()
    assert len(server.requests) == 3
    assert "parallel_tool_calls" in notes_of(failed)


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
async def test_what_was_dropped_in_vain_is_sent_again_in_the_next_round(tmp_path: Path) -> None:
    named = Refuse(status=400, message="Unsupported parameter: prompt_cache_key")
    other = Refuse(status=400, message="Something else is wrong.")
    async with (
        open_wire_server(SCRIPT, faults=[Fault(instead=named), Fault(instead=other)]) as server,
        open_switchboard(tmp_path, line_to(server, RESPONSES)) as board,
    ):
        failed = await board.fail()
        await board.succeed()
    assert ["prompt_cache_key" in sent(server, n) for n in range(3)] == [True, False, True]
    assert "the request was sent again without it" in notes_of(failed)
    assert not any("from now on" in line for line in (*board.logged, notes_of(failed)))


ALL_FIELDS: Final = (
    "Unknown field: tools.0.custom. Supported fields: model, reasoning, tools, include,"
    " max_output_tokens, parallel_tool_calls, tool_choice"
)


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Unsupported value: 'reasoning' does not support 'high'", None),
        ("`input` is not supported", None),
        ("max_output_tokens must be at most 4096", None),
        ("Unsupported parameter: 'store'. Do not include it in the request.", "store"),
        ("Image inputs are not supported. Please include text only", None),
        ("This organization is not allowed to use reasoning models", "model"),
        ("`max_output_tokens` is not allowed to be greater than 4096", None),
        ("max_output_tokens is not allowed to exceed 4096", "max_output_tokens"),
        (ALL_FIELDS, None),
    ],
)
async def test_nothing_is_dropped_that_the_refusal_is_not_about(
    tmp_path: Path, message: str, param: str | None
) -> None:
    details = {} if param is None else {"param": param}
    fault = Fault(instead=Refuse(status=400, message=message, details=details))
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, RESPONSES, effort="high")) as board,
    ):
        await board.fail()
    assert len(server.requests) == 1


@pytest.mark.requirement("provider-wire:chat-limit-has-two-names")
@pytest.mark.parametrize(
    ("effort", "name", "other"),
    [
        (None, "max_tokens", "max_completion_tokens"),
        ("high", "max_completion_tokens", "max_tokens"),
    ],
)
async def test_a_chat_model_that_reasons_is_told_its_limit_by_the_newer_name(
    tmp_path: Path, effort: str | None, name: str, other: str
) -> None:
    refusal = Refuse(
        status=400,
        message=f"Unsupported parameter: '{name}' is not supported with this model."
        f" Use '{other}' instead.",
        details={"param": name},
    )
    async with (
        open_wire_server(SCRIPT, faults=[Fault(instead=refusal)]) as server,
        open_switchboard(tmp_path, line_to(server, CHAT, effort=effort)) as board,
    ):
        await board.succeed()
        await board.succeed()
    limits = [{name, other} & set(sent(server, n)) for n in range(3)]
    assert limits == [{name}, {other}, {other}]


# --- Garbled answers ------------------------------------------------------------------------------

GARBLED: Final = (html_page(), Fault(twists=(AnswerFault.MALFORMED_JSON,)), instead([]))


@pytest.mark.requirement("provider-wire:one-garbled-answer-is-asked-for-again")
@pytest.mark.parametrize("fault", GARBLED, ids=["page", "json", "shape"])
@pytest.mark.parametrize("kind", WIRES)
async def test_a_garbled_answer_after_good_ones_is_asked_for_once_more(
    tmp_path: Path, kind: TransportKind, fault: Fault
) -> None:
    async with (
        open_wire_server(SCRIPT) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        await board.succeed()
        server.plan(fault)
        spoke = await board.succeed()
        server.plan(fault, fault, fault)
        failed = await board.fail()
    outcomes = [each.outcome for each in attempts_of(spoke)]
    assert outcomes == [AttemptOutcome.RETRYING, AttemptOutcome.SUCCEEDED]
    assert attempts_of(spoke)[0].failure_kind == "garbled_response"
    assert len(attempts_of(failed)) == 2
    assert attempts_of(failed)[-1].failure_kind == "invalid_response"


@pytest.mark.requirement("provider-wire:one-garbled-answer-is-asked-for-again")
@pytest.mark.parametrize("kind", WIRES)
async def test_a_garbled_answer_at_first_is_a_wrong_address(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with (
        open_wire_server(SCRIPT, faults=[html_page()]) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        failed = await board.fail()
    assert len(attempts_of(failed)) == len(server.requests) == 1


# --- What a provider does by itself ---------------------------------------------------------------

SEARCH: Final = {"type": "web_search_call", "id": "ws_1", "status": "completed",
                 "action": {"type": "search", "query": "holons"}}  # fmt: skip


@pytest.mark.requirement("provider-wire:hosted-items-are-kept")
@pytest.mark.parametrize("kind", [RESPONSES, CODEX])
async def test_a_search_of_the_providers_own_is_kept_and_sent_back(
    tmp_path: Path, kind: TransportKind
) -> None:
    fault = response(SEARCH, said("Found it."))
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        spoke = await board.succeed()
        await board.ask(after(spoke))
    kept = msgspec.json.decode(msgspec.json.encode(spoke), type=ModelAnswered)
    assert isinstance(kept.blocks[0], OpaqueBlock)
    assert msgspec.json.decode(kept.blocks[0].content) == SEARCH
    assert text_of(kept.blocks) == "Found it."
    without_id = {name: part for name, part in SEARCH.items() if name != "id"}
    assert (SEARCH if kind is RESPONSES else without_id) in sent(server, 1)["input"]


@pytest.mark.requirement("provider-wire:hosted-items-are-kept")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_anthropics_servers_did_is_kept_and_sent_back(
    tmp_path: Path, stream: bool
) -> None:
    message = answer(SEARCHED, FOUND, {"type": "text", "text": "Found it."})
    fault = streamed(*events_of(message, piece_chars=4)) if stream else instead(message)
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, MESSAGES, stream=stream)) as board,
    ):
        spoke = await board.succeed()
        await board.ask(after(spoke))
    assert text_of(spoke.blocks) == "Found it."
    assert sent(server, 1)["messages"][1]["content"][:2] == [SEARCHED, FOUND]


@pytest.mark.requirement("provider-wire:hosted-items-are-kept")
async def test_a_call_that_waits_for_a_result_is_still_refused(tmp_path: Path) -> None:
    fault = response({"type": "computer_call", "id": "cu_1", "call_id": "call_1", "action": {}})
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, RESPONSES)) as board,
    ):
        failed = await board.fail()
    assert "computer_call" in failed.failure.summary


# --- Reasoning in the text ------------------------------------------------------------------------


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_reasoning_in_the_text_is_no_part_of_it_and_goes_back_where_it_came_from(
    tmp_path: Path, stream: bool
) -> None:
    pieces = ("<th", "ink>let me", " see</thi", "nk>\n\nYes", ".")
    deltas = ({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces)
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    fault = streamed(*deltas, end) if stream else chat_answer("".join(pieces))
    async with (
        open_wire_server(SCRIPT, faults=[fault]) as server,
        open_switchboard(tmp_path, line_to(server, CHAT, stream=stream)) as board,
    ):
        spoke = await board.succeed()
        grown = board.text_grown
        await board.succeed(after(spoke))
    thought, words = spoke.blocks
    assert isinstance(thought, ThinkingBlock)
    assert thought.text == "let me see"
    assert words == TextBlock(text="Yes.")
    assert grown.strip() == ("Yes." if stream else "")
    [past] = [each for each in sent(server)["messages"] if each["role"] == "assistant"]
    assert past["content"] == "<think>\nlet me see\n</think>\n\nYes."


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
@pytest.mark.parametrize("kind", [RESPONSES, CODEX])
async def test_reasoning_in_the_text_of_a_response_is_no_part_of_it(
    tmp_path: Path, kind: TransportKind
) -> None:
    async with (
        open_wire_server(SCRIPT, faults=[response(said("<think>hm</think>Yes."))]) as server,
        open_switchboard(tmp_path, line_to(server, kind)) as board,
    ):
        spoke = await board.succeed()
        await board.succeed(after(spoke))
    assert text_of(spoke.blocks) == "Yes."
