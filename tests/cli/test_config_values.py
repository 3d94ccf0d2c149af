"""`holon config get`, `set`, `unset`, `list` and `schema` as a person and a script see them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holon.adapters.system.run_files import RunFiles, RuntimeRecord, own_identity
from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.config.settings import SETTINGS
from tests.config.samples import KEYS, SAMPLES

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("HOLON_")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner(env={"HOLON_HOME": str(home), **(env or {})}).invoke(
        main, ["config", *arguments]
    )


def start(home: Path, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run the real command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "holon", "config", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**CLEAN, "HOLON_HOME": str(home), **(env or {})},
    )
    return done.returncode, done.stdout, done.stderr


def test_a_value_is_set_got_and_unset_in_real_processes(home: Path) -> None:
    assert start(home, "set", "model.default", "openai/gpt-5.4") == (
        exit_codes.OK,
        "model.default = openai/gpt-5.4\n",
        "",
    )
    assert start(home, "get", "model.default") == (exit_codes.OK, "openai/gpt-5.4\n", "")
    code, out, err = start(home, "get", "model.default", env={"HOLON_MODEL": "a/b"})
    assert (code, out, err) == (exit_codes.OK, "a/b\n", "")
    other = ("set", "model.default", "anthropic/claude-sonnet-5-5")
    code, out, err = start(home, *other, env={"HOLON_MODEL": "a/b"})
    assert (code, err) == (
        exit_codes.OK,
        "holon: HOLON_MODEL is set and takes precedence over the file\n",
    )
    assert start(home, "unset", "model.default")[0] == exit_codes.OK
    code, out, err = start(home, "get", "model.default")
    assert (code, out) == (exit_codes.FAILED, "")
    assert err.startswith("holon: model.default is not set\n")


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_every_setting_can_be_set_got_listed_and_unset(key: object, home: Path) -> None:
    (setting,) = [one for one in KEYS if one == key]
    sample = SAMPLES[setting.setting.key]
    done = run(home, "set", str(key), sample.text, "--json")
    assert done.exit_code == exit_codes.OK, done.output
    value = list(sample.value) if isinstance(sample.value, tuple) else sample.value
    assert json.loads(done.stdout) == {
        "key": str(key),
        "value": value,
        "file": f"{home}/config.toml",
    }
    got = json.loads(run(home, "get", str(key), "--json").stdout)
    assert (got["key"], got["value"], got["source"]) == (str(key), value, "file")
    assert got["where"].startswith(f"{home}/config.toml:")
    listed = json.loads(run(home, "list", "--json").stdout)
    assert got in listed["settings"]
    assert f"{key} = " in run(home, "list").stdout
    assert json.loads(run(home, "unset", str(key), "--json").stdout)["removed"] is True
    assert (home / "config.toml").read_text(encoding="utf-8").strip() == ""
    assert json.loads(run(home, "unset", str(key), "--json").stdout)["removed"] is False


BAD = [(key, text) for key in KEYS for text in SAMPLES[key.setting.key].bad_texts[:2]]


@pytest.mark.parametrize(("key", "text"), BAD, ids=str)
def test_a_bad_value_is_refused_and_nothing_changes(key: object, text: str, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("# mine\n", encoding="utf-8")
    done = run(home, "set", str(key), text)
    assert done.exit_code == exit_codes.UNUSABLE
    assert done.stdout == ""
    assert done.stderr.startswith(f"holon: {key}: expected ")
    assert "Traceback" not in done.stderr
    assert [path.name for path in home.iterdir()] == ["config.toml"]
    assert (home / "config.toml").read_text(encoding="utf-8") == "# mine\n"


@pytest.mark.parametrize("command", [("get",), ("set", "x"), ("unset",)])
def test_an_unknown_key_is_refused_with_the_nearest(command: tuple[str, ...], home: Path) -> None:
    verb, *value = command
    code, out, err = start(home, verb, "modle.default", *value)
    assert (code, out) == (exit_codes.UNUSABLE, "")
    assert err.startswith("holon: 'modle.default' is not a setting; the nearest is model.default,")
    assert "a model as provider/model" in err
    assert not home.exists()


def test_a_value_that_looks_like_an_option_is_a_value(home: Path) -> None:
    done = run(home, "set", "local.threads", "-3")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "not '-3'" in done.stderr


def test_a_broken_file_is_named_by_every_reader_and_can_be_mended(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text('local.threads = 0\nzork."a b" = 1\n', encoding="utf-8")
    for command in (("get", "model.default"), ("list",), ("providers", "list")):
        done = run(home, *command)
        assert done.exit_code == exit_codes.UNUSABLE
        assert f"(from {home}/config.toml:1)" in done.stderr
        assert "(and 1 more)" in done.stderr
    assert run(home, "set", "local.threads", "2").exit_code == exit_codes.OK
    assert run(home, "unset", 'zork."a b"').exit_code == exit_codes.OK
    assert run(home, "get", "local.threads").stdout == "2\n"


def test_a_home_that_cannot_be_made_ends_with_two(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    done = run(tmp_path / "file" / "home", "set", "model.default", "a/b")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "cannot be made" in done.stderr


def test_the_list_shows_every_setting_and_its_source(home: Path) -> None:
    shown = run(home, "list", env={"HOLON_LOCAL_THREADS": "3"}).stdout
    for setting in SETTINGS:
        assert setting.is_family or setting.key in shown
    assert "local.threads = 3  ($HOLON_LOCAL_THREADS)" in shown
    assert "runtime.max_output_tokens = 8192  (default)" in shown
    assert "model.fallbacks = nothing  (default)" in shown
    assert "model.default is not set" in shown
    assert not home.exists()


def test_the_schema_knows_every_setting(home: Path) -> None:
    schema = json.loads(run(home, "schema").stdout)
    assert schema == json.loads(run(home, "schema", "--json").stdout)
    for setting in SETTINGS:
        at = schema
        for part in setting.path:
            at = at["additionalProperties"] if part.startswith("<") else at["properties"][part]
        assert at["description"] == setting.says
        assert at.get("x-environment") == setting.variable
        if setting.default is not None:
            plain = setting.default
            assert at["default"] == (list(plain) if isinstance(plain, tuple) else plain)
    assert schema["additionalProperties"] is False


def test_a_change_beside_a_running_service_says_that_it_waits_for_a_restart(home: Path) -> None:
    files = RunFiles(home)
    files.folder.mkdir(parents=True, mode=0o700)
    told = "a running service keeps the old value until: holon daemon restart"
    key = "templates.github_base"
    we = own_identity()
    files.write_record(RuntimeRecord(pid=we.pid, start_ticks=we.start_ticks, boot_id=we.boot_id))
    changed = run(home, "set", key, "https://example.com", "--json")
    assert (json.loads(changed.stdout)["key"], told in changed.stderr) == (key, True)
    assert told in run(home, "unset", key).stderr
    assert told not in run(home, "unset", key).stderr, "there was nothing to take out"
    files.write_record(RuntimeRecord(pid=we.pid, start_ticks=0, boot_id=we.boot_id))  # it is gone
    assert run(home, "set", key, "https://example.com").stderr == ""


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("model.default", "foo/bar", "there is no provider 'foo'"),
        ("model.fallbacks", "openai/gpt-5.4,foo/bar", "there is no provider 'foo'"),
        ("model.default", "openai/gpt-none", "openai/gpt-none is not in the catalog"),
    ],
)
def test_a_model_that_may_be_a_slip_is_set_with_a_warning(
    home: Path, key: str, value: str, words: str
) -> None:
    done = run(home, "set", key, value)
    assert (done.exit_code, done.stdout) == (exit_codes.OK, f"{key} = {value}\n")
    assert words in done.stderr
    assert run(home, "get", key).stdout == f"{value}\n"


@pytest.mark.requirement("budgets-inside-turns:unknown-price-is-said")
def test_a_cost_budget_over_a_model_without_a_price_is_said_when_either_is_set(home: Path) -> None:
    assert run(home, "set", "model.default", "openai/gpt-5.4").stderr == ""
    assert run(home, "set", "budget.agent.cost_cents_per_day", "100").stderr == ""
    said = run(home, "set", "model.default", "openai/gpt-none").stderr
    assert "the cost budget does not count openai/gpt-none: the price is not known" in said
    assert "tokens_per_day" in said, "what to do instead"
    said = run(home, "set", "budget.runtime.cost_cents_per_day", "100").stderr
    assert "the cost budget does not count openai/gpt-none" in said
    said = run(home, "doctor").stdout
    assert "warning: the cost budget does not count openai/gpt-none" in said


def test_a_model_that_needs_no_network_costs_nothing_and_gets_no_warning(home: Path) -> None:
    run(home, "set", "budget.agent.cost_cents_per_day", "100")
    assert "cost budget" not in run(home, "set", "model.default", "scripted/demo").stderr
