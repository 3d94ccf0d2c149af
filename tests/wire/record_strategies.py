"""Hypothesis strategies for every record, built from the types msgspec sees.

Owns:  how the records of the model are found, and how a value of any wire type is made up.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC
from functools import cache
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

import holon.model
from holon.model.record import Record

JSON_VALUES: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
_PLAIN: Final[dict[type[inspect.Type], st.SearchStrategy[Any]]] = {
    inspect.AnyType: JSON_VALUES,
    inspect.NoneType: st.none(),
    inspect.BoolType: st.booleans(),
    inspect.IntType: st.integers(min_value=-(2**63), max_value=2**63 - 1),
    inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    inspect.StrType: st.text(max_size=8),
    inspect.BytesType: st.binary(max_size=8),
    inspect.DateTimeType: st.datetimes(timezones=st.just(UTC)),
}


def model_records() -> list[type[Record]]:
    """Return every record the modules of holon.model define, by qualified name."""
    for module in pkgutil.iter_modules(holon.model.__path__):
        importlib.import_module(f"holon.model.{module.name}")
    found = {r for r in _below(Record) if r.__module__.startswith("holon.model.")}
    return sorted(found, key=lambda record: (record.__module__, record.__qualname__))


def _below(record: type[Record]) -> Iterator[type[Record]]:
    for child in record.__subclasses__():
        yield child
        yield from _below(child)


@cache
def records_of(record: type[Record]) -> st.SearchStrategy[Record]:
    """Return a strategy for one record, with every field made up."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    fields = {field.name: _values_of(field.type) for field in info.fields}
    return st.builds(record, **fields)


def _values_of(info: inspect.Type) -> st.SearchStrategy[Any]:
    if type(info) in _PLAIN:
        return _PLAIN[type(info)]
    match info:
        case inspect.StructType(cls=cls):
            assert issubclass(cls, Record)
            return st.deferred(lambda: records_of(cls))
        case inspect.EnumType(cls=enum):
            return st.sampled_from(list(enum))
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.UnionType(types=types):
            return st.one_of([_values_of(part) for part in types])
        case inspect.VarTupleType(item_type=item):
            return st.lists(_values_of(item), max_size=2).map(tuple)
        case inspect.TupleType(item_types=items):
            return st.tuples(*[_values_of(item) for item in items])
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_values_of(key), _values_of(value), max_size=2)
        case inspect.Metadata(type=inner):
            return _values_of(inner)
        case _:
            raise msgspec.ValidationError(f"the model uses a wire type no test knows: {info}")
