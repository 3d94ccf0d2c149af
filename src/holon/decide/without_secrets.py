"""Hiding secrets in what tools say and commands write, before any of it is cut.

Owns:  the outcome of a tool call and the looked-at ends of an output, as they may be kept and told.
Rule 1: secrets are hidden first, texts are cut afterwards: half a secret is not recognized.
Rule 2: what a value holds is looked through piece by piece, never as encoded JSON, where hiding
        could take away half of an escape.
Rule 3: what a model asked a tool for is kept as it was written, since a turn that is resumed has to
        run and answer exactly that; everything that shows it to anyone else shows it hidden. A tool
        that only plans is given it hidden, so that no record it plans holds a secret.
Rule 4: where only the ends of an output were read, the margin at each inner edge may hold half a
        secret, and is left out.
"""

import msgspec

from holon.decide.redaction import Redact
from holon.model.command import OutputSpan
from holon.model.command_limits import COMMAND_LOOK_MARGIN_BYTES
from holon.model.conversation import AssistantBlock, ToolUseBlock
from holon.model.json_value import JsonValue
from holon.model.task import CommandRecovery, TaskRecord
from holon.model.tool import ToolCallRecord, ToolError, ToolOk, ToolOutcome, ToolRefused
from holon.model.transcript import AssistantRound, TranscriptEntry, TurnLog


def outcome_without_secrets(outcome: ToolOutcome, redact: Redact) -> ToolOutcome:
    """Return what came of a call as model and transcript may see it."""
    match outcome:
        case ToolOk():
            return msgspec.structs.replace(
                outcome,
                result=value_without_secrets(outcome.result, redact),
                notes=tuple(redact(note) for note in outcome.notes),
            )
        case ToolRefused(error=error):
            return ToolRefused(error=_error_without_secrets(error, redact))


def _error_without_secrets(error: ToolError, redact: Redact) -> ToolError:
    return msgspec.structs.replace(
        error,
        message=redact(error.message),
        hint=None if error.hint is None else redact(error.hint),
        field=None if error.field is None else redact(error.field),
        details=value_without_secrets(error.details, redact),
    )


def call_without_secrets(call: ToolCallRecord, redact: Redact) -> ToolCallRecord:
    """Return a call as it may be shown; the very same where there is nothing to hide."""
    hidden = value_without_secrets(call.input, redact)
    return call if hidden == call.input else msgspec.structs.replace(call, input=hidden)


def task_without_secrets(task: TaskRecord, redact: Redact) -> TaskRecord:
    """Return a task with its command as it may be shown."""
    recovery = task.recovery
    if not isinstance(recovery, CommandRecovery):
        return task
    spec = msgspec.structs.replace(recovery.spec, cmd=redact(recovery.spec.cmd))
    return msgspec.structs.replace(task, recovery=msgspec.structs.replace(recovery, spec=spec))


def log_without_secrets(log: TurnLog, redact: Redact) -> TurnLog:
    """Return a turn with its calls as they may be shown; the very same with nothing to hide."""
    calls = tuple(
        msgspec.structs.replace(each, call=call_without_secrets(each.call, redact))
        for each in log.calls
    )
    entries = tuple(_entry_without_secrets(entry, redact) for entry in log.entries)
    if calls == log.calls and entries == log.entries:
        return log
    return msgspec.structs.replace(log, calls=calls, entries=entries)


def _entry_without_secrets(entry: TranscriptEntry, redact: Redact) -> TranscriptEntry:
    if not isinstance(entry.data, AssistantRound):
        return entry
    blocks = entry.data.spoke.blocks
    hidden = tuple(_block_without_secrets(block, redact) for block in blocks)
    if hidden == blocks:
        return entry
    spoke = msgspec.structs.replace(entry.data.spoke, blocks=hidden)
    return msgspec.structs.replace(entry, data=msgspec.structs.replace(entry.data, spoke=spoke))


def _block_without_secrets(block: AssistantBlock, redact: Redact) -> AssistantBlock:
    if not isinstance(block, ToolUseBlock):
        return block
    return msgspec.structs.replace(block, input=value_without_secrets(block.input, redact))


def value_without_secrets(value: JsonValue, redact: Redact) -> JsonValue:
    """Return a JSON value with secrets hidden in its texts and names."""
    match value:
        case str():
            return redact(value)
        case list() | tuple():
            return [value_without_secrets(item, redact) for item in value]
        case dict():
            return {redact(key): value_without_secrets(item, redact) for key, item in value.items()}
        case _:
            return value


def span_without_secrets(span: OutputSpan, redact: Redact) -> OutputSpan:
    """Return a look at an output without its secrets; its size is what is left to be shown.

    The look must have gone COMMAND_LOOK_MARGIN_BYTES further than will be shown.
    """
    read = len(span.head) + len(span.tail)
    if read >= span.total_bytes:
        whole = _hidden_bytes(span.head + span.tail[read - span.total_bytes :], redact)
        return msgspec.structs.replace(span, head=whole, tail=b"", total_bytes=len(whole))
    head, tail = _hidden_bytes(span.head, redact), _hidden_bytes(span.tail, redact)
    return msgspec.structs.replace(
        span,
        head=head[:-COMMAND_LOOK_MARGIN_BYTES],
        tail=tail[COMMAND_LOOK_MARGIN_BYTES:],
        total_bytes=span.total_bytes - read + len(head) + len(tail),
    )


def _hidden_bytes(data: bytes, redact: Redact) -> bytes:
    text = data.decode(errors="surrogateescape")  # which gives every byte back
    hidden = redact(text)
    return data if hidden == text else hidden.encode(errors="surrogateescape")
