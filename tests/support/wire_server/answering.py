"""From a request to its reply: render the script's next round for the requested wire.

Owns:  everything the server remembers between requests, and the order of its checks: the planned
       fault, the credential, the request's form, the script's expectation, the script's failure.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import anyio
import msgspec

from holon.adapters.providers.scripted.script import (
    Script,
    ScriptedRound,
    ScriptLine,
    ShownPrompt,
    line_for,
    unmet_by,
)
from holon.model.turns.conversation import ConversationMessage
from holon.model.values import JsonValue
from tests.support.wire_server.faults import (
    FINE,
    ErrorInside,
    Fault,
    Gate,
    Raw,
    Refuse,
    html_page,
    usage_limited,
)
from tests.support.wire_server.prompt_cache import PromptCache
from tests.support.wire_server.responses_answer import output_of
from tests.support.wire_server.wire_answer import WireAnswer, body_of, said_of, stream_of, twisted
from tests.support.wire_server.wire_request import ParsedRequest, RawRequest, WireRefusal, object_at
from tests.support.wire_server.wires import PATHS, Wire, require_credential

# Who says what comes next: a script, or whoever can tell it from the conversation alone.
Speaker: TypeAlias = Script | Callable[[tuple[ConversationMessage, ...]], ScriptLine]

_JSON: Final[Mapping[str, str]] = {"content-type": "application/json"}
_EVENTS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
}
_FAILURE_STATUSES: Final[Mapping[str, int]] = {
    "auth_rejected": 401,
    "context_length_exceeded": 400,
    "rate_limited": 429,
    "request_rejected": 400,
    "server_error": 500,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRequest:
    """A request as it came in. `left` is set when its client goes before the answer is whole."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    left: anyio.Event = field(default_factory=anyio.Event, compare=False)

    @property
    def json(self) -> JsonValue:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A reply, and how it is brought."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_stream: bool = False
    fault: Fault = FINE


class ScriptedModel:
    """Answers requests of any wire from one script."""

    def __init__(self, speaker: Speaker, *, api_key: str | None, needs_key: bool) -> None:
        self._speaker = speaker
        self._api_key = api_key
        self._needs_key = needs_key
        self._stored: dict[str, tuple[JsonValue, ...]] = {}
        self._failed: Counter[tuple[str, int, int]] = Counter()
        self._answer_count = 0
        self.cache = PromptCache()

    def reply_to(self, request: RecordedRequest, fault: Fault) -> Reply:
        """Return the reply a request gets."""
        wire = PATHS.get(request.path.partition("?")[0])
        if wire is None or request.method != "POST":
            status = 404 if wire is None else 405
            return Reply(status=status, headers=_JSON, body=b'{"detail":"Not Found"}', fault=fault)
        if isinstance(raw := fault.instead, Raw):
            return Reply(status=raw.status, headers=raw.headers, body=raw.body, fault=fault)
        if isinstance(refuse := fault.instead, Refuse):
            return _refused(wire, refuse, fault)
        try:
            return self._answered(wire, request, fault)
        except WireRefusal as refusal:
            body = msgspec.json.encode(wire.refusal(refusal))
            return Reply(status=refusal.status, headers=_JSON, body=body, fault=fault)

    def _answered(self, wire: Wire, request: RecordedRequest, fault: Fault) -> Reply:
        if self._needs_key:
            require_credential(wire, request.headers, accepted=self._api_key)
        heard = wire.read(RawRequest(_decoded(request.body), request.headers, self._stored))
        line = self._line_for(heard.conversation)
        self._require_shown(line, heard)
        if line.round.after_ms:
            fault = replace(fault, head_after_ms=fault.head_after_ms + line.round.after_ms)
        if self._fails(wire, line, heard):
            failure = _fault_of(line.round)
            return self.reply_to(request, replace(failure, head_after_ms=fault.head_after_ms))
        return self._said(wire, line, heard, fault)

    def _line_for(self, conversation: tuple[ConversationMessage, ...]) -> ScriptLine:
        if isinstance(self._speaker, Script):
            return line_for(self._speaker, conversation)
        return self._speaker(conversation)

    def _said(self, wire: Wire, line: ScriptLine, heard: ParsedRequest, fault: Fault) -> Reply:
        self._answer_count += 1
        count = self.cache.count(heard)
        said = said_of(line.round, heard, count=count, number=self._answer_count)
        said = twisted(said, fault.twists)
        if isinstance(fault.instead, ErrorInside):
            return _broken(wire, said, heard, fault)
        if heard.stores:
            self._stored[said.id("resp_")] = (*heard.items, *output_of(said, heard))
        if heard.stream:
            body = stream_of(wire.events(said, heard), fault.twists)
            return Reply(status=200, headers=_EVENTS, body=body, is_stream=True, fault=fault)
        body = body_of(wire.whole(said, heard), fault.twists)
        return Reply(status=200, headers=_JSON, body=body, fault=fault)

    def _require_shown(self, line: ScriptLine, heard: ParsedRequest) -> None:
        if line.round.expect is None:
            return
        shown = ShownPrompt(system=heard.system, conversation=heard.conversation, tools=heard.tools)
        if (unmet := unmet_by(line.round.expect, shown)) is not None:
            raise WireRefusal(f"the script, round {line.number + 1}: {unmet}")

    def _fails(self, wire: Wire, line: ScriptLine, heard: ParsedRequest) -> bool:
        if line.round.fail is None:
            return False
        place = (wire.kind.value, len(heard.conversation), line.number)
        self._failed[place] += 1
        return line.round.fail_times is None or self._failed[place] <= line.round.fail_times


