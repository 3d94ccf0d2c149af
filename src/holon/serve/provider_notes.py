"""What becomes of the news about providers.

Owns:  who is told when a provider fails, when a model is given a rest, and when it is back.
"""

from holon.adapters.providers.last_failures import FailureNotes
from holon.decide.circuit import Circuit, Closed
from holon.model.model_ref import ModelRef
from holon.ports.journal import Journal, LogLevel
from holon.runtime.provider_gate import LastFailure


class ProviderNotes:
    """Passes news on to the notes a doctor reads, and to the journal."""

    def __init__(self, notes: FailureNotes, journal: Journal) -> None:
        self._notes = notes
        self._journal = journal

    def failed(self, provider: str, failure: LastFailure) -> None:
        """A provider failed."""
        self._notes.take(provider, failure)
        self._journal.note(
            "provider_failed",
            failure.summary,
            level=LogLevel.WARNING,
            provider=provider,
            model_ref=failure.model_ref,
            failure_kind=failure.failure_kind,
        )

    def moved(self, route: ModelRef, circuit: Circuit) -> None:
        """A model is given a rest, or is back."""
        if isinstance(circuit, Closed):
            self._journal.note("provider_back", f"{route} is in use again", model_ref=str(route))
            return
        self._journal.note(
            "provider_rests",
            f"{route} failed too often in a row and is given a rest",
            level=LogLevel.WARNING,
            model_ref=str(route),
        )
