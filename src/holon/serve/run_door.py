"""Through which door the text of a one-shot run comes in.

Owns:  what `--trust` means: which origin the text has, and who vouches for it.
Rule 1: trust is never written onto a message. A lower trust is another origin through a door that
        vouches for that origin, and the tables of decide/authority make of it what they always do.
Rule 2: whoever sits at this terminal is the operator and may give a text less weight than their
        own, as one does with a stranger's words. Nothing here can give it more.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from holon.model.ids import AgentId
from holon.model.ingress import IngressRequest
from holon.model.message import MessageKind, TextBody
from holon.model.provenance import (
    AdmissionContext,
    ChannelOrigin,
    DeliverySurface,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TrustLevel,
    WebhookOrigin,
)

SOURCE: Final = "holon_run"


class _Entrance(NamedTuple):
    kind: MessageKind
    origin: Origin
    admission: AdmissionContext


ENTRANCES: Final[Mapping[TrustLevel, _Entrance]] = MappingProxyType(
    {
        TrustLevel.TRUSTED_OPERATOR: _Entrance(
            MessageKind.OPERATOR_PROMPT, OperatorOrigin(), AdmissionContext.LOCAL_PROCESS
        ),
        # The run is the process that owns the runtime, so it may speak as a part of it.
        TrustLevel.TRUSTED_SYSTEM: _Entrance(
            MessageKind.INTERNAL_FOLLOWUP,
            SystemOrigin(subsystem=SOURCE),
            AdmissionContext.RUNTIME_OWNED,
        ),
        TrustLevel.TRUSTED_INTEGRATION: _Entrance(
            MessageKind.WEBHOOK_EVENT,
            WebhookOrigin(source=SOURCE),
            AdmissionContext.LOCAL_PROCESS,
        ),
        TrustLevel.UNTRUSTED_EXTERNAL: _Entrance(
            MessageKind.CHANNEL_EVENT,
            ChannelOrigin(channel_id=SOURCE),
            AdmissionContext.LOCAL_PROCESS,
        ),
    }
)


def run_request(agent_id: AgentId, text: str, *, trust: TrustLevel) -> IngressRequest:
    """Return the request that brings the text in with this much trust."""
    entrance = ENTRANCES[trust]
    return IngressRequest(
        agent_id=agent_id,
        kind=entrance.kind,
        origin=entrance.origin,
        body=TextBody(text=text),
        surface=DeliverySurface.RUN_ONCE,
        admission=entrance.admission,
    )
