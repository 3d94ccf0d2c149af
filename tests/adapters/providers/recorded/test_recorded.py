"""What was recorded is played back, and only to the run that asks the same."""

import json
import os
from pathlib import Path

import anyio
import pytest

from holon.adapters.providers.recorded import RecordingProvider, ReplayingProvider
from holon.adapters.system.secrets import SecretRegistry
from holon.model.providers.attempts import (
    ExchangeStage,
    ModelUnavailableError,
    ProviderError,
    RateLimitedError,
    RequestRejectedError,
    TokenUsage,
    TransportDiagnostics,
)
from holon.model.providers.models import ModelRef
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.turns.turn import (
    AnswerProgress,
    CallGrew,
    ModelAnswer,
    StopReason,
    TextGrew,
    ThinkingGrew,
)
from holon.model.values import CallId
from holon.ports.journal import NothingToRedact
from holon.ports.providers import OnProgress, ignore_progress
from tests.adapters.providers.recorded.sample_requests import (
    MODEL,
    OTHER_MODEL,
    Sayer,
    asking,
    saying,
)

SECRET = 'sk-0123456789"abcdef'
RICH = ModelAnswer(
    blocks=(
        ThinkingBlock(text="hm", signature="sealed", origin="anthropic_messages:anthropic"),
        TextBlock(text="Hello, é😀."),
        ToolUseBlock(call_id=CallId("c1"), name="Sleep", input={"seconds": 1.5, "why": None}),
    ),
    stop_reason=StopReason.TOOL_USE,
    usage=TokenUsage(input_tokens=7, output_tokens=3, cache_read_tokens=5),
    diagnostics=TransportDiagnostics(status=200, request_id="r1"),
)


async def test_an_answer_is_played_back_as_it_was_given(tmp_path: Path) -> None:
    heard: list[AnswerProgress] = []
    assert await recording(tmp_path, RICH).answer(asking("hi"), heard.append) == RICH
    assert heard == [TextGrew(text="…")]
    heard.clear()
    assert await playing(tmp_path).answer(asking("hi"), heard.append) == RICH
    assert [type(each) for each in heard] == [ThinkingGrew, TextGrew, CallGrew]


async def test_exchanges_are_numbered_and_played_in_order(tmp_path: Path) -> None:
    recorder = recording(tmp_path, saying("one"), saying("two"))
    for _ in range(2):
        await recorder.answer(asking("hi"), ignore_progress)
    assert sorted(os.listdir(tmp_path)) == ["000001.json", "000002.json"]
    player = playing(tmp_path)
    assert await player.answer(asking("hi"), ignore_progress) == saying("one")
    assert await player.answer(asking("hi"), ignore_progress) == saying("two")


async def test_a_later_recording_goes_on_where_the_earlier_ended(tmp_path: Path) -> None:
    await recording(tmp_path, saying("one")).answer(asking("hi"), ignore_progress)
    await recording(tmp_path, saying("two")).answer(asking("hi"), ignore_progress)
    assert sorted(os.listdir(tmp_path)) == ["000001.json", "000002.json"]


async def test_many_recorders_at_once_lose_nothing(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(12):
            recorder = recording(tmp_path, saying(str(number)))
            tasks.start_soon(recorder.answer, asking("hi"), ignore_progress)
    said = {json.loads(p.read_text())["answer"]["blocks"][0]["text"] for p in tmp_path.iterdir()}
    assert said == {str(number) for number in range(12)}


async def test_each_model_has_its_own_order(tmp_path: Path) -> None:
    await recording(tmp_path, saying("a")).answer(asking("hi"), ignore_progress)
    await recording(tmp_path, saying("b"), model=OTHER_MODEL).answer(asking("hi"), ignore_progress)
    assert await playing(tmp_path, model=OTHER_MODEL).answer(
        asking("hi"), ignore_progress
    ) == saying("b")
    assert await playing(tmp_path).answer(asking("hi"), ignore_progress) == saying("a")


async def test_what_the_model_is_not_told_does_not_count(tmp_path: Path) -> None:
    await recording(tmp_path, saying("one")).answer(asking("hi", agent="main"), ignore_progress)
    played = await playing(tmp_path).answer(asking("hi", agent="other"), ignore_progress)
    assert played == saying("one")


async def test_a_failure_is_played_back_as_the_same_failure(tmp_path: Path) -> None:
    failure = RateLimitedError(
        "slow down",
        hint="wait",
        retry_after_ms=1500,
        diagnostics=TransportDiagnostics(stage=ExchangeStage.RESPONSE_HEAD, status=429),
        usage=TokenUsage(input_tokens=1),
    )
    with pytest.raises(RateLimitedError):
        await recording(tmp_path, failure).answer(asking("hi"), ignore_progress)
    with pytest.raises(RateLimitedError, match="slow down") as raised:
        await playing(tmp_path).answer(asking("hi"), ignore_progress)
    again = raised.value
    assert (again.hint, again.retry_after_ms, again.diagnostics, again.usage) == (
        failure.hint,
        failure.retry_after_ms,
        failure.diagnostics,
        failure.usage,
    )


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        pytest.param(asking("hello"), "+conversation[0].blocks[0].text: hello", id="words"),
        pytest.param(asking("hi", "you"), "+conversation[0].blocks[1].text: you", id="block"),
        pytest.param(asking("hi", tools=("Enqueue",)), "+tools[0].name: Enqueue", id="tools"),
    ],
)
async def test_a_request_that_differs_is_refused_with_the_difference(
    tmp_path: Path, asked: ProviderRequest, line: str
) -> None:
    await recording(tmp_path, saying("one")).answer(asking("hi"), ignore_progress)
    player = playing(tmp_path)
    with pytest.raises(RequestRejectedError) as raised:
        await player.answer(asked, ignore_progress)
    assert "000001.json" in str(raised.value)
    assert line in str(raised.value).splitlines()
    # The exchange is still there for the request it belongs to.
    assert await player.answer(asking("hi"), ignore_progress) == saying("one")


