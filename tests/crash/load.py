"""The people and machines around a host that keeps being killed.

Owns:  operators, with prompts, interjections, wakes, timers, work items, tasks and the agents' run
       state; and senders of webhooks, public messages and trigger deliveries.
Rule 1: a command of a task writes its own key first, so that whoever judges can count executions.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlsplit

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.model.values import JsonValue
from tests.crash.caller import STOPPED_NOW_AND_THEN, Caller
from tests.crash.stage import Ledger, Stage
from tests.support.mixed_commands import EFFECTS_FILE
from tests.support.served_host import Request

ORDER_PREFIX: Final = "order-"
_ENDINGS: Final = (
    "",
    "; exit 3",
    "; sleep 0.4",
    "; sleep 2",
    "; read line; echo $line",
    "; trap '' TERM; sleep 1",
)


class Operator(Caller):
    """Somebody with a token."""

    def actions(self) -> Mapping[Callable[[], None], int]:
        """What it may ask for, and how often."""
        return {
            self._prompt: 36,
            self._wake: 5,
            self._arm_timer: 9,
            self._cancel_timer: 4,
            self._add_work: 4,
            self._move_work: 6,
            self._order: 7,
            self._meddle: 4,
            self._steer: 5,
        }

    def _prompt(self) -> None:
        body: JsonValue = {"text": f"prompt {self.key}", "interject": self.chance.random() < 0.2}
        path = f"/control/agents/{self.agent()}/prompt"
        prompt = Request(path=path, body=body, key=self.key)
        twin = threading.Thread(target=self.admit, args=(prompt,), daemon=True)
        has_twin = self.chance.random() < 0.15
        if has_twin:  # the same request at the same time, over another connection
            twin.start()
        self.admit(prompt)
        if has_twin:
            twin.join()
        if self.chance.random() < 0.15:
            self.admit(prompt)

    def _wake(self) -> None:
        source = self.chance.choice(("ci", "inbox", "review"))
        self.control(f"{self.agent()}/wake", {"reason": "changed", "source": source})

    def _arm_timer(self) -> None:
        agent, key = self.agent(), self.key
        body: JsonValue = {"duration_ms": self.chance.randrange(1, 300), "summary": "drill"}
        if self.chance.random() < 0.3:
            body = {**body, "interval_ms": 1_000}
        reply = self.control(f"{agent}/timers", body, key=key)
        if reply.ok:
            self.ledger.record(self.ledger.timers, key, (agent, str(reply.at("timer", "id"))))

    def _cancel_timer(self) -> None:
        if known := list(self.ledger.timers.values()):
            agent, timer = self.chance.choice(known)
            self.control(f"{agent}/timers/{timer}/cancel")

    def _add_work(self) -> None:
        agent, key = self.agent(), self.key
        reply = self.control(f"{agent}/work-items", {"objective": f"work {key}"}, key=key)
        if reply.ok:
            self.ledger.record(self.ledger.items, key, (agent, str(reply.at("work_item", "id"))))

    def _move_work(self) -> None:
        known = list(self.ledger.items.values())
        if not known:
            return
        agent, item = self.chance.choice(known)
        path = f"{agent}/work-items/{item}"
        match self.chance.choice(("pick", "block", "unblock", "complete")):
            case "block":
                blocked: JsonValue = {
                    "blocked_by": "someone",
                    "recheck_after_ms": self.chance.randrange(1, 500),
                }
                self.ask(Request(method="PATCH", path=f"/control/agents/{path}", body=blocked))
            case "unblock":
                free: JsonValue = {"blocked_by": None}
                self.ask(Request(method="PATCH", path=f"/control/agents/{path}", body=free))
            case verb:
                self.control(f"{path}/{verb}")

    def _order(self) -> None:
        """Have a command run in the background."""
        agent, key = self.agent(), self.key
        cmd = f"echo {ORDER_PREFIX}{key} >> {EFFECTS_FILE}{self.chance.choice(_ENDINGS)}"
        body: JsonValue = {"summary": f"order {key}", "cmd": cmd, "accepts_input": "read" in cmd}
        reply = self.control(f"{agent}/tasks", body, key=key)
        if reply.ok:
            made = (agent, str(reply.at("task", "task_id")))
            self.ledger.record(self.ledger.tasks, key, made)

    def _meddle(self) -> None:
        """Stop a task somebody ordered, or write to it."""
        if known := list(self.ledger.tasks.values()):
            agent, task = self.chance.choice(known[-3:])
            if self.chance.random() < 0.5:
                self.ledger.stopped.add(task)
                self.control(f"{agent}/tasks/{task}/stop")
            else:
                self.control(f"{agent}/tasks/{task}/input", {"input": "go on\n"})

    def _steer(self) -> None:
        if self.chance.random() < 0.4:
            self.control(f"{self.agent()}/current-run/abort")
            return
        self.control(f"{STOPPED_NOW_AND_THEN}/stop")
        self.pause()
        self.control(f"{STOPPED_NOW_AND_THEN}/start")


class Orderer(Operator):
    """Somebody with a token who has one command run after the other."""

    def actions(self) -> Mapping[Callable[[], None], int]:
        """What it may ask for, and how often."""
        return {self._order: 1}


class Sender(Caller):
    """A machine outside."""

    def __init__(self, name: str, stage: Stage, ledger: Ledger, chance: Random) -> None:
        super().__init__(name, stage, ledger, chance)
        self._trigger_paths: dict[str, str] = {}

    def actions(self) -> Mapping[Callable[[], None], int]:
        """What it may ask for, and how often."""
        return {self._hook: 5, self._enqueue: 4, self._deliver: 12}

    def _hook(self) -> None:
        path = f"/webhooks/generic/{self.agent()}"
        self.admit(Request(path=path, body=f"event {self.key}".encode(), key=self.key))

    def _enqueue(self) -> None:
        priority = self.chance.choice(("next", "normal", "background"))
        body: JsonValue = {"text": f"event {self.key}", "priority": priority}
        self.admit(Request(path=f"/agents/{self.agent()}/enqueue", body=body, key=self.key))

    def _deliver(self) -> None:
        """Use a trigger's address; only what was acknowledged has to wake."""
        agent = self.agent()
        path = self._trigger_path(agent)
        if path is None:
            return
        headers = {"X-Correlation-ID": self.key}
        if self.chance.random() < 0.4:
            headers["X-Holon-Source"] = self.chance.choice(("ci", "inbox"))
        body = f"change {self.key}".encode() if self.chance.random() < 0.7 else b""
        delivery = Request(path=path, body=body, key=self.key, headers=headers)
        answers = [self.ask(delivery) for _ in range(1 + (self.chance.random() < 0.2))]
        if answers[0].ok:
            self.ledger.deliveries[self.key] = agent
        told = [each.at("result") for each in (answers[0], answers[-1]) if each.ok]
        if len(told) == 2 and told[0] != told[1]:
            self.ledger.problems.append(f"P2 delivery {self.key} was answered in two ways")
        if answers[0].status == 404 and agent != STOPPED_NOW_AND_THEN:
            self.ledger.problems.append(f"the trigger of {agent} has lost its address")

    def _trigger_path(self, agent: str) -> str | None:
        if agent not in self._trigger_paths:
            path = f"/control/agents/{agent}/external-trigger"
            reply = self.ask(Request(method="POST", path=path))
            shown = reply.at("external_trigger")
            url = shown.get("trigger_url") if isinstance(shown, dict) else None
            if not isinstance(url, str):
                self.ledger.problems.append(f"{agent} has no trigger: {reply.body!r}")
                return None
            self._trigger_paths[agent] = urlsplit(url).path
        return self._trigger_paths[agent]


def calm_down(stage: Stage, home: Path) -> int:
    """End everything that would go on by itself for ever; return how much that was.

    What there is to end is read from the rows: a request that was carried out and then cut off
    before its answer left something behind that no ledger knows of.
    """
    with open_untouched(database_path(home)) as connection:
        timers = connection.execute("select agent_id, timer_id from timers where status = 'active'")
        items = connection.execute(
            "select agent_id, work_item_id from work_items where state = 'open'"
        )
        reading = connection.execute(
            "select agent_id, task_id from tasks where status in ('queued', 'running')"
            " and record ->> '$.recovery.spec.accepts_input'"
        )
        paths = [
            *(f"{agent}/timers/{timer}/cancel" for agent, timer in timers),
            *(f"{agent}/work-items/{item}/complete" for agent, item in items),
        ]
        paths_of_readers = [f"{agent}/tasks/{task}/stop" for agent, task in reading]
    for path in (f"{STOPPED_NOW_AND_THEN}/start", *paths, *paths_of_readers):
        stage.ask(Request(path=f"/control/agents/{path}"))
    return len(paths)
