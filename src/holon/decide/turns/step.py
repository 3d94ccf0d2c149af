"""The step function of a turn: the provider and tool loop as a fold.

Owns:  what a turn does next after each input.
Rule 1: state is a fold over the turn's inputs and nothing else; replaying them rebuilds it.
Rule 2: at a safe point the driver first folds what happened, then each interjection it admits. An
        interjection never cancels calls: it waits behind their results.
Rule 3: every tool use of a round gets exactly one receipt before the model is asked again. Calls
        that may not run are answered in `RunTools.refused` and are receipts like any other.
Rule 4: a turn ends by facts: the model was done, rested, failed, was deferred, or ran out of
        rounds.
Rule 5: text is a report only if its round completed exactly one item. Each round may give one.
Rule 6: a work item counts as touched when a tool that changes one succeeds. Rounds since then are
        counted, so that the model can be reminded (decide/work/reminder).
Rule 7: an answer to a checkpoint request is a note, not the end of the turn: the model is asked to
        continue. A checkpoint is anchored: it holds until a work item or a file was changed.
"""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from holon.decide.turns.failures import round_limit
from holon.decide.turns.receipts import error_receipt
from holon.model.errors import ForbiddenTransitionError
from holon.model.events.briefs import FailureArtifact
from holon.model.limits import (
    MAX_OUTPUT_CONTINUATIONS_COUNT_MAX,
    TOOL_CALLS_PER_ROUND_COUNT_MAX,
    TURN_ROUNDS_COUNT_MAX,
)
from holon.model.record import Record
from holon.model.turns.conversation import ToolUseBlock, text_of, tool_uses_of
from holon.model.turns.tools import ToolError
from holon.model.turns.turn import (
    CallModel,
    Completion,
    Finish,
    ModelAnswered,
    ModelFailed,
    OperatorInterjected,
    RunTools,
    StopReason,
    ToolReceipt,
    ToolsReturned,
    TurnInput,
    TurnStep,
)
from holon.model.values import Instant

WORK_ITEM_CHANGERS: Final = frozenset(
    {"CreateWorkItem", "PickWorkItem", "UpdateWorkItem", "CompleteWorkItem"}
)
NUDGE: Final = (
    "Your answer was cut off at the output limit. Go on where it stopped; repeat nothing."
)
RESUME: Final = (
    "[Runtime: your checkpoint is noted and stays with you. Go on with the work now. If all of it"
    " is done, say so and give your full answer.]"
)
ANCHOR_MOVERS: Final = WORK_ITEM_CHANGERS | {"ApplyPatch"}


class ToolPolicy(Record, frozen=True, kw_only=True):
    """Which tools exist, which are offered in this turn, and which change something."""

    exposed: frozenset[str]
    known: frozenset[str]
    mutating: frozenset[str]


class TurnState(Record, frozen=True, kw_only=True):
    """The state of a turn. `step` is its latest request."""

    step: TurnStep = CallModel()
    round_count: int = 0
    nudge_count: int = 0
    calls: tuple[ToolUseBlock, ...] = ()  # of the newest round, in order
    round_text: str = ""  # the text of the newest round, blank when it had none
    last_text: str = ""  # the newest text of the turn
    cut_text: str = ""  # text of an answer that was cut and is being continued
    interjected: bool = False  # the operator interjected and the model has not answered since
    made_progress: bool = False
    completions: tuple[Completion, ...] = ()
    untouched_round_count: int = 0  # rounds since the model last changed a work item
    reminded_at_round: int | None = None
    anchor: int = 0  # how many changes have made the checkpoint outdated
    checkpoint_anchor: int | None = None  # its anchor when a checkpoint was last requested
    checkpoint_due: bool = False  # one was requested and has not been given


def open_turn() -> TurnState:
    """Return the state of a turn in which nothing has happened."""
    return TurnState()


def first_step(state: TurnState) -> TurnStep:
    """Return the turn's next step: for a fresh one, to ask the model."""
    return state.step


