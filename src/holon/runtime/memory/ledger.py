"""Episode ledger: copy finished episodes into a file in each agent's home.

Owns:  when ledgers are written: after the commit that archived an episode, and at a start for the
       episodes an earlier process archived last and may not have copied.
Rule 1: the rows are authoritative. A ledger that cannot be written is logged, and the agent's next
        episode tries again.
Rule 2: an episode is appended once: what follows the newest id in the file is appended, in order,
        however often an earlier append was interrupted.
Rule 3: an agent's commands can write into its ledger. A resulting error is logged, and affects
        neither another agent's ledger nor the host.
"""

from holon.model.memory.records import (
    EPISODE_CANDIDATES_COUNT,
    EPISODES_PAGE_COUNT_MAX,
    LEDGER_START_COUNT_MAX,
    EpisodeRecord,
)
from holon.model.values import AgentId, EpisodeId
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.ports.memory import EpisodeLedger, LedgerError
from holon.ports.reads import StoreReads
from holon.runtime.background import Alarm, bug_noted
from holon.runtime.workspaces.place import AgentPlaces


class EpisodeLedgerKeeper:
    """Writes the ledgers of one host."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        agent_places: AgentPlaces,
        ledger: EpisodeLedger,
        journal: Journal,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._agent_places = agent_places
        self._ledger = ledger
        self._journal = journal
        self._alarm = Alarm(self._clock)
        self._behind: dict[AgentId, None] = {}

    def archived(self, agent_id: AgentId) -> None:
        """Schedule an agent's ledger: an episode may have been archived."""
        if self._ledger.is_kept:
            self._behind[agent_id] = None
            self._alarm.nudge()

    async def run(self) -> None:
        """Write scheduled ledgers until cancelled."""
        if not self._ledger.is_kept:
            return
        reads = self._reads
        newest = await reads.memory.newest_episode_agents(limit=LEDGER_START_COUNT_MAX)
        self._behind.update(dict.fromkeys(newest))
        while True:
            await self.catch_up()
            await self._alarm.wait(until=None)

    async def catch_up(self) -> None:
        """Update the ledger of every scheduled agent."""
        while self._behind:
            agent_id = next(iter(self._behind))
            del self._behind[agent_id]
            with bug_noted(
                self._journal,
                "episode_ledger_crashed",
                f"the ledger of {agent_id} is behind until its next episode (a bug)",
                agent_id=agent_id,
            ):
                await self._copy_if_possible(agent_id)

    async def _copy_if_possible(self, agent_id: AgentId) -> None:
        try:
            await self._copy(agent_id)
        except LedgerError as error:
            self._journal.note(
                "episode_ledger", error.message, level=LogLevel.WARNING, agent_id=agent_id
            )

    async def _copy(self, agent_id: AgentId) -> None:
        ledger = self._ledger
        home = self._agent_places.home_of(agent_id)
        missing = await self._missing(agent_id, await ledger.last_id(home))
        if missing:
            await ledger.append(home, missing)

    async def _missing(
        self, agent_id: AgentId, last_id: EpisodeId | None
    ) -> tuple[EpisodeRecord, ...]:
        """Episodes newer than the last one in the file, oldest first."""
        reads = self._reads
        for limit in (EPISODE_CANDIDATES_COUNT, EPISODES_PAGE_COUNT_MAX):
            newest = tuple(await reads.memory.episodes(agent_id, limit=limit))
            ids = [episode.id for episode in newest]
            if last_id in ids:
                newest = newest[: ids.index(last_id)]
                break
            if len(newest) < limit:
                break
        return tuple(reversed(newest))
