"""`holon backup` and `holon restore`.

Owns:  the output and exit codes of both; adapters/backup does the work.
Rule 1: progress goes to stderr; with --json there is none.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.console.options import PathParam, echo_json, home_option, json_option

if TYPE_CHECKING:
    from holon.adapters.backup.backup_format import Manifest
    from holon.adapters.backup.home_restore import Restored
    from holon.model.values import JsonValue

_SHOWN_MAX = 10


@click.command()
@click.argument("file", type=PathParam(path_type=Path))
@home_option
@click.option(
    "--with-secrets",
    is_flag=True,
    help="Include provider credentials and the trigger key; protect the file accordingly.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE.")
@json_option
def backup(file: Path, home: Path, with_secrets: bool, overwrite: bool, as_json: bool) -> None:
    """Back up a home into one FILE, also while its service runs.

    FILE (tar, mode 0600) holds a snapshot of the database, the configuration, the agents' homes
    with their instructions, memory and skills, and your templates and skills (~/.agents). The copy
    is checked before FILE is created. Not included: the control token, logs, command output, and,
    without --with-secrets, provider credentials and the trigger key. Links are not followed.

    \b
    Exit codes:
      0  FILE is a complete, checked backup
      1  it failed: the database is damaged, the disk is full, or FILE exists; no file
         was left
      2  there is no database, it is not Holon's, or another Holon wrote it

    \b
    Examples:
      holon backup /backups/holon-monday.tar
      holon backup /backups/holon.tar --overwrite --json | jq .files
    """
    from holon.adapters.backup.home_backup import BackupRequest, back_up
    from holon.adapters.system.clock import SystemClock
    from holon.adapters.system.directories import user_home_of

    asked = BackupRequest(
        home=home.absolute(),
        file=file.absolute(),
        user_home=user_home_of(os.environ),
        with_secrets=with_secrets,
        overwrites=overwrite,
    )
    shown = _Progress(is_silent=as_json)
    manifest = back_up(asked, shown.show, now=SystemClock().now())
    size = file.stat().st_size
    if as_json:
        echo_json({"ok": True, "file": str(asked.file), "bytes": size, **_facts(manifest)})
        return
    click.echo(f"{asked.file}: {len(manifest.files)} files, {size} bytes, checked")
    for line in _remarks(manifest):
        click.echo(line, err=True)


@click.command()
@click.argument("file", type=PathParam(path_type=Path))
@home_option
@click.option(
    "--replace", is_flag=True, help="Replace an existing home; the old one is renamed and kept."
)
@json_option
def restore(file: Path, home: Path, replace: bool, as_json: bool) -> None:
    """Restore a home from a backup, completely or not at all.

    The home must be empty or missing. With --replace an existing one is renamed and kept; a home in
    use is never replaced. Every file is compared with the manifest, and the database is checked.
    The event log of the restored home starts a new epoch, so that readers of its events start over.
    Templates and skills of the user are restored to HOME/user-files.

    \b
    Exit codes:
      0  the home is restored
      2  FILE is not a complete backup, or the home is in use or not empty; nothing was restored

    \b
    Examples:
      holon restore /backups/holon-monday.tar --home ~/.holon
      holon daemon stop && holon restore /backups/holon-monday.tar --replace
    """
    from holon.adapters.backup.home_restore import RestoreRequest, restore
    from holon.adapters.system.clock import SystemClock

    shown = _Progress(is_silent=as_json)
    asked = RestoreRequest(file=file.absolute(), home=home.absolute(), replaces=replace)
    made = restore(asked, shown.show, now=SystemClock().now())
    if as_json:
        echo_json(_restored(asked.home, made))
        return
    click.echo(f"{asked.home}: {len(made.manifest.files)} files of {made.manifest.created_at}")
    if made.kept is not None:
        click.echo(f"the home that was there is {made.kept}", err=True)
    if made.user_files is not None:
        click.echo(
            f"templates and skills of the user are in {made.user_files}; copy what you need to ~",
            err=True,
        )
    for line in _remarks(made.manifest):
        click.echo(line, err=True)


class _Progress:
    """Prints progress in steps of ten percent."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._said: tuple[str, int] | None = None

    def show(self, what: str, done: int, total: int) -> None:
        """Update the progress."""
        tenth = 10 * done // total if total else done // 1_000
        if self._is_silent or (what, tenth) == self._said:
            return
        self._said = (what, tenth)
        how_far = f"{10 * tenth} %" if total else f"{done}"
        click.echo(f"{what}: {how_far}", err=True)


def _facts(manifest: "Manifest") -> "dict[str, JsonValue]":
    return {
        "created_at": manifest.created_at.isoformat(),
        "holon_version": manifest.holon_version,
        "schema_version": manifest.schema_version,
        "files": len(manifest.files),
        "left_out": list(manifest.left_out),
        "skipped": [{"path": each.path, "reason": each.reason} for each in manifest.skipped],
    }


def _restored(home: Path, made: "Restored") -> "JsonValue":
    return {
        "ok": True,
        "home": str(home),
        "event_log_epoch": made.event_log_epoch,
        "kept": None if made.kept is None else str(made.kept),
        "user_files": None if made.user_files is None else str(made.user_files),
        **_facts(made.manifest),
    }


def _remarks(manifest: "Manifest") -> list[str]:
    from holon.cli.console.terminal_text import one_line

    found = []
    if manifest.left_out:
        found.append(f"not in the backup, to be set up anew: {', '.join(manifest.left_out)}")
    found.extend(
        one_line(f"not in the backup: {each.path}: {each.reason}")
        for each in manifest.skipped[:_SHOWN_MAX]
    )
    if len(manifest.skipped) > _SHOWN_MAX:
        found.append(f"and {len(manifest.skipped) - _SHOWN_MAX} more; --json names all of them")
    return found
