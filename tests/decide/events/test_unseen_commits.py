"""Nothing that was taken in goes unseen without a word."""

from holon.decide.events.retention import drop_unseen_commit
from holon.model.agents import AgentStatus, UnseenLetGo
from holon.model.commits import AgentGeneration, MarkSeen, RecordEvent
from holon.model.values import MessageId
from tests.decide.sample_rows import AGENT_ID, NOW, agent_in


def test_what_is_let_go_is_told_in_the_same_commit_unless_a_turn_began() -> None:
    agent = agent_in(AgentStatus.ASLEEP)
    oldest = [MessageId(f"msg_{n}") for n in range(3)]
    commit = drop_unseen_commit(agent, oldest, now=NOW)
    told = UnseenLetGo(message_count=3, first_message_id=oldest[0], last_message_id=oldest[-1])
    assert commit.changes == (
        MarkSeen(agent_id=AGENT_ID, message_ids=tuple(oldest)),
        RecordEvent(agent_id=AGENT_ID, event=told),
    )
    assert commit.expects == (AgentGeneration(agent_id=AGENT_ID, generation=agent.generation),)
