"""The runtime event about files that instruct an agent.

Owns:  what the audit log can say about them. The rules are those of model/event.
"""

from holon.model.ids import TurnId
from holon.model.provenance import AuthorityClass
from holon.model.record import Record


class InstructionSourceChanged(
    Record, tag_field="kind", tag="instruction_source_changed", frozen=True, kw_only=True
):
    """A file that tells the agent how to behave is not what it was at the last look.

    `effect_id` names the call after which it was seen; without one nobody was looking when it
    happened. A digest is missing where there is no file. `tainted` says that somebody from outside
    had a word in the turn.
    """

    path: str  # below the agent's home
    old_sha256: str | None
    new_sha256: str | None
    turn_id: TurnId
    authority_class: AuthorityClass
    tainted: bool
    effect_id: str | None = None
