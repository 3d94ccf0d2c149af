"""Every bound in the runtime, by name.

Owns:  the numbers; a limit without a name here does not exist. Numbers that only one record uses
       stand beside it: model/memory/records, model/turns/compaction, model/events/reads.
Rule 1: names carry their unit last: `_BYTES_MAX`, `_MS_DEFAULT`, `_COUNT_MAX`.
Rule 2: relations between limits are asserted at the end, so that an edit cannot break them.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

# Identifiers and text at ingress.
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
PROVIDER_STREAM_MS_MAX: Final = 2 * HOUR_MS  # the longest answer of the slowest model takes less
PROVIDER_STREAM_BYTES_MAX: Final = 128 * MIB  # it repeats most content; not kept
PROVIDER_ANSWER_CHARS_MAX: Final = PROVIDER_ANSWER_BYTES_MAX  # of what is kept of a stream
ANSWER_TOKEN_BYTES_MAX: Final = (
    16  # no text has longer tokens on average; of a model's output limit
)
ANSWER_TEXT_BYTES_MAX: Final = 2 * MIB  # of one answer, whatever the model's limit; thinking alike
ANSWER_CALLS_BYTES_MAX: Final = 4 * MIB  # the arguments of all calls of one answer
BRIEF_TEXT_BYTES_MAX: Final = 256 * KIB  # of a brief or a report; all of it is in the transcript
TERMINAL_TEXT_BYTES_MAX: Final = 4 * KIB  # of the last text in the end of a turn
PROVIDER_ERROR_BYTES_MAX: Final = 64 * KIB
PROVIDER_MESSAGE_CHARS_MAX: Final = 400  # of a provider's own text in our errors
PROVIDER_SOURCE_CHAIN_COUNT_MAX: Final = 6
PROVIDER_NAMED_WAIT_MS_MAX: Final = 366 * DAY_MS  # a later reset is no moment worth waiting for
PROVIDER_OUTPUT_ITEMS_COUNT_MAX: Final = 128
PROVIDER_OPAQUE_CHARS_MAX: Final = 256 * KIB  # of what a provider did by itself; more is left out
SSE_LINE_BYTES_MAX: Final = 16 * MIB  # a whole response may arrive as one line
SSE_EVENT_BYTES_MAX: Final = 32 * MIB
TOOL_ARGUMENTS_BYTES_MAX: Final = 1 * MIB
SECRET_CHARS_MIN: Final = 8  # a shorter value is not looked for: it would hide half of every text
SECRETS_PER_SOURCE_COUNT_MAX: Final = 32  # that are looked for; the newest
RECORDED_EXCHANGE_BYTES_MAX: Final = 64 * MIB
RECORDED_DIFFERENCE_LINES_COUNT_MAX: Final = 24
LOCAL_THREADS_COUNT_DEFAULT: Final = 1

# Configuration.
CONFIG_FILE_BYTES_MAX: Final = 256 * KIB
CREDENTIALS_FILE_BYTES_MAX: Final = 1 * MIB
CREDENTIAL_BYTES_MAX: Final = 64 * KIB
CREDENTIAL_PROCESS_MS_MAX: Final = 30 * SECOND_MS  # for a credential program to answer
CREDENTIAL_KEPT_MS_MAX: Final = 5 * MINUTE_MS  # how long the credential of such a program is cached
SETTING_TEXT_CHARS_MAX: Final = 4_096
MODEL_FALLBACKS_COUNT_MAX: Final = 16
MODEL_TOKENS_COUNT_MAX: Final = 100_000_000  # what a setting may claim a model takes or gives

# The HTTP surface.
HTTP_HEAD_BYTES_MAX: Final = 32 * KIB
HTTP_HEAD_MS_MAX: Final = 10 * SECOND_MS  # from the first byte expected to the last of the head
HTTP_BODY_MS_MAX: Final = 10 * SECOND_MS
HTTP_IDLE_MS_MAX: Final = 75 * SECOND_MS  # between two requests on one connection
HTTP_SEND_MS_MAX: Final = 20 * SECOND_MS  # a reader that takes nothing for so long is cut off
HTTP_UNSENT_BYTES_MAX: Final = 128 * KIB  # that the kernel keeps for one connection
HTTP_LINGER_MS_MAX: Final = 1 * SECOND_MS  # for a peer still sending to receive the refusal
HTTP_LINGER_BYTES_MAX: Final = 256 * KIB
HTTP_BODY_BYTES_MAX: Final = 2 * MIB  # a body of a route without a bound of its own
HTTP_NO_BODY_BYTES_MAX: Final = 1 * KIB  # of a route that takes none, for {} and the like
HTTP_CONNECTIONS_COUNT_MAX: Final = 2_048
HTTP_WITHOUT_REQUEST_COUNT_MAX: Final = 256  # connections without a first request
HTTP_UNAUTHENTICATED_PER_PEER_COUNT_MAX: Final = (
    512  # connections of one peer that show no credentials
)
HTTP_FAIR_QUEUE_ADMITTED_COUNT: Final = 8  # unauthenticated peers per pass of the event loop
HTTP_ACCEPT_PAUSE_MS: Final = 100  # while the machine has nothing left for another connection
HTTP_RECEIVE_BYTES: Final = 16 * KIB  # less than a head may have, so that its bound is kept
HTTP_AUTH_FAILURES_COUNT_MAX: Final = 30  # in a burst, per peer
HTTP_AUTH_FAILURES_PER_MINUTE_COUNT: Final = 30
HTTP_PEERS_KEPT_COUNT_MAX: Final = 4_096
HTTP_LAST_REPLIES_MS_MAX: Final = 1 * SECOND_MS  # once a service ends
PROMPT_WAIT_MS_MAX: Final = 60 * SECOND_MS  # of one request for the answer to a prompt
PROMPT_WAITS_COUNT_MAX: Final = 64  # of such requests at once, far fewer than connections
SHUTDOWN_GRACE_MS_MAX: Final = 3 * SECOND_MS
CONTROL_TOKEN_BYTES: Final = 32
CONTROL_TOKEN_CHARS_MAX: Final = 512
CONTROL_TOKEN_CHARS_MIN: Final = 16
OPEN_FILES_COUNT_DEFAULT: Final = 8_192  # of a process that serves

# The daemon and its clients.
RUN_FILE_BYTES_MAX: Final = 64 * KIB  # of a small file under <home>/run
DAEMON_READY_MS_MAX: Final = 10 * SECOND_MS
DAEMON_STABLE_MS: Final = 2 * SECOND_MS  # a start that lives so long has succeeded
DAEMON_STOP_MS_MAX: Final = 10 * SECOND_MS  # after a request to stop, before a signal
DAEMON_SIGNAL_MS_MAX: Final = 5 * SECOND_MS  # after a signal, before the next
DAEMON_PROBE_MS_MAX: Final = 3 * SECOND_MS  # for an answer about its health
HOME_WATCH_MS: Final = 2 * SECOND_MS  # between two checks that this process still owns the home
HOME_ANSWER_MS_MAX: Final = 3 * HOME_WATCH_MS  # for an owner to confirm that it runs
DAEMON_LOG_BYTES_MAX: Final = 4 * MIB  # then the log is moved aside; one older one is kept
DAEMON_LOG_READ_BYTES_MAX: Final = 256 * KIB
DAEMON_LOG_LINES_COUNT_MAX: Final = 1_000
DAEMON_LOG_LINE_CHARS_MAX: Final = 8 * KIB
CLIENT_ANSWER_BYTES_MAX: Final = 64 * MIB
CLIENT_ANSWER_MS_MAX: Final = 30 * SECOND_MS
CLIENT_READ_MS_MAX: Final = 5 * SECOND_MS  # for the beginning of one, of what is only read
CLIENT_STREAM_IDLE_MS_MAX: Final = 45 * SECOND_MS  # three heartbeats
CLIENT_STREAM_LINE_BYTES_MAX: Final = 4 * MIB
CLIENT_PROMPT_WAIT_MS: Final = 20 * SECOND_MS  # of one request of `holon prompt --wait`
CLIENT_RECONNECTS_COUNT_MAX: Final = 10  # in a row, of a stream that broke
CLIENT_RECONNECT_MS_MAX: Final = 5 * SECOND_MS

# The journal of a service.
JOURNAL_LINE_BYTES_MAX: Final = 8 * KIB
JOURNAL_MESSAGE_CHARS_MAX: Final = 1_000
JOURNAL_TRACE_CHARS_MAX: Final = 4_000  # of a traceback's end
JOURNAL_FIELD_CHARS_MAX: Final = 200
JOURNAL_READ_CHARS_MAX: Final = 64 * KIB  # of a text that is looked through for secrets
JOURNAL_WINDOW_MS: Final = 60 * SECOND_MS  # in which repetitions are counted
JOURNAL_SAME_COUNT_MAX: Final = 3  # of one line in a window; the others become a count
JOURNAL_EVENT_COUNT_MAX: Final = 60  # of one event's lines in a window
JOURNAL_KEYS_COUNT_MAX: Final = 512  # lines and events whose repetitions are counted at a time
JOURNAL_LAST_SPANS_MS_MAX: Final = 3 * SECOND_MS  # for spans to be sent once a service ends

# External triggers and webhooks.
TRIGGER_BODY_BYTES_MAX: Final = 64 * KIB
TRIGGER_BURST_COUNT_MAX: Final = 60  # deliveries of one trigger at once
TRIGGER_PER_MINUTE_COUNT: Final = 30
TRIGGERS_BURST_COUNT_MAX: Final = 400  # of all triggers together
TRIGGERS_PER_SECOND_COUNT: Final = 400
TRIGGER_SECRET_CHARS: Final = 43
TRIGGER_KEY_CHARS_MIN: Final = 32
TRIGGER_LABEL_CHARS_MAX: Final = 256  # of a header that is kept as provenance
WEBHOOK_CLOCK_SKEW_MS_MAX: Final = 5 * MINUTE_MS
WEBHOOK_SIGNATURES_COUNT_MAX: Final = 8  # offered for one request, while secrets are exchanged

# The queue.
QUEUED_PER_AGENT_COUNT_MAX: Final = 10_000
CLAIMS_PASSED_OVER_COUNT_MAX: Final = 16  # then the oldest waiting message is served, any band
UNSEEN_SHOWN_COUNT_MAX: Final = 16
UNSEEN_PER_AGENT_COUNT_MAX: Final = 1_000  # the newest; older ones are dropped, with an event
UNSEEN_FULL_COUNT_MAX: Final = 2 * UNSEEN_SHOWN_COUNT_MAX  # while the database is above its cap

# Senders may repeat a key for a day; only the runtime repeats a commit, within moments.
IDEMPOTENCY_KEPT_MS_MIN: Final = DAY_MS
COMMIT_IDS_KEPT_MS_MIN: Final = HOUR_MS

# Waking and scheduling.
BACKSTOP_INTERVAL_MS: Final = 30 * SECOND_MS
CLOCK_CHECK_MS: Final = 30 * SECOND_MS  # between two looks whether the wall clock was set back
CLOCK_STEP_MS_MIN: Final = SECOND_MS  # what is less is drift
LANES_STARTING_COUNT_MAX: Final = 8  # at once: agents that begin to run; those in a turn are more
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

SELF_STARTED_FREE_COUNT_MAX: Final = 8  # turns in a row that moved nothing, before a hold
SELF_STARTED_COUNT_MAX: Final = 16  # such turns before the operator is informed and the agent rests
SELF_STARTED_HOLD_MS_MIN: Final = 1 * SECOND_MS
SELF_STARTED_HOLD_MS_MAX: Final = SELF_STARTED_HOLD_MS_MIN << (
    SELF_STARTED_COUNT_MAX - SELF_STARTED_FREE_COUNT_MAX - 1
)  # each hold is twice the last
SELF_STARTED_APART_MS: Final = 4 * MINUTE_MS  # turns so far apart are no storm

# Budgets: how usage is added up.
USAGE_STEP_MS: Final = 5 * MINUTE_MS
BUDGET_TURNS_WINDOW_MS: Final = HOUR_MS
BUDGET_WINDOW_MS: Final = DAY_MS  # of tokens and of cost
BUDGET_COUNT_MAX: Final = 10**12  # what a setting may allow
COST_MICROS: Final = 1_000_000  # in one US dollar

# How much of each kind there may be.
AGENTS_COUNT_MAX: Final = 20_000
TASKS_LIVE_PER_AGENT_COUNT_DEFAULT: Final = 200  # command tasks that run at one time
TASKS_LIVE_COUNT_DEFAULT: Final = 1_000  # of all agents of a home
TASKS_LIVE_COUNT_MAX: Final = 10_000  # what either may be set to
WORK_ITEMS_OPEN_COUNT_MAX: Final = 1_000  # of one agent
TIMERS_ACTIVE_COUNT_MAX: Final = 1_000  # of one agent
WORKSPACES_ATTACHED_COUNT_MAX: Final = 100  # of one agent
WORKSPACE_PATH_CHARS_MAX: Final = 4_096

# Timers.
TIMER_DURATION_MS_MIN: Final = 1
TIMER_DURATION_MS_MAX: Final = 366 * DAY_MS
TIMER_INTERVAL_MS_MIN: Final = 1 * SECOND_MS
SLEEP_DURATION_MS_MAX: Final = 7 * DAY_MS
TIMER_LATE_MS_MIN: Final = MINUTE_MS  # a fire that is later than this says so to the model
CRON_EXPRESSION_CHARS_MAX: Final = 200
CRON_ZONE_CHARS_MAX: Final = 64

# Turns.
MAX_OUTPUT_CONTINUATIONS_COUNT_MAX: Final = 2
TURN_ROUNDS_COUNT_MAX: Final = 500
TOOL_CALLS_PER_ROUND_COUNT_MAX: Final = 64
TURN_RESUMES_COUNT_MAX: Final = 8  # a turn that kills the process each time is poison
INPUT_READ_BYTES_MAX: Final = 4 * MIB  # of all bodies a turn begins with, before they are cut
TURN_CRASHES_COUNT_MAX: Final = 2  # of the process inside a turn that got no further between them
INTERJECTIONS_PER_POINT_COUNT_MAX: Final = 8
HISTORY_TURNS_COUNT_DEFAULT: Final = 12
RUN_BRIEFS_READ_COUNT_MAX: Final = 100  # of one run, newest, for its last text
FOLLOWUPS_PER_CHAIN_COUNT_MAX: Final = 32  # an agent leaves itself, from one outside message on
REMINDER_ROUNDS_COUNT_DEFAULT: Final = 10  # without a call on the current item
REMINDER_COOLDOWN_ROUNDS_COUNT_DEFAULT: Final = 10
REMINDER_TOKENS_DEFAULT: Final = 512
REMINDER_TOKENS_MAX: Final = 8_192  # what a setting may ask for

# Tool output and previews.
TOOL_ERROR_DETAIL_CHARS_MAX: Final = 1_000
TOOL_RESULT_BYTES_MAX: Final = 512 * KIB
TOOL_OUTPUT_TOKENS_DEFAULT: Final = 8_000  # of a command's output, as the model sees it
TOOL_OUTPUT_TOKENS_MAX: Final = 64_000
TOOL_OUTPUT_SETTING_TOKENS_MIN: Final = 100  # less would hide how a command ended
TOOL_OUTPUT_SETTING_TOKENS_MAX: Final = 100_000  # more would not fit into a tool result
ESTIMATED_TOKEN_BYTES: Final = 4
TASK_OUTPUT_TOKENS: Final = 2_000  # of a task's output, in TaskOutput and in its result
TASK_OUTPUT_WAIT_MS_DEFAULT: Final = 30 * SECOND_MS
TASK_OUTPUT_WAIT_MS_MAX: Final = 10 * MINUTE_MS
TASKS_LISTED_COUNT_MAX: Final = 100  # that have not ended
TASKS_ENDED_LISTED_COUNT_MAX: Final = 20
TOOL_LATENCIES_SHOWN_COUNT_MAX: Final = 64
ENQUEUE_TEXT_BYTES_MAX: Final = 64 * KIB
EVENT_TEXT_CHARS_MAX: Final = 400
EVENT_TOOL_NAMES_COUNT_MAX: Final = 8  # of a round, in its event
OBJECTIVE_CHARS_MAX: Final = 4_000
ARGUMENT_NOTES_COUNT_MAX: Final = 8  # on how the arguments of one call were read

# Work items.
WORK_ITEMS_LISTED_COUNT_DEFAULT: Final = 20
WORK_ITEMS_LISTED_COUNT_MAX: Final = 100
WORK_ITEMS_SEARCHED_COUNT_MAX: Final = 1_000  # oldest open ones, when only some kind is wanted
TODO_ITEMS_COUNT_MAX: Final = 100
TODO_TEXT_CHARS_MAX: Final = 1_000
PLAN_BYTES_MAX: Final = 256 * KIB
PLAN_PREVIEW_CHARS_MAX: Final = 1_600
PLAN_PREVIEW_LISTED_CHARS_MAX: Final = 200  # where many items are shown
AGENT_ROWS_SHOWN_COUNT_MAX: Final = 32  # waits, tasks and items in an agent's own summary

# Prompts: how a model's window is shared, and how much a section shows.
PROMPT_TOKENS_DEFAULT: Final = 128_000  # of a model with an unknown window
PROMPT_MARGIN_TOKENS: Final = 256
PROMPT_LASTING_PERCENT: Final = 35  # of what tools leave: guidance, skills, memory
PROMPT_TURN_PERCENT: Final = 15  # work items, results, why the agent is awake
PROMPT_INPUT_PERCENT: Final = 40  # the message the turn answers
PROMPT_LASTING_TOKENS_MAX: Final = 24_000
PROMPT_TURN_TOKENS_MAX: Final = 8_000
PROMPT_PINNED_TOKENS_MIN: Final = 400  # what a pinned section that can be cut gets in any case
PROMPT_CUT_TOKENS_MIN: Final = 64  # less of a section is of no use
PROMPT_SKILLS_DESCRIBED_COUNT_MAX: Final = 64
PROMPT_SKILLS_NAMED_COUNT_MAX: Final = 512
PROMPT_SKILL_CHARS_MAX: Final = 240  # of one description, on average; beyond it all are cut
PROMPT_TEMPLATES_COUNT_MAX: Final = 32
PROMPT_EPISODES_COUNT_MAX: Final = 3
PROMPT_EPISODE_CHARS_MAX: Final = 600
PROMPT_MEMORY_LINES_COUNT_MAX: Final = 10
PROMPT_ITEM_CHARS_MAX: Final = 240
PROMPT_ITEMS_PER_CLASS_COUNT_MAX: Final = 8
PROMPT_ITEMS_READ_COUNT_MAX: Final = 48  # open ones, the current among them; the rest is counted
PROMPT_TODOS_COMPACT_COUNT_MAX: Final = 8
PROMPT_REPORT_CHARS_MAX: Final = 400
PROMPT_COMPLETED_COUNT_MAX: Final = 5
PROMPT_TRACE_LINES_COUNT_MAX: Final = 16
PROMPT_RESULTS_COUNT_MAX: Final = 8
PROMPT_RESULT_BYTES_MAX: Final = 2 * KIB
PROMPT_BRIEFS_COUNT_MAX: Final = 5
PROMPT_BRIEF_CHARS_MAX: Final = 300

# Memory search.
MEMORY_QUERY_CHARS_MAX: Final = 1_000
MEMORY_QUERY_WORDS_COUNT_MAX: Final = 32
MEMORY_HITS_COUNT_DEFAULT: Final = 10
MEMORY_HITS_COUNT_MAX: Final = 50
MEMORY_TEXT_CHARS_DEFAULT: Final = 12_000
MEMORY_TEXT_CHARS_MAX: Final = 50_000
MEMORY_DOCUMENT_CHARS_MAX: Final = 100_000  # of one text that is indexed; what follows is left out
MEMORY_TITLE_CHARS_MAX: Final = 160
MEMORY_SNIPPET_CHARS_MAX: Final = 240
MEMORY_FILE_BYTES_MAX: Final = 256 * KIB  # of memory/self.md and memory/operator.md
MEMORY_FEED_COUNT: Final = 200  # sources fed to an index at once
MEMORY_FEED_SEARCH_COUNT_MAX: Final = 2_000  # sources a search waits for; the rest follows
MEMORY_FEED_PAUSE_MS: Final = 2 * SECOND_MS  # between a change and feeding it without being asked
MEMORY_RANKED_COUNT_MAX: Final = 3_000  # of the texts that match; the newest
MEMORY_SEARCH_MS_MAX: Final = 150  # of work, looking for texts with only some of the words
MEMORY_RELEASE_MS: Final = MINUTE_MS  # how often a service returns freed pages to the system
MEMORY_INDEXES_OPEN_COUNT_MAX: Final = 8
MEMORY_INDEX_CACHE_BYTES: Final = 256 * KIB  # of each open one
MEMORY_TOMBSTONES_KEPT_MS: Final = 7 * DAY_MS  # how long a search reports that a record was pruned

# Homes, templates and guidance files.
INSTRUCTIONS_BYTES_MAX: Final = 64 * KIB  # of one AGENTS.md, in a prompt
INSTRUCTIONS_UNREPORTED_COUNT_MAX: Final = (
    64  # changes, of an agent whose calls are cut off each time
)
INSTRUCTION_CHECKS_COUNT_MAX: Final = 1_024  # agents of which is known what their files were like
TEMPLATE_TEXT_BYTES_MAX: Final = 256 * KIB  # of a template's AGENTS.md
TEMPLATE_MANIFEST_BYTES_MAX: Final = 64 * KIB  # of its skills.json
TEMPLATE_SKILLS_COUNT_MAX: Final = 32
TEMPLATE_ID_CHARS_MAX: Final = 64
TEMPLATES_LISTED_COUNT_MAX: Final = 256
TREE_FILES_COUNT_MAX: Final = 1_000  # of a template or skill that is copied
TREE_BYTES_MAX: Final = 16 * MIB
TREE_FILE_BYTES_MAX: Final = 8 * MIB
TREE_DEPTH_COUNT_MAX: Final = 16
ARCHIVE_BYTES_MAX: Final = 64 * MIB  # as downloaded
ARCHIVE_UNPACKED_BYTES_MAX: Final = 256 * MIB
ARCHIVE_ENTRIES_COUNT_MAX: Final = 50_000
ARCHIVE_NAME_BYTES_MAX: Final = 4 * KIB
ARCHIVE_FETCH_MS_MAX: Final = 20 * SECOND_MS
ARCHIVE_REDIRECTS_COUNT_MAX: Final = 3

# Skills.
SKILLS_PER_ROOT_COUNT_MAX: Final = 1_000
SKILL_FOLDERS_SEEN_COUNT_MAX: Final = 10_000  # below one root, looking for SKILL.md
SKILL_FOLDER_DEPTH_COUNT_MAX: Final = 6  # collection/plugins/group/skills/skill, and one more
SKILL_ROOTS_KEPT_COUNT_MAX: Final = 256  # whose skills are remembered between prompts
SKILL_HEAD_BYTES_MAX: Final = 64 * KIB  # of a SKILL.md, up to the end of its front matter
SKILL_HEAD_DEPTH_COUNT_MAX: Final = 16
SKILL_NAME_CHARS_MAX: Final = 64
SKILL_DESCRIPTION_CHARS_MAX: Final = 1_024
SKILL_PROBLEMS_COUNT_MAX: Final = 32
SKILL_HIDDEN_SHOWN_COUNT_MAX: Final = 32  # names of skills in a folder that is not used
SKILL_ACTIVATIONS_READ_COUNT_MAX: Final = 256
SKILL_COMMAND_CHARS_MAX: Final = 64 * KIB  # of a command line that is looked through for skills

# Events and their readers.
EVENT_PAGE_COUNT_DEFAULT: Final = 128
EVENT_PAGE_COUNT_MAX: Final = 512
FEED_LAG_EVENTS_MAX: Final = 4_096
FEED_PAGES_KEPT_COUNT_MAX: Final = 16  # read once for all followers, until the next commit
EVENT_HEARTBEAT_MS: Final = 15 * SECOND_MS
EVENT_FRAMES_KEPT_COUNT_MAX: Final = 1_024  # made once for all readers

# Operator surfaces: how much one answer shows.
SURFACE_PAGE_COUNT_DEFAULT: Final = 50
SURFACE_PAGE_COUNT_MAX: Final = 200  # records of one page, other than events and turns
SURFACE_TURNS_COUNT_DEFAULT: Final = 20
SURFACE_TURNS_COUNT_MAX: Final = 50  # turns of one transcript page
FAILURES_READ_COUNT_MAX: Final = 64  # for the newest whose agent has done nothing well since
SURFACE_COUNTED_COUNT_MAX: Final = 1_000  # where counting rows, or looking through them, stops
SURFACE_USAGE_TURNS_COUNT_MAX: Final = 100  # searched for one that reported tokens
SURFACE_TEXT_CHARS_MAX: Final = 4_000  # of one text of a model, a command or the outside
SURFACE_ENTRIES_COUNT_MAX: Final = 400  # of one turn; what lies between is counted
STATE_TASKS_COUNT_MAX: Final = 40
STATE_TIMERS_COUNT_MAX: Final = 50
STATE_WORK_ITEMS_COUNT_MAX: Final = 50
STATE_WAITS_COUNT_MAX: Final = 50
SUMMARY_CHARS_MAX: Final = 200  # of a line for people

# The store.
GROUP_COMMIT_COUNT_MAX: Final = 64
COMMITS_WAITING_COUNT_MAX: Final = 4_096
WAL_BYTES_MAX: Final = 64 * MIB
CHECKPOINT_PAGES: Final = 1_000
WAL_WARNED_BYTES: Final = WAL_BYTES_MAX + 8 * MIB  # the runtime's own readers finish earlier
STORE_CHECK_MS: Final = 2 * SECOND_MS

# A backup. Names and depth are below what file systems and tar take.
BACKUP_FILES_COUNT_MAX: Final = 200_000
BACKUP_NAME_BYTES_MAX: Final = 2_048
BACKUP_DEPTH_MAX: Final = 64
BACKUP_MANIFEST_BYTES_MAX: Final = 256 * MIB
BACKUP_READ_BYTES_MAX: Final = 1 * MIB  # at once, whatever a header claims
STORE_RETRY_MS_MIN: Final = 250
STORE_RETRY_MS_MAX: Final = 30 * SECOND_MS

# Retention: on by default.
RETENTION_INTERVAL_MS: Final = 10 * MINUTE_MS
CLOCK_TRUST_MS: Final = DAY_MS  # how long a clock has to stand before anything is forgotten by it
CLOCK_GAP_MS_MAX: Final = 2 * HOUR_MS  # between records that bear a clock out at a start
RETENTION_COMMITS_COUNT: Final = 500  # groups of commits after which retention looks early
RETENTION_CHECK_COMMITS_COUNT: Final = 8  # groups of commits between two checks of the size
RETENTION_FULL_PERCENT: Final = 97  # of the cap; from there on retention does not wait
RETENTION_AGE_MS_DEFAULT: Final = 90 * DAY_MS
RETENTION_EVENTS_COUNT_MIN: Final = 1_000  # newest events always kept per agent in use
RETENTION_TURNS_COUNT_MIN: Final = 50  # newest turns always kept per agent in use
# While the database is above its cap, less of each agent is kept, down to this.
RETENTION_FULL_EVENTS_COUNT_MIN: Final = 60
RETENTION_FULL_TURNS_COUNT_MIN: Final = HISTORY_TURNS_COUNT_DEFAULT  # what a prompt shows
COMMIT_IDS_KEPT_FULL_MS_MIN: Final = 5 * MINUTE_MS
RETENTION_BYTES_MAX_DEFAULT: Final = 1024 * MIB
RETENTION_BATCH_COUNT: Final = 500
RUN_FOLDERS_COUNT_MAX: Final = 5_000  # of ended commands, kept on disk
RUN_HOMES_COUNT_MAX: Final = 2_000  # of past one-shot runs, checked in one pass of retention
RUN_KEPT_MS_MIN: Final = 10 * MINUTE_MS  # after a command's end, however full the disk

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
COMMAND_OUTPUT_MARGIN_BYTES: Final = 16 * KIB  # read past a cut, to see a secret whole
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

# Relations.
assert JOURNAL_LINE_BYTES_MAX <= DAEMON_LOG_LINE_CHARS_MAX
assert TRIGGER_BODY_BYTES_MAX * 2 <= WAKE_HINT_BODY_BYTES_MAX  # also in base64
assert max(PUBLIC_BODY_BYTES_MAX, ENQUEUE_TEXT_BYTES_MAX) <= MESSAGE_BODY_BYTES_MAX
assert UNSEEN_SHOWN_COUNT_MAX <= UNSEEN_FULL_COUNT_MAX <= UNSEEN_PER_AGENT_COUNT_MAX
assert NO_PROGRESS_BACKOFF_MS_MIN <= NO_PROGRESS_BACKOFF_MS_MAX
assert SELF_STARTED_FREE_COUNT_MAX < SELF_STARTED_COUNT_MAX
assert SELF_STARTED_HOLD_MS_MAX < SELF_STARTED_APART_MS  # else it would end its own count
assert BUDGET_TURNS_WINDOW_MS % USAGE_STEP_MS == BUDGET_WINDOW_MS % USAGE_STEP_MS == 0
assert EVENT_PAGE_COUNT_DEFAULT <= EVENT_PAGE_COUNT_MAX
assert PROMPT_WAITS_COUNT_MAX <= HTTP_CONNECTIONS_COUNT_MAX // 8
assert PROMPT_WAIT_MS_MAX >= CLIENT_PROMPT_WAIT_MS < CLIENT_ANSWER_MS_MAX
assert STORE_RETRY_MS_MIN <= STORE_RETRY_MS_MAX
assert RETENTION_AGE_MS_DEFAULT >= IDEMPOTENCY_KEPT_MS_MIN
assert TOOL_OUTPUT_TOKENS_MAX <= TOOL_OUTPUT_SETTING_TOKENS_MAX
assert TOOL_OUTPUT_SETTING_TOKENS_MAX * ESTIMATED_TOKEN_BYTES < TOOL_RESULT_BYTES_MAX
assert PROMPT_LASTING_PERCENT + PROMPT_TURN_PERCENT + PROMPT_INPUT_PERCENT <= 100
assert MEMORY_TEXT_CHARS_MAX < MEMORY_DOCUMENT_CHARS_MAX  # or a cut text would seem whole
assert COMMAND_YIELD_MS_DEFAULT <= COMMAND_YIELD_MS_MAX
