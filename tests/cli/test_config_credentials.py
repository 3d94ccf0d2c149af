"""`holon config credentials`: what comes in never comes out."""

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from holon.adapters.system.credential_file import CredentialFile
from holon.cli.config.credentials import set_credential
from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.model.limits import CREDENTIAL_BYTES_MAX
from holon.model.providers.models import CredentialKind

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner(env={"HOLON_HOME": str(home)}).invoke(
        main, ["config", "credentials", *arguments], input=stdin
    )


def start(home: Path, *arguments: str, stdin: str = "", umask: int = 0) -> tuple[int, str, str]:
    """Run the real command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "holon", "config", "credentials", *arguments],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
        umask=umask,
        env={**os.environ, "HOLON_HOME": str(home)},
    )
    return done.returncode, done.stdout, done.stderr


def test_a_secret_is_taken_in_and_never_given_out(home: Path) -> None:
    said = [
        start(home, "set", "openai", "--kind", "api_key", "--stdin", stdin=f"{SECRET}\n"),
        start(home, "set", "work", "--kind", "bearer_token", "--material", SECRET, "--json"),
        start(home, "list"),
        start(home, "list", "--json"),
        start(home, "remove", "work", "--json"),
    ]
    assert [code for code, _, _ in said] == [exit_codes.OK] * 5
    assert all(SECRET not in out + err for _, out, err in said)
    file = home / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    (kept,) = CredentialFile(home).profiles().items()
    assert (kept[0], kept[1].kind, kept[1].material) == ("openai", CredentialKind.API_KEY, SECRET)
    assert said[0][1] == f"openai (api_key) is stored in {file}\n"
    assert json.loads(said[1][1]) == {"profile": "work", "kind": "bearer_token", "file": str(file)}
    names = [one["name"] for one in json.loads(said[3][1])["credentials"]]
    assert names == ["openai", "work"]
    assert set(json.loads(said[3][1])["credentials"][0]) == {"name", "kind", "set_at"}
    assert said[2][1].startswith("openai  api_key  set 20")


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (("openai", "--stdin"), SECRET, "--kind"),
        (("openai", "--kind", "api_key"), SECRET, "either --stdin or --material"),
        (
            ("openai", "--kind", "api_key", "--stdin", "--material", SECRET),
            SECRET,
            "either --stdin or --material",
        ),
        (("openai", "--kind", "apikey", "--stdin"), SECRET, "did you mean api_key?"),
        (("openai", "--kind", "none", "--stdin"), SECRET, "expected one of api_key"),
        (("a/b", "--kind", "api_key", "--stdin"), SECRET, "no name for a profile"),
        (("openai", "--kind", "api_key", "--stdin"), "", "the secret is empty"),
        (("openai", "--kind", "api_key", "--stdin"), "\n", "the secret is empty"),
        (("openai", "--kind", "api_key", "--stdin"), f"{SECRET} {SECRET}", "a key is one word"),
        (("openai", "--kind", "api_key", "--stdin"), b"\xff\xfe", "is not UTF-8 text"),
        (
            ("openai", "--kind", "api_key", "--stdin"),
            SECRET * (CREDENTIAL_BYTES_MAX // len(SECRET) + 1),
            "longer than",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_and_not_repeated(
    arguments: tuple[str, ...], stdin: str | bytes, words: str, home: Path
) -> None:
    done = run(home, "set", *arguments, stdin=stdin)
    assert done.exit_code == exit_codes.UNUSABLE
    assert words in done.stderr
    assert SECRET not in done.output
    assert not home.exists()


def test_a_file_others_may_read_ends_with_one_and_the_remedy(home: Path) -> None:
    run(home, "set", "openai", "--kind", "api_key", "--stdin", stdin=SECRET)
    (home / "credentials.json").chmod(0o644)
    for arguments in (("list",), ("remove", "openai")):
        code, out, err = start(home, *arguments)
        assert (code, out) == (exit_codes.FAILED, "")
        assert f"run: chmod 600 {home}/credentials.json" in err


def test_removing_what_is_not_there_is_refused(home: Path) -> None:
    done = run(home, "remove", "openai")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "there is no credential profile 'openai'" in done.stderr
    assert not home.exists()


def test_an_empty_list_says_so_on_the_side(home: Path) -> None:
    done = run(home, "list")
    assert (done.exit_code, done.stdout) == (exit_codes.OK, "")
    assert "no credentials are stored" in done.stderr
    assert json.loads(run(home, "list", "--json").stdout)["credentials"] == []


def test_help_names_every_kind(home: Path) -> None:
    text = " ".join(run(home, "set", "--help").stdout.split())
    assert all(kind in text for kind in CredentialKind if kind is not CredentialKind.NONE)


def test_a_terminal_is_asked_without_an_echo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def asked(text: str, *, hide_input: bool, err: bool) -> str:
        assert (text, hide_input, err) == ("Secret", True, True)
        return SECRET

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(click, "prompt", asked)
    arguments = ["openai", "--kind", "api_key", "--stdin", "--home", str(home)]
    set_credential.main(arguments, standalone_mode=False)
    assert CredentialFile(home).profiles()["openai"].material == SECRET
