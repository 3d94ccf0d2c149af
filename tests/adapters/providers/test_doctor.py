"""What the doctor says about providers, without saying a secret."""

import socket
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from holon.adapters.providers.doctor import (
    FAIL_FAST,
    RETRYABLE,
    Availability,
    DoctorReport,
    ProviderReport,
    configured_providers,
    examine,
    probe_provider,
)
from holon.adapters.providers.last_failures import failures_path, read_failures, write_failures
from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import ProviderResolverSettings, ProviderSetting, parse_model_ref
from holon.runtime.providers.gate import LastFailure
from tests.adapters.providers.byte_server import byte_server, json_response
from tests.adapters.providers.resolver_parts import SECRET, resolver_of

FAILURE = LastFailure(
    model_ref="openai/gpt-5.4",
    failure_kind="rate_limited",
    summary="come back later",
    failed_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def one(report: DoctorReport, provider: str) -> ProviderReport:
    return next(each for each in report.providers if each.provider == provider)


@pytest.mark.requirement("provider-plane:doctor-tells-every-configured-provider")
def test_every_configured_provider_is_told_and_no_other(tmp_path: Path) -> None:
    settings = ProviderResolverSettings(
        model_default=parse_model_ref("openai/gpt-5.4"),
        model_fallbacks=(parse_model_ref("zai/glm-4.6"),),
        providers={"mine": ProviderSetting(base_url="https://g.example/v1")},
    )
    resolver = resolver_of(tmp_path, settings, {"XAI_API_KEY": SECRET, "OPENAI_API_KEY": SECRET})
    assert list(configured_providers(resolver)) == ["mine", "openai", "xai", "zai"]
    report = examine(resolver, {"openai": FAILURE}, {})
    openai = one(report, "openai")
    assert (openai.transport, openai.endpoint) == ("openai_responses", "https://api.openai.com/v1")
    assert openai.credential is not None
    assert (openai.credential.name, openai.credential.is_present) == ("OPENAI_API_KEY", True)
    assert (openai.availability, openai.reason) == (Availability.AVAILABLE, None)
    assert openai.last_failure == FAILURE
    assert one(report, "xai").last_failure is None
    zai = one(report, "zai")
    assert zai.availability is Availability.UNAVAILABLE
    assert "ZAI_API_KEY is not set" in str(zai.reason)
    assert "set ZAI_API_KEY" in str(zai.hint)
    assert report.is_usable
    assert SECRET not in msgspec.json.encode(report).decode()


def test_a_provider_that_failed_is_told_though_nobody_configures_it(tmp_path: Path) -> None:
    failures = {"deepseek": FAILURE, "gone": FAILURE}
    resolver = resolver_of(tmp_path, environ={"OPENAI_API_KEY": SECRET})
    report = examine(resolver, failures, {})
    told = {each.provider: each.is_configured for each in report.providers}
    assert told == {"deepseek": False, "gone": False, "openai": True}
    assert one(report, "deepseek").last_failure == FAILURE
    assert "there is no provider 'gone'" in str(one(report, "gone").reason)
    assert report.is_usable


@pytest.mark.requirement("provider-plane:doctor-shows-the-retry-policy")
def test_the_retry_policy_is_the_one_in_force(tmp_path: Path) -> None:
    policy = examine(resolver_of(tmp_path), {}, {}).providers[0].retry_policy
    assert policy.max_retries == 2
    assert policy.retryable == (
        "timeout", "connection", "rate_limited", "server_error", "garbled_response",
    )  # fmt: skip
    assert {
        "auth_rejected",
        "request_rejected",
        "invalid_response",
        "unsupported_transport",
    } <= set(policy.fail_fast)


def test_the_policy_sorts_every_provider_error() -> None:
    every: set[type[ProviderError]] = set()
    waiting = [ProviderError]
    while waiting:
        found = [
            kind for kind in waiting.pop().__subclasses__() if "model.provider" in kind.__module__
        ]
        every.update(found)
        waiting.extend(found)
    assert every == {*RETRYABLE, *FAIL_FAST}
    assert all(kind.retryable for kind in RETRYABLE)
    assert not any(kind.retryable for kind in FAIL_FAST)


@pytest.mark.requirement("provider-plane:diagnostics-name-contract-failures")
def test_what_cannot_be_used_says_why(tmp_path: Path) -> None:
    settings = ProviderResolverSettings(
        model_default=parse_model_ref("odd/model"),
        providers={
            "odd": ProviderSetting(transport="telepathy"),
            "nowhere": ProviderSetting(base_url="gopher://x"),
        },
    )
    report = examine(resolver_of(tmp_path, settings), {}, {})
    assert not report.is_usable
    assert "telepathy" in str(report.problem)
    assert "openai_chat_completions" in str(report.hint)
    odd = one(report, "odd")
    assert (odd.transport, odd.availability) == ("telepathy", Availability.UNAVAILABLE)
    assert "must start with http" in str(one(report, "nowhere").reason)


def test_a_provider_asked_for_by_name_is_told_even_when_it_does_not_exist(tmp_path: Path) -> None:
    report = examine(resolver_of(tmp_path), {}, {}, only="opnai")
    assert [each.provider for each in report.providers] == ["opnai"]
    assert "did you mean 'openai'" in str(report.providers[0].hint)


async def test_a_probe_shows_who_answers_and_sends_no_credential(tmp_path: Path) -> None:
    async with byte_server([json_response("401 Unauthorized", {"error": "no"})]) as server:
        settings = ProviderResolverSettings(
            model_default=parse_model_ref("openai/gpt-5.4"),
            providers={"openai": ProviderSetting(base_url=f"{server.url}/v1")},
        )
        resolver = resolver_of(tmp_path, settings, {"OPENAI_API_KEY": SECRET})
        probe = await probe_provider(resolver, "openai")
        await resolver.aclose()
    assert probe is not None
    assert (probe.is_reachable, probe.status) == (True, 401)
    (seen,) = server.seen
    assert SECRET not in str(seen)
    assert examine(resolver, {}, {"openai": probe}).is_usable


async def test_a_probe_nobody_answers_makes_the_model_unusable(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        base_url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        settings = ProviderResolverSettings(
            model_default=parse_model_ref("ollama/qwen3"),
            providers={"ollama": ProviderSetting(base_url=base_url)},
        )
        resolver = resolver_of(tmp_path, settings)
        probe = await probe_provider(resolver, "ollama")
        await resolver.aclose()
    assert probe is not None
    assert not probe.is_reachable
    report = examine(resolver, {}, {"ollama": probe})
    assert not report.is_usable
    assert report.problem == probe.detail
    assert one(report, "ollama").availability is Availability.UNAVAILABLE


async def test_what_needs_no_network_is_not_probed(tmp_path: Path) -> None:
    resolver = resolver_of(tmp_path)
    assert await probe_provider(resolver, "scripted") is None
    assert await probe_provider(resolver, "no-such-provider") is None


def test_last_failures_are_kept_and_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    assert read_failures(tmp_path) == {}
    failures_path(tmp_path).parent.mkdir()
    write_failures(tmp_path, {"openai": FAILURE})
    assert read_failures(tmp_path) == {"openai": FAILURE}
    failures_path(tmp_path).write_text("[1", encoding="utf-8")
    assert read_failures(tmp_path) == {}
    failures_path(tmp_path).unlink()
    failures_path(tmp_path).mkdir()
    assert read_failures(tmp_path) == {}
