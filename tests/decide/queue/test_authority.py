"""What content is worth is decided by origin and door together, and never by a claim."""

import itertools

import pytest

from holon.decide.queue.authority import (
    OPERATOR_CONTEXTS,
    contexts_of,
    derive_authority,
    derive_trust,
)
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    TrustLevel,
    WebhookOrigin,
)
from tests.decide.sample_rows import ORIGINS, name_of

EVIDENCE = AuthorityClass.EXTERNAL_EVIDENCE
# Written out, not computed: (origin, door) to what it is worth; all else is evidence.
WORTH: dict[tuple[type[Origin], AdmissionContext], AuthorityClass] = {
    **{
        (OperatorOrigin, door): AuthorityClass.OPERATOR_INSTRUCTION
        for door in (
            AdmissionContext.CONTROL_AUTHENTICATED,
            AdmissionContext.OPERATOR_TRANSPORT_AUTHENTICATED,
            AdmissionContext.LOCAL_PROCESS,
        )
    },
    **{
        (origin, AdmissionContext.RUNTIME_OWNED): AuthorityClass.RUNTIME_INSTRUCTION
        for origin in (TimerOrigin, SystemOrigin, TaskOrigin)
    },
    (CallbackOrigin, AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY): (
        AuthorityClass.INTEGRATION_SIGNAL
    ),
    **{
        (WebhookOrigin, door): AuthorityClass.INTEGRATION_SIGNAL
        for door in (
            AdmissionContext.CONTROL_AUTHENTICATED,
            AdmissionContext.LOCAL_PROCESS,
            AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY,
        )
    },
}
EVERY_ARRIVAL = list(itertools.product(ORIGINS, AdmissionContext))


@pytest.mark.requirement("admission:authority-from-arrival")
@pytest.mark.parametrize(("origin", "door"), EVERY_ARRIVAL, ids=name_of)
def test_every_arrival_has_the_worth_the_table_gives_it(
    origin: Origin, door: AdmissionContext
) -> None:
    assert derive_authority(origin, door) is WORTH.get((type(origin), door), EVIDENCE)


@pytest.mark.requirement("admission:only-the-operator-instructs")
def test_only_the_operator_through_a_door_of_theirs_gives_operator_instructions() -> None:
    instructing = {
        (type(origin), door)
        for origin, door in EVERY_ARRIVAL
        if derive_authority(origin, door) is AuthorityClass.OPERATOR_INSTRUCTION
    }
    assert instructing == {(OperatorOrigin, door) for door in OPERATOR_CONTEXTS}


@pytest.mark.requirement("admission:runtime-instructs-by-itself")
@pytest.mark.parametrize("origin", ORIGINS, ids=name_of)
def test_runtime_instructions_come_from_the_runtime_alone(origin: Origin) -> None:
    worth = {derive_authority(origin, door) for door in AdmissionContext}
    speaks_for_the_runtime = isinstance(origin, TimerOrigin | SystemOrigin | TaskOrigin)
    assert (AuthorityClass.RUNTIME_INSTRUCTION in worth) is speaks_for_the_runtime


@pytest.mark.requirement("admission:channel-is-not-the-operator")
@pytest.mark.requirement("admission:door-alone-raises-nothing")
@pytest.mark.parametrize("door", AdmissionContext)
def test_a_channel_stays_evidence_through_every_door(door: AdmissionContext) -> None:
    assert derive_authority(ChannelOrigin(channel_id="general"), door) is EVIDENCE


@pytest.mark.requirement("admission:callback-signals-by-capability")
@pytest.mark.parametrize("door", AdmissionContext)
def test_a_callback_is_a_signal_only_by_its_capability(door: AdmissionContext) -> None:
    worth = derive_authority(CallbackOrigin(descriptor_id="trig_1"), door)
    by_capability = door is AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY
    assert (worth is AuthorityClass.INTEGRATION_SIGNAL) is by_capability


@pytest.mark.requirement("admission:unverified-webhook-is-evidence")
def test_a_webhook_is_evidence_only_when_it_came_unauthenticated() -> None:
    origin = WebhookOrigin(source="forge")
    assert derive_authority(origin, AdmissionContext.PUBLIC_UNAUTHENTICATED) is EVIDENCE


@pytest.mark.parametrize(("origin", "door"), EVERY_ARRIVAL, ids=name_of)
def test_an_origin_at_a_strange_door_is_never_more_than_evidence(
    origin: Origin, door: AdmissionContext
) -> None:
    if door not in contexts_of(origin):
        assert derive_authority(origin, door) is EVIDENCE


@pytest.mark.requirement("admission:trust-follows-authority")
@pytest.mark.parametrize(
    ("authority", "trust"),
    [
        (AuthorityClass.OPERATOR_INSTRUCTION, TrustLevel.TRUSTED_OPERATOR),
        (AuthorityClass.RUNTIME_INSTRUCTION, TrustLevel.TRUSTED_SYSTEM),
        (AuthorityClass.INTEGRATION_SIGNAL, TrustLevel.TRUSTED_INTEGRATION),
        (AuthorityClass.EXTERNAL_EVIDENCE, TrustLevel.UNTRUSTED_EXTERNAL),
    ],
)
def test_trust_is_the_older_name_of_authority(authority: AuthorityClass, trust: TrustLevel) -> None:
    assert derive_trust(authority) is trust


def test_no_two_authorities_share_a_trust_level() -> None:
    assert {derive_trust(authority) for authority in AuthorityClass} == set(TrustLevel)


@pytest.mark.requirement("admission:trust-by-origin")
@pytest.mark.parametrize(
    ("origin", "door", "trust"),
    [
        pytest.param(
            OperatorOrigin(),
            AdmissionContext.LOCAL_PROCESS,
            TrustLevel.TRUSTED_OPERATOR,
            id="operator",
        ),
        *(
            pytest.param(
                origin,
                AdmissionContext.RUNTIME_OWNED,
                TrustLevel.TRUSTED_SYSTEM,
                id=name_of(origin),
            )
            for origin in ORIGINS[4:]
        ),
        pytest.param(
            ORIGINS[3],
            AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY,
            TrustLevel.TRUSTED_INTEGRATION,
            id="callback",
        ),
        pytest.param(
            ORIGINS[2],
            AdmissionContext.CONTROL_AUTHENTICATED,
            TrustLevel.TRUSTED_INTEGRATION,
            id="configured webhook",
        ),
        pytest.param(
            ORIGINS[1],
            AdmissionContext.PUBLIC_UNAUTHENTICATED,
            TrustLevel.UNTRUSTED_EXTERNAL,
            id="channel",
        ),
    ],
)
def test_each_origin_at_its_own_door_has_its_default_trust(
    origin: Origin, door: AdmissionContext, trust: TrustLevel
) -> None:
    assert derive_trust(derive_authority(origin, door)) is trust
