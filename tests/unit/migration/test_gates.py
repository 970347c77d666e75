"""A gate passes while little is open, or when a person said so and nothing was added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.samples import AT

from crossdock.config.project.migration_config import Gate
from crossdock.migration.waves import gate_verdict
from crossdock.state import WaveApproval
from crossdock.values.run_states_and_tally import OpenCounts


@pytest.mark.parametrize(
    ("gate", "rejected", "records", "state"),
    [
        pytest.param(Gate(), 0, 100, "open", id="nothing is open"),
        pytest.param(Gate(), 0, 0, "open", id="no records at all"),
        pytest.param(Gate(), 1, 100, "closed", id="by default nothing may be"),
        pytest.param(Gate(rejected_at_most=5), 5, 5, "open", id="within the number"),
        pytest.param(Gate(rejected_at_most=5), 6, 10_000, "closed", id="beyond the number"),
        pytest.param(Gate(rejected_at_most_percent=0.5), 50, 10_000, "open", id="within the percentage"),
        pytest.param(Gate(rejected_at_most_percent=0.5), 51, 10_000, "closed", id="beyond the percentage"),
        pytest.param(Gate(rejected_at_most=60, rejected_at_most_percent=0.5), 51, 10_000, "open", id="one suffices"),
        pytest.param(Gate(person=True), 0, 100, "waits for a person", id="a person decides"),
        pytest.param(Gate(person=True), 1, 100, "closed", id="a limit comes first"),
    ],
)
def test_limits(gate: Gate, rejected: int, records: int, state: str) -> None:
    """A gate is closed when both limits are exceeded."""
    assert gate_verdict(gate, OpenCounts(rejected=rejected), records, None).state == state


def test_a_gate_that_lets_through_has_passed() -> None:
    """For people, since open records are something else."""
    assert gate_verdict(Gate(), OpenCounts(), 1, None).display_word == "passed"
    assert gate_verdict(Gate(), OpenCounts(rejected=1), 1, None).display_word == "closed"


def test_all_that_is_open_counts() -> None:
    """Waiting, pending and in doubt count as rejected ones do, and the verdict says how many there are."""
    found = gate_verdict(Gate(rejected_at_most=3), OpenCounts(1, 1, 1, 1), 1_000, None)
    assert not found.passes
    why = "4 of 1,000 records open (1 rejected, 1 waiting, 1 pending, 1 in doubt); at most 3 may be"
    assert found.why == why


@pytest.mark.parametrize(
    ("gate", "limit"),
    [
        pytest.param(Gate(), "none", id="nothing may be open"),
        pytest.param(Gate(rejected_at_most=1_000), "at most 1,000", id="a number"),
        pytest.param(Gate(rejected_at_most_percent=0.5), "at most 0.5 %", id="a percentage"),
        pytest.param(Gate(rejected_at_most=2, rejected_at_most_percent=0.5), "at most 2 or 0.5 %", id="both"),
    ],
)
def test_a_closed_gate_names_the_limits_that_were_set(gate: Gate, limit: str) -> None:
    """A limit of 0 beside another one would be read as one that forbids everything."""
    why = gate_verdict(gate, OpenCounts(rejected=2_000), 4_000, None).why
    assert why == f"2,000 of 4,000 records open (2,000 rejected); {limit} may be"


COUNTS = st.builds(OpenCounts, *[st.integers(0, 4)] * 4)


@given(now=COUNTS, then=COUNTS, person=st.booleans())
def test_an_approval_covers_what_was_open_then(now: OpenCounts, then: OpenCounts, person: bool) -> None:
    """It holds unless more is open in any state; then the gate judges as without it."""
    gate = Gate(rejected_at_most=4, person=person)
    found = gate_verdict(gate, now, 10, WaveApproval("a", AT, "Ann", then))
    if now.has_any_more_than(then):
        assert found.state == gate_verdict(gate, now, 10, None).state
    else:
        assert (found.state, found.passes) == ("approved", True)
        assert found.why.endswith("Ann let it go on")


def test_a_stream_without_a_file_closes_the_gate_until_a_person_lets_it_go_on() -> None:
    """Nothing is open, and nothing shows that its source has no records."""
    found = gate_verdict(Gate(person=True), OpenCounts(), 0, None, ["wms.products"])
    assert (found.state, found.why) == ("closed", "0 of 0 records open (none); no file was read: wms.products")
    assert gate_verdict(Gate(), OpenCounts(), 0, WaveApproval("a", AT, "Ann", OpenCounts()), ["wms.products"]).passes