async def test_a_large_difference_is_shown_in_short(tmp_path: Path) -> None:
    await recording(tmp_path, saying("one")).answer(asking("hi"), ignore_progress)
    page = "\n".join(f"{number} {'x' * 1000}" for number in range(500))
    with pytest.raises(RequestRejectedError) as raised:
        await playing(tmp_path).answer(asking(page), ignore_progress)
    assert len(str(raised.value)) < 6_000
    assert "more lines" in str(raised.value)


async def test_a_record_that_ran_out_is_told(tmp_path: Path) -> None:
    await recording(tmp_path, saying("one")).answer(asking("hi"), ignore_progress)
    player = playing(tmp_path)
    await player.answer(asking("hi"), ignore_progress)
    with pytest.raises(RequestRejectedError, match="1 exchanges with anthropic/some-model"):
        await player.answer(asking("hi"), ignore_progress)


async def test_ids_and_moments_of_a_run_count_by_their_place(tmp_path: Path) -> None:
    before = "id: msg_" + "0" * 26 + " for work_" + "1" * 26 + " at 2026-01-02T03:04:05Z"
    after = "id: msg_" + "a" * 26 + " for work_" + "b" * 26 + " at 2027-12-11T10:09:08.7+00:00"
    given = saying("I finished work_" + "1" * 26 + ", not work_" + "9" * 26)
    await recording(tmp_path, given).answer(asking(before, before), ignore_progress)
    played = await playing(tmp_path).answer(asking(after, after), ignore_progress)
    assert played == saying("I finished work_" + "b" * 26 + ", not work_" + "9" * 26)
    other = after.replace("b" * 26, "c" * 26)
    with pytest.raises(RequestRejectedError, match=r"\+conversation.*<work 3>"):
        await playing(tmp_path).answer(asking(after, other), ignore_progress)


async def test_no_secret_is_recorded_and_the_replay_still_fits(tmp_path: Path) -> None:
    secrets = SecretRegistry()
    secrets.learn("KEY", SECRET)
    request = asking(f"use {SECRET} or {json.dumps({'key': SECRET})}")
    answer = saying(f"I used {SECRET}")
    recorder = RecordingProvider(Sayer(answer), MODEL, directory=tmp_path, redactor=secrets)
    assert await recorder.answer(request, ignore_progress) == answer  # only the file is redacted
    text = (tmp_path / "000001.json").read_text()
    assert "0123456789" not in text
    assert "[secret:KEY]" in text
    player = ReplayingProvider(MODEL, directory=tmp_path, redactor=secrets)
    assert await player.answer(request, ignore_progress) == saying("I used [secret:KEY]")


async def test_a_recording_is_private_and_leaves_no_drafts(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "record"
    await recording(folder, saying("one")).answer(asking("hi"), ignore_progress)
    assert os.listdir(folder) == ["000001.json"]
    assert (folder / "000001.json").stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("000001.json", b"not json", id="not JSON"),
        pytest.param("000001.json", b'{"format": "other"}', id="another format"),
        pytest.param("000001.json", b"\xff\xfe", id="not text"),
        pytest.param("notes.txt", b"hello", id="a foreign file"),
        pytest.param(
            "000001.json",
            b'{"format":"holon-exchange-1","model_ref":"a/b",'
            b'"request":{"system_prompt":"","conversation":[]}}',
            id="no end",
        ),
    ],
)
async def test_a_file_that_is_no_exchange_is_named(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=name):
        await playing(tmp_path).answer(asking("hi"), ignore_progress)


async def test_a_recording_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="no recording to replay"):
        await playing(tmp_path / "none").answer(asking("hi"), ignore_progress)


async def test_an_exchange_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(ModelUnavailableError, match="could not be recorded"):
        await recording(tmp_path / "file", saying("one")).answer(asking("hi"), ignore_progress)


async def test_a_cancelled_exchange_leaves_no_file(tmp_path: Path) -> None:
    class Silent:
        async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
            await anyio.sleep_forever()
            return saying("never")

    recorder = RecordingProvider(Silent(), MODEL, directory=tmp_path, redactor=NothingToRedact())
    with anyio.CancelScope() as scope:
        scope.cancel()
        await recorder.answer(asking("hi"), ignore_progress)
    assert list(tmp_path.iterdir()) == []


def recording(
    folder: Path, *ends: ModelAnswer | ProviderError, model: ModelRef = MODEL
) -> RecordingProvider:
    return RecordingProvider(Sayer(*ends), model, directory=folder, redactor=NothingToRedact())


def playing(folder: Path, *, model: ModelRef = MODEL) -> ReplayingProvider:
    return ReplayingProvider(model, directory=folder, redactor=NothingToRedact())
