"""Enqueue: an explicit follow-up to oneself.

Owns:  the Enqueue tool. The follow-up goes through the same admission as everything else and is
       queued by the commit that records the call's result, so it exists exactly once.
Rule 1: an agent cannot keep itself going for ever: the chain of its follow-ups is bounded
        (decide/budgets/no_progress).
Rule 2: a follow-up is worth no more than the words its turn was shown, and says so: what an
        outsider got the agent to note for itself does not come back as an instruction.
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
from holon.tools.guidance import turn_worth
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse


class EnqueueArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to follow up on, and how soon."""

    text: Annotated[
        str, msgspec.Meta(min_length=1, description="What to take up then, in your own words.")
    ]
    priority: Annotated[
        Priority, msgspec.Meta(description="How soon, among the other messages to you.")
    ] = Priority.NEXT


class Enqueue:
    """The tool."""

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
        """Plan the follow-up."""
        asked = decode_arguments(arguments, EnqueueArguments)
        if isinstance(asked, ToolExecution):
            return asked
        if len(asked.text.encode()) > ENQUEUE_TEXT_BYTES_MAX:
            return refuse(
                "invalid_tool_input",
                f"the text is longer than {ENQUEUE_TEXT_BYTES_MAX} bytes",
                hint="keep the follow-up short and put details into a file",
                field="text",
            )
        chain = await _chain(scene, ports)
        if isinstance(chain, ToolExecution):
            return chain
        worth = await turn_worth(ports.reads, scene.agent_id, scene.turn_id)
        admission = decide_admission(
            _request(asked, scene, chain, worth=worth),
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
                    "priority": asked.priority.value,
                    "follow_up_text": asked.text[:EVENT_TEXT_CHARS_MAX],
                }
            ),
            changes=(queue_change(admission),),
            expects=(AgentAdmits(agent_id=scene.agent_id),),
        )


async def _chain(scene: ToolScene, ports: ToolPorts) -> FollowupChain | ToolExecution | None:
    """Where the follow-up stands among those before it; nothing when nobody knows its cause."""
    entry = await ports.reads.queue.message(scene.message_id)
    if entry is None:
        return None
    decision = await _next_after(entry.message, ports)
    if isinstance(decision, ChainUsedUp):
        spoke = await _interjected(scene, ports)
        decision = decision if spoke is None else await _next_after(spoke, ports)
    if isinstance(decision, FollowupChain):
        return decision
    return refuse(
        "followup_chain_used_up",
        f"you have left yourself {decision.count} follow-ups since anybody else spoke to you",
        hint="end the turn; keep what is left as a work item, which is taken up again by itself, or"
        " tell the operator what you need",
    )


async def _next_after(cause: MessageEnvelope, ports: ToolPorts) -> FollowupDecision:
    known = await ports.reads.queue.followup_count(root_of(cause))
    return next_in_chain(FollowupFacts(cause=cause, known_count=known))


async def _interjected(scene: ToolScene, ports: ToolPorts) -> MessageEnvelope | None:
    """The newest message the operator sent into this turn."""
    log = await ports.reads.turns.turn_log(scene.turn_id)
    said = (entry.data for entry in reversed(log.entries)) if log is not None else ()
    newest = next((data for data in said if isinstance(data, Interjection)), None)
    entry = await ports.reads.queue.message(newest.message_id) if newest is not None else None
    return None if entry is None else entry.message


def _request(
    asked: EnqueueArguments,
    scene: ToolScene,
    chain: FollowupChain | None,
    *,
    worth: AuthorityClass,
) -> IngressRequest:
    return IngressRequest(
        agent_id=scene.agent_id,
        kind=MessageKind.INTERNAL_FOLLOWUP,
        origin=SystemOrigin(subsystem="enqueue_tool"),
        body=TextBody(text=asked.text),
        surface=DeliverySurface.RUNTIME_SYSTEM,
        admission=AdmissionContext.RUNTIME_OWNED,
        priority=asked.priority,
        work_item_id=scene.work_item_id,
        causation_id=scene.message_id,
        followup=chain,
        authority_max=worth,
    )
