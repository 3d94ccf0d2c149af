"""Which status tells a caller that the disk takes nothing."""

import pytest

from holon.http.error_mapping import reply_for
from holon.model.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)


@pytest.mark.requirement("hostile:full-disk-refuses-writes")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreFullError("full"), 507),
        (StoreReadOnlyError("read-only"), 507),
        (StoreBusyError("busy"), 503),
        (StoreBrokenError("broken"), 503),
        (StoreClosedError("closed"), 503),
    ],
    ids=lambda value: getattr(value, "code", value),
)
def test_a_store_that_takes_nothing_is_told_with_a_hint(error: StoreError, status: int) -> None:
    reply = reply_for(error)
    assert reply.status == status
    assert error.hint is not None
    assert error.code.encode() in reply.body
    assert error.hint.encode() in reply.body
