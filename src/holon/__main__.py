"""Entry point of the `holon` command, as `holon` and as `python -m holon`.

Rule 1: loading the command creates no garbage worth collecting, so collection is off meanwhile;
        the command turns it on again as its first step.
Rule 2: Ctrl-C ends the process with a one-line message from the start, also during loading.
"""

import gc
import sys

_INTERRUPTED = 130  # as in holon.cli.console.exit_codes, which may not be loaded yet


def start() -> None:
    """Load the command and run it."""
    gc.disable()
    try:
        from holon.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("holon: interrupted\n")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    start()
