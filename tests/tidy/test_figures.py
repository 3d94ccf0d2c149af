"""What `make figures` counts, on small samples."""

import ast

from scripts import figures

SAMPLE = '''"""Says what it owns.

And more.
"""

import os  # why


# A comment.
class Box:
    """Holds things."""

    def open(self, *, how: str, wide: bool = False) -> None:
        text = """first

        last"""
'''


def test_each_line_is_of_one_kind() -> None:
    counts = figures.lines_by_kind(SAMPLE)
    assert dict(counts) == {"docstring": 5, "blank": 4, "code": 6, "comment": 1}
    assert counts.total() == len(SAMPLE.splitlines())


def test_the_receiver_of_a_method_is_no_parameter() -> None:
    assert list(figures.parameter_counts(ast.parse(SAMPLE), prefix="")) == [("Box.open", 2)]


def test_inherited_methods_are_counted_once() -> None:
    class Base:
        def kept(self) -> None: ...

        def replaced(self) -> None: ...

        def _private(self) -> None: ...

    class Derived(Base):
        def replaced(self) -> None: ...

        @property
        def own(self) -> int:
            return 1

    Base.__module__ = Derived.__module__ = "holon.sample"
    assert figures.method_counts(Derived) == (2, 1)


def test_a_module_that_only_a_neighbour_imports_is_listed() -> None:
    texts = {
        "holon.a.one": "from holon.a import two\nimport holon.b.far\n",
        "holon.a.two": "",
        "holon.b.far": "",
    }
    assert figures.importers(texts).splitlines()[2:] == ["- `holon.a.two`, by `holon.a.one`"]
