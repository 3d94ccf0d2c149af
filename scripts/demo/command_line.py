"""The `holon` command as a person uses it.

Owns:  the environment of the commands the story runs, and how they are run.
Rule 1: a command gets a home of its own and nothing of the environment it could lean on.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from holon.model.values import JsonValue
from scripts.demo.narrator import REHEARSALS, Narrator, StoryBrokenError

BIN: Final = Path(sys.executable).parent
HOLON: Final = str(BIN / "holon")
RUN_S_MAX: Final = 180.0


def environment(folder: Path) -> dict[str, str]:
    """Return what a command sees of the world; its home is `folder`/holon."""
    return {
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "HOLON_HOME": str(home_in(folder)),
        "PYTHONUTF8": "1",
    }


def home_in(folder: Path) -> Path:
    """Return the home of the commands that run in this folder."""
    return folder / "holon"


def scripted(name: str) -> tuple[str, str]:
    """Return the option that lets a rehearsed script be the model."""
    return "--model", f"scripted/{REHEARSALS / name}.yaml"


def ran(
    folder: Path, *command: str, cwd: Path | None = None, added: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run any command to its end."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**environment(folder), **(added or {})},
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


def run_once(folder: Path, say: Narrator, text: str, *options: str) -> dict[str, JsonValue]:
    """Ask through `holon run`, as a new user would, and return what it says of the run."""
    say.tell(" ".join(("holon run", *options, f"“{text}”")))
    done = ran(folder, HOLON, "run", "--json", *options, text)
    if done.returncode != 0:
        raise StoryBrokenError(why_it_failed(done.stdout, done.stderr))
    return told_by(done.stdout)


def why_it_failed(stdout: str, stderr: str) -> str:
    """Return a failed run in words: its last ones, or its complaint."""
    return str(told_by(stdout)["final_text"]) if stdout.strip() else stderr.strip()


def told_by(stdout: str) -> dict[str, JsonValue]:
    """Return the one object a run prints."""
    told = json.loads(stdout)
    if not isinstance(told, dict):
        raise StoryBrokenError(f"holon run printed {stdout!r}")
    return told


def check_home(home: Path, say: Narrator) -> None:
    """Have the invariants of a home checked."""
    checked = ran(home.parent, HOLON, "debug", "check", "--home", str(home))
    say.tell("holon debug check")
    said = (checked.stdout + checked.stderr).strip()
    say.check(checked.returncode == 0 and said.startswith("clean"), said)
