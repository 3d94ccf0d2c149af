"""The two doctor commands as a person and as a script see them."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holon.adapters.providers.last_failures import failures_path
from holon.cli.console import exit_codes
from holon.cli.main import main

SECRET = "sk-plainly-secret-0123456789"
STORE_KEY = ("config", "credentials", "set", "anthropic", "--kind", "api_key", "--stdin")


def run(home: Path, *arguments: str, env: dict[str, str | None] | None = None) -> Result:
    clean: dict[str, str | None] = {"OPENAI_API_KEY": None, "ANTHROPIC_API_KEY": None}
    return CliRunner().invoke(
        main, ["config", *arguments, "--home", str(home)], env={**clean, **(env or {})}
    )


def start(home: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the real command in a process of its own, with nothing but `env` around it."""
    return subprocess.run(
        [sys.executable, "-m", "holon", "config", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"HOLON_HOME": str(home), "HOME": str(home), **env},
    )


@pytest.mark.requirement("provider-plane:doctor-tells-every-configured-provider")
def test_a_usable_default_ends_with_zero_and_the_six_facts(tmp_path: Path) -> None:
    done = start(tmp_path, "doctor", OPENAI_API_KEY=SECRET)
    assert done.returncode == exit_codes.OK, done.stderr
    assert done.stdout.startswith("default model openai/gpt-5.4 can be used")
    for line in (
        "  transport     openai_responses",
        "  endpoint      https://api.openai.com/v1",
        "  credential    env OPENAI_API_KEY (present)",
        "  availability  available",
        "  retry policy  2 retries after timeout, connection, rate_limited, server_error, ",
        "  last failure  none",
    ):
        assert line in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.requirement("provider-plane:missing-credential-is-named")
def test_an_unusable_default_ends_with_one_and_what_to_do(tmp_path: Path) -> None:
    done = start(tmp_path, "doctor", HOLON_MODEL="anthropic/claude-sonnet-5-5")
    assert done.returncode == exit_codes.FOUND_FAULTS
    assert "cannot be used" in done.stdout
    assert "holon config credentials set anthropic" in done.stdout
    assert "credential    env ANTHROPIC_AUTH_TOKEN (missing)" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_key_that_is_stored_makes_the_model_usable(tmp_path: Path) -> None:
    stored = subprocess.run(
        [sys.executable, "-m", "holon", *STORE_KEY],
        input=SECRET,
        capture_output=True,
        text=True,
        check=False,
        env={"HOLON_HOME": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert stored.returncode == exit_codes.OK, stored.stderr
    done = start(tmp_path, "doctor", "--json", HOLON_MODEL="anthropic/claude-sonnet-5-5")
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == exit_codes.OK
    (anthropic,) = report["providers"]
    assert anthropic["credential"]["source"] == "credential_profile"
    assert anthropic["credential"]["is_present"] is True
    assert SECRET not in done.stdout + done.stderr + stored.stdout + stored.stderr


def test_json_has_every_field_also_when_nothing_is_in_it(tmp_path: Path) -> None:
    report = json.loads(run(tmp_path, "doctor", "--json", env={"OPENAI_API_KEY": SECRET}).stdout)
    assert set(report) == {
        "is_usable",
        "default_model",
        "default_is_chosen",
        "fallback_models",
        "problem",
        "hint",
        "note",
        "config_faults",
        "warnings",
        "providers",
    }
    (openai,) = [each for each in report["providers"] if each["provider"] == "openai"]
    assert set(openai) == {
        "provider",
        "is_configured",
        "transport",
        "endpoint",
        "credential",
        "availability",
        "reason",
        "hint",
        "warnings",
        "models",
        "retry_policy",
        "last_failure",
        "probe",
    }


def test_the_last_failure_a_host_left_is_shown(tmp_path: Path) -> None:
    failures_path(tmp_path).parent.mkdir()
    failures_path(tmp_path).write_text(
        '{"openai": {"model_ref": "openai/gpt-5.4", "failure_kind": "rate_limited",'
        ' "summary": "slow down", "failed_at": "2026-01-01T00:00:00Z"}}',
        encoding="utf-8",
    )
    shown = run(tmp_path, "doctor", env={"OPENAI_API_KEY": SECRET}).stdout
    assert "2026-01-01T00:00:00+00:00 rate_limited (openai/gpt-5.4): slow down" in shown


def test_an_old_failure_of_what_nobody_configures_is_shown_and_no_fault(tmp_path: Path) -> None:
    failures_path(tmp_path).parent.mkdir()
    failures_path(tmp_path).write_text(
        '{"zai": {"model_ref": "zai/glm-4.7", "failure_kind": "timeout",'
        ' "summary": "no answer", "failed_at": "2026-01-01T00:00:00Z"}}',
        encoding="utf-8",
    )
    result = run(tmp_path, "providers", "doctor", env={"OPENAI_API_KEY": SECRET})
    assert result.exit_code == exit_codes.OK
    assert "zai (not configured)" in result.stdout
    assert "timeout (zai/glm-4.7): no answer" in result.stdout
    asked = run(tmp_path, "providers", "doctor", "zai", env={"OPENAI_API_KEY": SECRET})
    assert asked.exit_code == exit_codes.FOUND_FAULTS


@pytest.mark.parametrize("command", [("doctor",), ("providers", "doctor")])
def test_a_variable_that_looks_like_a_slip_is_warned_about(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    env: dict[str, str | None] = {"OPENAI_API_KEY": SECRET, "HOLON_MODLE": "a/b"}
    shown = run(tmp_path, *command, env=env)
    assert shown.exit_code == exit_codes.OK
    said = "HOLON_MODLE is not a Holon variable; did you mean HOLON_MODEL?"
    assert f"warning: {said}" in shown.stdout
    assert said in json.loads(run(tmp_path, *command, "--json", env=env).stdout)["warnings"]


def test_a_setting_that_does_not_fit_is_told_and_the_rest_examined(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[runtime]\nmax_output_tokens = -1\n", encoding="utf-8")
    result = run(tmp_path, "doctor", env={"OPENAI_API_KEY": SECRET})
    assert result.exit_code == exit_codes.FOUND_FAULTS
    assert "setting refused: " in result.stdout
    assert "max_output_tokens" in result.stdout
    assert "https://api.openai.com/v1" in result.stdout


def test_one_provider_can_be_looked_at(tmp_path: Path) -> None:
    ready = run(tmp_path, "providers", "doctor", "openai", env={"OPENAI_API_KEY": SECRET})
    assert ready.exit_code == exit_codes.OK
    assert ready.stdout.startswith("openai\n")
    wrong = run(tmp_path, "providers", "doctor", "opnai")
    assert wrong.exit_code == exit_codes.FOUND_FAULTS
    assert "did you mean 'openai'" in wrong.stdout
    missing = run(tmp_path, "providers", "doctor", "zai")
    assert missing.exit_code == exit_codes.FOUND_FAULTS
    assert "set ZAI_API_KEY" in missing.stdout


def test_a_base_url_that_refuses_connections_is_found_by_a_probe(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        env = {"HOLON_OLLAMA_BASE_URL": address, "HOLON_MODEL": "ollama/qwen3"}
        assert start(tmp_path, "doctor", **env).returncode == exit_codes.OK
        probed = start(tmp_path, "doctor", "--probe", **env)
    assert probed.returncode == exit_codes.FOUND_FAULTS, probed.stderr
    assert "availability  unavailable: " in probed.stdout
