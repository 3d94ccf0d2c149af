"""What a prompt costs an agent with a long past, against one with a short one.

An agent with 100,000 messages, 10,000 briefs, 1,000 work items and 500 skills, and one with 100,
10, 10 and 5. Most messages are copied from one real row, so that making the past does not take
longer than measuring. What is measured is everything between the claim and the first request: the
reads behind the facts, and the assembly of the frame. All of it runs on the caller's thread, so it
is the thread's own time that counts, whatever else the machine does.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import apsw
import msgspec

from bench.measure import Measurement, median
from holon.adapters.sqlite.database.connection import Synchronous, open_writer
from holon.adapters.sqlite.database.home_lock import database_path, prepare_home
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.store import open_store
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.decide.events.audit import audited
from holon.model.commits import AppendBrief, Applied, Change, Commit, PutWorkItem
from holon.model.guidance import SkillCatalog, SkillEntry, SkillScope
from holon.model.queue import TextBody
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import later
from holon.ports.guidance import NoSkills
from holon.prompt.frame import AssembledPrompt
from holon.runtime.host import Host
from holon.runtime.turns.context import PromptInput
from holon.tools.registry import local_registry
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_message,
    a_work_item,
    an_admission,
    an_agent,
)
from tests.support.hosts import a_host
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

GROUP_COUNT: Final = 500
ROUNDS_COUNT: Final = 60
HISTORY_TURNS_COUNT: Final = 24
TARGET_RATIO: Final = 1.5
TARGET_MS: Final = 20.0


class Past(msgspec.Struct, frozen=True):
    """How much an agent has piled up."""

    messages: int
    briefs: int
    items: int
    skills: int


LARGE: Final = Past(messages=100_000, briefs=10_000, items=1_000, skills=500)
SMALL: Final = Past(messages=100, briefs=10, items=10, skills=5)


class ManySkills(NoSkills):
    """A catalog that is already known."""

    def __init__(self, count: int) -> None:
        self._catalog = SkillCatalog(
            entries=tuple(
                SkillEntry(
                    name=f"skill-{number:03}",
                    description="Does one useful thing, and says when to use it. " * 3,
                    scope=SkillScope.AGENT,
                    path=f"/skills/skill-{number:03}/SKILL.md",
                )
                for number in range(count)
            )
        )

    async def catalog(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> SkillCatalog:
        """Return all of them."""
        del agent_home, workspace_anchor, with_user_scope
        return self._catalog


async def run() -> list[Measurement]:
    """Measure both, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        builders = []
        for name, past in (("small", SMALL), ("large", LARGE)):
            home = Path(folder) / name
            make_past(home, past)
            builders.append(await _builder(home, past))
        took: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS_COUNT):
            for series, (host, moment) in zip(took, builders, strict=True):
                series.append(await _timed(host, moment))
        for host, _ in builders:
            await host.store.close()
    small, large = took
    ratio = median(large) / median(small)
    detail = f"{median(large) * 1_000:.2f} ms against {median(small) * 1_000:.2f} ms"
    return [
        Measurement("prompt frame, long past / short past", ratio, TARGET_RATIO, detail=detail),
        Measurement("prompt frame, long past", median(large) * 1_000, TARGET_MS, unit=" ms"),
    ]


def make_past(home: Path, past: Past) -> None:
    """Make a home whose one agent has that much behind and before it."""
    prepare_home(home)
    connection = open_writer(database_path(home), synchronous=Synchronous.OFF)
    migrate(connection)
    writer = CommitWriter(connection)
    _apply(writer, [a_commit("create", an_agent())])
    briefs = [AppendBrief(brief=a_brief(f"brief_{n:06}")) for n in range(past.briefs)]
    items = [
        PutWorkItem(item=a_work_item(f"work_{n:05}", created_at=later(START, by_ms=n)))
        for n in range(past.items)
    ]
    changes: list[Change] = [*briefs, *items]
    _apply(writer, [a_commit(f"past:{n}", change) for n, change in enumerate(changes)])
    _apply(writer, [an_admission(a_message("msg_0"))])
    _copy_message(connection, past.messages)
    connection.execute("analyze")
    connection.close()


def _apply(writer: CommitWriter, commits: Sequence[Commit]) -> None:
    for begin in range(0, len(commits), GROUP_COUNT):
        results = writer.apply_group(
            list(map(audited, commits[begin : begin + GROUP_COUNT]))
        ).results
        assert all(result == Applied() for result in results), results[0]


def _copy_message(connection: apsw.Connection, count: int) -> None:
    """Many processed messages, made of one."""
    columns = [str(row[1]) for row in connection.execute("pragma table_info(messages)")]
    own = {
        "message_id": "'msg_past_' || n",
        "seq": "n + 10",
        "state": "'processed'",
        "settled_at": "1",
        "settled_reason": "'turn_settled'",
        "unseen": "0",
    }
    chosen = ", ".join(own.get(name, name) for name in columns)
    connection.execute(
        "with recursive numbers (n) as (values (1) union all select n + 1 from numbers"
        f" where n < {count}) insert into messages ({', '.join(columns)})"
        f" select {chosen} from messages, numbers where message_id = 'msg_0'"
    )


async def _builder(home: Path, past: Past) -> tuple[Host, PromptInput]:
    host = a_host(
        store=open_store(home),
        clock=SystemClock(),
        ids=TimeOrderedIds(),
        models=SingleModel(ScriptedProvider(Script(rules=()), SystemClock())),
        tools=local_registry(),
        home=str(home),
        skill_catalogs=ManySkills(past.skills),
    )
    agent = await host.store.reads.agents.agent(MAIN)
    assert agent is not None
    incoming = IncomingMessage(message=a_message("msg_now", body=TextBody(text="go on")))
    return host, PromptInput(agent=agent, incoming=incoming)


async def _timed(host: Host, moment: PromptInput) -> float:
    began = time.thread_time()
    history = await host.store.reads.turns.recent_turns(MAIN, limit=HISTORY_TURNS_COUNT)
    now = msgspec.structs.replace(moment, history=tuple(history))
    prompt = await host._context.assembled(now)
    took = time.thread_time() - began
    assert isinstance(prompt, AssembledPrompt)
    return took
