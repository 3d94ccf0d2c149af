"""Invariants of where agents work.

Owns:  I14.
Rule 1: nothing here trusts the schema's own constraints. They are what might have failed.
"""

from collections.abc import Iterator
from typing import Final

from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation

_ACTIVE_UNATTACHED: Final = """
select agent_id, 'is in workspace ' || workspace_id || ', which is not attached to it'
from active_workspaces a where not exists (
    select 1 from attached_workspaces t
    where t.agent_id = a.agent_id and t.workspace_id = a.workspace_id)
"""
_ACTIVE_UNHELD: Final = """
select a.agent_id, 'is in workspace ' || a.workspace_id || ' without a hold on it: '
    || coalesce('held by ' || o.holder_agent_id
        || iif(o.released_at is null, '', ', released') || ' for ' || o.workspace_id, 'no row')
from active_workspaces a left join workspace_occupancies o using (occupancy_id)
where o.occupancy_id is null or o.released_at is not null
    or o.holder_agent_id is not a.agent_id or o.workspace_id is not a.workspace_id
"""
_HELD_BY_NOBODY: Final = """
select holder_agent_id, 'holds ' || execution_root_id || ' but is not in it'
from workspace_occupancies o where released_at is null and not exists (
    select 1 from active_workspaces a where a.occupancy_id = o.occupancy_id)
"""
_HELD_TWICE: Final = """
select execution_root_id, 'is held by ' || group_concat(holder_agent_id, ', ')
    || ', one of them alone'
from workspace_occupancies where released_at is null
group by execution_root_id
having count(*) > 1 and sum(access_mode = 'exclusive_write') > 0
"""
_CWD_OUTSIDE: Final = """
select agent_id, 'works in ' || cwd || ', outside of ' || execution_root from active_workspaces
where cwd <> execution_root
    and substr(cwd, 1, length(rtrim(execution_root, '/')) + 1) <> rtrim(execution_root, '/') || '/'
"""


def check_workspaces(facts: Facts) -> Iterator[Violation]:
    """I14: an agent is in one attached workspace at most, holds its root, and stays inside."""
    for query in (_ACTIVE_UNATTACHED, _ACTIVE_UNHELD, _HELD_BY_NOBODY, _HELD_TWICE, _CWD_OUTSIDE):
        yield from facts.report(Invariant.PLACES_ARE_HELD, query)
