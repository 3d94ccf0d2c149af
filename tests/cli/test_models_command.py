"""`holon config models list` as a person and as a script see it."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from holon.cli.console import exit_codes
from holon.cli.main import main


def run(home: Path, *arguments: str, **env: str) -> Result:
    return CliRunner().invoke(
        main, ["config", "models", "list", *arguments, "--home", str(home)], env=env
    )


def test_the_table_shows_windows_prices_and_sources(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == exit_codes.OK
    (line,) = [one for one in result.stdout.splitlines() if one.startswith("openai/gpt-4o ")]
    assert line.split() == ["openai/gpt-4o", "128000", "16384", "2.5", "/", "10", "builtin_catalog"]


def test_models_of_the_settings_are_listed_too(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[models.catalog."mine/big"]\ncontext_window_tokens = 9000\n'
        '[model]\ndefault = "ollama/qwen3"\n',
        encoding="utf-8",
    )
    models = json.loads(run(tmp_path, "--json").stdout)["models"]
    told = {one["model_ref"]: one for one in models}
    assert told["mine/big"]["source"] == "config_override"
    assert told["mine/big"]["context_window_tokens"] == 9000
    assert told["mine/big"]["prompt_budget_tokens"] == 8550
    assert told["ollama/qwen3"]["source"] == "unknown_fallback"
    assert [one["model_ref"] for one in models if one["is_default"]] == ["ollama/qwen3"]
    assert told["openai/gpt-5.4"]["price"] == {"input": 2.5, "output": 15.0, "cache_read": 0.25}


def test_one_provider_can_be_listed_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    models = json.loads(run(tmp_path, "--json", "--provider", "anthropic").stdout)["models"]
    assert models
    assert all(one["model_ref"].startswith("anthropic/") for one in models)
    bare = run(tmp_path, "--provider", "nvidia")
    assert bare.exit_code == exit_codes.OK
    assert "any can be used" in bare.stdout
    wrong = run(tmp_path, "--provider", "antropic")
    assert wrong.exit_code != exit_codes.OK
    assert "did you mean 'anthropic'" in wrong.stderr
    assert "Traceback" not in wrong.output
