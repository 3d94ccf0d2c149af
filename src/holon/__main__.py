"""What starts the `holon` command, as `holon` and as `python -m holon`.

Rule 1: loading the command makes nothing that could be let go of, so nobody looks for garbage
        meanwhile; the command does from its first step on.
"""

import gc


def start() -> None:
    """Load the command and run it."""
    gc.disable()
    from holon.cli.main import main

    main()


if __name__ == "__main__":
    start()
