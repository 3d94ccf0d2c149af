"""What a run looks like while it runs."""

import io

import msgspec
import pytest

from holon.cli.run.view import LineView, LiveView, NoView, view_for
from holon.model.events.event import (
    Event,
    MessageProcessingStarted,
    ProviderRoundCompleted,
    TaskCreated,
    TaskStatusUpdated,
    ToolExecuted,
    TurnEnded,
)
from holon.model.providers.attempts import TokenUsage
from holon.model.tasks import TaskKind, TaskStatus
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.turn import CallGrew, TerminalKind, TextGrew, ThinkingGrew
from holon.model.values import EPOCH, AgentId, JsonValue, MessageId, TaskId, TurnId
from tests.support.builders import a_tool_call, a_turn
from tests.support.manual_clock import ManualClock

MAIN, TURN, TASK = AgentId("main"), TurnId("turn_1"), TaskId("task_1")
ENDED = TurnEnded(
    turn_id=TURN, turn_index=1, terminal=TerminalKind.COMPLETED, duration_ms=1, usage=TokenUsage()
)
CREATED = TaskCreated(task_id=TASK, task_kind=TaskKind.COMMAND_TASK, status=TaskStatus.RUNNING)
OVER = TaskStatusUpdated(task_id=TASK, status=TaskStatus.COMPLETED)


def a_call(name: str, asked: JsonValue) -> ToolCallRecord:
    return msgspec.structs.replace(a_tool_call(a_turn()), name=name, input=asked)


def a_round(tokens: int) -> ProviderRoundCompleted:
    return ProviderRoundCompleted(
        turn_id=TURN,
        round=1,
        token_usage=TokenUsage(input_tokens=tokens),
        context_build_ms=0,
        provider_round_ms=0,
        provider_started_at=EPOCH,
        provider_completed_at=EPOCH,
    )


@pytest.mark.requirement("run-once:plain-lines")
@pytest.mark.requirement("events:run-lines-are-presented")
def test_a_pipe_gets_a_line_for_each_step_and_no_other() -> None:
    out = io.StringIO()
    view = LineView(out)
    view.began(a_call("ExecCommand", {"cmd": "make \x1b[2J\n\ttest"}))
    for event in (a_round(5), CREATED, ENDED, OVER):
        view.told(event)
    view.growing(MAIN, TextGrew(text="hello"))
    view.close()
    assert out.getvalue().splitlines() == [
        "holon: running `make test`",
        "holon: Task task_1 was created (command_task): `make test`",
        "holon: Task task_1 is completed: `make test`",
    ]


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("ExecCommand", {"command": "ls"}, "running `ls`"),
        ("ExecCommand", None, "running a command"),
        ("ExecCommandBatch", {"items": [1, 2]}, "running 2 commands"),
        ("ExecCommandBatch", [], "running several commands"),
        ("ApplyPatch", {}, "changing files"),
        ("Sp\x1b[1mell", {}, "using Spell"),
    ],
)
def test_each_call_is_told_in_plain_words(name: str, asked: JsonValue, said: str) -> None:
    out = io.StringIO()
    LineView(out).began(a_call(name, asked))
    assert out.getvalue() == f"holon: {said}\n"


@pytest.mark.requirement("run-once:live-view")
def test_a_terminal_is_redrawn_in_place_only_for_news_and_left_clean() -> None:
    out, clock = io.StringIO(), ManualClock()
    view = LiveView(out, clock, cells=lambda: 30)
    view.draw()
    first = out.getvalue()
    assert first == "● thinking\n  0s · 0 rounds · 0 tokens"
    view.draw()
    assert out.getvalue() == first
    view.told(a_round(12_345))
    view.began(a_call("ExecCommand", {"cmd": "x" * 80}))
    redrawn = out.getvalue().removeprefix(first)
    assert redrawn.startswith("\r\x1b[2K\x1b[1A\r\x1b[2K● running `xxx")
    assert redrawn.endswith("…\n  0s · 1 round · 12.3k tokens")
    view.close()
    assert out.getvalue().endswith("\r\x1b[2K\x1b[1A\r\x1b[2K")
    length = len(out.getvalue())
    view.close()
    assert len(out.getvalue()) == length


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((MessageProcessingStarted(message_id=MessageId("m"), generation=1),), "● thinking"),
        ((ToolExecuted(effect_id="e", turn_id=TURN, tool_name="x", duration_ms=1),), "● thinking"),
        ((ENDED,), "● finishing"),
        ((CREATED, ENDED), "● waiting for a task"),
        ((CREATED, msgspec.structs.replace(CREATED, task_id="t2"), ENDED), "● waiting for 2 tasks"),
    ],
)
def test_the_view_says_what_the_agent_is_at(events: tuple[Event, ...], said: str) -> None:
    out = io.StringIO()
    view = LiveView(out, ManualClock(), cells=lambda: 80)
    for event in events:
        view.told(event)
    view.draw()
    assert out.getvalue().splitlines()[0] == said


def test_a_growing_answer_is_shown_as_what_it_grows_into() -> None:
    out = io.StringIO()
    view = LiveView(out, ManualClock(), cells=lambda: 80)
    for progress, said in (
        (TextGrew(text="a"), "answering"),
        (ThinkingGrew(text="a"), "thinking"),
        (CallGrew(call_id="c", name="ApplyPatch", fragment=""), "preparing ApplyPatch"),
    ):
        view.growing(MAIN, progress)
        view.draw()
        assert f"● {said}" in out.getvalue().splitlines()[-2]


def test_only_a_terminal_that_can_be_steered_gets_the_live_view() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    clock = ManualClock()
    assert isinstance(view_for(Screen(), clock, terminal_kind="xterm"), LiveView)
    for out, kind in ((Screen(), "dumb"), (Screen(), None), (io.StringIO(), "xterm")):
        view = view_for(out, clock, terminal_kind=kind)
        assert isinstance(view, LineView)
        assert isinstance(view, NoView)
