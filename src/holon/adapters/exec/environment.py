"""What a command sees of our environment.

Owns:  the allow-list. A variable that is not named here does not pass, so a key or a token of the
       runtime cannot reach a command by being forgotten.
"""

import os
from collections.abc import Mapping
from typing import Final

PASSED: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"}
)
PASSED_PREFIX: Final = "LC_"
PATH_DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TERMINAL_DEFAULT: Final = "xterm-256color"
RUN_MARKER: Final = "HOLON_RUN"  # the folder of the run: unlike its id, nobody else has it


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of our own environment others may see."""
    found = {
        name: value
        for name, value in environ.items()
        if name in PASSED or name.startswith(PASSED_PREFIX)
    }
    found.setdefault("PATH", PATH_DEFAULT)
    return found


def command_environment(
    environ: Mapping[str, str], added: Mapping[str, str], *, folder: str, is_tty: bool
) -> dict[str, str]:
    """Return the whole environment of a command."""
    found = passed_on(environ)
    if is_tty:
        found.setdefault("TERM", TERMINAL_DEFAULT)
    return {**found, **added, "HOLON_RUNTIME": "1", RUN_MARKER: folder}


def marker_of(folder: str) -> bytes:
    """Return the line every process of a run has in its environment."""
    return os.fsencode(f"{RUN_MARKER}={folder}")
