"""Why a request is refused at the door, and which reason is given first."""

import itertools

import msgspec
import pytest

from holon.decide.queue.admission import Admitted, decide_admission, first_refusal
from holon.decide.queue.authority import CAPABILITY_CONTEXTS, OPERATOR_CONTEXTS
from holon.model.agents import AgentStatus
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.reads import AdmissionTarget
from holon.model.limits import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    LABEL_CHARS_MAX,
    MESSAGE_BODY_BYTES_MAX,
    MESSAGE_METADATA_BYTES_MAX,
    PUBLIC_BODY_BYTES_MAX,
    QUEUED_PER_AGENT_COUNT_MAX,
)
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
    SystemOrigin,
    TaskOrigin,
    TextBody,
    TimerOrigin,
    TrustLevel,
    WebhookOrigin,
)
from tests.decide.sample_rows import (
    ADMISSIBLE,
    IDLE_TARGET,
    MESSAGE_ID,
    NOW,
    ORIGINS,
    PROMPT,
    PUBLIC_EVENT,
    SYSTEM_TICK,
    name_of,
    target_in,
)

vary = msgspec.structs.replace
TURNED_AWAY = [each for each in ADMISSIBLE if each.kind is not MessageKind.TASK_RESULT]
STOPPED = target_in(AgentStatus.STOPPED)
FULL = target_in(AgentStatus.AWAKE_IDLE, queued_count=QUEUED_PER_AGENT_COUNT_MAX)
ARCHIVED = AdmissionTarget(status=AgentStatus.AWAKE_IDLE, is_archived=True, queued_count=0)

# By hand: which origins each kind may have, and through which doors each origin may come.
ORIGINS_OF_KIND: dict[MessageKind, set[type[Origin]]] = {
    MessageKind.OPERATOR_PROMPT: {OperatorOrigin},
    MessageKind.WEBHOOK_EVENT: {WebhookOrigin},
    MessageKind.CALLBACK_EVENT: {CallbackOrigin},
    MessageKind.CHANNEL_EVENT: {ChannelOrigin},
    MessageKind.TIMER_TICK: {TimerOrigin},
    MessageKind.SYSTEM_TICK: {SystemOrigin},
    MessageKind.INTERNAL_FOLLOWUP: {SystemOrigin},
    MessageKind.TASK_STATUS: {TaskOrigin},
    MessageKind.TASK_RESULT: {TaskOrigin},
    MessageKind.CONTROL: {OperatorOrigin, SystemOrigin},
    MessageKind.BRIEF_ACK: set(),
    MessageKind.BRIEF_RESULT: set(),
}
DOORS_OF_ORIGIN: dict[type[Origin], set[AdmissionContext]] = {
    OperatorOrigin: {
        AdmissionContext.CONTROL_AUTHENTICATED,
        AdmissionContext.OPERATOR_TRANSPORT_AUTHENTICATED,
        AdmissionContext.LOCAL_PROCESS,
    },
    TimerOrigin: {AdmissionContext.RUNTIME_OWNED},
    SystemOrigin: {AdmissionContext.RUNTIME_OWNED},
    TaskOrigin: {AdmissionContext.RUNTIME_OWNED},
    CallbackOrigin: {AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY},
    WebhookOrigin: set(AdmissionContext),
    ChannelOrigin: set(AdmissionContext),
}
EVERY_ARRIVAL = list(itertools.product(MessageKind, ORIGINS, AdmissionContext))


def decide(request: IngressRequest, target: AdmissionTarget = IDLE_TARGET) -> Refusal | MessageKind:
    decision = decide_admission(request, target, message_id=MESSAGE_ID, now=NOW)
    return decision.message.kind if isinstance(decision, Admitted) else decision


def refused(request: IngressRequest, target: AdmissionTarget = IDLE_TARGET) -> Refusal:
    decision = decide(request, target)
    assert isinstance(decision, Refusal), decision
    return decision


