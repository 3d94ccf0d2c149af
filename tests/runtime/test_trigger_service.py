"""Deliveries at the moments when something else happens to their trigger or their agent."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from holon.adapters.sqlite.store import SqliteStore, open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.control_token import TriggerKeyFile
from holon.adapters.system.ids import TimeOrderedIds
from holon.decide.events.audit import audited
from holon.decide.wake.triggers import delivery_key_of
from holon.model.agents import AgentStatus
from holon.model.commits import Applied, SetAgentStatus
from holon.model.errors import RefusalCode, RefusedError
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import IDEMPOTENCY_KEPT_MS_MIN, MINUTE_MS
from holon.model.values import later
from holon.model.wake import CallbackRefused, TriggerDelivery, WakeDisposition, WakeHint
from holon.ports.wake import NoTriggerKey, TriggerKey
from tests.support.builders import MAIN, a_commit, an_agent
from tests.support.database_plants import forget_content_digests, forget_deliveries
from tests.support.hosts import a_host
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

KEYED = TriggerDelivery(delivery_key=delivery_key_of("delivery-1"), body="hello")


class Bench:
    """A service on a real store, with one agent."""

    def __init__(self, store: SqliteStore, home: Path, key: TriggerKey | None = None) -> None:
        self.store, self.home, self.clock = store, home, SystemClock()
        self.service = (
            a_host(
                store=store,
                clock=self.clock,
                ids=TimeOrderedIds(),
                models=SingleModel(ScriptedProvider(Script(), self.clock)),
                trigger_key=key or TriggerKeyFile(home, lambda name, secret: True),
                trigger_base_url="http://127.0.0.1:7878",
            )
        ).triggers

    async def token(self) -> str:
        url = self.service.url_of(await self.service.ensure(MAIN))
        assert url is not None
        return url.rpartition("/")[2]

    async def send(self, delivery: TriggerDelivery, token: str) -> WakeDisposition | None:
        """Everything a surface does, but for counting."""
        target = await self.service.open(token, delivery)
        if target is None:
            return None
        receipt = await self.service.earlier(token, delivery, target)
        receipt = receipt or await self.service.deliver(token, delivery, target)
        return None if receipt is None else receipt.disposition

    async def count(self) -> int:
        return (await self.service.ensure(MAIN)).delivery_count

    async def hints(self) -> tuple[WakeHint, ...]:
        surface = await self.store.reads.agents.agent_surface(MAIN)
        assert surface is not None
        return surface.hints


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = open_store(tmp_path)
    assert await store.apply(audited(a_commit("birth", an_agent()))) == Applied()
    yield Bench(store, tmp_path)
    await store.close()


@pytest.mark.requirement("triggers:counts")
async def test_no_delivery_is_lost_among_hundreds_at_once(bench: Bench) -> None:
    token = await bench.token()
    async with anyio.create_task_group() as sending:
        for number in range(300):
            sending.start_soon(bench.send, TriggerDelivery(body=f"{number}"), token)
    assert await bench.count() == 300
    (hint,) = await bench.hints()
    assert hint.revision == 300


@pytest.mark.requirement("triggers:rotate-and-revoke")
async def test_an_address_rotated_while_a_delivery_was_on_its_way_takes_nothing(
    bench: Bench,
) -> None:
    token = await bench.token()
    target = await bench.service.open(token, KEYED)
    assert target is not None
    await bench.service.rotate(MAIN)
    assert await bench.service.deliver(token, KEYED, target) is None
    assert await bench.count() == 0
    assert await bench.hints() == ()


@pytest.mark.requirement("triggers:stopped")
async def test_an_agent_stopped_while_a_delivery_was_on_its_way_takes_nothing(
    bench: Bench,
) -> None:
    token = await bench.token()
    target = await bench.service.open(token, KEYED)
    assert target is not None
    stop = SetAgentStatus(agent_id=MAIN, status=AgentStatus.STOPPED, reason="r")
    assert await bench.store.apply(audited(a_commit("stop", stop))) == Applied()
    with pytest.raises(RefusedError) as refused:
        await bench.service.deliver(token, KEYED, target)
    assert refused.value.refusal.code is RefusalCode.AGENT_STOPPED
    events = await bench.store.reads.events.events_after(MAIN, 0, limit=50)
    assert isinstance(events[-1].event, CallbackRefused)
    assert await bench.count() == 0
    assert await bench.hints() == ()


@pytest.mark.requirement("triggers:deduplicated")
async def test_a_sender_that_hung_up_and_tries_again_is_counted_once(bench: Bench) -> None:
    token = await bench.token()
    async with anyio.create_task_group() as sending:
        sending.start_soon(bench.send, KEYED, token)
        await anyio.lowlevel.checkpoint()  # its commit is on the way
        sending.cancel_scope.cancel()
    dispositions = {await bench.send(KEYED, token) for _ in range(3)}
    assert len(dispositions) == 1
    assert await bench.count() == 1


@pytest.mark.requirement("triggers:deduplicated")
async def test_two_services_that_know_nothing_of_each_other_count_a_repeat_once(
    bench: Bench,
) -> None:
    token = await bench.token()
    others = [Bench(bench.store, bench.home) for _ in range(20)]
    async with anyio.create_task_group() as sending:
        for other in others:
            sending.start_soon(other.send, KEYED, token)
    assert await bench.count() == 1


@pytest.mark.requirement("triggers:another-body-is-a-conflict")
async def test_of_two_bodies_under_one_key_at_once_one_is_a_conflict(bench: Bench) -> None:
    token = await bench.token()
    refusals: list[RefusalCode] = []

    async def send(bench: Bench, body: str) -> None:
        try:
            await bench.send(msgspec.structs.replace(KEYED, body=body), token)
        except RefusedError as refused:
            refusals.append(refused.refusal.code)

    async with anyio.create_task_group() as sending:
        for body in ("one", "two"):
            sending.start_soon(send, Bench(bench.store, bench.home), body)
    assert refusals == [RefusalCode.IDEMPOTENCY_CONFLICT]
    assert await bench.count() == 1


async def test_a_delivery_from_before_digests_were_kept_counts_as_repeated(bench: Bench) -> None:
    token = await bench.token()
    await bench.send(KEYED, token)
    forget_content_digests(bench.home)
    await bench.send(msgspec.structs.replace(KEYED, body="another"), token)
    assert await bench.count() == 1


@pytest.mark.requirement("triggers:deduplicated")
async def test_a_delivery_is_remembered_for_a_day_and_then_forgotten(bench: Bench) -> None:
    token, begun = await bench.token(), bench.clock.now()
    await bench.send(KEYED, token)
    for passed_ms, count in (
        (IDEMPOTENCY_KEPT_MS_MIN - MINUTE_MS, 1),
        (IDEMPOTENCY_KEPT_MS_MIN + MINUTE_MS, 2),
    ):
        await bench.store.prune(RetentionPolicy(), now=later(begun, by_ms=passed_ms))
        await bench.send(KEYED, token)
        assert await bench.count() == count


async def test_a_forgotten_delivery_counts_again_though_its_commit_is_still_known(
    bench: Bench,
) -> None:
    token = await bench.token()
    await bench.send(KEYED, token)
    forget_deliveries(bench.home)
    assert await bench.send(KEYED, token) is WakeDisposition.COALESCED
    assert await bench.count() == 2


async def test_without_a_key_no_trigger_has_an_address_and_none_opens(bench: Bench) -> None:
    token = await bench.token()
    keyless = Bench(bench.store, bench.home, NoTriggerKey())
    assert keyless.service.url_of(await keyless.service.ensure(MAIN)) is None
    assert await keyless.send(KEYED, token) is None
