"""Which invariant a refused statement would have broken.

Owns:  the way from SQLite's words to the name the schema gives a constraint.
Rule 1: checks and triggers name themselves. A unique index is reported by its columns, so the names
        are looked up in the schema itself and cannot drift from it.
"""

from typing import Final

import apsw

_UNIQUE: Final = "UNIQUE constraint failed: "
_CHECK: Final = "CHECK constraint failed: "
_NOT_NULL: Final = "NOT NULL constraint failed: "

_UNIQUE_INDEXES: Final = """
select t.name, i.name, i.origin, group_concat(t.name || '.' || c.name, ', ' order by c.seqno)
from sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
where t.type = 'table' and i."unique" = 1
group by t.name, i.name
"""


class ConstraintNames:
    """Names constraints for one database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._by_columns: dict[str, str] = {}
        for table, index, origin, columns in connection.execute(_UNIQUE_INDEXES):
            name = f"{table}_primary_key" if origin == "pk" else str(index)
            self._by_columns.setdefault(str(columns), name)

    def name_of(self, error: apsw.ConstraintError) -> str:
        """Return the name of the constraint that refused a statement."""
        words = str(error)
        if words.startswith(_UNIQUE):
            columns = words.removeprefix(_UNIQUE)
            return self._by_columns.get(columns, columns)
        if words.startswith(_NOT_NULL):
            return words.removeprefix(_NOT_NULL).replace(".", "_") + "_is_present"
        if words == "FOREIGN KEY constraint failed":
            return "row_refers_to_nothing"
        return words.removeprefix(_CHECK)
