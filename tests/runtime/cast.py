"""Who takes part in a story: an operator, the outside world, and a model that reads lines."""

from datetime import datetime
from typing import Any

import msgspec

from holon.decide.turns.conversation import problems_of
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    Priority,
    TextBody,
    WebhookOrigin,
)
from holon.model.turns.turn import ModelAnswer
from holon.model.values import AgentId
from holon.model.wake import WakeHint
from holon.ports.providers import OnProgress, Provider
from tests.support.builders import MAIN
from tests.support.scripted_provider import ScriptedCall, ScriptedRound, ScriptedRule

REQUESTS_COUNT_MAX = 400


def rule(when: str, *rounds: ScriptedRound) -> ScriptedRule:
    """What the model answers to messages that contain `when`."""
    return ScriptedRule(when=when, rounds=rounds)


def says(text: str, *, after_ms: int = 0) -> ScriptedRound:
    """A round of words."""
    return ScriptedRound(text=text, after_ms=after_ms)


def calls(name: str, *, after_ms: int = 0, **arguments: Any) -> ScriptedRound:
    """A round with one tool call."""
    return ScriptedRound(calls=(ScriptedCall(name=name, input=arguments),), after_ms=after_ms)


class Runaway(KeyboardInterrupt):
    """The model is asked without end. Nothing in the runtime can catch it, so the story ends."""


class Listener:
    """Stands between the runtime and its model, and keeps every request."""

    def __init__(self, model: Provider) -> None:
        self.model = model
        self.requests: list[ProviderRequest] = []
        self.problems: list[str] = []

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Note the request, then let the model answer."""
        self.requests.append(request)
        if len(self.requests) > REQUESTS_COUNT_MAX:
            raise Runaway
        self.problems.extend(problems_of(request.conversation))  # judged when the story is over
        return await self.model.answer(request, on_progress)

    def said(self, number: int = -1) -> str:
        """What one request tells the model last."""
        return msgspec.json.encode(self.requests[number].conversation[-1]).decode()

    def heard(self, text: str) -> bool:
        """Whether any request told the model this last."""
        return any(text in self.said(number) for number in range(len(self.requests)))


def prompt_for(
    text: str,
    *,
    agent: str = MAIN,
    priority: Priority = Priority.NORMAL,
    key: str | None = None,
) -> IngressRequest:
    """An operator's prompt from the local console."""
    return IngressRequest(
        agent_id=AgentId(agent),
        kind=MessageKind.OPERATOR_PROMPT,
        origin=OperatorOrigin(),
        body=TextBody(text=text),
        surface=DeliverySurface.CLI_PROMPT,
        admission=AdmissionContext.LOCAL_PROCESS,
        priority=priority,
        idempotency_key=key,
    )


def webhook_for(text: str, *, agent: str = MAIN) -> IngressRequest:
    """An event from outside that nobody vouches for."""
    return msgspec.structs.replace(
        prompt_for(text, agent=agent),
        kind=MessageKind.WEBHOOK_EVENT,
        origin=WebhookOrigin(source="forge"),
        surface=DeliverySurface.HTTP_WEBHOOK,
        admission=AdmissionContext.PUBLIC_UNAUTHENTICATED,
    )


def hint_for(source: str, *, body: str | None, agent: str, now: datetime) -> WakeHint:
    """A signal that something changed."""
    return WakeHint(
        agent_id=AgentId(agent),
        source_key=source,
        reason="changed",
        created_at=now,
        updated_at=now,
        body=body,
    )
