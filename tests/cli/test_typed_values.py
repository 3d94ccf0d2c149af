"""What cannot be meant is refused where it is typed, with a sentence."""

import pytest
from click.testing import CliRunner

from holon.cli.console import exit_codes, options
from holon.cli.main import main
from holon.model import limits
from holon.model import limits as command_limits
from tests.cli.operator_desk import Desk


def test_the_bounds_are_those_of_the_runtime() -> None:
    after, every = options.TIMER_AFTER, options.TIMER_EVERY
    assert (after.min, after.max) == (limits.TIMER_DURATION_MS_MIN, limits.TIMER_DURATION_MS_MAX)
    assert (every.min, every.max) == (limits.TIMER_INTERVAL_MS_MIN, limits.TIMER_DURATION_MS_MAX)
    assert options.YIELD_TIME.max == command_limits.COMMAND_YIELD_MS_MAX
    assert options.OUTPUT_TOKENS.max == limits.TOOL_OUTPUT_SETTING_TOKENS_MAX
    assert options.LABEL.chars_max == limits.LABEL_CHARS_MAX
    assert options.OBJECTIVE.chars_max == limits.OBJECTIVE_CHARS_MAX
    assert options.IDEMPOTENCY_KEY.chars_max == limits.IDEMPOTENCY_KEY_CHARS_MAX


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("timer", "create", "--after-ms", "1000", "--every-ms", "5"), "1000<=x<="),
        (("timer", "create", "--after-ms", "99999999999999999999"), "1<=x<="),
        (("task", "run", "bad", "--cmd", ""), "'--cmd': it is empty"),
        (("task", "run", "", "--cmd", "true"), "'SUMMARY': it is empty"),
        (("work-item", "create", ""), "'OBJECTIVE': it is empty"),
        (("work-item", "create", "x" * 4_001), "longer than 4000 characters"),
        (("prompt", "--idempotency-key", "", "x"), "'--idempotency-key': it is empty"),
        (("prompt", "--idempotency-key", "caf\u00e9", "x"), "'--idempotency-key': only printable"),
        (("prompt", "--idempotency-key", "a\tb", "x"), "'--idempotency-key': only printable"),
        (("task", "status", ""), "'TASK': it is empty"),
        (("task", "output", ""), "'TASK': it is empty"),
        (("task", "input", "", "--text", "x"), "'TASK': it is empty"),
        (("task", "stop", ""), "'TASK': it is empty"),
        (("task", "list", "--after", ""), "'--after': it is empty"),
        (("work-item", "get", ""), "'ITEM': it is empty"),
        (("work-item", "update", "", "--objective", "x"), "'ITEM': it is empty"),
        (("work-item", "pick", ""), "'ITEM': it is empty"),
        (("work-item", "complete", ""), "'ITEM': it is empty"),
        (("timer", "cancel", ""), "'TIMER': it is empty"),
        (("workspace", "detach", ""), "'ID': it is empty"),
        (("skills", "install", ""), "'NAME_OR_PATH': it is empty"),
        (("skills", "uninstall", ""), "'NAME': it is empty"),
    ],
)
def test_a_value_that_cannot_be_meant_is_bad_usage(command: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, done.stdout) == (exit_codes.UNUSABLE, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("prompt", "-"), "a text holds a NUL character"),
        (("task", "status", "no id!"), "is not a valid task id"),
        (("events", "tail", "--after-seq", "9" * 20), "after_seq takes a whole number"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
async def test_what_the_runtime_finds_cannot_be_meant_is_bad_usage_too(
    desk: Desk, command: tuple[str, ...], said: str
) -> None:
    done = await desk.holon(*command, stdin="a\0b")
    assert (done.exit_code, done.stdout) == (exit_codes.UNUSABLE, "")
    assert said in done.stderr
