"""The plan of a simulated world: a seeded list of actions by people and machines.

Owns:  the actions and how a seed turns into a list of them. Plans are made before the world starts,
       so that a crash changes the outcome of an action but never the list.
"""

from random import Random
from typing import Final, TypeAlias

import msgspec

from holon.model.queue import Priority
from holon.model.record import Record

AGENTS: Final = ("ada", "bob", "cyd")
SOURCES: Final = ("ci", "inbox", "review")


class Prompt(Record, tag=True, frozen=True, kw_only=True):
    """The operator says something; the same key with the same words is the same message."""

    agent: str
    key: str
    text: str
    priority: Priority


class Webhook(Record, tag=True, frozen=True, kw_only=True):
    """A machine outside posts an event."""

    agent: str
    key: str
    text: str


class ArmTimer(Record, tag=True, frozen=True, kw_only=True):
    """The operator arms a timer."""

    agent: str
    after_ms: int
    every_ms: int | None


class CancelTimer(Record, tag=True, frozen=True, kw_only=True):
    """The operator cancels one of the timers armed so far."""

    choice: int


class SendHint(Record, tag=True, frozen=True, kw_only=True):
    """Something outside says that it changed."""

    agent: str
    source: str
    body: str | None
    through_trigger: str | None = None  # the id of a delivery to the agent's trigger


class Steer(Record, tag=True, frozen=True, kw_only=True):
    """The operator stops, resumes, pauses or aborts."""

    agent: str
    verb: str


class AddWork(Record, tag=True, frozen=True, kw_only=True):
    """The operator queues a work item."""

    agent: str
    objective: str


class HandleWork(Record, tag=True, frozen=True, kw_only=True):
    """The operator focuses, blocks, unblocks, edits or completes one of the items."""

    choice: int
    verb: str
    recheck_after_ms: int


class StartTask(Record, tag=True, frozen=True, kw_only=True):
    """A background task begins; its agent may wait for it."""

    agent: str
    task_id: str
    waited_for: bool


class ReportTask(Record, tag=True, frozen=True, kw_only=True):
    """A background task moves on. Reports may come late, twice or out of order."""

    task_id: str
    status: str


class JumpClock(Record, tag=True, frozen=True, kw_only=True):
    """Somebody sets the wall clock."""

    by_ms: int


Action: TypeAlias = (
    Prompt
    | Webhook
    | ArmTimer
    | CancelTimer
    | SendHint
    | Steer
    | AddWork
    | HandleWork
    | StartTask
    | ReportTask
    | JumpClock
)


class Planned(Record, frozen=True, kw_only=True):
    """An action and when it happens, counted from the world's beginning."""

    at_ms: int
    action: Action


def plan_world(chance: Random, *, action_count: int, span_ms: int) -> tuple[Planned, ...]:
    """Draw a plan. Every stopped or paused agent is resumed at the end, so that all can finish."""
    planned: list[Planned] = []
    for number in range(action_count):
        at_ms = chance.randrange(span_ms)
        planned.extend(_draw(chance, number, at_ms=at_ms))
    planned.extend(
        Planned(at_ms=span_ms, action=Steer(agent=agent, verb="resume")) for agent in AGENTS
    )
    return tuple(sorted(planned, key=lambda each: each.at_ms))


def merged(*plans: tuple[Planned, ...]) -> tuple[Planned, ...]:
    """Return plans as one, in the order of time."""
    return tuple(sorted((each for plan in plans for each in plan), key=lambda each: each.at_ms))


def _draw(chance: Random, number: int, *, at_ms: int) -> list[Planned]:
    agent = chance.choice(AGENTS)
    match chance.choices(_KINDS, _WEIGHTS)[0]:
        case "prompt":
            return _prompts(chance, agent, number, at_ms)
        case "webhook":
            hook = Webhook(agent=agent, key=f"hook-{number}", text=f"event {number}")
            return [Planned(at_ms=at_ms, action=hook)]
        case "timer":
            return _timers(chance, agent, at_ms)
        case "hint":
            body = f"change {number}" if chance.random() < 0.5 else None
            hint = SendHint(agent=agent, source=chance.choice(SOURCES), body=body)
            return [Planned(at_ms=at_ms, action=hint), *_deliveries(chance, hint, number, at_ms)]
        case "steer":
            return _steering(chance, agent, at_ms)
        case "work":
            return _work(chance, agent, number, at_ms)
        case "task":
            return _task(chance, agent, number, at_ms)
        case _:
            return [Planned(at_ms=at_ms, action=JumpClock(by_ms=chance.choice(_JUMPS_MS)))]


