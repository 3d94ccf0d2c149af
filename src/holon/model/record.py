"""The parent of every record in the model.

Owns:  the one configuration all model structs share.
Rule 1: a record is a frozen value. Changing something means writing a new record in a commit.
Rule 2: decoding is strict: an unknown field, a missing field or a wrong type is refused.
Rule 3: a record holds values and nothing that could lead back to it, so the collector of cycles
        need not know of it; that saves a tenth of what a message costs.
Rule 4: a flag that is shown is written also when it is false, and so is an empty list that the
        specification requires: such a field has a `default_factory`, since a plain default is left
        out, and so is the one of `tuple`, `list` or `dict`.
Rule 5: frozen and kw_only are repeated on every subclass: msgspec does not inherit the latter, and
        the type checker wants to see the former.
"""

import msgspec


class Record(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """A frozen value with a strict snake_case wire form."""


def no_entries() -> tuple[()]:
    """Return the default of a list that is written also when it is empty."""
    return ()
