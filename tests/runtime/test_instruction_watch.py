"""Changes of the files an agent lives by, told by the log of a real host."""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holon.adapters.system.clock import SystemClock
from holon.decide.agents.lifecycle import public_identity
from holon.model.events.event import TurnEnded
from holon.model.guidance import InstructionSourceChanged
from holon.runtime.host import Host
from holon.serve.compose import ExecOptions, HostOptions, open_host
from tests.runtime.cast import calls, prompt_for, rule, says, webhook_for
from tests.support.builders import MAIN
from tests.support.scripted_provider import Script, ScriptedProvider, ScriptedRule
from tests.support.single_model import SingleModel

PATCH = "*** Begin Patch\n*** Add File: AGENTS.md\n+Be kind.\n*** End Patch\n"
KIND = hashlib.sha256(b"Be kind.\n").hexdigest()
WRITTEN = hashlib.sha256(b"by hand\n").hexdigest()
RULES = (
    rule("patch", calls("ApplyPatch", patch=PATCH), says("done")),
    rule("write", calls("ExecCommand", cmd="echo 'by hand' > AGENTS.md"), says("done")),
    rule("look", calls("ExecCommand", cmd="true"), says("done")),
    rule("talk", says("done")),
)


@asynccontextmanager
async def hosted(home: Path, *rules: ScriptedRule) -> AsyncIterator[Host]:
    models = SingleModel(ScriptedProvider(Script(rules=rules), SystemClock()))
    exec_options = ExecOptions(environ={"PATH": os.environ["PATH"]})
    with anyio.fail_after(60):
        async with open_host(home, models, HostOptions(exec_options=exec_options)) as host:
            now = SystemClock().now()
            await host.control.create_agent(public_identity(MAIN, now=now, is_default=True))
            yield host


async def said(host: Host, text: str, *, from_outside: bool = False) -> None:
    """Have a turn about something, to its end."""
    before = (await host.reads.events.event_bounds(MAIN))[1]
    await host.admit(webhook_for(text) if from_outside else prompt_for(text))
    async for one in host.events.follow(MAIN, after=before):
        if isinstance(one.event, TurnEnded):
            return


async def told(host: Host) -> list[InstructionSourceChanged]:
    events = [one.event for one in await host.reads.events.events_after(MAIN, 0, limit=512)]
    return [event for event in events if isinstance(event, InstructionSourceChanged)]


@pytest.mark.requirement("provenance:instruction-changes-are-told")
async def test_a_change_is_told_with_its_digests_its_call_and_its_taint(tmp_path: Path) -> None:
    async with hosted(tmp_path, *RULES) as host:
        await said(host, "talk")
        await said(host, "patch")
        await said(host, "write", from_outside=True)
        first, second = await told(host)
    assert (first.path, first.old_sha256, first.new_sha256) == ("AGENTS.md", None, KIND)
    assert (first.tainted, first.authority_class) == (False, "operator_instruction")
    assert (second.old_sha256, second.new_sha256) == (KIND, WRITTEN)
    assert (second.tainted, second.authority_class) == (True, "external_evidence")
    assert first.effect_id is not None
    assert second.effect_id is not None


async def test_what_changed_while_nobody_looked_is_told_without_a_call(tmp_path: Path) -> None:
    async with hosted(tmp_path, *RULES) as host:
        await said(host, "patch")
        (tmp_path / "agents" / MAIN / "AGENTS.md").write_text("by hand\n")
        await said(host, "talk")
        assert len(await told(host)) == 1
        await said(host, "look")
        _, change = await told(host)
    assert (change.old_sha256, change.new_sha256, change.effect_id) == (KIND, WRITTEN, None)


@pytest.mark.requirement("provenance:nothing-persists")
async def test_a_patch_to_a_source_is_refused_where_somebody_outside_had_a_word(
    tmp_path: Path,
) -> None:
    async with hosted(tmp_path, *RULES) as host:
        await said(host, "patch", from_outside=True)
        assert await told(host) == []
        assert not (tmp_path / "agents" / MAIN / "AGENTS.md").exists()
        (log,) = await host.reads.turns.recent_turns(MAIN, limit=1)
        receipt = log.calls[0].receipt
        assert receipt is not None
        assert receipt.error_kind == "instruction_source_guarded"
        assert "operator" in receipt.content
        await said(host, "patch")
        assert len(await told(host)) == 1


async def test_a_follow_up_to_words_from_outside_is_no_way_around(tmp_path: Path) -> None:
    later = rule(
        "begin", calls("Enqueue", text="patch", priority="background"), says("left for later")
    )
    async with hosted(tmp_path, later, *RULES) as host:
        await host.admit(webhook_for("begin"))
        ended = 0
        async for one in host.events.follow(MAIN, after=0):
            ended += isinstance(one.event, TurnEnded)
            if ended == 2:
                break
        assert await told(host) == []
        assert not (tmp_path / "agents" / MAIN / "AGENTS.md").exists()


@pytest.mark.requirement("provenance:instruction-changes-are-told")
async def test_what_was_seen_before_a_call_that_is_cut_off_is_told_by_the_next(
    tmp_path: Path,
) -> None:
    up = tmp_path / "up"
    os.mkfifo(up)
    hang = rule("hang", calls("ExecCommand", cmd=f"echo up > {up}; sleep 600"), says("done"))
    async with hosted(tmp_path, hang, *RULES) as host:
        await said(host, "patch")
        (tmp_path / "agents" / MAIN / "AGENTS.md").write_text("by hand\n")
        await host.admit(prompt_for("hang"))
        await anyio.to_thread.run_sync(up.read_text)
        await host.control.abort_run(MAIN)
        assert len(await told(host)) == 1
        await said(host, "look")
        _, change = await told(host)
    assert (change.old_sha256, change.new_sha256, change.effect_id) == (KIND, WRITTEN, None)