_KINDS: Final = ("prompt", "webhook", "timer", "hint", "steer", "work", "task", "jump")
_WEIGHTS: Final = (30, 12, 12, 14, 8, 12, 10, 2)
_JUMPS_MS: Final = (-86_400_000, -1_000, 1_000, 28_800_000)


def _deliveries(chance: Random, hint: SendHint, number: int, at_ms: int) -> list[Planned]:
    """The same news at the agent's trigger, at the same moment or later, now and then repeated."""
    delivered = msgspec.structs.replace(hint, through_trigger=f"delivery-{number}")
    times = chance.choice((0, 0, 1, 1, 2))
    return [
        Planned(at_ms=at_ms + chance.choice((0, 1, 5_000)), action=delivered) for _ in range(times)
    ]


def _prompts(chance: Random, agent: str, number: int, at_ms: int) -> list[Planned]:
    prompt = Prompt(
        agent=agent,
        key=f"prompt-{number}",
        text=f"prompt {number}",
        priority=chance.choice(list(Priority)),
    )
    again = [Planned(at_ms=at_ms + chance.randrange(5_000), action=prompt)]
    return [Planned(at_ms=at_ms, action=prompt), *(again if chance.random() < 0.2 else ())]


def _timers(chance: Random, agent: str, at_ms: int) -> list[Planned]:
    if chance.random() < 0.3:
        return [Planned(at_ms=at_ms, action=CancelTimer(choice=chance.randrange(100)))]
    every_ms = chance.choice((None, None, 300_000, 900_000))
    arm = ArmTimer(agent=agent, after_ms=chance.randrange(1, 120_000), every_ms=every_ms)
    planned = [Planned(at_ms=at_ms, action=arm)]
    if every_ms is not None:  # a world that ticks for ever never comes to rest
        cancel = CancelTimer(choice=chance.randrange(100))
        planned.append(Planned(at_ms=at_ms + chance.randrange(1_200_000), action=cancel))
    return planned


def _steering(chance: Random, agent: str, at_ms: int) -> list[Planned]:
    verb = chance.choice(("stop", "pause", "abort", "abort"))
    planned = [Planned(at_ms=at_ms, action=Steer(agent=agent, verb=verb))]
    if verb != "abort":
        back_at_ms = at_ms + chance.randrange(60_000)
        planned.append(Planned(at_ms=back_at_ms, action=Steer(agent=agent, verb="resume")))
    return planned


def _work(chance: Random, agent: str, number: int, at_ms: int) -> list[Planned]:
    add = AddWork(agent=agent, objective=f"objective {number}")
    verbs = chance.sample(
        ("focus", "block", "unblock", "block", "edit", "ask"), k=chance.randrange(5)
    )
    handled = [
        Planned(
            at_ms=at_ms + chance.randrange(300_000),
            action=HandleWork(
                choice=chance.randrange(100),
                verb=verb,
                recheck_after_ms=chance.randrange(1_000, 600_000),
            ),
        )
        for verb in (*verbs, "complete")
    ]
    return [Planned(at_ms=at_ms, action=add), *handled]


def _task(chance: Random, agent: str, number: int, at_ms: int) -> list[Planned]:
    task_id = f"task_w{number}"
    start = StartTask(agent=agent, task_id=task_id, waited_for=chance.random() < 0.6)
    ends = chance.choices(("completed", "failed", "cancelled"), k=chance.choice((1, 1, 2)))
    reports = [("running", 0), *((end, 30_000) for end in ends), ("running", 60_000)]
    return [
        Planned(at_ms=at_ms, action=start),
        *(
            Planned(
                at_ms=at_ms + least + chance.randrange(60_000),
                action=ReportTask(task_id=task_id, status=status),
            )
            for status, least in reports
        ),
    ]
