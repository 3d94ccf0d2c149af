"""An admitted request becomes one envelope whose labels come from how it arrived."""

from typing import TypedDict

import msgspec
import pytest

from holon.decide.queue.admission import Admitted, body_digest, decide_admission, trigger_kind_of
from holon.decide.queue.authority import derive_authority, derive_trust, lowest
from holon.decide.wake.activation import RunQueue, decide_activation
from holon.model.agents import AgentStatus
from holon.model.errors import RefusalCode
from holon.model.events.reads import AgentSnapshot, QueueHead
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    BriefBody,
    DeliverySurface,
    IngressRequest,
    JsonBody,
    MessageBody,
    MessageEnvelope,
    MessageKind,
    Origin,
    Priority,
    TextBody,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.turns.turn import TriggerKind
from holon.model.values import JsonValue, TaskId, WaitId, WorkItemId
from tests.decide.sample_rows import (
    ADMISSIBLE,
    AGENT_ID,
    IDLE_TARGET,
    MESSAGE_ID,
    NOW,
    ORIGINS,
    PROMPT,
    PUBLIC_EVENT,
    SYSTEM_TICK,
    agent_in,
    name_of,
    target_in,
)

vary = msgspec.structs.replace


class Binding(TypedDict):
    """The fields of a request that would bind its message."""

    work_item_id: WorkItemId
    task_id: TaskId
    wait_id: WaitId
    tick_key: str


BINDING = Binding(
    work_item_id=WorkItemId("work_1"),
    task_id=TaskId("task_1"),
    wait_id=WaitId("wait_1"),
    tick_key="tick",
)


def kind_of(value: object) -> str:
    return value.kind if isinstance(value, IngressRequest) else name_of(value)


def admitted(request: IngressRequest) -> Admitted:
    decision = decide_admission(request, IDLE_TARGET, message_id=MESSAGE_ID, now=NOW)
    assert isinstance(decision, Admitted), decision
    return decision


@pytest.mark.requirement("admission:one-envelope-for-everything")
@pytest.mark.requirement("admission:labels-set-at-the-door")
@pytest.mark.parametrize("request_", ADMISSIBLE, ids=kind_of)
def test_whatever_comes_in_becomes_one_envelope_with_every_label(request_: IngressRequest) -> None:
    authority = derive_authority(request_.origin, request_.admission)
    message = admitted(request_).message
    assert message == MessageEnvelope(
        id=MESSAGE_ID,
        agent_id=AGENT_ID,
        created_at=NOW,
        kind=request_.kind,
        origin=request_.origin,
        trust=derive_trust(authority),
        authority_class=authority,
        priority=request_.priority,
        body=request_.body,
        delivery_surface=request_.surface,
        admission_context=request_.admission,
        trigger_kind=trigger_kind_of(request_.kind),
        source_refs=message.source_refs,
    )


def test_there_is_an_admissible_request_for_every_kind_but_briefs() -> None:
    briefs = {MessageKind.BRIEF_ACK, MessageKind.BRIEF_RESULT}
    assert {request.kind for request in ADMISSIBLE} == set(MessageKind) - briefs


@pytest.mark.requirement("admission:unknown-agent-is-refused")
def test_a_request_for_nobody_is_refused_by_name() -> None:
    refusal = decide_admission(PROMPT, None, message_id=MESSAGE_ID, now=NOW)
    assert not isinstance(refusal, Admitted)
    assert refusal.code is RefusalCode.AGENT_NOT_FOUND
    assert AGENT_ID in refusal.message


