"""`holon config doctor`: checks the configured providers and models.

Owns:  the output and exit codes of the two doctor commands; adapters/providers/doctor does the
       checks.
Rule 1: nothing is changed and no secret printed. The network is used only with --probe.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli.config.provider_access import open_provider_access, price_warnings
from holon.cli.console import exit_codes
from holon.cli.console.completion import complete_provider
from holon.cli.console.options import home_option, json_option

if TYPE_CHECKING:
    from holon.adapters.providers.credentials import CredentialState
    from holon.adapters.providers.doctor import DoctorReport, ProbeReport, ProviderReport
    from holon.adapters.providers.resolver import ProviderResolver

_probe_option = click.option(
    "--probe", is_flag=True, help="Send one request, without the credential, to each base URL."
)


@click.command()
@_probe_option
@json_option
@home_option
def doctor(probe: bool, as_json: bool, home: Path) -> None:
    """Check whether the default model can be used, and how each provider is configured.

    A provider is listed if it or one of its models is configured, if its credential exists, or if
    it has a recorded failure. Credentials are named, never shown.

    \b
    Exit codes:
      0  the default model can be used
      1  it cannot; the report gives the reason and what to do
      2  the configuration cannot be read

    \b
    Examples:
      holon config doctor
      holon config doctor --probe
      holon config doctor --json | jq .providers
    """
    report = _examined(home, only=None, probe=probe)
    click.echo(_as_json(report) if as_json else "\n".join(_as_text(report)))
    if not report.is_usable:
        sys.exit(exit_codes.FOUND_FAULTS)


@click.command("doctor")
@click.argument("provider", metavar="[ID]", required=False, shell_complete=complete_provider)
@_probe_option
@json_option
@home_option
def providers_doctor(provider: str | None, probe: bool, as_json: bool, home: Path) -> None:
    """Check every configured provider, or the one with this ID.

    \b
    Exit codes:
      0  the provider can be used (without an ID: all configured ones can)
      1  it cannot; the report gives the reason and what to do
      2  the configuration cannot be read

    \b
    Examples:
      holon config providers doctor
      holon config providers doctor anthropic --probe
    """
    from holon.adapters.providers.doctor import Availability

    report = _examined(home, only=provider, probe=probe)
    shown = [line for one in report.providers for line in (*_provider_lines(one), "")]
    shown += _warning_lines(report)
    click.echo(_as_json(report) if as_json else "\n".join(shown).rstrip())
    if any(
        one.availability is not Availability.AVAILABLE
        for one in report.providers
        if one.is_configured or provider is not None
    ):
        sys.exit(exit_codes.FOUND_FAULTS)


def _examined(home: Path, *, only: str | None, probe: bool) -> "DoctorReport":
    import anyio
    import msgspec

    from holon.adapters.providers.doctor import configured_providers, examine
    from holon.adapters.providers.last_failures import read_failures

    opened = open_provider_access(home)
    wanted = [only] if only is not None else list(configured_providers(opened.plane))
    probes = anyio.run(_probed, opened.plane, wanted) if probe else {}
    report = examine(opened.plane, read_failures(home), probes, only=only)
    warnings = (*opened.warnings, *price_warnings(opened))
    report = msgspec.structs.replace(report, warnings=warnings)
    if opened.faults:
        first = opened.faults[0]
        return msgspec.structs.replace(
            report, is_usable=False, problem=report.problem or first, config_faults=opened.faults
        )
    return report


async def _probed(plane: "ProviderResolver", providers: list[str]) -> "dict[str, ProbeReport]":
    from holon.adapters.providers.doctor import probe_provider

    found: dict[str, ProbeReport] = {}
    for provider in providers:
        report = await probe_provider(plane, provider)
        if report is not None:
            found[provider] = report
    await plane.aclose()
    return found


def _as_json(report: "DoctorReport") -> str:
    from holon.wire.codec import encode

    return encode(report).decode()


def _as_text(report: "DoctorReport") -> Iterator[str]:
    state = "can be used" if report.is_usable else f"cannot be used: {report.problem}"
    yield f"default model {report.default_model} {state}"
    if report.hint is not None:
        yield f"  {report.hint}"
    if report.note is not None:
        yield f"  {report.note}"
    if report.fallback_models:
        yield f"fallback models {', '.join(report.fallback_models)}"
    for fault in report.config_faults:
        yield f"setting refused: {fault}"
    yield from _warning_lines(report)
    for provider in report.providers:
        yield ""
        yield from _provider_lines(provider)


def _warning_lines(report: "DoctorReport") -> Iterator[str]:
    for warning in report.warnings:
        yield f"warning: {warning}"


def _provider_lines(report: "ProviderReport") -> Iterator[str]:
    yield report.provider if report.is_configured else f"{report.provider} (not configured)"
    policy = report.retry_policy
    rows = {
        "transport": report.transport or "unknown",
        "endpoint": report.endpoint or "none",
        "credential": _credential(report.credential) if report.transport else "unknown",
        "availability": _availability(report),
        "retry policy": f"{policy.max_retries} retries after {', '.join(policy.retryable)}; "
        f"waits {policy.backoff_ms_min} to {policy.backoff_ms_max} ms, {policy.backoff}",
        "last failure": _last_failure(report),
    }
    for name, value in rows.items():
        yield f"  {name:<13} {value}"
    if report.hint is not None:
        yield f"  {'what to do':<13} {report.hint}"
    for warning in report.warnings:
        yield f"  {'warning':<13} {warning}"


def _credential(state: "CredentialState | None") -> str:
    if state is None or state.source.value == "none":
        return "none needed"
    name = f"{state.source.value} {state.name}"
    return f"{name} (present)" if state.is_present else f"{name} (missing)"


def _availability(report: "ProviderReport") -> str:
    said = report.availability.value
    if report.reason is not None:
        said = f"{said}: {report.reason}"
    if report.probe is not None and report.probe.is_reachable:
        said = f"{said} (answers, HTTP {report.probe.status})"
    return said


def _last_failure(report: "ProviderReport") -> str:
    failure = report.last_failure
    if failure is None:
        return "none"
    when = failure.failed_at.isoformat(timespec="seconds")
    return f"{when} {failure.failure_kind} ({failure.model_ref}): {failure.summary}"
