"""No text from outside makes a scan of it expensive: every one is linear in its length."""

import pytest

from tests.hostile.growth import Scan, shapes, superlinear
from tests.hostile.scanners import COVERED, EXEMPT, SCANS, named_patterns, unmeasured

PATTERNS = [pytest.param(scan, id=f"{place}.{method}") for place, method, scan in named_patterns()]


@pytest.mark.requirement("hostile-text:every-scan-is-linear")
@pytest.mark.parametrize("scan", PATTERNS)
def test_an_expression_takes_as_long_for_each_character_of_a_long_text_as_of_a_short_one(
    scan: Scan, request: pytest.FixtureRequest
) -> None:
    _require_linear(scan, request.node.name)


@pytest.mark.requirement("hostile-text:every-scan-is-linear")
@pytest.mark.parametrize("name", SCANS)
def test_a_scan_takes_as_long_for_each_character_of_a_long_text_as_of_a_short_one(
    name: str,
) -> None:
    _require_linear(SCANS[name], name)


@pytest.mark.requirement("hostile-text:no-scan-is-unmeasured")
def test_every_expression_of_the_source_is_measured_or_exempt_for_a_reason() -> None:
    unlisted = unmeasured() - COVERED.keys() - EXEMPT.keys()
    assert not unlisted, "name a scan that goes through it in scanners.py, or exempt it"
    assert not (COVERED.keys() | EXEMPT.keys()) - unmeasured(), "listed, and gone"
    assert set(COVERED.values()) <= SCANS.keys()


def test_a_quadratic_expression_is_told_from_a_linear_one() -> None:
    import re

    quadratic, linear = re.compile(r"<\s*/?\s*y"), re.compile(r"<\s*+/?\s*+y")
    assert [each for each in shapes("") if superlinear(quadratic.search, each)]
    assert not [each for each in shapes("") if superlinear(linear.search, each)]


def _require_linear(scan: Scan, seed: str) -> None:
    for shape in shapes(seed):
        found = superlinear(scan, shape)
        assert found is None, found