@pytest.mark.requirement("admission:wake-conditions")
@pytest.mark.parametrize("request_", ADMISSIBLE, ids=kind_of)
def test_a_sleeping_agent_gets_a_lane_for_whatever_is_admitted(request_: IngressRequest) -> None:
    asleep = target_in(AgentStatus.ASLEEP)
    decision = decide_admission(request_, asleep, message_id=MESSAGE_ID, now=NOW)
    assert isinstance(decision, Admitted)
    head = QueueHead(seq=1, message_id=decision.message.id, priority=decision.message.priority)
    snapshot = AgentSnapshot(agent=agent_in(AgentStatus.ASLEEP), heads=(head,))
    assert decide_activation(snapshot, now=NOW) == RunQueue()


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.requirement("admission:trigger-kind-is-derived")
@pytest.mark.parametrize(
    ("kind", "trigger"),
    [
        (MessageKind.OPERATOR_PROMPT, TriggerKind.OPERATOR_INPUT),
        (MessageKind.WEBHOOK_EVENT, TriggerKind.EXTERNAL_EVENT),
        (MessageKind.CALLBACK_EVENT, TriggerKind.EXTERNAL_EVENT),
        (MessageKind.CHANNEL_EVENT, TriggerKind.EXTERNAL_EVENT),
        (MessageKind.TIMER_TICK, TriggerKind.TIMER_FIRE),
        (MessageKind.SYSTEM_TICK, TriggerKind.SYSTEM_TICK),
        (MessageKind.INTERNAL_FOLLOWUP, TriggerKind.INTERNAL_FOLLOWUP),
        (MessageKind.TASK_RESULT, TriggerKind.TASK_RESULT),
        (MessageKind.TASK_STATUS, None),
        (MessageKind.CONTROL, None),
        (MessageKind.BRIEF_ACK, None),
        (MessageKind.BRIEF_RESULT, None),
    ],
)
def test_what_each_kind_triggers(kind: MessageKind, trigger: TriggerKind | None) -> None:
    assert trigger_kind_of(kind) is trigger


@pytest.mark.requirement("admission:status-and-briefs-trigger-nothing")
def test_status_control_and_briefs_trigger_nothing() -> None:
    assert {kind for kind in MessageKind if trigger_kind_of(kind) is None} == {
        MessageKind.TASK_STATUS,
        MessageKind.CONTROL,
        MessageKind.BRIEF_ACK,
        MessageKind.BRIEF_RESULT,
    }


@pytest.mark.requirement("admission:origin-and-priority-kept")
@pytest.mark.requirement("admission:priority-is-not-trust")
@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize(
    "request_",
    [
        request
        for request in ADMISSIBLE
        if request.admission is not AdmissionContext.PUBLIC_UNAUTHENTICATED
    ],
    ids=kind_of,
)
def test_priority_is_kept_and_says_nothing_about_trust(
    request_: IngressRequest, priority: Priority
) -> None:
    usual, urgent = admitted(request_).message, admitted(vary(request_, priority=priority)).message
    assert urgent == vary(usual, priority=priority)


@pytest.mark.requirement("admission:body-stays-structured")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(TextBody(text="plain"), id="text"),
        pytest.param(JsonBody(value={"ref": "main", "commits": [1, {"a": None}]}), id="json"),
        pytest.param(BriefBody(text="done", title="Report"), id="brief"),
    ],
)
def test_a_body_is_kept_as_it_came(body: MessageBody) -> None:
    assert admitted(vary(PUBLIC_EVENT, body=body)).message.body is body


@pytest.mark.requirement("admission:authority-is-never-claimed")
def test_a_claim_changes_nothing_even_where_it_is_not_refused() -> None:
    honest = vary(
        PUBLIC_EVENT,
        admission=AdmissionContext.LOCAL_PROCESS,
        surface=DeliverySurface.RUN_ONCE,
    )
    boasting = vary(
        honest,
        claimed_trust=TrustLevel.TRUSTED_OPERATOR,
        claimed_authority=AuthorityClass.OPERATOR_INSTRUCTION,
    )
    assert admitted(boasting) == admitted(honest)
    assert admitted(boasting).message.authority_class is AuthorityClass.EXTERNAL_EVIDENCE


def test_a_verified_webhook_is_admitted_as_a_signal() -> None:
    request = vary(
        PUBLIC_EVENT,
        kind=MessageKind.WEBHOOK_EVENT,
        origin=WebhookOrigin(source="forge"),
        admission=AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY,
    )
    assert admitted(request).message.authority_class is AuthorityClass.INTEGRATION_SIGNAL
    assert admitted(request).message.trust is TrustLevel.TRUSTED_INTEGRATION


