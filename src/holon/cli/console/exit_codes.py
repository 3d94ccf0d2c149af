"""The exit codes of the process.

Owns:  the numbers. Scripts rely on them, so their meaning does not change.
"""

from typing import Final

OK: Final = 0
FOUND_FAULTS: Final = 1  # the command did its work, and what it looked at is not in order
FAILED: Final = 1  # the command was understood and could not finish: a file, a disk, a provider
UNUSABLE: Final = 2  # the command could not do its work: bad usage, or nothing it can work on
WAITING: Final = 3  # a run whose agent waits: for an answer, or for something else that must happen
INTERRUPTED: Final = 130  # ended by Ctrl-C
TERMINATED: Final = 143  # ended by a polite kill
