"""What `--trust` comes to at the door."""

import pytest

from holon.decide.queue.admission import Admitted, decide_admission
from holon.decide.queue.authority import TRUST
from holon.model.agents import AgentStatus
from holon.model.events.reads import AdmissionTarget
from holon.model.queue import AuthorityClass, DeliverySurface, TrustLevel
from holon.model.values import EPOCH, AgentId, MessageId
from holon.serve.one_shot import run_request

TARGET = AdmissionTarget(status=AgentStatus.ASLEEP, is_archived=False, queued_count=0)


@pytest.mark.requirement("run-once:trust")
@pytest.mark.parametrize(("authority", "trust"), list(TRUST.items()))
def test_the_tables_give_the_text_the_trust_that_was_asked_for(
    authority: AuthorityClass, trust: TrustLevel
) -> None:
    request = run_request(AgentId("ada"), "do it", trust=trust)
    assert (request.claimed_trust, request.claimed_authority, request.metadata) == (None,) * 3
    admission = decide_admission(request, TARGET, message_id=MessageId("msg_1"), now=EPOCH)
    assert isinstance(admission, Admitted)
    message = admission.message
    assert (message.trust, message.authority_class) == (trust, authority)
    assert message.delivery_surface is DeliverySurface.RUN_ONCE
    assert message.trigger_kind is not None
    assert (message.work_item_id, message.task_id, message.wait_id) == (None, None, None)