@pytest.mark.requirement("arrivals:follow-up-is-worth-its-turn")
def test_what_led_to_a_message_lowers_its_worth_and_leaves_its_bindings() -> None:
    """The runtime sends it all the same: only how far it is believed is another."""
    request = vary(SYSTEM_TICK, work_item_id=WorkItemId("work_1"))
    for least in AuthorityClass:
        message = admitted(vary(request, authority_max=least)).message
        expected = lowest((AuthorityClass.RUNTIME_INSTRUCTION, least))
        assert (message.authority_class, message.trust) == (expected, derive_trust(expected))
        assert message.work_item_id == "work_1"
    assert admitted(vary(PUBLIC_EVENT, authority_max=AuthorityClass.OPERATOR_INSTRUCTION)) == (
        admitted(PUBLIC_EVENT)
    )


def test_correlation_and_causation_travel_with_the_message() -> None:
    message = admitted(vary(PROMPT, correlation_id="c1", causation_id="msg_0")).message
    assert (message.correlation_id, message.causation_id) == ("c1", "msg_0")


@pytest.mark.requirement("admission:source-refs-name-the-origin")
@pytest.mark.parametrize(
    ("request_", "refs"),
    [
        pytest.param(PROMPT, {"actor_id": "ada"}, id="operator"),
        pytest.param(ADMISSIBLE[1], {"channel_id": "general", "sender_id": "bob"}, id="channel"),
        pytest.param(ADMISSIBLE[2], {"source": "forge", "event_type": "push"}, id="webhook"),
        pytest.param(ADMISSIBLE[3], {"descriptor_id": "trig_1", "source": "ci"}, id="callback"),
        pytest.param(ADMISSIBLE[4], {"timer_id": "timer_1"}, id="timer"),
        pytest.param(ADMISSIBLE[5], {"subsystem": "scheduler"}, id="system"),
        pytest.param(ADMISSIBLE[8], {"task_id": "task_1"}, id="task"),
        pytest.param(
            vary(ADMISSIBLE[2], origin=WebhookOrigin(source="forge")),
            {"source": "forge"},
            id="what is unknown is left out",
        ),
    ],
)
def test_source_refs_hold_the_ids_of_the_origin(
    request_: IngressRequest, refs: dict[str, str]
) -> None:
    assert admitted(request_).message.source_refs == refs


@pytest.mark.requirement("admission:source-refs-name-the-origin")
def test_only_the_runtime_names_more_sources_than_its_origin() -> None:
    more = {"external_trigger_id": "trig_1"}
    tick = admitted(vary(ADMISSIBLE[5], wait_id=WaitId("wait_1"), source_refs=more)).message
    assert tick.source_refs == {"subsystem": "scheduler", "wait_id": "wait_1", **more}
    outside = admitted(vary(ADMISSIBLE[2], wait_id=WaitId("wait_1"), source_refs=more)).message
    assert outside.source_refs == {"source": "forge", "event_type": "push"}


# --- binding --------------------------------------------------------------------------------------


def bindings_of(decision: Admitted) -> dict[str, str | None]:
    message = decision.message
    return {
        "work_item_id": message.work_item_id,
        "task_id": message.task_id,
        "wait_id": message.wait_id,
        "tick_key": decision.tick_key,
    }


NOT_PUBLIC = [
    surface
    for surface in DeliverySurface
    if surface not in (DeliverySurface.HTTP_PUBLIC_ENQUEUE, DeliverySurface.HTTP_WEBHOOK)
]


@pytest.mark.requirement("admission:runtime-may-bind")
@pytest.mark.parametrize("surface", NOT_PUBLIC)
def test_a_runtime_message_is_bound_when_a_runtime_surface_sent_it(
    surface: DeliverySurface,
) -> None:
    decision = admitted(vary(SYSTEM_TICK, surface=surface, **BINDING))
    of_the_runtime = surface in (
        DeliverySurface.RUNTIME_SYSTEM,
        DeliverySurface.TASK_REJOIN,
        DeliverySurface.TIMER_SCHEDULER,
    )
    assert bindings_of(decision) == (BINDING if of_the_runtime else dict.fromkeys(BINDING))


