"""Model routing: which models an agent uses, in which order, and with which tools.

Owns:  the model directory combined with this host's settings.
Rule 1: the order of models is decided in decide/providers/routes; this module gathers its facts.
Rule 2: a trial model is not given the tools that act, unless the host allows it.
"""

from holon.decide.providers.routes import RouteFacts, ordered_models
from holon.model.agents import ModelChoice
from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import BadModelRefError, ModelRef, parse_model_ref
from holon.ports.providers import Candidate, ModelDirectory, ModelPreference
from holon.tools.registry import ToolRegistry


class ModelRouting:
    """The models of one host, as its agents are given them."""

    def __init__(
        self,
        models: ModelDirectory,
        tools: ToolRegistry,
        *,
        fallback_disabled: bool,
        trial_tools_allowed: bool,
    ) -> None:
        self._models = models
        self._tools = tools
        self._fallback_disabled = fallback_disabled
        self._trial_tools_allowed = trial_tools_allowed

    @property
    def preference(self) -> ModelPreference:
        """The models agents without a choice of their own are given."""
        return self._models.preference

    def find(self, ref: ModelRef) -> Candidate:
        """Return a model that can be asked; raises ProviderError when it cannot be used."""
        return self._models.find(ref)

    def is_usable(self, ref: ModelRef) -> bool:
        """Whether a model could be asked as things are configured."""
        try:
            self._models.find(ref)
        except ProviderError:
            return False
        return True

    def prompt_tokens_max(self, override: ModelRef | None) -> int | None:
        """Return the window of the model that is asked first; none if it cannot be used."""
        try:
            return self._models.find(override or self.preference.default).prompt_tokens_max
        except ProviderError:
            return None  # the next request to it reports what is wrong

    def ordered(self, override: ModelRef | None) -> tuple[ModelRef, ...]:
        """Return the models that are asked, first to last."""
        facts = RouteFacts(
            default=self.preference.default,
            fallbacks=self.preference.fallbacks,
            override=override,
            fallback_disabled=self._fallback_disabled,
        )
        return ordered_models(facts)

    def configured(self, choice: ModelChoice) -> tuple[ModelRef, ...]:
        """Return the models that are asked for an agent; none if its own has no form."""
        override = choice.override_model
        try:
            return self.ordered(None if override is None else parse_model_ref(override))
        except BadModelRefError:
            return ()

    def withheld_tools(self, candidate: Candidate) -> frozenset[str]:
        """Return the tools a model is not given: a trial model those that act, unless it may."""
        if not candidate.is_trial or self._trial_tools_allowed:
            return frozenset()
        return self._tools.acting

    def withheld_from(self, model: ModelRef) -> tuple[str, ...]:
        """Return the tools a named model is not given; none for one that cannot be used anyhow."""
        try:
            candidate = self._models.find(model)
        except ProviderError:
            return ()
        return tuple(sorted(self.withheld_tools(candidate)))
