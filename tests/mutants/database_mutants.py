"""Mutants in how the files of the database are looked at."""

from pathlib import Path

from holon.adapters.backup import home_restore
from holon.adapters.sqlite.database.database_files import (
    DatabaseFiles,
    require_log_kept,
    require_not_lost,
    require_own_log,
)
from holon.adapters.sqlite.database.migrate import begin_epoch
from tests.mutants.planting import plant_function, plant_method


def plant_h6() -> None:
    """Never look whether the files are still those that were opened."""

    def trusting(self: DatabaseFiles) -> None:
        del self

    plant_method(DatabaseFiles, "require_ours", trusting)


def plant_h7() -> None:
    """Begin anew beside whatever is left of a home whose database is gone."""

    def careless(path: Path, home: Path) -> None:
        del path, home

    plant_function(require_not_lost, careless)


def plant_h8() -> None:
    """Lay the log that is there over the database that is there."""

    def careless(path: Path, record: Path) -> None:
        del path, record

    plant_function(require_own_log, careless)


def plant_h9() -> None:
    """Let a restored home go on with the timeline of the one it was made of."""

    def forgetful(connection: object) -> None:
        del connection

    names = vars(home_restore)  # a new database still gets its first one
    assert names["begin_epoch"] is begin_epoch
    names["begin_epoch"] = forgetful


def plant_h10() -> None:
    """Begin without the log that the newest commits stood in."""

    def careless(path: Path, record: Path) -> None:
        del path, record

    plant_function(require_log_kept, careless)
