"""A local model is shown the newest words, whole where possible, and no more than fits."""

import pytest

from holon.adapters.providers.local.prompt import (
    GENERAL,
    SMALL,
    ChatLine,
    chat_of,
    offered_tools,
    plain_words,
)
from holon.decide.queue.message_view import render_message
from holon.decide.turns.conversation import INCOMING_HEADER
from holon.model.queue import TextBody
from holon.model.turns.conversation import AssistantMessage, ThinkingBlock
from holon.model.turns.tools import ToolSpec
from tests.adapters.providers.local.local_requests import (
    EXEC,
    PRINTED,
    SLEEP,
    called,
    request,
    returned,
    said,
    user,
)
from tests.support.builders import a_message

TAUGHT = [example for example in SMALL.examples if example.tool in (None, "ExecCommand")]
OPENING = 1 + 2 * len(TAUGHT)


def test_a_small_model_sees_its_own_system_text_and_examples() -> None:
    chat = chat_of(request(user("hi")), SMALL)
    assert chat.lines[0] == ChatLine("system", f"{SMALL.system_text}{SMALL.command_text}")
    assert chat.lines[OPENING:] == (ChatLine("user", "hi"),)
    assert [tool.name for tool in chat.tools] == ["ExecCommand"]


def test_without_the_command_tool_a_small_model_is_taught_to_rest() -> None:
    chat = chat_of(request(user("hi"), tools=(SLEEP,)), SMALL)
    shown = [line.content for line in chat.lines if line.role == "assistant"]
    assert [tool.name for tool in chat.tools] == ["Sleep"]
    assert any('"Sleep"' in content for content in shown)
    assert not any("ExecCommand" in line.content for line in chat.lines)
    assert not any("command" in line.content for line in chat.lines)


def test_another_model_sees_the_frame_and_the_tools() -> None:
    chat = chat_of(request(user("hi")), GENERAL)
    assert chat.lines[0].content.startswith("The frame's own words.")
    assert '- ExecCommand: Run a command. Arguments: ["cmd","workdir"]' in chat.lines[0].content
    assert chat.lines[1:] == (ChatLine("user", "Now.\n\nhi"),)
    assert [tool.name for tool in chat.tools] == ["ExecCommand", "Sleep"]


def test_with_none_of_its_tools_a_small_model_gets_the_first_few() -> None:
    many = tuple(ToolSpec(name=f"T{n}", description="", input_schema={}) for n in range(9))
    assert [tool.name for tool in offered_tools(many, SMALL)] == ["T0", "T1", "T2"]
    chat = chat_of(request(user("hi"), tools=many), SMALL)
    assert len(chat.lines) == 2
    assert "- T2:" in chat.lines[0].content


def test_of_many_tools_the_command_tool_is_never_left_out() -> None:
    many = tuple(ToolSpec(name=f"T{n}", description="", input_schema={}) for n in range(20))
    assert offered_tools((*many, EXEC), GENERAL)[0] == EXEC
    assert len(offered_tools((*many, EXEC), GENERAL)) == GENERAL.tools_count_max


def test_without_tools_nothing_is_said_about_them() -> None:
    chat = chat_of(request(user("hi"), tools=()), SMALL)
    assert (chat.tools, chat.keep_to_words, len(chat.lines)) == ((), False, 2)


def test_calls_and_results_are_shown_as_the_model_writes_and_reads_them() -> None:
    chat = chat_of(request(user("run it"), called("c1", "echo holon-42"), returned("c1")), SMALL)
    assert chat.lines[OPENING:] == (
        ChatLine("user", "run it"),
        ChatLine("assistant", '{"tool": "ExecCommand", "arguments": {"cmd": "echo holon-42"}}'),
        ChatLine("user", "The command printed:\nholon-42"),
    )


@pytest.mark.parametrize(
    ("envelope", "shown"),
    [
        (PRINTED, "holon-42"),
        ({"ok": False, "error": {"kind": "x", "message": "no such tool"}}, "no such tool"),
        ({"ok": True, "result": {"stdout_preview": "", "stderr_preview": ""}}, "(nothing)"),
        ({"ok": True, "result": [{"output": "a"}, {"output": "b"}]}, "a\nb"),
        ("not JSON", "not JSON"),
        ({"ok": True, "result": 7}, '{"ok": true, "result": 7}'),
    ],
)
def test_the_readable_part_of_a_result_is_shown(envelope: object, shown: str) -> None:
    chat = chat_of(request(user("x"), called("c1", "y"), returned("c1", envelope)), SMALL)
    assert chat.lines[-1].content == f"The command printed:\n{shown}"


def test_a_very_small_model_calls_once_until_somebody_speaks() -> None:
    first = (user("run it"), called("c1", "date"), returned("c1"))
    after = chat_of(request(*first), SMALL)
    assert (after.tools, after.keep_to_words) == ((), True)
    again = chat_of(request(*first, said("done"), user("run it again")), SMALL)
    assert (len(again.tools), again.keep_to_words) == (1, False)
    assert chat_of(request(*first), GENERAL).tools == (EXEC, SLEEP)


def test_the_words_of_a_message_are_shown_without_its_provenance() -> None:
    body = "Run the command:\n-----\ndate"
    told = f"{INCOMING_HEADER}\n{render_message(a_message(body=TextBody(text=body)))}"
    assert plain_words(told) == body
    assert plain_words("just words") == "just words"


def test_thinking_is_not_shown_back() -> None:
    silent = AssistantMessage(blocks=(ThinkingBlock(text="secret thoughts"),))
    chat = chat_of(request(user("a"), silent, user("b")), SMALL)
    assert [line.content for line in chat.lines[OPENING:]] == ["a", "…", "b"]


def test_old_messages_are_left_out_and_the_rest_begins_with_the_user() -> None:
    old = [turn for n in range(40) for turn in (user(f"q{n} " + "x" * 60), said(f"a{n}"))]
    chat = chat_of(request(*old, user("newest")), SMALL)
    spoken = chat.lines[OPENING:]
    assert spoken[-1] == ChatLine("user", "newest")
    assert spoken[0].role == "user"
    assert chat.left_out_count == 81 - len(spoken) > 0
    assert len(spoken) > 3
    shorter = chat_of(request(*old, user("newest")), SMALL, shrink=4)
    assert shorter.left_out_count > chat.left_out_count


def test_a_message_that_is_too_long_loses_its_middle() -> None:
    chat = chat_of(request(user("begin " + "é" * 50_000 + " end")), SMALL)
    shown = chat.lines[-1].content
    assert shown.startswith("begin é")
    assert shown.endswith("é end")
    assert len(shown.encode()) < 3 * SMALL.context_tokens


def test_the_opening_is_the_same_whatever_is_said() -> None:
    one = chat_of(request(user("a")), SMALL).lines[:OPENING]
    other = chat_of(request(user("b"), called("c", "d"), returned("c")), SMALL).lines[:OPENING]
    assert one == other
