"""The boundary around what commands do to their files and processes.

Owns:  keeping an error about one command from ending the host, and what is then taken for true.
Rule 1: a command can reach its own files, and a machine can run out of handles: what goes wrong
        when we look is noted in the journal, and costs that look, not the work of all agents.
Rule 2: a command that cannot be waited for has an end nobody saw; what may be left of it is ended.
Rule 3: only errors of the machine are held back. Those of the store go on to whoever answers for
        it, and a bug is not hidden here.
"""

from collections.abc import Mapping

from holon.model.command import CommandExit
from holon.ports.journal import About, Journal, LogLevel
from holon.runtime.command_task import CommandTask


class _Boundary:
    """Notes an error, and lets the code behind the block go on."""

    def __init__(self, journal: Journal, what: str, about: Mapping[str, About]) -> None:
        self._journal = journal
        self._what = what
        self._about = about

    def __enter__(self) -> None:
        """Go in."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: object
    ) -> bool:
        """Hold back what the machine objects to, and nothing else."""
        if not isinstance(error, OSError):
            return False
        self._journal.note(
            "command_out_of_reach", self._what, level=LogLevel.ERROR, error=error, **self._about
        )
        return True


def spared(journal: Journal, what: str, **about: About) -> _Boundary:
    """Leave a block at the first error about a command; `what` says what was not done."""
    return _Boundary(journal, what, about)


async def stop_spared(journal: Journal, held: CommandTask, force: bool) -> None:
    """Stop a task's command, as far as that can be done."""
    with spared(journal, "a command could not be stopped", **_about(held)):
        await held.command.stop(force=force)


async def ended_spared(journal: Journal, held: CommandTask) -> CommandExit:
    """Return how a task's command ended."""
    with spared(journal, "a command could not be waited for; it is ended", **_about(held)):
        return await held.command.wait()
    await stop_spared(journal, held, force=True)
    return CommandExit(exit_status=None)


async def leftovers_ended(journal: Journal, held: CommandTask) -> bool:
    """End what the ended command of a task left running; say whether there was anything."""
    with spared(journal, "what a command left running could not be ended", **_about(held)):
        if held.command.left_running:
            await held.command.stop()
            return True
    return False


def _about(held: CommandTask) -> Mapping[str, About]:
    return {"agent_id": held.task.agent_id, "task_id": held.task.id}
