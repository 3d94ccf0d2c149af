"""A trial model acts on nothing unless its operator allows it."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from holon.model.providers.attempts import AuthRejectedError
from holon.model.providers.models import ModelRef, parse_model_ref
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import TextBlock, ToolResultBlock, ToolUseBlock
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import CallId
from holon.ports.providers import Candidate, ModelPreference, OnProgress, Provider
from holon.serve.compose import ExecOptions, HostOptions
from tests.http.serving import settled
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server

ACTING = ("ApplyPatch", "ExecCommand", "ExecCommandBatch", "TaskInput", "TaskStop")
REAL, TRIAL = parse_model_ref("scripted/real"), parse_model_ref("local/small")


class Destructive:
    """A model that removes files whatever it is asked, and whatever it is offered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[ProviderRequest] = []

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        del on_progress
        self.requests.append(request)
        last = request.conversation[-1].blocks[0]
        if isinstance(last, ToolResultBlock):
            said = TextBlock(text="I cleaned up.")
            return ModelAnswer(blocks=(said,), stop_reason=StopReason.END_TURN)
        given = {"cmd": f"rm -rf {self.folder}"}
        call = ToolUseBlock(
            call_id=CallId(f"c{len(self.requests)}"), name="ExecCommand", input=dict(given)
        )
        return ModelAnswer(blocks=(call,), stop_reason=StopReason.TOOL_USE)


class Failing:
    """A model that is down."""

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        del request, on_progress
        raise AuthRejectedError("down")


class Models:
    """A real model first, if any, and a trial model after it."""

    def __init__(self, known: Mapping[ModelRef, Provider]) -> None:
        self._known = known
        first, *others = known
        self.preference = ModelPreference(default=first, fallbacks=tuple(others))

    def find(self, ref: ModelRef) -> Candidate:
        return Candidate(
            model_ref=ref,
            provider=self._known[ref],
            account=str(ref),
            is_trial=ref.provider == "local",
        )


def options(known: Mapping[ModelRef, Provider], *, allowed: bool = False) -> ServerOptions:
    return ServerOptions(
        models=Models(known),
        host=HostOptions(
            exec_options=ExecOptions(environ={"PATH": "/usr/bin:/bin"}), trial_tools_allowed=allowed
        ),
    )


def mess(folder: Path) -> Path:
    made = folder / "old-files"
    made.mkdir()
    (made / "precious").write_text("x")
    return made


async def receipts(server: ControlServer) -> list[tuple[str, bool, str | None]]:
    logs = await server.host.reads.turns.recent_turns(MAIN, limit=9)
    return [
        (each.receipt.name, each.receipt.is_error, each.receipt.error_kind)
        for log in logs
        for each in log.calls
        if each.receipt is not None
    ]


@pytest.mark.requirement("trial:acts-on-nothing")
async def test_a_trial_model_is_offered_nothing_that_acts_and_its_calls_are_refused(
    tmp_path: Path,
) -> None:
    files = mess(tmp_path)
    model = Destructive(files)
    async with control_server(tmp_path / "home", options({TRIAL: model})) as server:
        await settled(server, "clean up old files in my home")
        assert files.exists()
        offered = {spec.name for spec in model.requests[0].tools}
        assert offered.isdisjoint(ACTING)
        assert {"Sleep", "CreateWorkItem", "AgentGet"} <= offered
        assert await receipts(server) == [("ExecCommand", True, "tool_not_exposed_for_round")]


@pytest.mark.requirement("trial:acts-on-nothing")
async def test_a_trial_model_that_stands_in_for_a_real_one_acts_on_nothing_either(
    tmp_path: Path,
) -> None:
    files = mess(tmp_path)
    known: dict[ModelRef, Provider] = {REAL: Failing(), TRIAL: Destructive(files)}
    async with control_server(tmp_path / "home", options(known)) as server:
        with_real = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        assert with_real["withheld_tools"] == []
        await settled(server, "clean up")
        assert files.exists()
        assert await receipts(server) == [("ExecCommand", True, "tool_not_exposed_for_round")]


@pytest.mark.requirement("trial:operator-may-allow")
async def test_a_trial_model_may_act_where_the_operator_allows_it(tmp_path: Path) -> None:
    files = mess(tmp_path)
    model = Destructive(files)
    async with control_server(tmp_path / "home", options({TRIAL: model}, allowed=True)) as server:
        await settled(server, "clean up old files in my home")
        assert not files.exists()
        status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        assert status["withheld_tools"] == []


@pytest.mark.requirement("trial:is-said")
async def test_status_names_what_is_withheld_and_how_to_allow_it(tmp_path: Path) -> None:
    model = Destructive(mess(tmp_path))
    async with control_server(tmp_path / "home", options({TRIAL: model})) as server:
        status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        assert sorted(status["withheld_tools"]) == list(ACTING)
        assert "model.allow_trial_tools" in status["withheld_tools_hint"]


def test_a_real_model_of_the_plane_is_no_trial_model() -> None:
    from holon.adapters.providers.catalog import model_info
    from holon.model.providers.models import ProviderResolverSettings, ProviderSetting

    settings = ProviderResolverSettings()
    assert model_info(parse_model_ref("local/smollm2-135m"), settings).trial
    assert model_info(parse_model_ref("local//models/own.gguf"), settings).trial
    assert not model_info(parse_model_ref("openai/gpt-5.4"), settings).trial
    assert not model_info(parse_model_ref("scripted/story"), settings).trial
    own = {"mine": ProviderSetting(transport="local")}
    chosen = msgspec.structs.replace(settings, providers=own)
    assert model_info(parse_model_ref("mine/any"), chosen).trial
