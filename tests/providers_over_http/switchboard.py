"""A real provider resolver connected to real servers: settings, credentials, HTTP, fallback.

Only time is simulated: waits between attempts are skipped and recorded. Closing a switchboard
searches everything that was answered, logged and recorded for the secrets it used.
"""

import base64
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

import anyio
import msgspec

from holon.adapters.providers.resolver import ProviderResolver
from holon.adapters.system.logs import install_log_redaction
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings, load_settings
from holon.model.providers.models import TransportKind, parse_model_ref
from holon.model.providers.prompt_frame import PromptBlock, PromptFrame, ProviderRequest, Stability
from holon.model.turns.conversation import ConversationMessage, TextBlock, UserMessage
from holon.model.turns.tools import ToolSpec
from holon.model.turns.turn import AnswerProgress, ModelAnswered, ModelFailed, TextGrew
from holon.model.values import AgentId, later
from holon.prompt.facts import offered_tools
from holon.prompt.frame import cache_scope
from holon.runtime.host import Host
from holon.serve.providers import build_plane
from tests.support.hosts import a_host
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.sequential_ids import SequentialIds
from tests.support.wire_server.server import WireServer

RESPONSES: Final = TransportKind.OPENAI_RESPONSES
CODEX: Final = TransportKind.OPENAI_CODEX_RESPONSES
CHAT: Final = TransportKind.OPENAI_CHAT_COMPLETIONS
MESSAGES: Final = TransportKind.ANTHROPIC_MESSAGES
WIRES: Final = (RESPONSES, CODEX, CHAT, MESSAGES)

PATHS: Final[Mapping[TransportKind, str]] = {
    RESPONSES: "/v1/responses",
    CODEX: "/backend-api/codex/responses",
    CHAT: "/v1/chat/completions",
    MESSAGES: "/v1/messages",
}
# The three the catalog knows, and one that only its configuration describes.
_PROVIDERS: Final[Mapping[TransportKind, str]] = {
    RESPONSES: "openai",
    CODEX: "openai-codex",
    CHAT: "deskside",
    MESSAGES: "anthropic",
}

ADA: Final = AgentId("ada")
MODEL: Final = "thinker-1"
HELLO: Final = (UserMessage(blocks=(TextBlock(text="hello"),)),)


