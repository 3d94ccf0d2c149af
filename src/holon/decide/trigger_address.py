"""The address of an agent's external trigger, as text: who is shown it, and what others see.

Owns:  what an address looks like, its masked form, and the one place in a conversation where it is
       filled in.
Rule 1: an address is a capability secret. It is made of the server's key each time it is needed and
        is part of no record: the result of AgentGet holds a mark, and only the request to the model
        has the address in its place.
Rule 2: what is remembered or shown of an agent's calls has the mark instead of any address.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from holon.decide.redaction import SecretMatcher, SecretShape
from holon.model.ids import AgentId, IdPrefix, TriggerId
from holon.model.json_value import JsonValue
from holon.model.limits import ID_CHARS_MAX, TRIGGER_SECRET_CHARS
from holon.model.transcript import RecordedCall, TurnLog
from holon.model.wake import ExternalTrigger, TriggerDeliveryMode, TriggerStatus

WAKE_PATH: Final = "/callbacks/wake/"
WARNING: Final = (
    "This address is a capability secret: whoever has it can wake you. Do not repeat, store or"
    " forward it, unless the current task is explicitly configuring an external system to wake you."
)
DESCRIBES: Final = "AgentGet"  # the tool whose result has the address
MARK: Final = "[secret:external_trigger_url]"
# The one field that is filled in. Words of the agent that hold the same are no such field: inside
# of a JSON string, its quotes are escaped.
_FIELD: Final = '"trigger_url":'
_MARKED_FIELD: Final = f'{_FIELD}"{MARK}"'

_TRIGGER_MARK: Final = f"{IdPrefix.TRIGGER.value}_"
TRIGGER_SHAPE: Final = SecretShape(
    name="trigger",
    looks_like=re.compile(
        rf"{_TRIGGER_MARK}[a-z0-9]{{1,{ID_CHARS_MAX}}}\.[A-Za-z0-9_-]{{{TRIGGER_SECRET_CHARS}}}"
    ),
    mark=_TRIGGER_MARK,
    chars_max=len(_TRIGGER_MARK) + ID_CHARS_MAX + 1 + TRIGGER_SECRET_CHARS,
)
without_addresses: Final = SecretMatcher((), shapes=(TRIGGER_SHAPE,)).redact


def default_trigger(trigger_id: TriggerId, agent_id: AgentId, *, now: datetime) -> ExternalTrigger:
    """Return the trigger every agent begins with."""
    return ExternalTrigger(
        external_trigger_id=trigger_id,
        target_agent_id=agent_id,
        delivery_mode=TriggerDeliveryMode.WAKE_HINT,
        status=TriggerStatus.ACTIVE,
        created_at=now,
    )


def masked_url(trigger: ExternalTrigger, base_url: str | None) -> str | None:
    """Return the address of an active trigger without what opens it."""
    if base_url is None or trigger.status is not TriggerStatus.ACTIVE:
        return None
    return f"{base_url.rstrip('/')}{WAKE_PATH}{trigger.external_trigger_id}.***"


def descriptor(trigger: ExternalTrigger | None, *, has_deliveries: bool) -> JsonValue:
    """Describe an active trigger to its agent, with the mark where the address belongs.

    There is no address on a host that takes no deliveries, and so nothing to describe.
    """
    if trigger is None or not has_deliveries or trigger.status is not TriggerStatus.ACTIVE:
        return None
    return {
        "external_trigger_id": trigger.external_trigger_id,
        "trigger_url": MARK,
        "target_agent_id": trigger.target_agent_id,
        "delivery_mode": trigger.delivery_mode.value,
        "status": trigger.status.value,
        "warning": WARNING,
    }


def has_address(value: JsonValue) -> bool:
    """Whether there is the address of a trigger anywhere in a value."""
    text = msgspec.json.encode(value).decode()
    return without_addresses(text) != text


def value_without_addresses(value: JsonValue) -> JsonValue:
    """Return the same JSON without any address; values that have none come back as they are."""
    match value:
        case str():
            return without_addresses(value)
        case list():
            return [value_without_addresses(each) for each in value]
        case dict():
            return {
                without_addresses(name): value_without_addresses(each)
                for name, each in value.items()
            }
        case _:
            return value


def log_with_address(log: TurnLog, url: str | None) -> TurnLog:
    """Return a turn as its agent reads it: where it asked for its address, it has it."""
    if url is None or not any(_is_marked(each) for each in log.calls):
        return log
    return msgspec.structs.replace(log, calls=_filled_in(log.calls, url))


def _filled_in(calls: Sequence[RecordedCall], url: str) -> tuple[RecordedCall, ...]:
    return tuple(_with_address(each, url) for each in calls)


def _with_address(recorded: RecordedCall, url: str) -> RecordedCall:
    receipt = recorded.receipt
    if receipt is None or not _is_marked(recorded):
        return recorded
    written = msgspec.json.encode(url).decode()
    content = receipt.content.replace(_MARKED_FIELD, _FIELD + written)
    return msgspec.structs.replace(
        recorded, receipt=msgspec.structs.replace(receipt, content=content)
    )


def _is_marked(recorded: RecordedCall) -> bool:
    receipt = recorded.receipt
    return receipt is not None and receipt.name == DESCRIBES and _MARKED_FIELD in receipt.content