def arriving(kind: MessageKind, origin: Origin, door: AdmissionContext) -> IngressRequest:
    return vary(PROMPT, kind=kind, origin=origin, admission=door)


def text_of_wire_size(size_bytes: int) -> TextBody:
    frame_bytes = len(msgspec.json.encode(TextBody(text="")))
    return TextBody(text="x" * (size_bytes - frame_bytes))


# --- kind, origin, door ---------------------------------------------------------------------------


@pytest.mark.requirement("admission:kind-belongs-to-its-origin")
@pytest.mark.requirement("admission:origin-belongs-to-its-door")
@pytest.mark.parametrize(("kind", "origin", "door"), EVERY_ARRIVAL, ids=name_of)
def test_every_arrival_is_admitted_or_refused_as_written(
    kind: MessageKind, origin: Origin, door: AdmissionContext
) -> None:
    decision = decide(arriving(kind, origin, door))
    if type(origin) not in ORIGINS_OF_KIND[kind]:
        assert isinstance(decision, Refusal)
        assert (decision.code, decision.field) == (RefusalCode.KIND_ORIGIN_MISMATCH, "kind")
    elif door not in DOORS_OF_ORIGIN[type(origin)]:
        assert isinstance(decision, Refusal)
        assert (decision.code, decision.field) == (RefusalCode.ADMISSION_MISMATCH, "origin")
    else:
        assert decision is kind


def admitted_arrivals() -> list[tuple[MessageKind, Origin, AdmissionContext]]:
    return [
        arrival for arrival in EVERY_ARRIVAL if not isinstance(decide(arriving(*arrival)), Refusal)
    ]


@pytest.mark.requirement("admission:prompts-only-from-the-operator")
def test_an_operator_prompt_comes_from_the_operator_through_a_door_of_theirs() -> None:
    prompts = {
        (type(origin), door)
        for kind, origin, door in admitted_arrivals()
        if kind is MessageKind.OPERATOR_PROMPT
    }
    assert prompts == {(OperatorOrigin, door) for door in OPERATOR_CONTEXTS}


@pytest.mark.requirement("admission:public-kinds")
def test_the_public_can_send_channel_and_webhook_events_only() -> None:
    public = AdmissionContext.PUBLIC_UNAUTHENTICATED
    assert {kind for kind, _, door in admitted_arrivals() if door is public} == {
        MessageKind.CHANNEL_EVENT,
        MessageKind.WEBHOOK_EVENT,
    }


@pytest.mark.requirement("admission:callbacks-need-a-capability")
def test_a_callback_comes_by_its_capability_only() -> None:
    doors = {door for _, origin, door in admitted_arrivals() if isinstance(origin, CallbackOrigin)}
    assert doors == {AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY}


@pytest.mark.requirement("admission:runtime-kinds-from-the-runtime")
@pytest.mark.parametrize(
    "kind",
    [
        MessageKind.TIMER_TICK,
        MessageKind.SYSTEM_TICK,
        MessageKind.INTERNAL_FOLLOWUP,
        MessageKind.TASK_STATUS,
        MessageKind.TASK_RESULT,
    ],
)
def test_ticks_followups_and_task_news_are_the_runtimes_own(kind: MessageKind) -> None:
    doors = {door for sent, _, door in admitted_arrivals() if sent is kind}
    assert doors == {AdmissionContext.RUNTIME_OWNED}


@pytest.mark.requirement("admission:tasks-rejoin-by-the-queue")
@pytest.mark.requirement("admission:tasks-never-pose-as-the-operator")
def test_a_task_brings_its_news_and_nothing_else() -> None:
    task = ORIGINS[6]
    assert {kind for kind, origin, _ in admitted_arrivals() if origin is task} == {
        MessageKind.TASK_STATUS,
        MessageKind.TASK_RESULT,
    }


