"""From a model reference to a candidate that can be asked."""

import logging
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from holon.adapters.providers.anthropic_messages.transport import AnthropicMessages
from holon.adapters.providers.http.traced import TracedProvider
from holon.adapters.providers.openai_chat.transport import OpenAiChatTransport
from holon.adapters.providers.openai_codex import OpenAiCodexTransport
from holon.adapters.providers.openai_responses.transport import OpenAiResponsesTransport
from holon.adapters.providers.recorded import RecordingProvider, ReplayingProvider
from holon.adapters.providers.resolver import TRIAL_NOTE, endpoint_of
from holon.adapters.providers.scripted.provider import ScriptedProvider
from holon.adapters.providers.wire_request import ContextEditing
from holon.config.load_settings import load_settings
from holon.model.providers.attempts import ModelUnavailableError, TransportUnsupportedError
from holon.model.providers.models import (
    AnthropicSetting,
    ModelRef,
    ProviderResolverSettings,
    ProviderSetting,
    SchemaMode,
    parse_model_ref,
)
from holon.model.turns.conversation import TextBlock
from holon.ports.providers import ignore_progress
from tests.adapters.providers.byte_server import byte_server, json_response
from tests.adapters.providers.recorded.sample_requests import asking
from tests.adapters.providers.resolver_parts import (
    SECRET,
    resolver_of,
    token_that_ends,
    write_login,
)
from tests.support.manual_clock import DAWN

KEYS = {
    "OPENAI_API_KEY": SECRET,
    "ANTHROPIC_API_KEY": SECRET,
    "DEEPSEEK_API_KEY": SECRET,
    "MINIMAX_API_KEY": SECRET,
}
SCRIPT = "rounds:\n  - text: hello\n"


def ref(text: str) -> ModelRef:
    return parse_model_ref(text)


@pytest.mark.requirement("provider-plane:transport-contracts")
@pytest.mark.parametrize(
    ("text", "wire", "account"),
    [
        ("openai/gpt-5.4", OpenAiResponsesTransport, "openai:env:OPENAI_API_KEY"),
        (
            "anthropic/claude-sonnet-5-5",
            AnthropicMessages,
            "anthropic:env:ANTHROPIC_API_KEY",
        ),
        ("deepseek/deepseek-flash", OpenAiChatTransport, "deepseek:env:DEEPSEEK_API_KEY"),
        ("minimax/MiniMax-M2", AnthropicMessages, "minimax:env:MINIMAX_API_KEY"),
        ("ollama/qwen3:8b", OpenAiChatTransport, "ollama"),
        ("openai-codex/gpt-5-codex", OpenAiCodexTransport, "openai-codex:external_cli:codex"),
    ],
)
def test_a_reference_leads_to_its_wire_and_names_its_account(
    tmp_path: Path, text: str, wire: type[object], account: str
) -> None:
    write_login(
        tmp_path / ".codex" / "auth.json", access_token=token_that_ends(DAWN.replace(year=2030))
    )
    resolver = resolver_of(tmp_path, environ=KEYS)
    candidate = resolver.find(ref(text))
    assert isinstance(candidate.provider, wire)
    assert candidate.account == account
    assert str(candidate.model_ref) == text
    assert resolver.find(ref(text)) is candidate


def test_a_script_needs_no_credential(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "mine.yaml").write_text(SCRIPT, encoding="utf-8")
    resolver = resolver_of(tmp_path)
    assert isinstance(resolver.find(ref("scripted/mine")).provider, ScriptedProvider)
    absolute = tmp_path / "scripts" / "mine.yaml"
    assert isinstance(resolver.find(ref(f"scripted/{absolute}")).provider, ScriptedProvider)
    with pytest.raises(ModelUnavailableError):
        resolver.find(ref("scripted/no-such-script-here"))


@pytest.mark.requirement("provider-plane:unsupported-transport-fails-closed")
def test_an_unsupported_transport_is_refused_while_finding(tmp_path: Path) -> None:
    settings = ProviderResolverSettings(
        providers={"openai": ProviderSetting(transport="telepathy")}
    )
    with pytest.raises(TransportUnsupportedError, match="telepathy"):
        resolver_of(tmp_path, settings, KEYS).find(ref("openai/gpt-5.4"))


