"""The base class of every record in the model.

Owns:  the msgspec configuration all model structs share.
Rule 1: a record is a frozen value. Changing something means writing a new record in a commit.
Rule 2: decoding is strict: an unknown field, a missing field or a wrong type is refused.
Rule 3: a record holds values and cannot be part of a reference cycle, so the cycle collector does
        not track it; that saves a tenth of what a message costs.
Rule 4: `omit_defaults` leaves plain defaults out of the wire form, and the factories `tuple`,
        `list` and `dict` too. A flag or list that must be written even when false or empty has
        another `default_factory`: `bool`, `no_entries`.
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
