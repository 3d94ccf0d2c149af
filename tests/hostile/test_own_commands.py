"""What an agent's own command finds out about the service that started it."""

import os
from pathlib import Path

import pytest

from tests.hostile.served import World

SECRETS = {
    "OPENAI_API_KEY": "sk-of-openai-never-to-be-read",
    "ODD_NAME": "sk-of-a-gateway-never-to-be-read",
    "HOOK": "a-secret-webhooks-are-signed-with",
    "HOLON_CONTROL_TOKEN": "a-token-of-the-operators-own-choice",
}
CONFIG = """\
[providers.gateway]
transport = "openai_chat_completions"
base_url = "http://127.0.0.1:9/v1"
auth = { source = "env", env = "ODD_NAME" }
[webhooks.forge]
secret_env = "HOOK"
"""


@pytest.mark.requirement("own-commands:keys-leave-the-environment")
@pytest.mark.requirement("own-commands:the-service-cannot-be-read")
def test_the_running_service_shows_no_key_and_leaves_no_core(world: World) -> None:
    world.home.mkdir(mode=0o700)
    (world.home / "config.toml").write_text(CONFIG, encoding="utf-8")
    variables = {**SECRETS, "KEPT": "harmless"}
    guarded = World(folder=world.folder, home=world.home, environ=variables)
    with guarded.served() as service:
        service.read_everything()
        place = Path(f"/proc/{service.process.pid}")
        if os.geteuid() == 0:  # another user could not even open it
            shown = (place / "environ").read_bytes()
            assert b"KEPT=harmless" in shown
            assert not [name for name, value in SECRETS.items() if value.encode() in shown]
        else:
            with pytest.raises(PermissionError):
                (place / "environ").read_bytes()
        assert (place / "environ").stat().st_uid == 0, "the kernel gives it to root"
        limits = (place / "limits").read_text(encoding="ascii")
        [core] = [line for line in limits.splitlines() if line.startswith("Max core file size")]
        assert core.split()[4] == "0"