@pytest.mark.requirement("admission:briefs-are-not-input")
@pytest.mark.parametrize("kind", [MessageKind.BRIEF_ACK, MessageKind.BRIEF_RESULT])
@pytest.mark.parametrize("origin", ORIGINS, ids=name_of)
def test_nobody_can_send_a_brief_in(kind: MessageKind, origin: Origin) -> None:
    refusal = refused(vary(SYSTEM_TICK, kind=kind, origin=origin))
    assert refusal.code is RefusalCode.KIND_ORIGIN_MISMATCH


def test_the_refusal_names_the_kind_and_the_origin_as_the_wire_does() -> None:
    refusal = refused(vary(PROMPT, origin=ORIGINS[2]))
    assert "operator_prompt" in refusal.message
    assert "webhook" in refusal.message


# --- the public's ceiling -------------------------------------------------------------------------

OVER_THE_CEILING = [
    pytest.param(vary(PUBLIC_EVENT, priority=Priority.INTERJECT), "priority", id="interjecting"),
    pytest.param(
        vary(PUBLIC_EVENT, claimed_trust=TrustLevel.TRUSTED_OPERATOR), "trust", id="claiming trust"
    ),
    pytest.param(
        vary(PUBLIC_EVENT, claimed_trust=TrustLevel.UNTRUSTED_EXTERNAL),
        "trust",
        id="claiming even the lowest trust",
    ),
    pytest.param(
        vary(PUBLIC_EVENT, claimed_authority=AuthorityClass.OPERATOR_INSTRUCTION),
        "authority_class",
        id="claiming authority",
    ),
]


@pytest.mark.requirement("admission:public-claims-are-refused")
@pytest.mark.parametrize(("request_", "field"), OVER_THE_CEILING)
def test_the_public_is_told_what_it_may_not_ask_for(request_: IngressRequest, field: str) -> None:
    refusal = refused(request_)
    assert (refusal.code, refusal.field) == (RefusalCode.PUBLIC_CEILING, field)
    assert refusal.hint is not None


@pytest.mark.parametrize(("request_", "field"), OVER_THE_CEILING)
def test_the_ceiling_hangs_over_the_public_only(request_: IngressRequest, field: str) -> None:
    del field
    indoors = vary(
        request_,
        admission=AdmissionContext.LOCAL_PROCESS,
        surface=DeliverySurface.RUN_ONCE,
    )
    assert decide(indoors) is MessageKind.CHANNEL_EVENT


@pytest.mark.requirement("arrivals:the-token-makes-no-outsider-the-operator")
@pytest.mark.parametrize(("request_", "field"), OVER_THE_CEILING)
@pytest.mark.parametrize("admission", sorted(OPERATOR_CONTEXTS | CAPABILITY_CONTEXTS))
@pytest.mark.parametrize(
    "surface", [DeliverySurface.HTTP_PUBLIC_ENQUEUE, DeliverySurface.HTTP_WEBHOOK]
)
def test_the_ceiling_of_a_public_surface_holds_whoever_vouches(
    request_: IngressRequest, field: str, admission: AdmissionContext, surface: DeliverySurface
) -> None:
    refusal = refused(vary(request_, admission=admission, surface=surface))
    assert (refusal.code, refusal.field) == (RefusalCode.PUBLIC_CEILING, field)
    operator = refused(vary(PROMPT, admission=AdmissionContext.LOCAL_PROCESS, surface=surface))
    assert (operator.code, operator.field) == (RefusalCode.PUBLIC_CEILING, "origin")


@pytest.mark.parametrize("priority", [p for p in Priority if p is not Priority.INTERJECT])
def test_the_public_may_choose_any_lesser_priority(priority: Priority) -> None:
    assert decide(vary(PUBLIC_EVENT, priority=priority)) is MessageKind.CHANNEL_EVENT


