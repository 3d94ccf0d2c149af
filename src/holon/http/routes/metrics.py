"""`GET /metrics`.

Owns:  the metrics route, and the source of each figure.
Rule 1: only cheap figures: a scrape costs a few indexed counts, one pass over the agents, of which
        there is a bounded number, and the events since the last scrape.
Rule 2: processing a message does no extra work for metrics; the figures come from stored records.
"""

from collections.abc import Mapping
from typing import Final

from holon.http.context import HttpContext
from holon.http.exchange import Reply
from holon.http.metrics import METRICS, REFUSED, STATUS_CLASSES, Samples, metric_lines
from holon.http.route import Access, Call, Route
from holon.model.limits import COST_MICROS

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
_VALUES: Final = {metric.name: metric.values for metric in METRICS}


async def metrics(context: HttpContext, call: Call) -> Reply:
    """Tell the figures."""
    del call
    await context.tally.catch_up(context.host.reads)
    samples = {
        **_of_process(context),
        **await _of_store(context),
        **_of_runtime(context),
        **_of_log(context),
    }
    lines = "\n".join(metric_lines(samples)) + "\n"
    return Reply(status=200, body=lines.encode(), content_type=MEDIA.encode())


def _of_process(context: HttpContext) -> dict[str, Samples]:
    usage, facts = context.usage(), context.facts
    up_s = (context.clock.now() - facts.started_at).total_seconds()
    return {
        "holon_info": {facts.version: 1},
        "holon_uptime_seconds": {"": max(0.0, up_s)},
        "process_start_time_seconds": {"": facts.started_at.timestamp()},
        "process_resident_memory_bytes": {"": usage.resident_bytes},
        "process_cpu_seconds_total": {"": usage.cpu_s},
    }


async def _of_store(context: HttpContext) -> dict[str, Samples]:
    reads = context.host.reads
    census, activity = await reads.agents.census(), await reads.agents.runtime_activity()
    return {
        "holon_agents": {
            "active": activity.active_agent_count,
            "processing": activity.processing_agent_count,
            "waiting": activity.waiting_agent_count,
        },
        "holon_agents_by_status": _all_of("holon_agents_by_status", census.agents),
        "holon_tasks_active": {"": activity.active_task_count},
        "holon_messages_queued": {"": census.queued_message_count},
        "holon_events_total": {"": await reads.events.last_log_seq()},
        "holon_events_kept": {"": census.kept_event_count},
        "holon_store_used_bytes": {"": await reads.events.used_bytes()},
        "holon_store_database_bytes": {"": census.database_bytes},
        "holon_store_wal_bytes": {"": census.wal_bytes},
    }


def _of_runtime(context: HttpContext) -> dict[str, Samples]:
    host, traffic = context.host, context.traffic
    return {
        "holon_lanes_running": {"": host.running_count},
        "holon_rescues_total": {"": host.rescue_count},
        "holon_event_followers": {"": host.events.follower_count},
        "holon_http_requests_total": {
            name: traffic.answered[int(name[0])] for name in STATUS_CLASSES
        },
        "holon_http_connections_open": {"": traffic.open_count()},
    }


def _of_log(context: HttpContext) -> dict[str, Samples]:
    tally = context.tally
    deliveries = {**tally.deliveries, REFUSED: tally.refused_deliveries}
    return {
        "holon_messages_admitted_total": {"": tally.messages},
        "holon_turns_total": _all_of("holon_turns_total", tally.turns),
        "holon_tokens_total": {"input": tally.input_tokens, "output": tally.output_tokens},
        "holon_cost_dollars_total": {"": tally.cost_micros / COST_MICROS},
        "holon_provider_attempts_total": _all_of("holon_provider_attempts_total", tally.attempts),
        "holon_tool_calls_total": {"succeeded": tally.tools[True], "failed": tally.tools[False]},
        "holon_trigger_deliveries_total": _all_of("holon_trigger_deliveries_total", deliveries),
        "holon_timers_fired_total": {"": tally.timers},
    }


def _all_of(name: str, counts: Mapping[str, int]) -> Samples:
    """A figure for every value of the label, 0 where nothing was counted."""
    return {str(value): counts.get(value, 0) for value in _VALUES[name]}


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/metrics",
        access=Access.READ,
        summary="Counters and gauges of the runtime, in the Prometheus text format.",
        answer=metrics,
        returns=str,
        media=MEDIA,
        tags=("runtime",),
    ),
)