def _decoded(body: bytes) -> dict[str, JsonValue]:
    try:
        return object_at(msgspec.json.decode(body), "body")
    except msgspec.DecodeError:
        raise WireRefusal("We could not parse the JSON body of your request.") from None


def _refused(wire: Wire, refuse: Refuse, fault: Fault) -> Reply:
    refusal = WireRefusal(
        refuse.message, status=refuse.status, code=refuse.code, details=refuse.details
    )
    body = msgspec.json.encode(wire.refusal(refusal))
    headers = {**_JSON, **refuse.headers}
    return Reply(status=refuse.status, headers=headers, body=body, fault=fault)


def _broken(wire: Wire, said: WireAnswer, heard: ParsedRequest, fault: Fault) -> Reply:
    inside = fault.instead
    assert isinstance(inside, ErrorInside)
    refusal = WireRefusal(inside.message, status=500, code=inside.code, details=inside.details)
    if heard.stream:
        body = stream_of(wire.failed(said, heard, wire.error(refusal)), fault.twists)
        return Reply(status=200, headers=_EVENTS, body=body, is_stream=True, fault=fault)
    body = body_of(wire.refusal(refusal), fault.twists)
    return Reply(status=200, headers=_JSON, body=body, fault=fault)


def _fault_of(line: ScriptedRound) -> Fault:
    """The failure of a script as it shows on a wire."""
    seconds = -(-(line.retry_after_ms or 0) // 1_000)
    match line.fail:
        case "timeout":
            return Fault(instead=Raw(status=504), head_gate=Gate())  # nobody opens it
        case "connection":
            return Fault(instead=Raw(status=502), cut_at_byte=0, reset=True)
        case "invalid_response":
            return html_page()
        case "usage_limit_reached":
            return usage_limited(resets_in_seconds=seconds or 3_600)
        case code:
            assert code is not None
            known = code if code == "context_length_exceeded" else None
            headers = {"retry-after": str(seconds)} if line.retry_after_ms is not None else {}
            return Fault(
                instead=Refuse(
                    status=_FAILURE_STATUSES[code],
                    code=known,
                    message=f"scripted failure: {code}",
                    headers=headers,
                )
            )
