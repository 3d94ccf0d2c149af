"""The smallest directory leads everywhere to its one provider."""

from holon.model.providers.models import parse_model_ref
from holon.ports.providers import ModelDirectory
from tests.support.manual_clock import ManualClock
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel


def test_every_reference_leads_to_the_one_provider_under_its_own_name() -> None:
    provider = ScriptedProvider(Script(), ManualClock())
    directory: ModelDirectory = SingleModel(provider, "scripted/demo")
    assert directory.preference.default == parse_model_ref("scripted/demo")
    for name in ("scripted/demo", "lab/one"):
        found = directory.find(parse_model_ref(name))
        assert found.provider is provider
        assert str(found.model_ref) == name
