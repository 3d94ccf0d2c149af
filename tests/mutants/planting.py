"""How a fault is planted: by putting a wrong function in a right one's place, everywhere."""

import sys
from collections.abc import Callable
from typing import Any

AnyFunction = Callable[..., Any]


def plant_function(right: AnyFunction, wrong: AnyFunction) -> None:
    """Replace a module-level function under every name it was imported by."""
    found = 0
    for name, module in list(sys.modules.items()):
        if not name.startswith("holon"):
            continue
        for attribute, value in list(vars(module).items()):
            if value is right:
                setattr(module, attribute, wrong)
                found += 1
    assert found, f"{right.__name__} was not found; the mutant would be harmless"


def plant_method(owner: type, name: str, wrong: AnyFunction) -> None:
    """Replace a method."""
    assert name in vars(owner), f"{owner.__name__} has no {name}; the mutant would be harmless"
    setattr(owner, name, wrong)
