"""The change that tells what became of a file that instructs an agent.

Owns:  the member of the union `Change` (model/commit) that is about instruction sources.
"""

from holon.model.ids import AgentId
from holon.model.instruction_event import InstructionSourceChanged
from holon.model.record import Record


class NoteInstructionChange(Record, tag=True, frozen=True, kw_only=True):
    """Tell of a change, and remember it for the operator where somebody outside had a word."""

    agent_id: AgentId
    event: InstructionSourceChanged
