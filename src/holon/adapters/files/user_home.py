"""The home of the person Holon works for, which is not HOLON_HOME.

Owns:  where `~` is, for a process that was given an environment.
"""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Final

AGENTS_FOLDER: Final = ".agents"
TEMPLATES_FOLDER: Final = "templates"


def user_home_of(environ: Mapping[str, str]) -> Path | None:
    """Return the user's home, or nothing where nobody says where it is."""
    named = environ.get("HOME", "")
    if named:
        return Path(named) if os.path.isabs(named) else None
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def templates_root(user_home: Path) -> Path:
    """Return where the user's templates are."""
    return user_home / AGENTS_FOLDER / TEMPLATES_FOLDER
