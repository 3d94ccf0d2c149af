"""The library that turns a process's own system calls against it, and its switches.

Owns:  building hostile_world.c, the environment that loads it, and setting the wall clock of the
       processes that have it loaded.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("hostile_world.c")


def build_system_library(folder: Path) -> Path | None:
    """Compile it into this folder; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "hostile_world.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


def environ_with(library: Path, switches: Path) -> dict[str, str]:
    """What loads the library into a process and tells it where its switches are."""
    return {"LD_PRELOAD": str(library), "HOSTILE_SWITCHES": str(switches)}


def set_wall_clock(switches: Path, *, by_s: int) -> None:
    """Set the wall clock, as far from the true one as this says."""
    draft = switches / "draft"
    draft.write_text(f"{by_s}\n", encoding="ascii")
    draft.replace(switches / "clock_s")
