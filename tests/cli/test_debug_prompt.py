"""`holon debug prompt`, over a running server."""

import pytest

from holon.cli.console import exit_codes
from tests.cli.operator_desk import Desk


@pytest.mark.requirement("prompt:debug-shows-the-frame")
async def test_a_person_reads_sizes_and_fates_and_a_script_reads_everything(desk: Desk) -> None:
    told = await desk.said("debug", "prompt", "mend the roof")
    for name in (
        "agent_home",
        "workspace_id",
        "workspace_anchor",
        "execution_root",
        "cwd",
        "policy",
        "cache key",
        "fingerprint",
    ):
        assert f"\n{name}" in f"\n{told}"
    rows = [line.split() for line in told.splitlines()]
    (identity,) = (row for row in rows if row[:1] == ["identity"])
    assert identity[1:4] == ["(pinned)", "stable", "full"]
    assert any("it is sent as each tool's description" in line for line in told.splitlines())
    assert "mend the roof" not in told
    whole = await desk.said("debug", "prompt", "mend the roof", "--full")
    assert "mend the roof" in whole
    assert "You are an agent of a Holon runtime" in whole
    view = await desk.told("debug", "prompt")
    assert {section["outcome"] for section in view["sections"]} >= {"full", "omitted"}
    refused = await desk.holon("debug", "prompt", "--agent", "nobody")
    assert refused.exit_code == exit_codes.FAILED