# --- sizes and keys -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "bytes_max"),
    [
        pytest.param(PROMPT, MESSAGE_BODY_BYTES_MAX, id="operator"),
        pytest.param(SYSTEM_TICK, MESSAGE_BODY_BYTES_MAX, id="runtime"),
        pytest.param(PUBLIC_EVENT, PUBLIC_BODY_BYTES_MAX, id="public"),
    ],
)
def test_a_body_may_be_as_large_as_its_limit_and_not_a_byte_larger(
    request_: IngressRequest, bytes_max: int
) -> None:
    assert decide(vary(request_, body=text_of_wire_size(bytes_max))) is request_.kind
    refusal = refused(vary(request_, body=text_of_wire_size(bytes_max + 1)))
    assert (refusal.code, refusal.field) == (RefusalCode.BODY_TOO_LARGE, "body")
    assert str(bytes_max) in (refusal.hint or "")


def test_metadata_may_be_as_large_as_its_limit_and_not_a_byte_larger() -> None:
    fitting = "x" * (MESSAGE_METADATA_BYTES_MAX - len('""'))
    assert decide(vary(PROMPT, metadata=fitting)) is PROMPT.kind
    refusal = refused(vary(PROMPT, metadata=f"{fitting}x"))
    assert (refusal.code, refusal.field) == (RefusalCode.METADATA_TOO_LARGE, "metadata")


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("", id="empty"),
        pytest.param("two words", id="space"),
        pytest.param("line\nbreak", id="line break"),
        pytest.param("key\n", id="line break at the end"),
        pytest.param("nul\0", id="control character"),
        pytest.param("schlüssel", id="not ASCII"),
        pytest.param("k" * (IDEMPOTENCY_KEY_CHARS_MAX + 1), id="too long"),
    ],
)
def test_a_key_of_another_form_is_refused(key: str) -> None:
    refusal = refused(vary(PROMPT, idempotency_key=key))
    assert refusal.code is RefusalCode.BAD_IDEMPOTENCY_KEY
    assert refusal.field == "idempotency_key"


@pytest.mark.parametrize("key", ["k", "a-b_c:d/e.f~1", "k" * IDEMPOTENCY_KEY_CHARS_MAX])
def test_a_key_of_visible_characters_is_accepted(key: str) -> None:
    assert decide(vary(PROMPT, idempotency_key=key)) is PROMPT.kind


# --- the agent ------------------------------------------------------------------------------------


@pytest.mark.requirement("admission:nothing-is-queued-on-a-stopped-agent")
@pytest.mark.requirement("admission:stopped-holds-for-capabilities-and-webhooks")
@pytest.mark.parametrize("request_", TURNED_AWAY, ids=lambda request: request.kind)
def test_a_stopped_agent_takes_nothing_and_says_how_to_resume_it(
    request_: IngressRequest,
) -> None:
    refusal = refused(request_, STOPPED)
    assert refusal.code is RefusalCode.AGENT_STOPPED
    assert refusal.resume_path == "/control/agents/main/resume"
    assert "resume" in (refusal.hint or "")


@pytest.mark.requirement("admission:results-are-never-turned-away")
@pytest.mark.parametrize("target", [STOPPED, FULL], ids=["stopped", "flooded"])
def test_a_task_result_waits_in_the_queue_of_a_stopped_or_flooded_agent(
    target: AdmissionTarget,
) -> None:
    (result,) = (r for r in ADMISSIBLE if r.kind is MessageKind.TASK_RESULT)
    assert first_refusal(result, target) is None


@pytest.mark.parametrize("field", ["correlation_id", "causation_id"])
def test_a_label_is_bounded(field: str) -> None:
    fits = vary(PROMPT, **{field: "x" * LABEL_CHARS_MAX})
    assert decide(fits) is PROMPT.kind
    refusal = refused(vary(PROMPT, **{field: "x" * (LABEL_CHARS_MAX + 1)}))
    assert (refusal.code, refusal.field) == (RefusalCode.LABEL_TOO_LONG, field)


