"""The prompt an agent would be given, over a real server."""

import pytest

from holon.prompt.prompt_view import PromptView
from holon.testing.control_server import MAIN, ControlServer
from holon.wire.codec import decode


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
async def test_the_status_tells_where_guidance_came_from(server: ControlServer) -> None:
    status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
    for file in status.get("loaded_agents_md", []):
        assert set(file) == {"source", "kind", "path", "bytes", "sha256", "truncated"}
