"""How much a local model is asked for.

Owns:  the two profiles, and which model gets which.
Rule 1: a very small model is shown little: its own short system text, worked examples instead of
        instructions, one tool, and the plain words of a message without the frame around them.
Rule 2: any other model is shown what every provider shows, as far as its context reaches.
"""

from dataclasses import dataclass
from typing import Final

COMMAND_TOOL: Final = "ExecCommand"
REST_TOOL: Final = "Sleep"

_COMMAND: Final = '{"tool": "ExecCommand", "arguments": {"cmd": "%s"}}'
_REST: Final = '{"tool": "Sleep", "arguments": {}}'


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One worked exchange that is put in front of the conversation, while its tool is offered."""

    asked: str
    answered: str
    tool: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What a model of some size can bear."""

    context_tokens: int
    output_tokens_max: int
    tools_count_max: int
    text_chars_max: int | None  # of one text argument
    result_chars_max: int  # of one tool result
    required_arguments_only: bool
    calls_per_turn_max: int | None
    system_text: str | None  # in the place of the frame
    command_text: str = ""  # after it, while commands can be run
    # A model that is taught by example is offered one tool: the first of these that there is.
    taught_tools: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()


# The wording was found by trial with smollm2-135m: longer instructions make it answer worse.
SMALL: Final = Profile(
    context_tokens=1_024,
    output_tokens_max=128,
    tools_count_max=3,
    text_chars_max=400,
    result_chars_max=600,
    required_arguments_only=True,
    calls_per_turn_max=1,
    system_text="You are a helpful assistant. Answer in one short sentence.",
    command_text=" To run a command, reply with JSON.",
    taught_tools=(COMMAND_TOOL, REST_TOOL),
    examples=(
        Example(asked="What is the capital of Italy?", answered="The capital of Italy is Rome."),
        Example(asked="Run the command: date", answered=_COMMAND % "date", tool=COMMAND_TOOL),
        Example(asked="Go to sleep.", answered=_REST, tool=REST_TOOL),
        Example(asked="Say hi.", answered="Hi! How can I help you?"),
        Example(
            asked="Please run: ls -l /tmp", answered=_COMMAND % "ls -l /tmp", tool=COMMAND_TOOL
        ),
        Example(asked="Please sleep now.", answered=_REST, tool=REST_TOOL),
        Example(asked="How many days are in a week?", answered="There are seven days in a week."),
        Example(
            asked="Use ExecCommand to run `whoami` and tell me what it prints.",
            answered=_COMMAND % "whoami",
            tool=COMMAND_TOOL,
        ),
    ),
)

GENERAL: Final = Profile(
    context_tokens=16_384,
    output_tokens_max=2_048,
    tools_count_max=12,
    text_chars_max=None,
    result_chars_max=8_000,
    required_arguments_only=False,
    calls_per_turn_max=None,
    system_text=None,
)


def profile_for(model: str) -> Profile:
    """Return the profile of a model by its name; a file somebody chose is taken for capable."""
    return GENERAL if model.startswith("/") else SMALL