def advance(
    state: TurnState, happened: TurnInput, *, tools: ToolPolicy
) -> tuple[TurnState, TurnStep]:
    """Fold one occurrence into the turn and name the next step."""
    match happened:
        case ModelAnswered():
            _require(isinstance(state.step, CallModel), state, "model_spoke")
            moved, step = _after_round(state, happened, tools)
        case ToolsReturned(receipts=receipts):
            _require(_answers(state, receipts), state, "tools_returned")
            moved, step = _after_tools(state, receipts)
        case OperatorInterjected():
            moved, step = _after_interjection(state)
        case ModelFailed(failure=failure, retry_at=retry_at):
            _require(not isinstance(state.step, Finish), state, "model_failed")
            moved, step = state, _finish(state, failure=failure, deferred_until=retry_at)
        case _:
            assert_never(happened)
    return msgspec.structs.replace(moved, step=step), step


def nudge_recorded(state: TurnState) -> tuple[TurnState, TurnStep]:
    """The continuation prompt stands in the transcript; only the call itself is left to do."""
    step = CallModel()
    return msgspec.structs.replace(state, step=step), step


def reminder_recorded(state: TurnState) -> TurnState:
    """The model will read a reminder of its work item before its next round."""
    return msgspec.structs.replace(state, reminded_at_round=state.round_count)


def compaction_recorded(state: TurnState, *, is_asked: bool) -> TurnState:
    """The conversation was shortened; the model may have been asked for a checkpoint."""
    if not is_asked:
        return state
    return msgspec.structs.replace(state, checkpoint_due=True, checkpoint_anchor=state.anchor)


def completions_of(text: str, receipts: Iterable[ToolReceipt]) -> tuple[Completion, ...]:
    """Return what one round completed; its text is the report when that is a single item."""
    completed = [
        receipt.completes_work_item_id
        for receipt in receipts
        if receipt.completes_work_item_id is not None and not receipt.is_error
    ]
    alone = len(completed) == 1
    report = text if alone and text.strip() else None
    return tuple(
        Completion(work_item_id=item_id, report=report, is_alone=alone) for item_id in completed
    )


def _after_round(
    state: TurnState, answer: ModelAnswered, tools: ToolPolicy
) -> tuple[TurnState, TurnStep]:
    answered = _with_answer(state, answer)
    cut = answer.stop_reason is StopReason.MAX_TOKENS
    if answered.calls:
        offered = msgspec.structs.replace(tools, exposed=tools.exposed.difference(answer.withheld))
        return answered, _run_tools(answered.calls, offered, cut=cut)
    if cut and answered.nudge_count < MAX_OUTPUT_CONTINUATIONS_COUNT_MAX:
        nudged = msgspec.structs.replace(
            answered,
            nudge_count=answered.nudge_count + 1,
            cut_text=answered.round_text or answered.cut_text,
        )
        return nudged, _ask(nudged, nudge=NUDGE)
    ended = msgspec.structs.replace(answered, cut_text="", checkpoint_due=False)
    if answered.checkpoint_due:
        return ended, _ask(ended, nudge=RESUME, after_checkpoint=True)
    return ended, _finish(ended)


def _with_answer(state: TurnState, answer: ModelAnswered) -> TurnState:
    text = text_of(answer.blocks)
    full_text = state.cut_text + text if text.strip() else ""
    calls = tool_uses_of(answer.blocks)
    return msgspec.structs.replace(
        state,
        round_count=state.round_count + 1,
        untouched_round_count=state.untouched_round_count + 1,
        calls=calls,
        round_text=full_text,
        last_text=full_text or state.last_text,
        cut_text="" if calls else state.cut_text,
        checkpoint_due=state.checkpoint_due and not calls,
        interjected=False,
    )


