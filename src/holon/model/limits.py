"""Every bound in the runtime, by name.

Owns:  the numbers. A limit that has no name here does not exist.
Rule 1: names carry their unit last: `_BYTES_MAX`, `_MS_DEFAULT`, `_COUNT_MAX`.
Rule 2: relations between limits are asserted at the bottom, so that an edit cannot break them.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

# Identifiers and text at the door.
ID_CHARS_MAX: Final = 64
IDEMPOTENCY_KEY_CHARS_MAX: Final = 200
JSON_DEPTH_MAX: Final = 64
MESSAGE_BODY_BYTES_MAX: Final = 1 * MIB
MESSAGE_METADATA_BYTES_MAX: Final = 64 * KIB
PUBLIC_BODY_BYTES_MAX: Final = 256 * KIB
LABEL_CHARS_MAX: Final = 500

# Models and providers.
MODEL_REF_CHARS_MAX: Final = 512
PROVIDER_RETRIES_COUNT_MAX: Final = 2  # per candidate: three attempts in all
PROVIDER_BACKOFF_MS_MIN: Final = 500
PROVIDER_BACKOFF_MS_MAX: Final = 30 * SECOND_MS
PROVIDER_WAIT_INLINE_MS_MAX: Final = 60 * SECOND_MS  # a longer wait moves on, or defers the turn
PROVIDER_DEFERRAL_MS_MAX: Final = 7 * DAY_MS
PROVIDER_RETRY_BUDGET_COUNT_MAX: Final = 20  # retries an account may have ahead of its successes
PROVIDER_CIRCUIT_FAILURES_COUNT_MAX: Final = 5  # in a row, before a route is rested
PROVIDER_CIRCUIT_REST_MS_MIN: Final = 30 * SECOND_MS
PROVIDER_CIRCUIT_REST_MS_MAX: Final = 5 * MINUTE_MS
PROVIDER_ROUTES_KEPT_COUNT_MAX: Final = 1_024  # circuits, budgets and last failures, each
PROVIDER_HTTP_TIMEOUT_MS_DEFAULT: Final = 300 * SECOND_MS
PROVIDER_CONNECT_TIMEOUT_MS_DEFAULT: Final = 15 * SECOND_MS
PROVIDER_STREAM_IDLE_MS_DEFAULT: Final = 300 * SECOND_MS
PROVIDER_ANSWER_BYTES_MAX: Final = 32 * MIB
PROVIDER_STREAM_BYTES_MAX: Final = 128 * MIB  # it says most things more than once; not kept
PROVIDER_ANSWER_CHARS_MAX: Final = PROVIDER_ANSWER_BYTES_MAX  # of what is kept of a stream
PROVIDER_ERROR_BYTES_MAX: Final = 64 * KIB
PROVIDER_MESSAGE_CHARS_MAX: Final = 400  # of a provider's own words in our errors
PROVIDER_SOURCE_CHAIN_COUNT_MAX: Final = 6
PROVIDER_NAMED_WAIT_MS_MAX: Final = 366 * DAY_MS  # a later reset is no moment worth waiting for
PROVIDER_OUTPUT_ITEMS_COUNT_MAX: Final = 128
SSE_LINE_BYTES_MAX: Final = 16 * MIB  # a whole response may arrive as one line
SSE_EVENT_BYTES_MAX: Final = 32 * MIB
TOOL_ARGUMENTS_BYTES_MAX: Final = 1 * MIB
SECRET_CHARS_MIN: Final = 8  # a shorter value is not looked for: it would hide half of every text
RECORDED_EXCHANGE_BYTES_MAX: Final = 64 * MIB
RECORDED_DIFFERENCE_LINES_COUNT_MAX: Final = 24
LOCAL_THREADS_COUNT_DEFAULT: Final = 1

# Configuration.
CONFIG_FILE_BYTES_MAX: Final = 256 * KIB
CREDENTIALS_FILE_BYTES_MAX: Final = 1 * MIB
CREDENTIAL_BYTES_MAX: Final = 64 * KIB
CREDENTIAL_PROCESS_MS_MAX: Final = 30 * SECOND_MS  # a program asked for a secret answers by then
CREDENTIAL_KEPT_MS_MAX: Final = 5 * MINUTE_MS  # what such a program said is used for this long
SETTING_TEXT_CHARS_MAX: Final = 4_096
MODEL_FALLBACKS_COUNT_MAX: Final = 16
MODEL_TOKENS_COUNT_MAX: Final = 100_000_000  # what a setting may claim a model takes or gives

# Commands and patches.
COMMAND_YIELD_MS_DEFAULT: Final = 10 * SECOND_MS  # in the foreground, before it becomes a task
COMMAND_YIELD_MS_MAX: Final = 10 * MINUTE_MS
COMMAND_TEXT_BYTES_MAX: Final = 96 * KIB  # the system takes no single argument of 128 KiB
COMMAND_BATCH_ITEMS_COUNT_MAX: Final = 12
COMMAND_BATCH_ITEM_MS_DEFAULT: Final = 30 * SECOND_MS
COMMAND_INPUT_BYTES_MAX: Final = 64 * KIB  # in one go
COMMAND_WALL_CLOCK_MS_MAX: Final = DAY_MS
COMMAND_OUTPUT_BYTES_MAX: Final = 256 * MIB  # of one stream, on disk
COMMAND_PROCESSES_COUNT_MAX: Final = 512
COMMAND_STOP_GRACE_MS: Final = 3 * SECOND_MS  # between the polite signal and the certain one
COMMAND_DRAIN_MS_MAX: Final = 2 * SECOND_MS  # after the end, for what is still in the pipe
PATCH_BYTES_MAX: Final = 4 * MIB
PATCH_FILES_COUNT_MAX: Final = 500
PATCH_FILE_BYTES_MAX: Final = 32 * MIB
PATCH_TREE_BYTES_MAX: Final = 128 * MIB  # of all files one patch touches, read together
PATCH_FILE_LINES_COUNT_MAX: Final = 500_000
PATCH_LINES_COUNT_MAX: Final = 100_000  # of the patch itself
PATCH_HUNKS_COUNT_MAX: Final = 10_000
PATCH_HUNK_CLAIM_COUNT_MAX: Final = 9_999_999  # a line number or count a hunk header may name
PATCH_MATCH_STEPS_COUNT_MAX: Final = 2_000_000  # of looking for places, beside reading each file
PATCH_PATH_BYTES_MAX: Final = 4_096
PATCH_NOTES_COUNT_MAX: Final = 50
PATCH_QUOTED_CHARS_MAX: Final = 120  # of a line of a file in an error

# The queue.
QUEUED_PER_AGENT_COUNT_MAX: Final = 10_000
CLAIMS_PASSED_OVER_COUNT_MAX: Final = 16  # then the oldest waiting message is served, any band
UNSEEN_SHOWN_COUNT_MAX: Final = 16

# Senders may repeat a key for a day; only we repeat a commit, and we do so within moments.
IDEMPOTENCY_KEPT_MS_MIN: Final = DAY_MS
COMMIT_IDS_KEPT_MS_MIN: Final = HOUR_MS

# Waking and scheduling.
BACKSTOP_INTERVAL_MS: Final = 30 * SECOND_MS
BACKSTOP_GRACE_MS: Final = 2 * SECOND_MS  # what is on its way to a lane is not overlooked
RECHECK_DEFAULT_MS: Final = HOUR_MS
NO_PROGRESS_BACKOFF_MS_MIN: Final = 1 * SECOND_MS
NO_PROGRESS_BACKOFF_MS_MAX: Final = 10 * MINUTE_MS
NO_PROGRESS_ACTIVATIONS_COUNT_MAX: Final = 8  # then the operator is asked instead
WAKE_HINT_SOURCES_COUNT_MAX: Final = 64  # distinct parked sources per agent
WAKE_HINT_BODY_BYTES_MAX: Final = 256 * KIB
WORK_ITEMS_WEIGHED_COUNT_MAX: Final = 64
WAIT_DEADLINE_DEFAULT_MS: Final = DAY_MS
DUE_BATCH_COUNT_MAX: Final = 256

# Timers.
TIMER_DURATION_MS_MIN: Final = 1
TIMER_DURATION_MS_MAX: Final = 366 * DAY_MS
TIMER_INTERVAL_MS_MIN: Final = 1 * SECOND_MS
SLEEP_DURATION_MS_MAX: Final = 7 * DAY_MS

# Turns.
MAX_OUTPUT_CONTINUATIONS_COUNT_MAX: Final = 2
TURN_ROUNDS_COUNT_MAX: Final = 500
TOOL_CALLS_PER_ROUND_COUNT_MAX: Final = 64
TURN_RESUMES_COUNT_MAX: Final = 8  # a turn that kills the process each time is poison
INTERJECTIONS_PER_POINT_COUNT_MAX: Final = 8
HISTORY_TURNS_COUNT_DEFAULT: Final = 12

# Tool output and previews.
TOOL_ERROR_DETAIL_CHARS_MAX: Final = 1_000
TOOL_RESULT_BYTES_MAX: Final = 512 * KIB
TOOL_OUTPUT_TOKENS_DEFAULT: Final = 8_000  # of a command's output, as the model sees it
TOOL_OUTPUT_TOKENS_MAX: Final = 64_000
ESTIMATED_TOKEN_BYTES: Final = 4
TASK_OUTPUT_TOKENS: Final = 2_000  # of a task's output, in a look at it and in its result
TASK_OUTPUT_WAIT_MS_DEFAULT: Final = 30 * SECOND_MS
TASK_OUTPUT_WAIT_MS_MAX: Final = 10 * MINUTE_MS
ENQUEUE_TEXT_BYTES_MAX: Final = 64 * KIB
EVENT_TEXT_CHARS_MAX: Final = 400
OBJECTIVE_CHARS_MAX: Final = 4_000
ARGUMENT_NOTES_COUNT_MAX: Final = 8  # on how the arguments of one call were read

# Work items.
WORK_ITEMS_LISTED_COUNT_DEFAULT: Final = 20
WORK_ITEMS_LISTED_COUNT_MAX: Final = 100
WORK_EVENTS_SEARCHED_COUNT_MAX: Final = 2_048  # newest events, for items completed of late
TODO_ITEMS_COUNT_MAX: Final = 100
TODO_TEXT_CHARS_MAX: Final = 1_000
PLAN_BYTES_MAX: Final = 256 * KIB
PLAN_PREVIEW_CHARS_MAX: Final = 1_600
PLAN_PREVIEW_LISTED_CHARS_MAX: Final = 200  # where many items are shown
AGENT_ROWS_SHOWN_COUNT_MAX: Final = 32  # waits, tasks and items in an agent's own summary

# Events and their readers.
EVENT_PAGE_COUNT_DEFAULT: Final = 128
EVENT_PAGE_COUNT_MAX: Final = 512
FEED_LAG_EVENTS_MAX: Final = 4_096

# The store.
GROUP_COMMIT_COUNT_MAX: Final = 256
COMMITS_WAITING_COUNT_MAX: Final = 4_096
WAL_BYTES_MAX: Final = 64 * MIB
CHECKPOINT_PAGES: Final = 1_000
STORE_RETRY_MS_MIN: Final = 250
STORE_RETRY_MS_MAX: Final = 30 * SECOND_MS

# Retention: on by default.
RETENTION_INTERVAL_MS: Final = 10 * MINUTE_MS
RETENTION_COMMITS_COUNT: Final = 500  # groups of commits after which retention looks early
RETENTION_LOOK_COMMITS_COUNT: Final = 8  # groups of commits between two looks at the size
RETENTION_FULL_PERCENT: Final = 97  # of the cap; from there on retention does not wait
RETENTION_AGE_MS_DEFAULT: Final = 90 * DAY_MS
RETENTION_EVENTS_COUNT_MIN: Final = 1_000  # newest events always kept per agent
RETENTION_TURNS_COUNT_MIN: Final = 50  # newest turns always kept per agent
RETENTION_BYTES_MAX_DEFAULT: Final = 1024 * MIB
RETENTION_BATCH_COUNT: Final = 500

assert PUBLIC_BODY_BYTES_MAX <= MESSAGE_BODY_BYTES_MAX
assert NO_PROGRESS_BACKOFF_MS_MIN <= NO_PROGRESS_BACKOFF_MS_MAX
assert EVENT_PAGE_COUNT_DEFAULT <= EVENT_PAGE_COUNT_MAX
assert STORE_RETRY_MS_MIN <= STORE_RETRY_MS_MAX
assert ENQUEUE_TEXT_BYTES_MAX <= MESSAGE_BODY_BYTES_MAX
assert RETENTION_AGE_MS_DEFAULT >= IDEMPOTENCY_KEPT_MS_MIN
assert COMMAND_YIELD_MS_DEFAULT <= COMMAND_YIELD_MS_MAX
assert TOOL_OUTPUT_TOKENS_MAX * ESTIMATED_TOKEN_BYTES < TOOL_RESULT_BYTES_MAX
