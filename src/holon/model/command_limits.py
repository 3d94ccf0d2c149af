"""Bounds of commands and patches, by name.

Owns:  the numbers of what a model does by its hands; every other one is in model/limits.
"""

from typing import Final

from holon.model.limits import DAY_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Commands.
COMMAND_YIELD_MS_DEFAULT: Final = 10 * SECOND_MS  # in the foreground, before it becomes a task
COMMAND_YIELD_MS_MAX: Final = 10 * MINUTE_MS
COMMAND_TEXT_BYTES_MAX: Final = 96 * KIB  # the system takes no single argument of 128 KiB
COMMAND_BATCH_ITEMS_COUNT_MAX: Final = 12
COMMAND_BATCH_ITEM_MS_DEFAULT: Final = 30 * SECOND_MS
COMMAND_INPUT_BYTES_MAX: Final = 64 * KIB  # in one go
COMMAND_WALL_CLOCK_MS_MAX: Final = DAY_MS
COMMAND_OUTPUT_BYTES_MAX: Final = 256 * MIB  # on disk, of one stream; twice that of both combined
COMMAND_PROCESSES_COUNT_MAX: Final = 512
COMMAND_FILE_BYTES_MAX: Final = 32 * 1024 * MIB  # of one file it writes itself
COMMAND_HANDLES_COUNT_MAX: Final = 65_536  # open at once, of one process
COMMAND_LOOK_MARGIN_BYTES: Final = 16 * KIB  # read past a cut: a secret there is seen whole
COMMAND_STOP_GRACE_MS: Final = 3 * SECOND_MS  # between the polite signal and the certain one
COMMAND_DRAIN_MS_MAX: Final = 2 * SECOND_MS  # after the end, for what is still in the pipe

# Patches.
PATCH_BYTES_MAX: Final = 1 * MIB  # no call has more
PATCH_FILES_COUNT_MAX: Final = 500
PATCH_FILE_BYTES_MAX: Final = 32 * MIB
PATCH_TREE_BYTES_MAX: Final = 128 * MIB  # of all files one patch touches, read together
PATCH_FILE_LINES_COUNT_MAX: Final = 500_000
PATCH_LINES_COUNT_MAX: Final = 20_000  # of the patch itself
PATCH_HUNKS_COUNT_MAX: Final = 2_000
PATCH_HUNK_CLAIM_COUNT_MAX: Final = 9_999_999  # a line number or count a hunk header may name
PATCH_MATCH_STEPS_COUNT_MAX: Final = 400_000  # of looking for places, beside reading each file
PATCH_PATH_BYTES_MAX: Final = 4_096
PATCH_NOTES_COUNT_MAX: Final = 50
PATCH_QUOTED_CHARS_MAX: Final = 120  # of a line of a file in an error

assert COMMAND_YIELD_MS_DEFAULT <= COMMAND_YIELD_MS_MAX
