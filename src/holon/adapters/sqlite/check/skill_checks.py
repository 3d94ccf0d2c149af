"""Invariants of the skills in use.

Owns:  I15.
Rule 1: nothing here trusts the schema's own constraints. They are what might have failed.
"""

from collections.abc import Iterator
from typing import Final

from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation

_WITHOUT_OPEN_TURN: Final = """
select s.agent_id, 'uses ' || s.entrypoint_path || ' in turn ' || s.turn_id
    || ', which is not open'
from skill_activations s where s.state = 'turn_active' and not exists (
    select 1 from turns t
    where t.turn_id = s.turn_id and t.agent_id = s.agent_id and t.state = 'open')
"""
_NOT_LASTING: Final = """
select agent_id, 'keeps ' || entrypoint_path || ' although no turn has earned it'
from skill_activations where state = 'session_active' and is_lasting <> 1
"""
_UNKNOWN: Final = """
select agent_id, 'uses ' || entrypoint_path || ' as ' || state || ' for ' || load_reason
    || ' (' || source || ')'
from skill_activations
where state not in ('turn_active', 'session_active')
    or load_reason not in ('read_skill_md', 'run_skill_script')
    or source not in ('explicit', 'implicit_from_catalog', 'restored', 'inherited')
"""


def check_skills(facts: Facts) -> Iterator[Violation]:
    """I15: a skill is turn_active in the agent's open turn, or session_active after a good one."""
    for query in (_WITHOUT_OPEN_TURN, _NOT_LASTING, _UNKNOWN):
        yield from facts.report(Invariant.SKILLS_ARE_USED, query)
