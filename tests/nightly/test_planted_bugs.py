"""The tests of a connector find planted bugs, and the documentation has a table of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.nightly.planted import depot, exports, mutations, parcels, relay, shop
from tests.nightly.planted.bugs import Bug, failures, quick_tests, table

from crossdock.testing.connector_under_test import ConnectorUnderTest

pytestmark = pytest.mark.usefixtures("commands_are_forked")

CORRECT = (*shop.CORRECT, *exports.CORRECT, *depot.CORRECT, *mutations.CORRECT, *parcels.CORRECT, *relay.CORRECT)
BUGS = (*shop.BUGS, *exports.BUGS, *depot.BUGS, *mutations.BUGS, *parcels.BUGS, *relay.BUGS)
PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "connectors" / "found_bugs.md"


@pytest.mark.parametrize("case", CORRECT, ids=lambda case: case.__name__)
def test_the_example_is_accepted(case: type[ConnectorUnderTest]) -> None:
    """The connector without a bug passes every test."""
    assert failures(case, quick_tests(case)) == {}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """The test that is meant for it fails, and its message names the method or the member."""
    assert bug.says in failures(bug.case, [bug.test]).get(bug.test, "it is not found")


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.stated], ids=lambda bug: bug.name)
def test_no_other_test_finds_what_needs_a_statement(bug: Bug) -> None:
    """Without `expects`, every test passes: the guide does not ask for more than is needed."""
    unstated = type("Case", (bug.case,), {"expects": {}})
    assert failures(unstated, quick_tests(unstated)) == {}


def test_the_guide_has_a_table_of_the_bugs() -> None:
    """It says which test finds a bug, and whether that needs a statement of the author."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("| ")][1:] == table(BUGS)
