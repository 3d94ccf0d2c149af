"""From the name of a local model to a provider.

Owns:  the checks that cost nothing, and putting weights, engine and profile together.
Rule 1: opening reads a few bytes and starts nothing: the weights are loaded by the first request.
"""

from holon.adapters.providers.local.engine import LocalEngine
from holon.adapters.providers.local.profile import profile_for
from holon.adapters.providers.local.provider import LocalProvider
from holon.adapters.providers.local.weights import find_weights, require_engine
from holon.model.limits import LOCAL_THREADS_COUNT_DEFAULT
from holon.model.model_ref import ModelRef


def open_local_model(model: str, threads: int = LOCAL_THREADS_COUNT_DEFAULT) -> LocalProvider:
    """Return the provider of a local model, or raise ModelUnavailableError.

    Keep what is returned: it holds the weights once they are loaded.
    """
    require_engine()
    weights = find_weights(model)
    profile = profile_for(model)
    engine = LocalEngine(weights, threads=threads, context_tokens=profile.context_tokens)
    ref = ModelRef(provider="local", model=model)
    return LocalProvider(ref, engine=engine, profile=profile)
