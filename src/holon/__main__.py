"""What starts the `holon` command, as `holon` and as `python -m holon`.

Rule 1: loading the command creates no garbage worth collecting, so collection is off meanwhile.

Rule 2: Ctrl-C ends it in a sentence from the first moment on, also while it is loaded.
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