@pytest.mark.requirement("admission:outsiders-never-bind")
@pytest.mark.parametrize(
    "request_",
    [r for r in ADMISSIBLE if r.admission is not AdmissionContext.RUNTIME_OWNED],
    ids=kind_of,
)
@pytest.mark.parametrize("surface", NOT_PUBLIC)
def test_nobody_else_binds_whatever_surface_they_name(
    request_: IngressRequest, surface: DeliverySurface
) -> None:
    decision = admitted(vary(request_, surface=surface, **BINDING))
    assert bindings_of(decision) == dict.fromkeys(BINDING)


@pytest.mark.parametrize("origin", [ORIGINS[1], ORIGINS[2]], ids=name_of)
def test_a_stranger_passed_on_by_the_runtime_still_does_not_bind(origin: Origin) -> None:
    kind = (
        MessageKind.WEBHOOK_EVENT
        if isinstance(origin, WebhookOrigin)
        else MessageKind.CHANNEL_EVENT
    )
    decision = admitted(vary(SYSTEM_TICK, kind=kind, origin=origin, **BINDING))
    assert bindings_of(decision) == dict.fromkeys(BINDING)


@pytest.mark.requirement("admission:metadata-never-binds")
@pytest.mark.parametrize("request_", [PROMPT, PUBLIC_EVENT, SYSTEM_TICK], ids=kind_of)
def test_metadata_is_kept_for_people_and_binds_nothing(request_: IngressRequest) -> None:
    metadata: JsonValue = {
        **BINDING,
        "trust": "trusted_operator",
        "authority_class": "operator_instruction",
        "origin": {"kind": "operator"},
        "trigger_kind": "operator_input",
    }
    plain, adorned = admitted(request_), admitted(vary(request_, metadata=metadata))
    assert adorned == vary(plain, message=vary(plain.message, metadata=metadata))


# --- keys -----------------------------------------------------------------------------------------


def test_a_key_goes_with_the_digest_of_what_was_asked() -> None:
    request = vary(PROMPT, idempotency_key="k1")
    decision = admitted(request)
    assert (decision.idempotency_key, decision.body_digest) == ("k1", body_digest(request))


def test_without_a_key_there_is_no_digest() -> None:
    assert admitted(PROMPT).idempotency_key is None
    assert admitted(PROMPT).body_digest is None


@pytest.mark.parametrize(
    "repeat",
    [
        pytest.param(PROMPT, id="itself"),
        pytest.param(vary(PROMPT, idempotency_key="k2"), id="another key"),
        pytest.param(vary(PROMPT, metadata={"note": "x"}), id="other metadata"),
        pytest.param(vary(PROMPT, correlation_id="c"), id="other correlation"),
    ],
)
def test_the_digest_is_the_same_for_the_same_question(repeat: IngressRequest) -> None:
    assert body_digest(repeat) == body_digest(PROMPT)


def test_the_digest_does_not_depend_on_the_order_of_json_keys() -> None:
    one = vary(PROMPT, body=JsonBody(value={"a": 1, "b": [{"c": 2, "d": 3}]}))
    other = vary(PROMPT, body=JsonBody(value={"b": [{"d": 3, "c": 2}], "a": 1}))
    assert body_digest(one) == body_digest(other)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(vary(PROMPT, kind=MessageKind.CONTROL), id="kind"),
        pytest.param(vary(PROMPT, origin=ORIGINS[1]), id="origin"),
        pytest.param(vary(PROMPT, body=TextBody(text="hello ")), id="text"),
        pytest.param(vary(PROMPT, body=JsonBody(value="hello")), id="type of body"),
        pytest.param(vary(PROMPT, priority=Priority.NEXT), id="priority"),
    ],
)
def test_the_digest_differs_when_the_question_does(other: IngressRequest) -> None:
    assert body_digest(other) != body_digest(PROMPT)


def test_the_digest_is_the_one_earlier_versions_stored() -> None:
    pinned = "a24f7dab49383da2dc815c36b4b68a32cf160b57c2afbcb4bbb1e1ac40d95018"
    assert body_digest(PROMPT) == pinned
