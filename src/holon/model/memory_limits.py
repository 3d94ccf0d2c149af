"""Bounds of what an agent remembers of its own work, by name.

Owns:  the numbers of working memory and episodes; every other one is in model/limits.
"""

from typing import Final

# What is looked at when a turn is settled.
EVIDENCE_CALLS_COUNT_MAX: Final = 24  # of a turn: the newest that say what was done

# Working memory.
MEMORY_LINE_CHARS_MAX: Final = 240  # of one entry of a list, and of a line of a delta
MEMORY_SUMMARY_CHARS_MAX: Final = 480
MEMORY_ENTRIES_COUNT_MAX: Final = 8  # of a list
MEMORY_FILES_COUNT_MAX: Final = 10
MEMORY_DELTA_ENTRIES_COUNT_MAX: Final = 3  # of a list, in the line that says it changed

# Episodes.
EPISODE_TURNS_COUNT_MAX: Final = 12
EPISODE_SUMMARY_CHARS_MAX: Final = 1_200
EPISODE_CANDIDATES_COUNT: Final = 12  # newest ones: weighed for a prompt, and always kept
EPISODES_SHOWN_COUNT_MAX: Final = 3
EPISODES_PAGE_COUNT_MAX: Final = 200

# The ledger in an agent's home.
LEDGER_TAIL_BYTES_MAX: Final = 256 * 1_024  # read back to see what stands there already
LEDGER_START_COUNT_MAX: Final = 256  # newest episodes of all agents that a start looks after

assert EPISODES_SHOWN_COUNT_MAX <= EPISODE_CANDIDATES_COUNT <= EPISODES_PAGE_COUNT_MAX