class SkippingClock:
    """Time that passes by a millisecond when a duration is read, and by every wait at once."""

    def __init__(self) -> None:
        self._passed = timedelta()
        self.waits_ms: list[int] = []

    def now(self) -> datetime:
        return DAWN + self._passed

    def monotonic_ns(self) -> int:
        reading = self._passed // timedelta(microseconds=1) * 1_000
        self._passed += timedelta(milliseconds=1)
        return reading

    async def sleep_until(self, deadline: datetime) -> None:
        wait = max(timedelta(), deadline - self.now())
        self._passed += wait
        self.waits_ms.append(wait // timedelta(milliseconds=1))

    async def sleep_for(self, ms: int) -> None:
        self._passed += timedelta(milliseconds=ms)
        self.waits_ms.append(ms)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One configured provider: where it is, which wire it speaks, and the secret it is sent."""

    kind: TransportKind
    base_url: str
    provider: str
    stream: bool = False
    has_key: bool = True
    effort: str | None = None
    program: str | None = None  # that hands out the secret
    transport: str | None = None  # as the configuration has it, when it is not the wire's own

    @property
    def ref(self) -> str:
        return f"{self.provider}/{MODEL}"

    @property
    def url(self) -> str:
        """Where requests go."""
        own = "/v1/messages" if self.kind is MESSAGES else PATHS[self.kind].rpartition("/v1")[2]
        own = "/responses" if self.kind is CODEX else own
        return self.base_url + own

    @property
    def variable(self) -> str:
        return f"{self.provider.upper().replace('-', '_')}_TEST_SECRET"

    @property
    def secret(self) -> str:
        return f"very/secret+{self.provider}=0123456789"

    def configuration(self) -> str:
        effort = "" if self.effort is None else f'reasoning_effort = "{self.effort}"\n'
        return (
            f'[providers.{self.provider}]\ntransport = "{self.transport or self.kind.value}"\n'
            f'base_url = "{self.base_url}"\nstream = {str(self.stream).lower()}\n'
            f'auth.kind = "api_key"\n{self._source()}{effort}'
        )

    def _source(self) -> str:
        if self.program is None:
            return f'auth.source = "env"\nauth.env = "{self.variable}"\n'
        return f'auth.source = "credential_process"\nauth.external = {json.dumps(self.program)}\n'


def line_to(server: WireServer, kind: TransportKind, **others: object) -> Line:
    """The line of a wire's usual provider to a server."""
    named = {"provider": _PROVIDERS[kind], **others}
    return Line(kind=kind, base_url=server.base_url(kind), **named)  # type: ignore[arg-type]


@dataclass(kw_only=True)
class Switchboard:
    """A host's provider plane and everything that came out of it."""

    host: Host
    plane: ProviderResolver
    clock: SkippingClock
    lines: Sequence[Line]
    recorded_in: Path
    grown: list[AnswerProgress] = field(default_factory=list)
    came: list[ModelAnswered | ModelFailed] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    first_word: anyio.Event = field(default_factory=anyio.Event)

    def hear(self, _: AgentId, progress: AnswerProgress) -> None:
        """Watch an answer grow."""
        self.grown.append(progress)
        if isinstance(progress, TextGrew):
            self.first_word.set()

    async def ask(
        self, conversation: tuple[ConversationMessage, ...] = HELLO, *, override: str | None = None
    ) -> ModelAnswered | ModelFailed:
        """Have a round, whatever comes of it."""
        specs = self.host.tools.specs
        request = ProviderRequest(
            agent_id=ADA,
            frame=_frame(specs),
            conversation=conversation,
            tools=specs,
        )
        own = None if override is None else parse_model_ref(override)
        came = await self.host._provider.ask(request, override=own)
        self.came.append(came)
        return came

    async def ask_every_line(self) -> dict[Line, ModelAnswered | ModelFailed]:
        """Have a round on each line at the same time, none of them standing in for another."""
        assert self.host.fallback_disabled
        came: dict[Line, ModelAnswered | ModelFailed] = {}

        async def ask_one(line: Line) -> None:
            came[line] = await self.ask(override=line.ref)

        async with anyio.create_task_group() as tasks:
            for line in self.lines:
                tasks.start_soon(ask_one, line)
        return came

    async def succeed(self, conversation: tuple[ConversationMessage, ...] = HELLO) -> ModelAnswered:
        """Have a round that must be answered."""
        came = await self.ask(conversation)
        assert isinstance(came, ModelAnswered), came
        return came

    async def fail(self, conversation: tuple[ConversationMessage, ...] = HELLO) -> ModelFailed:
        """Have a round that must fail."""
        came = await self.ask(conversation)
        assert isinstance(came, ModelFailed), came
        return came

    @property
    def text_grown(self) -> str:
        """What a watcher has read so far."""
        return "".join(each.text for each in self.grown if isinstance(each, TextGrew))

    def leaks(self) -> list[str]:
        """Every place a secret got to, in any of the forms it may take."""
        kept = [path.read_text() for path in sorted(self.recorded_in.glob("*"))]
        said = [repr(each) for each in (*self.came, *self.grown)]
        wired = [msgspec.json.encode(each).decode() for each in (*self.came, *self.grown)]
        places = {"said": said, "wired": wired, "recorded": kept, "logged": self.logged}
        return [
            f"{place}: {text[:200]}"
            for place, texts in places.items()
            for text in texts
            if any(form in text for line in self.lines for form in forms_of(line.secret))
        ]


def forms_of(secret: str) -> tuple[str, ...]:
    """A secret as it is, and as it is written in addresses, JSON and basic credentials."""
    return (
        secret,
        quote(secret, safe=""),
        base64.b64encode(secret.encode()).decode().rstrip("="),
        json.dumps(secret).strip('"').replace("/", "\\/"),
    )


def settings_for(
    home: Path, lines: Sequence[Line], environ: Mapping[str, str], **changes: object
) -> Settings:
    """What an operator's file and environment say; `changes` are made to the plane's part."""
    models = f'[model]\ndefault = "{lines[0].ref}"\n'
    models += f"fallbacks = {json.dumps([line.ref for line in lines[1:]])}\n"
    home.mkdir(parents=True, exist_ok=True)
    text = "\n".join([models, *(line.configuration() for line in lines)])
    (home / "config.toml").write_text(text, encoding="utf-8")
    settings = load_settings(home, environ)
    plane = msgspec.structs.replace(settings.plane, **changes)
    return msgspec.structs.replace(settings, plane=plane)


def environ_of(lines: Sequence[Line]) -> dict[str, str]:
    """An environment that holds each line's secret, and nothing else."""
    return {line.variable: line.secret for line in lines if line.has_key}


@asynccontextmanager
async def open_switchboard(
    home: Path, *lines: Line, deferral_allowed: bool = True, **changes: object
) -> AsyncIterator[Switchboard]:
    """Connect lines, the first one preferred; on leaving, no secret may have got out."""
    clock, registry = SkippingClock(), SecretRegistry()
    recorded_in = home / "recorded"
    environ = environ_of(lines)
    told = {"record_dir": str(recorded_in), "failure_trace": True, "http_trace": True, **changes}
    plane = build_plane(settings_for(home, lines, environ, **told), environ, registry, clock)
    watched: list[Switchboard] = []
    host = a_host(
        store=memory_store(
            memory_connection(), InlineWriter(memory_connection(), ManualClock(), NoFaults())
        ),
        clock=clock,
        ids=SequentialIds(),
        models=plane,
        redactor=registry,
        progress=lambda agent_id, progress: watched[0].hear(agent_id, progress),
        deferral_allowed=deferral_allowed,
        fallback_disabled=plane.settings.fallback_disabled,
    )
    board = Switchboard(
        host=host,
        plane=plane,
        clock=clock,
        lines=lines,
        recorded_in=recorded_in,
    )
    watched.append(board)
    with _listening(board.logged, registry):
        try:
            yield board
        finally:
            await plane.aclose()
    leaks = board.leaks()
    assert not leaks, "\n".join(leaks[:3])


class _Ear(logging.Handler):
    def __init__(self, logged: list[str]) -> None:
        super().__init__()
        self._logged = logged

    def emit(self, record: logging.LogRecord) -> None:
        self._logged.append(f"{record.getMessage()} {record.exc_text or ''}")


@contextmanager
def _listening(logged: list[str], registry: SecretRegistry) -> Iterator[None]:
    """Hear everything: what Holon logs as it is, and what libraries log as handlers are set up."""
    ears = {"holon": _Ear(logged), "": _Ear(logged)}
    install_log_redaction(registry, [ears[""]])
    levels = {name: logging.getLogger(name).level for name in ears}
    for name, ear in ears.items():
        logging.getLogger(name).addHandler(ear)
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield
    finally:
        for name, ear in ears.items():
            logging.getLogger(name).removeHandler(ear)
            logging.getLogger(name).setLevel(levels[name])


def moment_after(clock_moment: datetime, *, seconds: int) -> datetime:
    """The moment a provider names when it asks for so many seconds."""
    return later(clock_moment, by_ms=seconds * 1_000)


def _frame(tools: tuple[ToolSpec, ...]) -> PromptFrame:
    itself = PromptBlock(text=f"Your agent id is {ADA}.", stability=Stability.AGENT_SCOPED)
    frame = PromptFrame(system_prompt="You are careful.", context_blocks=(itself,))
    return msgspec.structs.replace(frame, cache=cache_scope(ADA, frame, offered_tools(tools)))
