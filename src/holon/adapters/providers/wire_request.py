"""Shared parts of writing a request: endpoint, authorization, tool names, cached conversation text.

Owns:  the endpoint record and how requests are authorized; substitutes for tool names an API
       refuses; the memo of encoded tool catalogs; the encoded text of the latest conversation per
       key (an agent, for example), so that a round costs what it adds.
Rule 1: an endpoint holds no secret. Secrets come from `Authorization.headers`, at the last moment.
Rule 2: an acceptable name stays unchanged; any other has one substitute, and no two share it.
Rule 3: a tool catalog is found by the identity of the tools it holds references to, never by
        equality.
Rule 4: a message's text is reused when it is the same object with the same marks, or equal text of
        the user (a turn's opening is built anew each round). Nothing else surely has the same
        bytes: equal arguments may be `1` here and `true` there.
Rule 5: the cache references the messages it compares with, so no other object can take the identity
        of one; it never changes a byte, and a failed write leaves no trace.
Rule 6: every cache is bounded, conversation text by count and by bytes; the least recently used
        entry goes first.
"""

import hashlib
import re
from collections.abc import Callable, Hashable, Mapping
from itertools import compress
from operator import is_not
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from holon.model.limits import MIB
from holon.model.lru import Lru
from holon.model.providers.models import SchemaMode, TransportKind
from holon.model.record import Record
from holon.model.turns.conversation import ConversationMessage, UserMessage
from holon.model.turns.tools import ToolSpec

_REFUSED_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS_MAX: Final = 64
_CATALOGS_COUNT_MAX: Final = 32
Note = TypeVar("Note")
Marks: TypeAlias = Mapping[int, frozenset[int]]
_CONVERSATIONS_COUNT_MAX: Final = 64
_BYTES_MAX: Final = 32 * MIB
NO_MARKS: Final[Marks] = {}
_NO_HEADERS: Final[Mapping[str, str]] = {}


def plain_name(name: str) -> str:
    """Return a name that every wire takes."""
    if name and len(name) <= _NAME_CHARS_MAX and not _REFUSED_CHARACTER.search(name):
        return name
    told_apart = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{_REFUSED_CHARACTER.sub('_', name)[:48]}_{told_apart}"


class ToolCatalogs:
    """Remembers how the tools of one endpoint look on the wire."""

    def __init__(self, *, catalogs_max: int = _CATALOGS_COUNT_MAX) -> None:
        self._catalogs: Lru[tuple[int, ...], tuple[tuple[ToolSpec, ...], msgspec.Raw]]
        self._catalogs = Lru(catalogs_max)

    def encoded(
        self, tools: tuple[ToolSpec, ...], lower: Callable[[ToolSpec], Mapping[str, Any]]
    ) -> msgspec.Raw:
        """Return the JSON list of tools, lowering them only the first time they are seen."""
        key = tuple(map(id, tools))
        entry = self._catalogs.get(key)
        if entry is None:
            lowered = [lower(tool) for tool in tools]
            entry = (tools, msgspec.Raw(msgspec.json.encode(lowered)))
            self._catalogs.put(key, entry)
        return entry[1]


class MessageText(NamedTuple, Generic[Note]):
    """The text of one message, and the note that writing the next one needs."""

    text: bytes
    note: Note


# Writes a message, given its index and the note of the message before it.
Write: TypeAlias = Callable[[int, Note], MessageText[Note]]


class ConversationText(msgspec.Struct, Generic[Note]):
    """A conversation as text. It is mutable: copy it before the next request."""

    messages: tuple[ConversationMessage, ...] = ()
    marks: Marks = msgspec.field(default_factory=dict)
    text: bytearray = msgspec.field(default_factory=bytearray)
    ends: list[int] = msgspec.field(default_factory=list)  # where the text of each message ends
    notes: list[Note] = msgspec.field(default_factory=list)


class ConversationTextCache(Generic[Note]):
    """Caches the encoded text of conversations; `start` is the note before any message."""

    def __init__(
        self,
        *,
        start: Note,
        conversations_max: int = _CONVERSATIONS_COUNT_MAX,
        bytes_max: int = _BYTES_MAX,
    ) -> None:
        self._start = start
        self._latest: Lru[Hashable, ConversationText[Note]] = Lru(
            conversations_max, size_max=bytes_max
        )

    def joined(
        self,
        key: Hashable,
        conversation: tuple[ConversationMessage, ...],
        write: Write[Note],
        *,
        marks: Marks = NO_MARKS,
    ) -> ConversationText[Note]:
        """Return the conversation as text, writing only what the last one of its key lacks."""
        joined = self._latest.pop(key) or ConversationText()
        _keep_shared(joined, conversation, marks)
        note = joined.notes[-1] if joined.notes else self._start
        for index in range(len(joined.ends), len(conversation)):
            text, note = write(index, note)
            joined.text += text
            joined.ends.append(len(joined.text))
            joined.notes.append(note)
        joined.messages, joined.marks = conversation, marks
        self._latest.put(key, joined, len(joined.text))
        return joined


def _keep_shared(
    joined: ConversationText[Note], conversation: tuple[ConversationMessage, ...], marks: Marks
) -> None:
    """Cut a text back to what it has in common with another conversation."""
    count = _shared_count(joined.messages, conversation)
    if joined.marks != marks:
        differing = joined.marks.items() ^ marks.items()
        count = min(count, *(index for index, _ in differing))
    if count < len(joined.ends):
        del joined.text[joined.ends[count - 1] if count else 0 :]
        del joined.ends[count:]
        del joined.notes[count:]


def _shared_count(
    cached: tuple[ConversationMessage, ...], current: tuple[ConversationMessage, ...]
) -> int:
    """Return the number of leading messages whose text can be reused."""
    count = min(len(cached), len(current))
    for index in compress(range(count), map(is_not, cached, current)):
        same_words = isinstance(current[index], UserMessage) and cached[index] == current[index]
        if not same_words:
            return index
    return count


class ContextEditing(Record, frozen=True, kw_only=True):
    """Anthropic's opt-in clearing of old tool uses."""

    trigger_input_tokens: int = 100_000
    keep_recent_tool_uses: int = 3
    clear_at_least_input_tokens: int | None = None


class Endpoint(Record, frozen=True, kw_only=True):
    """One model behind one wire."""

    provider: str  # the provider's id in references: `openai`
    model: str  # the name the wire uses: `gpt-5.4`
    transport: TransportKind
    base_url: str  # without a trailing slash and without the wire's own path
    stream: bool = False
    output_tokens_max: int | None = None
    schema_mode: SchemaMode = SchemaMode.RELAXED
    takes: frozenset[str] = frozenset()  # optional parameters the provider is known to take
    freeform_tools: bool = False  # the wire takes grammar tools (ApplyPatch)
    reasoning_effort: str | None = None
    # OpenAI Responses: let the provider store responses, and continue from the last one with only
    # what is new. Without it every request is whole and nothing is stored.
    incremental: bool = False
    betas: tuple[str, ...] = ()
    context_editing: ContextEditing | None = None

    @property
    def model_ref(self) -> str:
        """The reference operators know this model by."""
        return f"{self.provider}/{self.model}"

    @property
    def thinking_origin(self) -> str:
        """The mark on reasoning that only this endpoint may be sent back: models seal their own."""
        return f"{self.transport.value}:{self.model_ref}"


class Authorization(Protocol):
    """Puts the credential on a request."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that carry the credential, or raise a ProviderError."""
        ...


class NoAuthorization:
    """For servers that ask for none."""

    async def headers(self) -> Mapping[str, str]:
        """Return no headers."""
        return _NO_HEADERS