def _run_tools(calls: tuple[ToolUseBlock, ...], tools: ToolPolicy, *, cut: bool) -> RunTools:
    allowed: list[ToolUseBlock] = []
    refused: list[ToolReceipt] = []
    for index, call in enumerate(calls):
        is_truncated = cut and index == len(calls) - 1
        error = _refusal_of(call, tools, index=index, is_truncated=is_truncated)
        if error is None:
            allowed.append(call)
        else:
            refused.append(error_receipt(call.call_id, call.name, error))
    return RunTools(calls=tuple(allowed), refused=tuple(refused))


def _refusal_of(
    call: ToolUseBlock, tools: ToolPolicy, *, index: int, is_truncated: bool
) -> ToolError | None:
    """Return why a call may not run. The first matching rule wins."""
    if call.name not in tools.known:
        return ToolError(
            kind="unknown_tool",
            message=f"there is no tool named {call.name}",
            hint="use one of the tools you were offered",
        )
    if call.name not in tools.exposed:
        return ToolError(
            kind="tool_not_exposed_for_round",
            message=f"{call.name} is not offered in this turn",
            hint="use one of the tools you were offered",
        )
    if is_truncated and call.name in tools.mutating:
        return ToolError(
            kind="truncated_mutation_tool_call",
            message="the answer was cut off, so this call may be incomplete; it did not run",
            hint="make the call again, smaller if need be",
            retryable=True,
        )
    if index >= TOOL_CALLS_PER_ROUND_COUNT_MAX:
        return ToolError(
            kind="too_many_tool_calls",
            message=f"only {TOOL_CALLS_PER_ROUND_COUNT_MAX} calls run in one round",
            hint="make the remaining calls in the next round",
            retryable=True,
        )
    return None


def _after_tools(state: TurnState, receipts: tuple[ToolReceipt, ...]) -> tuple[TurnState, TurnStep]:
    succeeded = [receipt for receipt in receipts if not receipt.is_error]
    touched = any(receipt.name in WORK_ITEM_CHANGERS for receipt in succeeded)
    worked = msgspec.structs.replace(
        state,
        made_progress=state.made_progress or any(not each.ends_turn for each in succeeded),
        completions=(*state.completions, *completions_of(state.round_text, succeeded)),
        untouched_round_count=0 if touched else state.untouched_round_count,
        anchor=state.anchor + any(receipt.name in ANCHOR_MOVERS for receipt in succeeded),
    )
    resting = all(receipt.ends_turn and not receipt.is_error for receipt in receipts)
    if resting and not state.interjected:
        return worked, _finish(worked, slept=receipts[-1])
    return worked, _ask(worked)


def _after_interjection(state: TurnState) -> tuple[TurnState, TurnStep]:
    interrupted = msgspec.structs.replace(state, interjected=True)
    match state.step:
        case Finish(failure=None):
            return interrupted, _ask(interrupted)
        case CallModel() | RunTools() | Finish():
            return interrupted, state.step
        case _:
            assert_never(state.step)


def _ask(
    state: TurnState, *, nudge: str | None = None, after_checkpoint: bool = False
) -> CallModel | Finish:
    if state.round_count >= TURN_ROUNDS_COUNT_MAX:
        return _finish(state, failure=round_limit())
    return CallModel(nudge=nudge, after_checkpoint=after_checkpoint)


def _finish(
    state: TurnState,
    *,
    failure: FailureArtifact | None = None,
    deferred_until: Instant | None = None,
    slept: ToolReceipt | None = None,
) -> Finish:
    return Finish(
        last_text=state.last_text,
        failure=failure,
        deferred_until=deferred_until,
        slept=slept is not None,
        sleep_reason=slept.sleep_reason if slept is not None else None,
        completions=state.completions,
        made_progress=state.made_progress,
    )


def _answers(state: TurnState, receipts: tuple[ToolReceipt, ...]) -> bool:
    expected_ids = [call.call_id for call in state.calls]
    return isinstance(state.step, RunTools) and expected_ids == [r.call_id for r in receipts]


def _require(condition: bool, state: TurnState, signal: str) -> None:
    if not condition:
        raise ForbiddenTransitionError(type(state.step).__name__, signal)