def test_a_refusal_is_not_remembered(tmp_path: Path) -> None:
    environ: dict[str, str] = {"UNRELATED": "1"}
    resolver = resolver_of(tmp_path, environ=environ)
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY is not set"):
        resolver.find(ref("openai/gpt-5.4"))
    environ["OPENAI_API_KEY"] = SECRET
    assert resolver.find(ref("openai/gpt-5.4")).account == "openai:env:OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("settings", "environ", "has_local", "default"),
    [
        (ProviderResolverSettings(), {}, True, "local/smollm2-135m"),
        (ProviderResolverSettings(), {}, False, "openai/gpt-5.4"),
        (ProviderResolverSettings(), {"OPENAI_API_KEY": SECRET}, True, "openai/gpt-5.4"),
        (
            ProviderResolverSettings(),
            {"ANTHROPIC_API_KEY": SECRET},
            True,
            "anthropic/claude-sonnet-5-5",
        ),
        (ProviderResolverSettings(model_default=ref("xai/grok-4")), {}, True, "xai/grok-4"),
    ],
)
def test_who_chose_nothing_gets_what_is_in_reach(
    tmp_path: Path,
    settings: ProviderResolverSettings,
    environ: dict[str, str],
    has_local: bool,
    default: str,
) -> None:
    resolver = resolver_of(tmp_path, settings, environ, has_local=has_local)
    assert str(resolver.preference.default) == default
    assert resolver.note == (TRIAL_NOTE if default.startswith("local/") else None)


def test_fallbacks_are_in_order_and_named_once(tmp_path: Path) -> None:
    fallbacks = (ref("xai/grok-4"), ref("openai/gpt-5"), ref("xai/grok-4"), ref("zai/glm-4.6"))
    settings = ProviderResolverSettings(
        model_default=ref("openai/gpt-5"), model_fallbacks=fallbacks
    )
    preference = resolver_of(tmp_path, settings).preference
    assert [str(one) for one in preference.fallbacks] == ["xai/grok-4", "zai/glm-4.6"]
    alone = ProviderResolverSettings(
        model_default=ref("openai/gpt-5"), model_fallbacks=fallbacks, fallback_disabled=True
    )
    assert resolver_of(tmp_path, alone).preference.fallbacks == ()


def test_an_endpoint_carries_what_catalog_and_settings_say(tmp_path: Path) -> None:
    anthropic = AnthropicSetting(context_management=True, keep_recent_tool_uses=5, betas=("b-1",))
    settings = ProviderResolverSettings(
        anthropic=anthropic,
        providers={
            "openai": ProviderSetting(reasoning_effort="low", stream=True),
            "mine": ProviderSetting(transport="anthropic_messages", base_url="https://g.example"),
        },
    )
    resolver = resolver_of(tmp_path, settings)
    openai = endpoint_of(resolver.route("openai"), ref("openai/gpt-5.4"), settings)
    assert (openai.schema_mode, openai.freeform_tools) == (SchemaMode.RELAXED, True)
    assert (openai.stream, openai.reasoning_effort) == (True, "low")
    assert (openai.output_tokens_max, openai.betas, openai.context_editing) == (8_192, (), None)
    claude = endpoint_of(resolver.route("anthropic"), ref("anthropic/claude-sonnet-5-5"), settings)
    assert claude.betas == ("b-1",)
    assert claude.context_editing == ContextEditing(keep_recent_tool_uses=5)
    own = endpoint_of(resolver.route("mine"), ref("mine/claude"), settings)
    assert own.context_editing is not None
    compatible = endpoint_of(resolver.route("minimax"), ref("minimax/MiniMax-M2"), settings)
    assert compatible.context_editing is None
    assert SECRET not in repr((openai, claude, own, compatible))


