"""A model directory with one model in it.

Owns:  the smallest ModelDirectory: the one provider answers every reference.
"""

from holon.model.providers.models import ModelRef, parse_model_ref
from holon.ports.providers import Candidate, ModelPreference, Provider


class SingleModel:
    """Leads every reference to the same provider, on one account."""

    def __init__(self, provider: Provider, ref: str = "scripted/test") -> None:
        self._provider = provider
        self.preference = ModelPreference(default=parse_model_ref(ref))

    def find(self, ref: ModelRef) -> Candidate:
        """Return the one provider under the name that was asked for."""
        return Candidate(model_ref=ref, provider=self._provider, account=ref.provider)
