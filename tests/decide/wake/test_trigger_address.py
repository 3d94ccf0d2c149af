"""The address of a trigger in the result of AgentGet: where it stands, and where it does not."""

from typing import Any

import msgspec
import pytest

from holon.decide.wake.triggers import MARK, descriptor, log_with_address
from holon.model.turns.transcript import RecordedCall, TurnLog
from tests.support.builders import a_receipt, a_tool_call, a_trigger, a_turn

URL = "http://127.0.0.1:7878/callbacks/wake/trig_1.secret"


def read_by_the_model(result: dict[str, Any]) -> Any:
    """What the model reads where AgentGet gave this result."""
    call = msgspec.structs.replace(a_tool_call(a_turn()), name="AgentGet")
    content = msgspec.json.encode({"ok": True, "result": result}).decode()
    recorded = RecordedCall(call=call, receipt=a_receipt(call, content=content))
    [told] = log_with_address(TurnLog(turn=a_turn(), calls=(recorded,)), URL).calls
    assert told.receipt is not None
    return msgspec.json.decode(told.receipt.content)["result"]


@pytest.mark.requirement("default-trigger:shown-to-its-agent")
@pytest.mark.parametrize("words", [MARK, f'"trigger_url":"{MARK}"', f'{{"trigger_url":"{MARK}"}}'])
def test_the_address_is_filled_into_the_field_that_describes_it_and_nowhere_else(
    words: str,
) -> None:
    described = descriptor(a_trigger(), has_deliveries=True)
    assert isinstance(described, dict)
    told = {"agent": {"about": words}, "external_trigger": described, "notes": [words]}
    expected = {**told, "external_trigger": {**described, "trigger_url": URL}}
    assert read_by_the_model(told) == expected


def test_words_that_look_like_the_field_are_not_filled_in_without_it() -> None:
    told = {"objective": f'"trigger_url":"{MARK}"', "external_trigger": None}
    assert read_by_the_model(told) == told
