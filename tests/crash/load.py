"""The people and machines around a host that keeps being killed.

Owns:  clients that repeat each request until it is answered, across any number of lives of the
       host, and the ledger of what they were told. The ledger outlives every host.
Rule 1: what the ledger holds was read from an answer; a request whose answer was cut off is sent
        again under the same key.
Rule 2: whoever stops an agent resumes it, so that everybody's requests can be taken in the end.
"""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Final

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.home_lock import database_path
from holon.model.message import Priority
from holon.model.task import TaskStatus
from holon.testing import host_commands as ask
from holon.testing.host_client import HostClient
from holon.testing.host_lines import HostGoneError

AGENTS: Final = ("ada", "bob", "cyd", "dee")
STOPPED_NOW_AND_THEN: Final = "dee"
RETRY_S: Final = 0.01
ACTIONS_PER_LIFE_COUNT_MAX: Final = 40  # more would pile up faster than a short life can serve


@dataclass(slots=True)
class Ledger:
    """What the outside world was told."""

    acked: dict[str, str] = field(default_factory=dict)  # idempotency key to message id
    timers: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    duplicate_count: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def acknowledge(self, key: str, answer: ask.Answer) -> None:
        """Note which message a key led to; it must be the same one every time."""
        told = str(result_of(answer)["message_id"])
        earlier = self.acked.setdefault(key, told)
        if earlier != told:
            self.problems.append(f"P2 key {key} gave {earlier} and then {told}")
        self.duplicate_count += bool(result_of(answer).get("duplicate"))


