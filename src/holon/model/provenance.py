"""Where content came from and what weight it carries.

Owns:  origins, delivery surfaces, admission contexts, authority classes and trust levels.
Rule 1: these labels are set at the door from how a request arrived, never from what it claims.
Rule 2: they travel with the content into prompt, transcript, memory and events, unchanged.
"""

from enum import StrEnum
from typing import Final, TypeAlias

from holon.model.ids import TaskId, TimerId
from holon.model.record import Record


class OperatorOrigin(Record, tag_field="kind", tag="operator", frozen=True, kw_only=True):
    """The primary owner of the agent."""

    actor_id: str | None = None


class ChannelOrigin(Record, tag_field="kind", tag="channel", frozen=True, kw_only=True):
    """A participant on an external communication surface; not the operator."""

    channel_id: str
    sender_id: str | None = None


class WebhookOrigin(Record, tag_field="kind", tag="webhook", frozen=True, kw_only=True):
    """A machine outside, posting structured events."""

    source: str
    event_type: str | None = None


class CallbackOrigin(Record, tag_field="kind", tag="callback", frozen=True, kw_only=True):
    """An outside system using an external ingress capability."""

    descriptor_id: str
    source: str | None = None


class TimerOrigin(Record, tag_field="kind", tag="timer", frozen=True, kw_only=True):
    """A durable timer that came due."""

    timer_id: TimerId


class SystemOrigin(Record, tag_field="kind", tag="system", frozen=True, kw_only=True):
    """The runtime itself, naming the part that spoke."""

    subsystem: str


class TaskOrigin(Record, tag_field="kind", tag="task", frozen=True, kw_only=True):
    """A background task rejoining its agent."""

    task_id: TaskId


Origin: TypeAlias = (
    OperatorOrigin
    | ChannelOrigin
    | WebhookOrigin
    | CallbackOrigin
    | TimerOrigin
    | SystemOrigin
    | TaskOrigin
)


CLI_CLIENT: Final = "holon-cli"  # how the command line names itself to the control plane


class DeliverySurface(StrEnum):
    """The ingress that produced a message."""

    CLI_PROMPT = "cli_prompt"
    RUN_ONCE = "run_once"
    HTTP_PUBLIC_ENQUEUE = "http_public_enqueue"
    HTTP_WEBHOOK = "http_webhook"
    HTTP_CALLBACK_ENQUEUE = "http_callback_enqueue"
    HTTP_CALLBACK_WAKE = "http_callback_wake"
    HTTP_CONTROL_PROMPT = "http_control_prompt"
    REMOTE_OPERATOR_TRANSPORT = "remote_operator_transport"
    TIMER_SCHEDULER = "timer_scheduler"
    RUNTIME_SYSTEM = "runtime_system"
    TASK_REJOIN = "task_rejoin"


class AdmissionContext(StrEnum):
    """How the caller proved the right to use that surface.

    An external trigger capability is the address of a trigger, or the secret a configured source of
    webhooks signs with.
    """

    PUBLIC_UNAUTHENTICATED = "public_unauthenticated"
    CONTROL_AUTHENTICATED = "control_authenticated"
    OPERATOR_TRANSPORT_AUTHENTICATED = "operator_transport_authenticated"
    EXTERNAL_TRIGGER_CAPABILITY = "external_trigger_capability"
    LOCAL_PROCESS = "local_process"
    RUNTIME_OWNED = "runtime_owned"


class AuthorityClass(StrEnum):
    """How content is to be treated: as instruction, as signal or as evidence."""

    OPERATOR_INSTRUCTION = "operator_instruction"
    RUNTIME_INSTRUCTION = "runtime_instruction"
    INTEGRATION_SIGNAL = "integration_signal"
    EXTERNAL_EVIDENCE = "external_evidence"


class TrustLevel(StrEnum):
    """The older label, kept on the wire for readers that know no authority class."""

    TRUSTED_OPERATOR = "trusted_operator"
    TRUSTED_SYSTEM = "trusted_system"
    TRUSTED_INTEGRATION = "trusted_integration"
    UNTRUSTED_EXTERNAL = "untrusted_external"
