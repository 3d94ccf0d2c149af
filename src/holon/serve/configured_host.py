"""Builds a host from a home's settings: models, secrets, tracing, and failure notes for the doctor.

Owns:  resolving each of them once, at start; the order of startup and shutdown. No logic.
Rule 1: a webhook source whose secret is missing, empty or unreadable is closed, never open.
"""

import binascii
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from holon.adapters.providers.catalog import price_of
from holon.adapters.providers.last_failures import LastFailureLog
from holon.adapters.providers.resolver import ProviderResolver
from holon.adapters.sqlite.store import LockedHome
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.control_token import TriggerKeyFile
from holon.adapters.system.credential_file import CredentialFile
from holon.adapters.system.logs import install_log_redaction
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings
from holon.model.errors import HolonError
from holon.model.providers.models import ProviderResolverSettings
from holon.model.queue import WebhookSetting
from holon.runtime.host import Host
from holon.runtime.providers.gate import ProviderGate
from holon.serve.agent_adapters import seed, user_files_of
from holon.serve.compose import ExecOptions, Hooks, HostOptions, open_host
from holon.serve.providers import ProviderJournal, build_plane

_PREFIX: Final = "whsec_"  # as Standard Webhooks spells secrets: base64 follows
_log = logging.getLogger(__name__)


def webhook_secrets(
    settings: Settings, environ: Mapping[str, str], registry: SecretRegistry
) -> dict[str, bytes | None]:
    """Return the secret of each configured source; None for one without a usable secret."""
    found: dict[str, bytes | None] = {}
    for source, setting in settings.webhooks.items():
        text = _text_of(setting, settings, environ)
        registry.learn(f"webhook {source}", text)  # each is a source of its own
        found[source] = secret_bytes(text)
        if found[source] is None:
            _log.warning("webhooks of %s are shut: their secret is missing", source)
    return found


def secret_bytes(text: str) -> bytes | None:
    """Return the signing key of a secret, or None if the secret is invalid."""
    plain = text.strip()
    if not plain.startswith(_PREFIX):
        return plain.encode() or None
    try:
        return b64decode(plain.removeprefix(_PREFIX), validate=True) or None
    except binascii.Error:
        return None


def _text_of(setting: WebhookSetting, settings: Settings, environ: Mapping[str, str]) -> str:
    if setting.secret_env is not None:
        return environ.get(setting.secret_env, "")
    if setting.secret_profile is None:
        return ""
    try:
        kept = CredentialFile(settings.home).profiles().get(setting.secret_profile)
    except HolonError as error:
        _log.warning("%s (%s)", error.message, error.hint)
        return ""
    return "" if kept is None else kept.material


class ConfiguredHost(msgspec.Struct, frozen=True, kw_only=True):
    """A running host with its model providers."""

    host: Host
    plane: ProviderResolver
    webhook_secrets: Mapping[str, bytes | None]  # by source; nothing: it is shut


@asynccontextmanager
async def open_configured_host(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    workspace_root: str | None = None,
    workspace_cwd: str | None = None,
    umask: int | None = None,
    hooks: Hooks | None = None,
    trigger_base_url: str | None = None,
    held: LockedHome | None = None,
) -> AsyncIterator[ConfiguredHost]:
    """Serve a home as its settings say, while the block runs.

    `workspace_root` is where agents work that are in no workspace. With a `workspace_cwd` below it,
    all of them work there, whatever workspace they are in: it was asked for this time. With a
    `trigger_base_url`, where deliveries come in, every agent has an external trigger. `held`
    is the home, where it was taken before.
    """
    hooks = hooks or Hooks()
    registry = hooks.secrets
    install_log_redaction(registry)
    with _visible_traces(settings.plane, registry):
        exec_options = ExecOptions(
            environ=environ,
            workspace_root=workspace_root,
            workspace_cwd=workspace_cwd,
            workspace_overrides=workspace_cwd is not None,
            umask=umask,
        )
        asked = HostOptions(
            exec_options=exec_options, hooks=hooks, trigger_base_url=trigger_base_url, held=held
        )
        async with _served(settings, exec_options, registry, asked) as served:
            yield served


@asynccontextmanager
async def _served(
    settings: Settings,
    exec_options: ExecOptions,
    registry: SecretRegistry,
    asked: HostOptions,
) -> AsyncIterator[ConfiguredHost]:
    plane = build_plane(settings, exec_options.environ, registry, SystemClock())
    notes = LastFailureLog(settings.home)
    news = ProviderJournal(notes, asked.hooks.journal)
    gate = ProviderGate(notice=news.failed, moved=news.moved)
    user_files = user_files_of(exec_options.environ, settings.github_base)
    await anyio.to_thread.run_sync(seed, user_files, asked.hooks.journal)
    options = msgspec.structs.replace(
        asked,
        retention=settings.retention,
        output_budget=settings.output_budget,
        task_quota=settings.task_quota,
        reminders=settings.reminders,
        budgets=settings.budgets,
        price_of=price_of,
        gate=gate,
        redactor=registry,
        user_files=user_files,
        trigger_key=TriggerKeyFile(settings.home, registry.learn),
        deferral_allowed=not settings.plane.deferral_disabled,
        fallback_disabled=settings.plane.fallback_disabled,
        trial_tools_allowed=settings.plane.trial_tools_allowed,
    )
    try:
        async with (
            anyio.create_task_group() as beside,
            open_host(settings.home, plane, options) as h,
        ):
            beside.start_soon(notes.keep)
            secrets = webhook_secrets(settings, exec_options.environ, registry)
            yield ConfiguredHost(host=h, plane=plane, webhook_secrets=secrets)
            beside.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await notes.write()
            await plane.aclose()


@contextmanager
def _visible_traces(plane: ProviderResolverSettings, registry: SecretRegistry) -> Iterator[None]:
    """Print requested traces to stderr, unless logging is configured."""
    if not (plane.http_trace or plane.failure_trace):
        yield
        return
    from holon.adapters.providers.http.traced import LOGGER_NAME  # only for those who asked

    log = logging.getLogger(LOGGER_NAME)
    level, handlers = log.level, [] if log.hasHandlers() else [logging.StreamHandler()]
    install_log_redaction(registry, handlers)
    log.setLevel(logging.INFO)
    for handler in handlers:
        log.addHandler(handler)
    try:
        yield
    finally:
        log.setLevel(level)
        for handler in handlers:
            log.removeHandler(handler)