class Stage:
    """Where the host of the moment can be found; there may be none for a while."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._host: HostClient | None = None
        self._actions_left = 0
        self.is_closing = threading.Event()

    def set(self, host: HostClient | None) -> None:
        """Put a host on stage, or take it away."""
        with self._changed:
            self._host = host
            self._actions_left = ACTIONS_PER_LIFE_COUNT_MAX
            self._changed.notify_all()

    def close(self) -> None:
        """Let the clients finish what they are at, and no more."""
        self.is_closing.set()
        with self._changed:
            self._changed.notify_all()

    def may_act(self) -> bool:
        """Wait until the load on the host of the moment leaves room; False when it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._actions_left > 0 or self.is_closing.is_set())
            self._actions_left -= 1
        return not self.is_closing.is_set()

    def ask(self, command: ask.Command) -> ask.Answer:
        """Ask whatever host there is until the command is settled one way or the other."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._host is not None)
                host = self._host
            assert host is not None
            try:
                answer = host.ask(command)
            except HostGoneError:
                time.sleep(RETRY_S)
                continue
            if answer.is_final:
                return answer
            time.sleep(RETRY_S)


class Client(threading.Thread):
    """One caller with a mixture of things to ask."""

    def __init__(self, name: str, stage: Stage, ledger: Ledger, chance: Random) -> None:
        super().__init__(name=name, daemon=True)
        self._stage = stage
        self._ledger = ledger
        self._chance = chance
        self._count = 0
        self._pause_s = 0.02
        self._actions = {
            self._prompt: 40,
            self._hook: 12,
            self._hint: 12,
            self._arm_timer: 9,
            self._cancel_timer: 4,
            self._add_work: 4,
            self._move_work: 8,
            self._run_task: 5,
            self._steer: 5,
            self._prune: 4,
        }

    def run(self) -> None:
        """Ask for one thing after another until the stage closes."""
        actions, weights = list(self._actions), list(self._actions.values())
        while self._stage.may_act():
            self._count += 1
            self._chance.choices(actions, weights)[0]()
            self._stage.is_closing.wait(self._chance.expovariate(1 / self._pause_s))

    def _ask(self, command: ask.Command) -> ask.Answer:
        answer = self._stage.ask(command)
        if answer.refusal is not None:
            self._ledger.refusals[answer.refusal.code] += 1
        return answer

    def _agent(self) -> str:
        return self._chance.choice(AGENTS)

    def _admit(self, command: ask.Prompt | ask.Webhook) -> None:
        """Repeat until it is in; a stopped agent is resumed by whoever stopped it."""
        assert command.key is not None
        while not (answer := self._ask(command)).ok:
            if answer.refusal is not None and answer.refusal.code != "agent_stopped":
                self._ledger.problems.append(f"{command.key} was refused: {answer.refusal}")
                return
            time.sleep(RETRY_S)
        self._ledger.acknowledge(command.key, answer)

    def _prompt(self) -> None:
        key = f"{self.name}-{self._count}"
        prompt = ask.Prompt(
            id=0,
            agent=self._agent(),
            text=f"prompt {key}",
            key=key,
            priority=self._chance.choice(list(Priority)),
        )
        twin = threading.Thread(target=self._admit, args=(prompt,), daemon=True)
        has_twin = self._chance.random() < 0.15
        if has_twin:  # the same request at the same time, over another connection
            twin.start()
        self._admit(prompt)
        if has_twin:
            twin.join()
        if self._chance.random() < 0.15:
            self._admit(prompt)

    def _hook(self) -> None:
        key = f"{self.name}-{self._count}"
        self._admit(ask.Webhook(id=0, agent=self._agent(), text=f"event {key}", key=key))

    def _hint(self) -> None:
        body = {"change": self._count} if self._chance.random() < 0.5 else None
        source = self._chance.choice(("ci", "inbox", "review"))
        self._ask(ask.Hint(id=0, agent=self._agent(), source=source, body=body))

    def _arm_timer(self) -> None:
        timer = ask.ArmTimer(
            id=0,
            agent=self._agent(),
            after_ms=self._chance.randrange(1, 300),
            every_ms=self._chance.choice((None, None, 1_000)),
            summary="drill",
        )
        answer = self._ask(timer)
        if answer.ok:
            self._ledger.timers.append(str(result_of(answer)["timer_id"]))

    def _cancel_timer(self) -> None:
        if self._ledger.timers:
            chosen = self._chance.choice(self._ledger.timers)
            self._ask(ask.CancelTimer(id=0, timer=chosen))

    def _add_work(self) -> None:
        work = ask.AddWork(id=0, agent=self._agent(), objective=f"work {self._count}")
        answer = self._ask(work)
        if answer.ok:
            self._ledger.items.append(str(result_of(answer)["work_item_id"]))

    def _move_work(self) -> None:
        if self._ledger.items:
            move = ask.MoveWork(
                id=0,
                item=self._chance.choice(self._ledger.items),
                verb=self._chance.choice(("focus", "block", "unblock", "complete")),
                recheck_after_ms=self._chance.randrange(1, 500),
            )
            self._ask(move)

    def _run_task(self) -> None:
        task_id = f"task_{self.name}_{self._count}"
        waited_for = self._chance.random() < 0.5
        opening = ask.OpenTask(id=0, agent=self._agent(), task=task_id, wait=waited_for)
        if self._ask(opening).ok:
            self._ledger.tasks.append(task_id)
            end = self._chance.choice((TaskStatus.COMPLETED, TaskStatus.FAILED))
            for status in (TaskStatus.RUNNING, end):
                self._ask(ask.ReportTask(id=0, task=task_id, status=status))

    def _steer(self) -> None:
        verb = self._chance.choice(("abort", "stop", "pause"))
        agent = self._agent() if verb == "abort" else STOPPED_NOW_AND_THEN
        self._ask(ask.Steer(id=0, agent=agent, verb=verb))
        if verb != "abort":
            self._stage.is_closing.wait(self._chance.expovariate(1 / self._pause_s))
            self._ask(ask.Steer(id=0, agent=agent, verb="resume"))

    def _prune(self) -> None:
        self._ask(ask.Prune(id=0))


def calm_down(stage: Stage, home: Path) -> int:
    """End everything that would go on by itself for ever; return how much that was.

    What there is to end is read from the rows: a request that was carried out and then cut off
    before its answer left something behind that no ledger knows of.
    """
    with open_untouched(database_path(home)) as connection:
        timers = connection.execute("select timer_id from timers where status = 'active'")
        items = connection.execute("select work_item_id from work_items where state = 'open'")
        commands: list[ask.Command] = [
            *(ask.CancelTimer(id=0, timer=str(timer)) for (timer,) in timers),
            *(ask.MoveWork(id=0, item=str(item), verb="complete") for (item,) in items),
        ]
    for command in (ask.Steer(id=0, agent=STOPPED_NOW_AND_THEN, verb="resume"), *commands):
        stage.ask(command)
    return len(commands)


def result_of(answer: ask.Answer) -> Mapping[str, object]:
    """Return the result of an answer as the object it is."""
    assert isinstance(answer.result, dict), answer
    return answer.result


def ask_together(host: HostClient, commands: list[ask.Command]) -> list[ask.Answer]:
    """Send commands in one breath and return the answers in the order they came."""
    inbox: SimpleQueue[ask.Answer | None] = SimpleQueue()
    for command in commands:
        host.send(command, inbox)
    answers = [inbox.get(timeout=30) for _ in commands]
    return [answer for answer in answers if answer is not None]
