"""What came of a kill loop, as figures and problems.

Owns:  the report of a loop, and reading its figures from the home that was under fire.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.ports.failpoint import Failpoint
from tests.crash.followers import Follower
from tests.crash.stage import Ledger


@dataclass(slots=True)
class KillReport:
    """What came of a loop."""

    seed: int
    kills: int = 0  # by SIGKILL
    ends: int = 0  # by SIGTERM alone
    died_at: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    owned_s_max: float = 0.0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def unvisited(self) -> tuple[str, ...]:
        """Failpoints at which no host died."""
        return tuple(point.value for point in Failpoint if not self.died_at[point.value])

    def __str__(self) -> str:
        found = f"{len(self.problems)} problems: {self.problems[0]}" if self.problems else "clean"
        at_points = sum(self.died_at[point.value] for point in Failpoint)
        told = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return (
            f"seed={self.seed} {self.kills} kills ({at_points} at failpoints,"
            f" {self.died_at['starting']} while starting) and {self.ends} drains"
            f" in {self.seconds:.0f} s: {told}; tasks owned within {self.owned_s_max:.1f} s;"
            f" {found}"
        )

    def absorb(self, other: "KillReport") -> None:
        """Add the figures of another report to these."""
        self.kills += other.kills
        self.ends += other.ends
        self.died_at.update(other.died_at)
        self.counts.update(other.counts)
        self.owned_s_max = max(self.owned_s_max, other.owned_s_max)
        self.problems.extend(other.problems)

    def count(self, home: Path, ledger: Ledger, followers: Sequence[Follower]) -> None:
        """Read the figures of one home."""
        self.counts.update(
            {
                "homes": 1,
                "acknowledged": len(ledger.acked),
                "repeats": ledger.duplicate_count,
                "deliveries": len(ledger.deliveries),
                "timers": len(ledger.timers),
                "orders": len(ledger.tasks),
                "refused": ledger.refusals.total(),
                "events streamed": sum(len(each.seen) for each in followers),
                "streams": sum(each.stream_count for each in followers),
            }
        )
        with open_untouched(database_path(home)) as connection:
            for name, query in _FIGURES.items():
                ((figure,),) = connection.execute(query).fetchall()
                self.counts[name] += int(str(figure))


_FIGURES = {
    "turns": "select count(*) from turns",
    "resumed": "select coalesce(sum(resume_count), 0) from turns",
    "commands": "select count(*) from tool_calls where name like 'ExecCommand%'",
    "calls cut off": "select count(*) from tool_calls where state = 'interrupted'",
    "tasks": "select count(*) from tasks where record ->> '$.detail.run_id' is not null",
}
