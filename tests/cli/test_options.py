"""Who asked for JSON gets an object, also of a failure."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from holon.cli.console import exit_codes
from holon.cli.main import main


@pytest.mark.parametrize(
    ("command", "exit_code", "code"),
    [
        (("config", "get", "nope"), exit_codes.UNUSABLE, "unknown_setting"),
        (("config", "providers", "get", "nope"), exit_codes.UNUSABLE, "unknown_setting"),
        (("config", "credentials", "remove", "x"), exit_codes.UNUSABLE, "no_such_profile"),
        (("debug", "check"), exit_codes.UNUSABLE, "not_a_holon_database"),
        (("debug", "latency"), exit_codes.UNUSABLE, "not_a_holon_database"),
        (("daemon", "start", "--listen", "bad"), exit_codes.UNUSABLE, "bad_access"),
        (("template", "info", "nope"), exit_codes.FAILED, "bad_template"),
        (("status",), exit_codes.FAILED, "no_runtime"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_failure_is_told_in_json_where_that_was_asked_for(
    tmp_path: Path, command: tuple[str, ...], exit_code: int, code: str
) -> None:
    asked = [*command, "--home", str(tmp_path / "h")]
    for people in (CliRunner().invoke(main, asked), CliRunner().invoke(main, [*asked, "--json"])):
        assert people.exit_code == exit_code
        assert people.stderr.startswith("holon: ")
    script = CliRunner().invoke(main, [*asked, "--json"])
    told = json.loads(script.stdout)
    assert (told["ok"], told["code"]) == (False, code)
    assert f"holon: {told['error']}\n" in script.stderr
    assert CliRunner().invoke(main, asked).stdout == ""


def test_a_run_tells_its_failure_once(tmp_path: Path) -> None:
    asked = ["run", "hi", "--agent", "no name!", "--json", "--home", str(tmp_path / "h")]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == exit_codes.UNUSABLE
    assert json.loads(done.stdout)["final_status"] == "failed"
