"""What an agent would be asked: its next prompt, looked at before it is sent.

Owns:  the route that shows a prompt. It sends nothing and changes nothing.
"""

from typing import Final

from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.model.ids import parse_agent_id
from holon.prompt.prompt_view import PromptView
from holon.wire.control_requests import DebugPromptRequest


async def debug_prompt(plane: Plane, call: Call) -> PromptView:
    """Show the frame an agent's next request would have."""
    asked = call.taken(DebugPromptRequest)
    return await plane.host.prompts.look(parse_agent_id(call.params["agent_id"]), text=asked.text)


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="POST",
        path="/control/agents/{agent_id}/debug-prompt",
        access=Access.CONTROL,
        summary="Show the prompt an agent would be given now, section by section.",
        answer=debug_prompt,
        takes=DebugPromptRequest,
        body_optional=True,
        returns=PromptView,
        refusals=(404,),
        tags=("agents",),
    ),
)
