"""The Enqueue tool: a follow-up message of an agent to itself.

Owns:  the Enqueue tool. The follow-up passes the same admission as every message and is queued by
       the commit that records the call's result, so it exists exactly once.
Rule 1: an agent cannot keep itself running for ever: the chain of its follow-ups is bounded
        (decide/budgets/no_progress).
Rule 2: a follow-up has no more authority than the input of its turn, and says so: what an outsider
        got the agent to note for itself does not come back as an instruction.
"""

from typing import Annotated, Final

import msgspec

from holon.decide.budgets.no_progress import (
    ChainUsedUp,
    FollowupDecision,
    FollowupFacts,
    next_in_chain,
    root_of,
)
from holon.decide.queue.admission import decide_admission
from holon.decide.queue.commits import queue_change
from holon.model.commits import AgentAdmits
from holon.model.errors import Refusal
from holon.model.limits import ENQUEUE_TEXT_BYTES_MAX, EVENT_TEXT_CHARS_MAX
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    FollowupChain,
    IngressRequest,
    MessageEnvelope,
    MessageKind,
    Priority,
    SystemOrigin,
    TextBody,
)
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.turns.transcript import Interjection
from holon.model.values import IdPrefix, JsonValue, MessageId
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.guidance import least_authority
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse


class EnqueueArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The follow-up text, and its priority."""

    text: Annotated[
        str, msgspec.Meta(min_length=1, description="What to take up then, in your own words.")
    ]
    priority: Annotated[
        Priority, msgspec.Meta(description="How soon, among the other messages to you.")
    ] = Priority.NEXT


class Enqueue:
    """Queues a follow-up message to the calling agent."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="Enqueue",
            description=guidance_for("enqueue"),
            input_schema=schema_of(EnqueueArguments),
            mutates=True,
        )

    @leniently(("message", "text"), ("content", "text"), ("prompt", "text"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Plan the admission of the follow-up."""
        request = decode_arguments(arguments, EnqueueArguments)
        if isinstance(request, ToolExecution):
            return request
        if len(request.text.encode()) > ENQUEUE_TEXT_BYTES_MAX:
            return refuse(
                "invalid_tool_input",
                f"the text is longer than {ENQUEUE_TEXT_BYTES_MAX} bytes",
                hint="keep the follow-up short and put details into a file",
                field="text",
            )
        chain = await _chain(scene, ports)
        if isinstance(chain, ToolExecution):
            return chain
        authority = await least_authority(ports.reads, scene.agent_id, scene.turn_id)
        admission = decide_admission(
            _request(request, scene, chain, authority=authority),
            await ports.reads.queue.admission_target(scene.agent_id),
            message_id=MessageId(ports.ids.fresh(IdPrefix.MESSAGE)),
            now=scene.now,
        )
        if isinstance(admission, Refusal):
            return refuse(admission.code.value, admission.message, hint=admission.hint)
        return ToolExecution(
            outcome=ToolOk(
                result={
                    "enqueued": True,
                    "priority": request.priority.value,
                    "follow_up_text": request.text[:EVENT_TEXT_CHARS_MAX],
                }
            ),
            changes=(queue_change(admission),),
            expects=(AgentAdmits(agent_id=scene.agent_id),),
        )


async def _chain(scene: ToolScene, ports: ToolPorts) -> FollowupChain | ToolExecution | None:
    """The position of a follow-up in its chain; None when its cause is unknown."""
    entry = await ports.reads.queue.message(scene.message_id)
    if entry is None:
        return None
    decision = await _next_after(entry.message, ports)
    if isinstance(decision, ChainUsedUp):
        interjected = await _interjected(scene, ports)
        if interjected is not None:
            decision = await _next_after(interjected, ports)
    if isinstance(decision, FollowupChain):
        return decision
    return refuse(
        "followup_chain_used_up",
        f"you have queued {decision.count} follow-ups since the last message from anyone else",
        hint="end the turn; keep what is left as a work item, which is taken up again by itself, or"
        " tell the operator what you need",
    )


async def _next_after(cause: MessageEnvelope, ports: ToolPorts) -> FollowupDecision:
    known = await ports.reads.queue.followup_count(root_of(cause))
    return next_in_chain(FollowupFacts(cause=cause, known_count=known))


async def _interjected(scene: ToolScene, ports: ToolPorts) -> MessageEnvelope | None:
    """The newest message the operator sent into this turn."""
    log = await ports.reads.turns.turn_log(scene.turn_id)
    entries = (entry.data for entry in reversed(log.entries)) if log is not None else ()
    newest = next((data for data in entries if isinstance(data, Interjection)), None)
    entry = await ports.reads.queue.message(newest.message_id) if newest is not None else None
    return None if entry is None else entry.message


def _request(
    request: EnqueueArguments,
    scene: ToolScene,
    chain: FollowupChain | None,
    *,
    authority: AuthorityClass,
) -> IngressRequest:
    return IngressRequest(
        agent_id=scene.agent_id,
        kind=MessageKind.INTERNAL_FOLLOWUP,
        origin=SystemOrigin(subsystem="enqueue_tool"),
        body=TextBody(text=request.text),
        surface=DeliverySurface.RUNTIME_SYSTEM,
        admission=AdmissionContext.RUNTIME_OWNED,
        priority=request.priority,
        work_item_id=scene.work_item_id,
        causation_id=scene.message_id,
        followup=chain,
        authority_max=authority,
    )
