"""Bodies that come from outside.

Owns:  the JSON of public enqueue and of a wake.
Rule 1: strict, as all requests. What a caller claims about itself has fields of its own, so that it
        can be refused by name instead of being overlooked.
"""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from holon.model.errors import BadInputError
from holon.model.json_value import JsonValue
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.message import JsonBody, MessageBody, MessageKind, Priority, TextBody
from holon.model.provenance import AuthorityClass, Origin, TrustLevel
from holon.model.record import Record
from holon.wire.control_requests import ControlBody

Label = Annotated[str, Meta(min_length=1, max_length=LABEL_CHARS_MAX)]


class BadEnqueueError(BadInputError):
    """The content of a public message is missing, or given more than once."""

    code = "bad_request"
    hint = "give exactly one of body, text and json"


class EnqueueRequest(Record, frozen=True, kw_only=True):
    """A message from outside: its content under one of three names, and where it comes from."""

    kind: MessageKind | None = None
    priority: Priority = Priority.NORMAL
    body: TextBody | JsonBody | None = None
    text: str | None = None
    json: JsonValue | UnsetType = UNSET
    metadata: JsonValue = None
    correlation_id: Label | None = None
    causation_id: Label | None = None
    origin: Origin | None = None
    trust: TrustLevel | None = None
    authority_class: AuthorityClass | None = None

    def content(self) -> MessageBody:
        """The one content that was given; raises BadEnqueueError."""
        given: list[MessageBody] = []
        if self.body is not None:
            given.append(self.body)
        if self.text is not None:
            given.append(TextBody(text=self.text))
        if not isinstance(self.json, UnsetType):
            given.append(JsonBody(value=self.json))
        if len(given) != 1:
            raise BadEnqueueError(f"{len(given)} contents were given")
        return given[0]


class WakeRequest(ControlBody, frozen=True, kw_only=True):
    """Why an agent should look again."""

    reason: Label
    source: Label | None = None
    correlation_id: Label | None = None
    causation_id: Label | None = None
