"""Force-stop a command from a process that is about to exit.

Owns:  the signal that makes a supervisor kill its command without a grace period.
Rule 1: nothing here blocks: it is called when no time is left, for example from a signal handler.
"""

import os
import signal
from pathlib import Path

from holon.adapters.exec.process_table import open_living
from holon.adapters.exec.run_folder import FORCED, RunFolder


def end_now(root: Path, run_id: str) -> bool:
    """Signal the supervisor of this run to kill its command; False when there is none."""
    folder = RunFolder(root / run_id)
    record = folder.hold()
    if record is None:
        return False
    identity = folder.read().supervisor
    handle = None if identity is None else open_living(identity)
    try:
        if handle is None:
            return False
        signal.pidfd_send_signal(handle, FORCED)
    except ProcessLookupError:
        return False  # it has just exited
    finally:
        os.close(record)
        if handle is not None:
            os.close(handle)
    return True
