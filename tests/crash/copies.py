"""Copying a home the way a person does it: everything, as it lies there, at once.

Owns:  the copy. A service may write to the original meanwhile: what is copied is then a database
       and a log of different moments, and nothing can be said about what the copy holds.
"""

import subprocess
from pathlib import Path


def copy_home(home: Path, copy: Path) -> None:
    """Copy a home, with modes, times, sockets and pipes."""
    done = subprocess.run(["cp", "-a", str(home), str(copy)], capture_output=True, check=False)
    # A file may go while it is copied, which cp calls an error; it has copied the rest.
    assert copy.is_dir(), done.stderr
