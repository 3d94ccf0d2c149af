"""A copy of the database of a home whose host is dead.

Owns:  the copy: database and log, without the index the host kept of the log.
Rule 1: the files of the home are only read. A log that was begun and not yet entered into the index
        makes SQLite wait ten seconds for a host to come; a copy without an index does not.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holon.adapters.sqlite.database.home_lock import database_path


@contextmanager
def dead_copy(home: Path) -> Iterator[Path]:
    """Give the path of a copy while the block runs."""
    found = database_path(home)
    with tempfile.TemporaryDirectory(prefix=f"{home.name}-", dir=home.parent) as folder:
        for name in (found.name, f"{found.name}-wal"):
            if found.with_name(name).exists():
                shutil.copyfile(found.with_name(name), Path(folder, name))
        yield Path(folder, found.name)
