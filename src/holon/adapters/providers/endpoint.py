"""Where and how one model is reached: everything a wire needs besides the request.

Owns:  the endpoint record, and how requests are authorized.
Rule 1: an endpoint holds no secret. Secrets come from `Authorization.headers`, at the last moment.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from holon.model.provider_setting import SchemaMode, TransportKind
from holon.model.record import Record


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


_NO_HEADERS: Final[Mapping[str, str]] = {}
