"""Agent provisioning: create an agent together with its home.

Owns:  the order of creation: checks that may refuse, then the complete home, then the identity
       commit; the same for the default agent.
Rule 1: a failure at any step leaves neither a home nor an agent. A process that dies in between
        leaves a provisional home; the next start keeps or removes it by whether the agent is
        durable.
Rule 2: one creation per agent id at a time. A repeat under the same key with the same template
        returns the earlier creation: the key is part of the commit id.
Rule 3: while it is unknown whether the commit is durable, the home stays provisional.
Rule 4: the default agent gets a missing AGENTS.md from the default template. Existing files are
        kept, and an unusable template does not keep a service from starting.
Rule 5: under a service, an agent is created with its external trigger; one created without it gets
        it with its next turn (runtime/turns/context).
Rule 6: a home that cannot be settled is logged and stays provisional until the next start. It
        neither ends a start nor fails the creation of an agent that is durable.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio

from holon.decide.agents.lifecycle import public_identity
from holon.decide.budgets.budget import agent_quota
from holon.decide.events.audit import audited
from holon.decide.queue.idempotency import keyed_request
from holon.decide.wake.triggers import default_trigger
from holon.model.agents import DEFAULT_TEMPLATE, AgentIdentity, AgentStatus, BadTemplateError
from holon.model.commits import AgentAbsent, Applied, Commit, CreateAgent, CreateTrigger
from holon.model.errors import (
    HolonError,
    Refusal,
    RefusalCode,
    RefusedError,
    StoreBrokenError,
    StoreClosedError,
)
from holon.model.guidance import BadSkillRefError
from holon.model.limits import AGENTS_COUNT_MAX
from holon.model.values import AgentId, IdPrefix, TriggerId, parse_agent_id
from holon.ports.agents import AgentHomes, HomeOccupiedError
from holon.ports.clock import Clock, IdSource
from holon.ports.journal import Journal, LogLevel
from holon.ports.store import Store
from holon.runtime.commits import commit_decided


class AgentProvisioner:
    """Creates the agents of one host."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        homes: AgentHomes,
        journal: Journal,
        trigger_base_url: str | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._homes = homes
        self._journal = journal
        self._trigger_base_url = trigger_base_url
        self._in_progress: dict[AgentId, anyio.Event] = {}

    async def create(
        self, identity: AgentIdentity, *, template: str | None = None, key: str | None = None
    ) -> None:
        """Create an agent, asleep; on an error, leave neither a home nor an agent."""
        agent_id = parse_agent_id(identity.agent_id)
        creation = self._creation(identity, template=template, key=key)
        while key is not None and agent_id in self._in_progress:
            await self._in_progress[agent_id].wait()  # it may be the creation this one repeats
        if agent_id in self._in_progress:
            raise RefusedError(_exists(agent_id))
        done = self._in_progress[agent_id] = anyio.Event()
        try:
            refusal = await self._refusal(agent_id)
            if refusal is None:
                await self._provision(creation, identity, template=template)
            elif key is None or not await self._was_provisioned(creation, refusal):
                raise RefusedError(refusal)
        finally:
            del self._in_progress[agent_id]
            done.set()

    async def ensure(self, agent_id: AgentId) -> None:
        """Create the default agent unless it exists, and complete its home."""
        if await self._store.reads.agents.agent(agent_id) is not None:
            await self._complete(agent_id)
            return
        identity = public_identity(agent_id, now=self._clock.now(), is_default=True)
        try:
            await self.create(identity, template=DEFAULT_TEMPLATE)
        except HomeOccupiedError:
            await self.create(identity)
            await self._complete(agent_id)
        except (BadTemplateError, BadSkillRefError) as problem:
            self._note(problem)
            await self.create(identity)

    async def settle(self) -> None:
        """Keep provisional homes of durable agents; discard those of no agent."""
        provisional: Sequence[AgentId] = ()
        with self._noted():
            provisional = await self._homes.provisional()
        for agent_id in provisional:
            if await self._store.reads.agents.agent(agent_id) is None:
                await self._discard(agent_id)
            else:
                await self._keep(agent_id)

    async def _keep(self, agent_id: AgentId) -> None:
        with self._noted():
            await self._homes.keep(agent_id)

    async def _discard(self, agent_id: AgentId) -> None:
        with self._noted():
            await self._homes.discard(agent_id)

    def _creation(
        self, identity: AgentIdentity, *, template: str | None, key: str | None
    ) -> Commit:
        agent_id = identity.agent_id
        if key is None:
            name = self._ids.fresh(IdPrefix.REQUEST)
        else:
            name = keyed_request(agent_id, key, content=template or "")
        return Commit(
            commit_id=f"control:{name}",
            at=identity.created_at,
            changes=(
                CreateAgent(identity=identity, status=AgentStatus.ASLEEP),
                *self._trigger(identity),
            ),
            expects=(AgentAbsent(agent_id=agent_id),),
        )

    def _trigger(self, identity: AgentIdentity) -> tuple[CreateTrigger, ...]:
        """The agent's external trigger, where deliveries are possible."""
        if self._trigger_base_url is None:
            return ()
        fresh = TriggerId(self._ids.fresh(IdPrefix.TRIGGER))
        trigger = default_trigger(fresh, identity.agent_id, now=identity.created_at)
        return (CreateTrigger(trigger=trigger),)

    async def _was_provisioned(self, creation: Commit, refusal: Refusal) -> bool:
        """Whether the refused request repeats this creation: its commit id is known then."""
        if refusal.code is not RefusalCode.AGENT_EXISTS:
            return False
        return isinstance(await self._store.apply(audited(creation)), Applied)

    async def _provision(
        self, creation: Commit, identity: AgentIdentity, *, template: str | None
    ) -> None:
        await self._homes.make(identity.agent_id, template=template, at=identity.created_at)
        with anyio.CancelScope(shield=True):  # home and identity are one step from here on
            await self._commit(identity.agent_id, creation)

    async def _commit(self, agent_id: AgentId, creation: Commit) -> None:
        async def decide() -> Commit | Refusal:
            return await self._refusal(agent_id) or creation

        try:
            await commit_decided(self._store, decide)
        except (StoreBrokenError, StoreClosedError):
            raise
        except HolonError:
            await self._discard(agent_id)
            raise
        await self._keep(agent_id)

    async def _refusal(self, agent_id: AgentId) -> Refusal | None:
        reads = self._store.reads
        if await reads.agents.agent(agent_id) is not None:
            return _exists(agent_id)
        return agent_quota(await reads.agents.agent_count(limit=AGENTS_COUNT_MAX))

    async def _complete(self, agent_id: AgentId) -> None:
        with self._noted():
            await self._homes.complete(agent_id, template=DEFAULT_TEMPLATE)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Log a problem with a home, and continue."""
        try:
            yield
        except HolonError as problem:
            self._note(problem)

    def _note(self, problem: HolonError) -> None:
        self._journal.note("agent_home_problem", problem.message, level=LogLevel.WARNING)


def _exists(agent_id: AgentId) -> Refusal:
    return Refusal(
        code=RefusalCode.AGENT_EXISTS,
        message=f"there is already an agent {agent_id}",
        hint=(
            "choose another id, or use the agent that exists: `holon agent list`"
            " (GET /agents/list) names them"
        ),
        field="agent_id",
    )