@pytest.mark.parametrize(
    ("transport", "told", "incremental", "warnings"),
    [
        ("openai_responses", "true", True, 0),
        ("openai_responses", "false", False, 0),
        ("openai_responses", None, False, 0),
        ("openai_codex_responses", "true", False, 1),
        ("openai_chat_completions", "true", False, 1),
        ("anthropic_messages", "true", False, 1),
    ],
)
def test_only_the_responses_wire_is_told_to_go_on_from_its_last_answer(
    tmp_path: Path, transport: str, told: str | None, incremental: bool, warnings: int
) -> None:
    says = "" if told is None else f"incremental = {told}\n"
    (tmp_path / "config.toml").write_text(
        f'[providers.box]\nbase_url = "https://b.example/v1"\ntransport = "{transport}"\n{says}',
        encoding="utf-8",
    )
    settings = load_settings(tmp_path, {}).plane
    route = resolver_of(tmp_path, settings).route("box")
    assert endpoint_of(route, ref("box/m"), settings).incremental is incremental
    assert len(route.warnings) == warnings


def test_plain_http_to_elsewhere_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ProviderResolverSettings(
        providers={"ollama": ProviderSetting(base_url="http://gpu.example:11434/v1")}
    )
    with caplog.at_level(logging.WARNING):
        resolver_of(tmp_path, settings).find(ref("ollama/llama3"))
    assert "plain http to gpu.example" in caplog.text


def test_recording_wraps_and_replaying_replaces(tmp_path: Path) -> None:
    recording = ProviderResolverSettings(record_dir=str(tmp_path / "tape"))
    recorded = resolver_of(tmp_path, recording, KEYS).find(ref("openai/gpt-5.4"))
    assert isinstance(recorded.provider, RecordingProvider)
    replaying = ProviderResolverSettings(replay_dir=str(tmp_path / "tape"))
    replayed = resolver_of(tmp_path, replaying).find(ref("openai/gpt-5.4"))  # no credential needed
    assert isinstance(replayed.provider, ReplayingProvider)


@pytest.mark.parametrize(("http", "failure"), [(True, False), (False, True), (True, True)])
def test_tracing_wraps_what_answers_and_is_recorded_around(
    tmp_path: Path, http: bool, failure: bool
) -> None:
    tape = str(tmp_path / "tape")
    for settings, kind in (
        (ProviderResolverSettings(), TracedProvider),
        (ProviderResolverSettings(replay_dir=tape), TracedProvider),
        (ProviderResolverSettings(record_dir=tape), RecordingProvider),
    ):
        traced = msgspec.structs.replace(settings, http_trace=http, failure_trace=failure)
        found = resolver_of(tmp_path, traced, KEYS).find(ref("openai/gpt-5.4"))
        assert isinstance(found.provider, kind)


async def test_wires_share_one_client_which_is_closed(tmp_path: Path) -> None:
    resolver = resolver_of(tmp_path, environ=KEYS)
    resolver.find(ref("openai/gpt-5.4"))
    shared = resolver.exchange()
    resolver.find(ref("anthropic/claude-sonnet-5-5"))
    assert resolver.exchange() is shared
    await resolver.aclose()
    await resolver.aclose()
    assert resolver.exchange() is not shared


async def test_a_found_model_is_asked_where_and_as_configured(tmp_path: Path) -> None:
    answer = {
        "id": "c-1",
        "object": "chat.completion",
        "model": "deepseek-flash",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "hello"},
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
    async with byte_server([json_response("200 OK", answer)]) as server:
        told = {"deepseek": ProviderSetting(base_url=f"{server.url}/v1")}
        resolver = resolver_of(tmp_path, ProviderResolverSettings(providers=told), KEYS)
        found = resolver.find(ref("deepseek/deepseek-flash"))
        said = await found.provider.answer(asking("say hello"), ignore_progress)
        await resolver.aclose()
    assert [block.text for block in said.blocks if isinstance(block, TextBlock)] == ["hello"]
    (seen,) = server.seen
    assert seen.line.startswith("POST /v1/chat/completions ")
    assert seen.headers["authorization"].casefold() == f"bearer {SECRET}"
    assert b'"model":"deepseek-flash"' in seen.body


def test_naming_models_imports_no_wire_and_no_http() -> None:
    code = (
        "import sys\n"
        "import holon.serve.providers\n"
        "from holon.adapters.providers.catalog import builtin_catalog\n"
        "builtin_catalog()\n"
        "wires = ('openai', 'anthropic', 'httpx2', 'yaml', 'tomlkit', 'xllamacpp')\n"
        "print([name for name in sys.modules if name.split('.')[0] in wires\n"
        "       or (name.startswith('holon.adapters.providers.') and name.count('.') > 3)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
