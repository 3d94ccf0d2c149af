"""Turn evidence: what a turn did, extracted from its log.

Owns:  the files, commands, checks and decisions that a turn's calls name, and the authority of what
       the turn was shown.
Rule 1: only calls and receipts count. Messages are not interpreted, and of the model's text only
        the arguments of its calls.
Rule 2: the newest EVIDENCE_CALLS_COUNT_MAX relevant calls are used, each list is bounded, newest
        first, and every entry is one line.
Rule 3: decisions of a turn that was shown outside content are named by ids alone, without text. A
        turn that the runtime starts by itself inherits from the turn before it and has no higher
        authority.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from holon.decide.queue.message_view import is_tainted, turn_authority
from holon.decide.text.fencing import quoted_line
from holon.decide.wake.triggers import value_without_addresses, without_addresses
from holon.model.memory.records import (
    EVIDENCE_CALLS_COUNT_MAX,
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    MEMORY_LINE_CHARS_MAX,
)
from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.model.values import JsonValue

_RELEVANT_TOOLS: Final = frozenset(
    {
        "ApplyPatch",
        "ExecCommand",
        "ExecCommandBatch",
        "CreateWorkItem",
        "PickWorkItem",
        "UpdateWorkItem",
        "CompleteWorkItem",
    }
)
_CMD_CHARS_MAX: Final = 4 * MEMORY_LINE_CHARS_MAX
_CHECKING: Final = (
    r"\b(?:pytest|tox|nox|unittest|ctest|jest|vitest|mocha|rspec|phpunit|ruff|flake8|pylint|mypy"
    r"|pyright|eslint|tsc|shellcheck|clippy|golangci-lint)\b"
    r"|\b(?:make|just|cargo|go|npm|pnpm|yarn|bun|mvn|gradle|gradlew|dotnet|bazel|mix|swift|zig)\b"
    r"(?:\s+(?:run|-\S+))*\s+(?:test|tests|check|lint|verify|vet|typecheck|build)\b"
)


class CommandRun(Record, frozen=True, kw_only=True):
    """A command the turn ran. The end of one that still runs or was cut off is unknown."""

    cmd: str
    outcome: str
    ended_well: bool | None = None

    @property
    def line(self) -> str:
        """The command and what came of it."""
        tail = f" ({self.outcome})"
        return f"{memory_line(self.cmd, chars_max=MEMORY_LINE_CHARS_MAX - len(tail))}{tail}"

    @property
    def is_check(self) -> bool:
        """Whether it looks like a verification command."""
        # Compiled on first use: that takes as long as loading a module.
        return re.search(_CHECKING, self.cmd, re.IGNORECASE) is not None


class TurnEvidence(Record, frozen=True, kw_only=True):
    """What a turn's calls did; lists are newest first."""

    authority_class: AuthorityClass
    files: tuple[str, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[CommandRun, ...]:
        """The commands that verify something."""
        return tuple(run for run in self.commands if run.is_check)

    @property
    def is_instructed(self) -> bool:
        """Whether the turn was shown no outside content."""
        return not is_tainted(self.authority_class)


class _Result(msgspec.Struct):
    """The parts of tool results that are read here."""

    disposition: str | None = None
    exit_status: int | None = None
    changed_paths: list[str] = []
    items: list["_Item"] = []


class _Item(msgspec.Struct):
    cmd: str = ""
    status: str = ""
    result: _Result | None = None


class _Receipt(msgspec.Struct):
    result: _Result | msgspec.UnsetType = msgspec.UNSET


class _Arguments(msgspec.Struct):
    """The arguments that are read here, by the names models use for them."""

    cmd: str | None = None
    command: str | None = None
    work_item_id: str | None = None
    id: str | None = None
    objective: str | None = None
    blocked_by: str | None = None
    plan_status: str | None = None


_RECEIPTS: Final = msgspec.json.Decoder(_Receipt)


def evidence_of(log: TurnLog, *, before: AuthorityClass) -> TurnEvidence:
    """Return the evidence in a turn's log; `before` is the authority of the turn before it."""
    authority = turn_authority(log, before=before)
    instructed = not is_tainted(authority)
    files: list[str] = []
    commands: list[CommandRun] = []
    decisions: list[str] = []
    for recorded in _newest(log.calls):
        match recorded.call.name:
            case "ApplyPatch":
                files.extend(memory_line(path) for path in _result_of(recorded).changed_paths)
            case "ExecCommand":
                commands.extend(_single(recorded))
            case "ExecCommandBatch":
                commands.extend(reversed(tuple(_batch(recorded))))
            case _:
                decisions.extend(_decision(recorded, with_text=instructed))
    return TurnEvidence(
        authority_class=authority,
        files=newest_of(files, count_max=MEMORY_FILES_COUNT_MAX),
        commands=tuple(commands[:EVIDENCE_CALLS_COUNT_MAX]),
        decisions=newest_of(decisions, count_max=MEMORY_ENTRIES_COUNT_MAX),
    )


def newest_of(entries: Iterable[str], *, count_max: int) -> tuple[str, ...]:
    """Return each entry once, the first ones of them."""
    return tuple(dict.fromkeys(filter(None, entries)))[:count_max]


def memory_line(text: str, *, chars_max: int = MEMORY_LINE_CHARS_MAX) -> str:
    """Return a text as one bounded line in which nothing is hidden."""
    return quoted_line(text, chars_max=chars_max)


def _newest(calls: tuple[RecordedCall, ...]) -> Iterator[RecordedCall]:
    relevant = (recorded for recorded in reversed(calls) if recorded.call.name in _RELEVANT_TOOLS)
    return islice(relevant, EVIDENCE_CALLS_COUNT_MAX)


def _single(recorded: RecordedCall) -> Iterator[CommandRun]:
    arguments = _arguments_of(recorded.call.input)
    cmd = (arguments.cmd or arguments.command or "")[:_CMD_CHARS_MAX]
    if not cmd:
        return
    if recorded.receipt is None:
        yield CommandRun(cmd=cmd, outcome="cut off")
        return
    if recorded.receipt.is_error:
        kind = recorded.receipt.error_kind or "error"
        yield CommandRun(cmd=cmd, outcome=memory_line(kind), ended_well=False)
        return
    yield _ended(cmd, _result_of(recorded))


def _batch(recorded: RecordedCall) -> Iterator[CommandRun]:
    for item in _result_of(recorded).items:
        cmd = without_addresses(item.cmd)[:_CMD_CHARS_MAX]
        if cmd and item.result is not None:
            yield _ended(cmd, item.result)
        elif cmd:
            yield CommandRun(cmd=cmd, outcome=memory_line(item.status) or "not run")


def _ended(cmd: str, result: _Result) -> CommandRun:
    if result.exit_status is not None:
        outcome = f"exit {result.exit_status}"
        return CommandRun(cmd=cmd, outcome=outcome, ended_well=result.exit_status == 0)
    return CommandRun(cmd=cmd, outcome=memory_line(result.disposition or "no result"))


def _decision(recorded: RecordedCall, *, with_text: bool) -> Iterator[str]:
    """What a successful call about a work item decided."""
    if recorded.receipt is None or recorded.receipt.is_error:
        return
    arguments = _arguments_of(recorded.call.input)
    item_id = memory_line(arguments.work_item_id or arguments.id or "")
    match recorded.call.name:
        case "CompleteWorkItem":
            yield f"completed work item {recorded.receipt.completes_work_item_id or item_id}"
        case "PickWorkItem":
            yield f"took up work item {item_id}"
        case "CreateWorkItem":
            yield _decision_line("opened a work item", arguments.objective, with_text=with_text)
        case "UpdateWorkItem" if arguments.blocked_by:
            yield _decision_line(
                f"work item {item_id} is blocked", arguments.blocked_by, with_text=with_text
            )
        case "UpdateWorkItem" if arguments.objective:
            change = f"work item {item_id} has a new objective"
            yield _decision_line(change, arguments.objective, with_text=with_text)
        case "UpdateWorkItem" if arguments.plan_status:
            yield f"the plan of work item {item_id} is {memory_line(arguments.plan_status)}"
        case _:
            return


def _decision_line(change: str, text: str | None, *, with_text: bool) -> str:
    return memory_line(f"{change}: {text}") if text and with_text else memory_line(change)


def _arguments_of(arguments: JsonValue) -> _Arguments:
    try:
        return msgspec.convert(value_without_addresses(arguments), _Arguments)
    except msgspec.ValidationError:
        return _Arguments()


def _result_of(recorded: RecordedCall) -> _Result:
    if recorded.receipt is None or recorded.receipt.is_error:
        return _Result()
    try:
        receipt = _RECEIPTS.decode(recorded.receipt.content)
    except msgspec.DecodeError:
        return _Result()
    return receipt.result if isinstance(receipt.result, _Result) else _Result()
