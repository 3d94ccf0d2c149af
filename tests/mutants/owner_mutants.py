"""Mutants in what a home is and which process owns it."""

from pathlib import Path

import apsw

from holon.adapters.exec.run_folder import RunRecord
from holon.adapters.sqlite.database.home_owner import HomeOwner, _Owner, _owner, require_no_owner
from holon.adapters.system.home_identity import FileIdentity, HomeIdentity, is_other_home
from tests.mutants.planting import plant_function, plant_method


def plant_o1() -> None:
    """Go by the lock alone: recover a home before it is known that it has no owner."""

    def trusting(connection: apsw.Connection, path: Path, lock: FileIdentity) -> int:
        del path, lock
        owner = _owner(connection)
        return 0 if owner is None else owner.generation

    plant_function(require_no_owner, trusting)


def plant_o2() -> None:
    """Write on after another process became the owner."""
    plant_method(HomeOwner, "require", lambda self: None)


def plant_o3() -> None:
    """Take the runs of another home for one's own."""
    plant_method(RunRecord, "is_foreign", lambda self, folder, home_id: False)


def plant_o4() -> None:
    """Take the service of the original for the one of its copy."""

    def trusting(written_down: HomeIdentity, home: Path, *, boot: str | None) -> bool:
        del written_down, home, boot
        return False

    plant_function(is_other_home, trusting)


def plant_o5() -> None:
    """Keep the identity of the original in its copy."""
    plant_method(_Owner, "is_of", lambda self, place: True)