def test_what_an_origin_says_of_itself_is_bounded() -> None:
    loud = WebhookOrigin(source="x" * (LABEL_CHARS_MAX + 1))
    refusal = refused(vary(PUBLIC_EVENT, kind=MessageKind.WEBHOOK_EVENT, origin=loud))
    assert (refusal.code, refusal.field) == (RefusalCode.LABEL_TOO_LONG, "source")


@pytest.mark.requirement("admission:paused-keeps-its-mail")
@pytest.mark.parametrize("status", [s for s in AgentStatus if s is not AgentStatus.STOPPED])
@pytest.mark.parametrize("request_", ADMISSIBLE, ids=lambda request: request.kind)
def test_an_agent_in_any_other_posture_takes_messages(
    request_: IngressRequest, status: AgentStatus
) -> None:
    assert decide(request_, target_in(status)) is request_.kind


def test_an_archived_agent_takes_nothing() -> None:
    assert refused(PROMPT, ARCHIVED).code is RefusalCode.AGENT_ARCHIVED


def test_a_queue_takes_messages_up_to_its_limit() -> None:
    nearly_full = target_in(AgentStatus.AWAKE_IDLE, queued_count=QUEUED_PER_AGENT_COUNT_MAX - 1)
    assert decide(PROMPT, nearly_full) is PROMPT.kind
    assert refused(PROMPT, FULL).code is RefusalCode.QUEUE_FULL


# --- order ----------------------------------------------------------------------------------------

# Each step adds one more thing that is wrong and is checked earlier, so the reason must change.
WORSE_AND_WORSE: list[tuple[RefusalCode, IngressRequest, AdmissionTarget]] = [
    (RefusalCode.QUEUE_FULL, PUBLIC_EVENT, FULL),
    (RefusalCode.AGENT_STOPPED, PUBLIC_EVENT, vary(STOPPED, queued_count=FULL.queued_count)),
    (RefusalCode.BAD_IDEMPOTENCY_KEY, vary(PUBLIC_EVENT, idempotency_key=""), STOPPED),
    (
        RefusalCode.METADATA_TOO_LARGE,
        vary(PUBLIC_EVENT, idempotency_key="", metadata="x" * MESSAGE_METADATA_BYTES_MAX),
        STOPPED,
    ),
    (
        RefusalCode.BODY_TOO_LARGE,
        vary(
            PUBLIC_EVENT,
            metadata="x" * MESSAGE_METADATA_BYTES_MAX,
            body=text_of_wire_size(PUBLIC_BODY_BYTES_MAX + 1),
        ),
        STOPPED,
    ),
    (
        RefusalCode.PUBLIC_CEILING,
        vary(
            PUBLIC_EVENT,
            body=text_of_wire_size(MESSAGE_BODY_BYTES_MAX + 1),
            priority=Priority.INTERJECT,
        ),
        STOPPED,
    ),
    (
        RefusalCode.ADMISSION_MISMATCH,
        vary(
            PUBLIC_EVENT,
            kind=MessageKind.OPERATOR_PROMPT,
            origin=ORIGINS[0],
            priority=Priority.INTERJECT,
        ),
        STOPPED,
    ),
    (RefusalCode.KIND_ORIGIN_MISMATCH, vary(PUBLIC_EVENT, origin=ORIGINS[0]), STOPPED),
    (RefusalCode.AGENT_ARCHIVED, vary(PUBLIC_EVENT, origin=ORIGINS[0]), ARCHIVED),
]


@pytest.mark.parametrize(
    ("code", "request_", "target"), WORSE_AND_WORSE, ids=[str(row[0]) for row in WORSE_AND_WORSE]
)
def test_the_first_check_that_fails_gives_the_reason(
    code: RefusalCode, request_: IngressRequest, target: AdmissionTarget
) -> None:
    assert refused(request_, target).code is code
