"""The prompt an agent would be given, over a real server."""

import hashlib
from pathlib import Path

import pytest

from holon.prompt.prompt_view import PromptView
from holon.serve.agent_adapters import UserFiles
from holon.serve.compose import HostOptions
from holon.wire.codec import decode
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server

NOWHERE = "http://127.0.0.1:9"
CANARY = "canary-0123456789-abcdef"
GUIDANCE = f"# Main\n\nGreet everybody with {CANARY}.\n"


@pytest.mark.requirement("prompt:debug-shows-the-frame")
async def test_the_prompt_is_shown_section_by_section(server: ControlServer) -> None:
    path = f"/control/agents/{MAIN}/debug-prompt"
    answer = await server.operator.post(path, {"text": "mend the roof"})
    assert answer.status == 200, answer.body
    view = decode(answer.body, PromptView)
    assert view.agent_home.endswith(f"/agents/{MAIN}")
    assert (view.workspace_id, view.cwd) == ("agent_home", view.execution_root)
    assert any(line.startswith("not_enforced: ") for line in view.execution_policy)
    names = [section.name for section in view.sections]
    assert names[0] == "identity"
    (said,) = (section for section in view.sections if section.name == "current_input")
    assert "mend the roof" in (said.text or "")
    assert sum(section.cache_breakpoint for section in view.sections) == 2
    again = await server.operator.post(path)
    assert decode(again.body, PromptView).cache is not None
    nobody = await server.operator.post("/control/agents/nobody/debug-prompt")
    assert nobody.status == 404


@pytest.mark.requirement("prompt:loaded-guidance-is-metadata")
async def test_the_status_tells_where_guidance_came_from_and_not_what_it_says(
    tmp_path: Path,
) -> None:
    home, files = tmp_path / "home", UserFiles(user_home=tmp_path / "user", github_base=NOWHERE)
    options = ServerOptions(host=HostOptions(user_files=files))
    async with control_server(home, options) as server:
        own = home / "agents" / MAIN / "AGENTS.md"
        own.write_text(GUIDANCE)
        prompt = await server.operator.post(f"/control/agents/{MAIN}/debug-prompt")
        status = await server.operator.get(f"/agents/{MAIN}/status")
    assert CANARY.encode() in prompt.body, "the model is told"
    assert CANARY.encode() not in status.body
    assert status.json()["loaded_agents_md"] == [
        {
            "source": "agent",
            "kind": "agents_md",
            "path": str(own),
            "bytes": len(GUIDANCE),
            "sha256": hashlib.sha256(GUIDANCE.encode()).hexdigest(),
            "truncated": False,
        }
    ]


async def test_the_status_tells_of_guidance_that_is_there_and_not_used(tmp_path: Path) -> None:
    home, files = tmp_path / "home", UserFiles(user_home=tmp_path / "user", github_base=NOWHERE)
    options = ServerOptions(host=HostOptions(user_files=files))
    async with control_server(home, options) as server:
        own = home / "agents" / MAIN / "AGENTS.md"
        own.write_bytes(b"\xff\xfe")
        status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
    assert status["loaded_agents_md"] == []
    assert status["agents_md_problems"] == [
        f"{own} is not used: it is not UTF-8 text; save it as UTF-8"
    ]
