"""A service whose database is exchanged at a random moment acknowledges nothing that is lost."""

from pathlib import Path

import pytest

from tests.crash.swap_drill import run_swaps

SWAPS_COUNT = 6  # the drill does hundreds


@pytest.mark.requirement("database:exchanged-while-it-is-open")
@pytest.mark.requirement("database:a-log-is-not-laid-over-another-database")
def test_nothing_acknowledged_is_lost_to_an_exchange(tmp_path: Path) -> None:
    assert run_swaps(swaps=SWAPS_COUNT, seed=7, root=tmp_path) == []
