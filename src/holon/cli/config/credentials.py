"""`holon config credentials`: the secrets stored in a home.

Owns:  the output of these commands.
Rule 1: a secret is written, never printed and never repeated in an error.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.lazy_group import LazyCommand, LazyGroup
from holon.cli.console.options import echo_json, home_option, json_option

if TYPE_CHECKING:
    from holon.model.providers.models import CredentialKind

_HERE: Final = "holon.cli.config.credentials"

CREDENTIAL_COMMANDS: Final[Mapping[str, LazyCommand]] = MappingProxyType(
    {
        "set": LazyCommand(_HERE, "set_credential", "Store a secret under a name."),
        "list": LazyCommand(_HERE, "list_credentials", "List the stored secrets by name."),
        "remove": LazyCommand(_HERE, "remove_credential", "Delete a stored secret."),
    }
)


@click.group(cls=LazyGroup, table=CREDENTIAL_COMMANDS)
def credentials() -> None:
    """Manage the secrets stored in a home.

    They are stored in credentials.json under HOLON_HOME, readable by its owner only. A profile
    named like a provider is used for that provider without further configuration.

    \b
    Examples:
      holon config credentials set openai --kind api_key --stdin
      holon config credentials list
      holon config credentials remove openai
    """


@click.command("set")
@click.argument("profile")
@click.option(
    "--kind",
    required=True,
    metavar="KIND",
    help="api_key, bearer_token, o_auth or session_token.",
)
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the secret from standard input.")
@click.option(
    "--material",
    metavar="SECRET",
    help="The secret itself; other users of this machine can see it.",
)
@home_option
@json_option
def set_credential(
    profile: str,
    kind: str,
    from_stdin: bool,
    material: str | None,
    home: Path,
    as_json: bool,
) -> None:
    """Store a secret under a name.

    An existing secret of that name is replaced.
    On a terminal, --stdin prompts for the secret without echo.

    \b
    Examples:
      holon config credentials set openai --kind api_key --stdin < key.txt
      pass show anthropic | holon config credentials set work --kind api_key --stdin
    """
    from holon.adapters.system.credential_file import CredentialFile, require_profile_name
    from holon.model.providers.models import StoredCredential

    require_profile_name(profile)
    meant = _kind_of(kind)
    if from_stdin == (material is not None):
        raise click.UsageError("give either --stdin or --material")
    secret = _read_secret() if material is None else material
    file = CredentialFile(home)
    file.put(profile, StoredCredential(kind=meant, material=secret))
    if as_json:
        echo_json({"profile": profile, "kind": meant, "file": str(file.path)})
    else:
        click.echo(f"{profile} ({meant.value}) is stored in {file.path}")


@click.command("list")
@home_option
@json_option
def list_credentials(home: Path, as_json: bool) -> None:
    """List the stored secrets by name.

    With their kinds and times, without their values.

    \b
    With --json:
      {"file": "…", "credentials": [{"name": "openai", "kind": "api_key",
       "set_at": "2026-01-01T00:00:00Z"}]}

    \b
    Examples:
      holon config credentials list
    """
    from holon.adapters.system.credential_file import CredentialFile
    from holon.wire.codec import json_of

    file = CredentialFile(home)
    listed = file.listed()
    if as_json:
        echo_json({"file": str(file.path), "credentials": [json_of(one) for one in listed]})
        return
    for one in listed:
        click.echo(f"{one.name}  {one.kind.value}  set {one.set_at:%Y-%m-%d %H:%M} UTC")
    if not listed:
        click.echo(f"no credentials are stored in {file.path}", err=True)


@click.command("remove")
@click.argument("profile")
@home_option
@json_option
def remove_credential(profile: str, home: Path, as_json: bool) -> None:
    """Delete a stored secret.

    \b
    Examples:
      holon config credentials remove openai
    """
    from holon.adapters.system.credential_file import CredentialFile

    file = CredentialFile(home)
    file.remove(profile)
    if as_json:
        echo_json({"profile": profile, "removed": True, "file": str(file.path)})
    else:
        click.echo(f"{profile} is removed from {file.path}")


def _kind_of(text: str) -> "CredentialKind":
    from holon.adapters.system.credential_file import BadCredentialError
    from holon.config.value_types import ChoiceValue, InvalidValueError
    from holon.model.providers.models import CredentialKind

    kinds = ChoiceValue(tuple(kind for kind in CredentialKind if kind is not CredentialKind.NONE))
    try:
        return CredentialKind(str(kinds.from_text(text)))
    except InvalidValueError as unfit:
        meant = None if unfit.nearest is None else f"did you mean {unfit.nearest}?"
        raise BadCredentialError(f"--kind: expected {kinds.expected}", hint=meant) from None


def _read_secret() -> str:
    """Return stdin without a trailing line break."""
    from holon.adapters.system.credential_file import BadCredentialError
    from holon.model.limits import CREDENTIAL_BYTES_MAX

    if sys.stdin is None:  # closed by the calling process
        raise BadCredentialError("stdin is closed; cannot read the secret")
    if sys.stdin.isatty():
        asked: str = click.prompt("Secret", hide_input=True, err=True)
        return asked
    content = sys.stdin.buffer.read(CREDENTIAL_BYTES_MAX + 1)
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadCredentialError("the secret on stdin is not UTF-8 text") from None
