"""Mutants in admission, fencing and the lifecycle of tasks."""

from holon.adapters.sqlite.writer.commit_writer import ExpectationChecks
from holon.decide.events.audit import audited
from holon.decide.queue.admission import Admitted
from holon.decide.queue.commits import queue_change
from holon.decide.tasks.commands import Advance, decide_advance
from holon.model.commits import AgentAdmits, AgentGeneration, Commit, Expect, ExpectationFailed
from holon.model.queue import AdmissionReceipt
from holon.model.tasks import TaskStatus
from holon.runtime.queue import Ingress
from tests.mutants.planting import plant_function, plant_method


def plant_m1() -> None:
    """Answer the caller while the commit is still on its way."""

    async def hasty(self: Ingress, admitted: Admitted) -> AdmissionReceipt:
        message = admitted.message
        commit = Commit(
            commit_id=f"admit:{message.id}",
            at=message.created_at,
            changes=(queue_change(admitted),),
            expects=(AgentAdmits(agent_id=message.agent_id),),
        )
        self._store.submit(audited(commit))
        return AdmissionReceipt(agent_id=message.agent_id, message_id=message.id)

    plant_method(Ingress, "_queue", hasty)


def plant_m5() -> None:
    """Let a lane write that no longer holds its agent."""
    honest = ExpectationChecks.first_failure

    def lax(self: ExpectationChecks, expects: tuple[Expect, ...]) -> ExpectationFailed | None:
        return honest(self, tuple(e for e in expects if not isinstance(e, AgentGeneration)))

    plant_method(ExpectationChecks, "first_failure", lax)


def plant_m9() -> None:
    """Take every report at its word, however late."""

    def gullible(current: TaskStatus, proposed: TaskStatus) -> Advance:
        del current
        return Advance(status=proposed)

    plant_function(decide_advance, gullible)
