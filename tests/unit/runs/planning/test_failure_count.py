"""The limits on failures of an author's code."""

from __future__ import annotations

import pytest
from tests.unit.runs.planning.accounts import account, bound_accounts

from crossdock.errors import RecordError
from crossdock.mapping.stream_declaration import FailureLimits
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter


@pytest.mark.parametrize(
    ("code", "told"), [("mapping_failed", "the mapping"), ("target_failed", "the code of the target")]
)
def test_failures_are_counted_up_to_both_limits(code: str, told: str) -> None:
    """Only failures of an author's code count, and both limits must be exceeded."""
    bound = bound_accounts()
    bound.stream.mapping_failed = FailureLimits(at_most=1, at_most_percent=50)
    record, failed, bad = account(bound, "A").record, RecordError(code, "x"), RecordError("bad_value", "x")
    counted = AuthorCodeFailureCounter(bound, 4)
    refusals = [counted.count_and_return_limit_error(record, error) for error in (failed, bad, bad, failed, failed)]
    assert [refusal is not None for refusal in refusals] == [False, False, False, False, True]
    assert refusals[-1] is not None
    assert refusals[-1].message.startswith(f"{told} failed for 3 of 4 records, which exceeds mapping_failed: ")
    assert refusals[-1].where == "a.csv:2"
    unlimited = AuthorCodeFailureCounter(bound, None)
    assert [unlimited.count_and_return_limit_error(record, failed) for _ in range(9)] == [None] * 9
