"""Authority: the weight of content, from its origin and admission context.

Owns:  the admission contexts each origin may use with its own weight, and that weight.
Rule 1: an origin has its own authority only through an admission context that can vouch for it.
        Through any other context it is evidence: a claim never raises anything.
Rule 2: a context alone raises nothing either. A stranger's text brought in by the operator's tools
        is still a stranger's text.
Rule 3: trust is a second name for authority, kept for older readers. It is never decided apart.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, assert_never

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

OPERATOR_CONTEXTS: Final = frozenset(
    {
        AdmissionContext.CONTROL_AUTHENTICATED,
        AdmissionContext.OPERATOR_TRANSPORT_AUTHENTICATED,
        AdmissionContext.LOCAL_PROCESS,
    }
)
RUNTIME_CONTEXTS: Final = frozenset({AdmissionContext.RUNTIME_OWNED})
CAPABILITY_CONTEXTS: Final = frozenset({AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY})
ALL_CONTEXTS: Final = frozenset(AdmissionContext)

# A webhook that comes with the control token, by the operator's socket, or with the secret of its
# source was set up by the operator.
_CONFIGURED_CONTEXTS: Final = frozenset(
    {
        AdmissionContext.CONTROL_AUTHENTICATED,
        AdmissionContext.LOCAL_PROCESS,
        AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY,
    }
)

# From the highest authority to the lowest.
AUTHORITY_ORDER: Final = (
    AuthorityClass.OPERATOR_INSTRUCTION,
    AuthorityClass.RUNTIME_INSTRUCTION,
    AuthorityClass.INTEGRATION_SIGNAL,
    AuthorityClass.EXTERNAL_EVIDENCE,
)

TRUST: Final[Mapping[AuthorityClass, TrustLevel]] = MappingProxyType(
    {
        AuthorityClass.OPERATOR_INSTRUCTION: TrustLevel.TRUSTED_OPERATOR,
        AuthorityClass.RUNTIME_INSTRUCTION: TrustLevel.TRUSTED_SYSTEM,
        AuthorityClass.INTEGRATION_SIGNAL: TrustLevel.TRUSTED_INTEGRATION,
        AuthorityClass.EXTERNAL_EVIDENCE: TrustLevel.UNTRUSTED_EXTERNAL,
    }
)


def contexts_of(origin: Origin) -> frozenset[AdmissionContext]:
    """Return the admission contexts through which this origin may come in at all."""
    match origin:
        case OperatorOrigin():
            return OPERATOR_CONTEXTS
        case TimerOrigin() | SystemOrigin() | TaskOrigin():
            return RUNTIME_CONTEXTS
        case CallbackOrigin():
            return CAPABILITY_CONTEXTS
        case WebhookOrigin() | ChannelOrigin():
            return ALL_CONTEXTS
        case _:
            assert_never(origin)


def derive_authority(origin: Origin, admission: AdmissionContext) -> AuthorityClass:
    """Return how content from this origin, admitted this way, is to be treated."""
    if admission not in contexts_of(origin):
        return AuthorityClass.EXTERNAL_EVIDENCE
    match origin:
        case OperatorOrigin():
            return AuthorityClass.OPERATOR_INSTRUCTION
        case TimerOrigin() | SystemOrigin() | TaskOrigin():
            return AuthorityClass.RUNTIME_INSTRUCTION
        case CallbackOrigin():
            return AuthorityClass.INTEGRATION_SIGNAL
        case WebhookOrigin():
            if admission in _CONFIGURED_CONTEXTS:
                return AuthorityClass.INTEGRATION_SIGNAL
            return AuthorityClass.EXTERNAL_EVIDENCE
        case ChannelOrigin():
            return AuthorityClass.EXTERNAL_EVIDENCE
        case _:
            assert_never(origin)


def lowest(classes: Iterable[AuthorityClass]) -> AuthorityClass:
    """Return what content made of all of these is worth."""
    return max(classes, key=AUTHORITY_ORDER.index)


def derive_trust(authority: AuthorityClass) -> TrustLevel:
    """Return the older label that goes with an authority class."""
    return TRUST[authority]
