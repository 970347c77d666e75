"""Exceptions of connector code: the class and the place are shown, never the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.planning.accounts import account, bound_accounts

from crossdock.errors import ConnectorError, InternalError, RecordError, StoppedError, UnavailableError
from crossdock.project.connector_exceptions import FailureCount, brief, connector_code, described, mapping_failed
from crossdock.stream_facts import FailureLimits

SECRET = "hunter2"
BOUND = bound_accounts()


def raised() -> Exception:
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        return error


def test_an_exception_is_described_by_its_place() -> None:
    """File and line of the connector's code; without a traceback, the method and its first line."""
    text = described(raised(), BOUND.stream, "pull")
    assert text.startswith("KeyError in line ")
    assert text.endswith(Path(__file__).name)
    assert described(KeyError(SECRET), BOUND.stream, "pull").startswith("KeyError in pull, line ")
    assert mapping_failed(raised(), BOUND.stream).code == "mapping_failed"


@pytest.mark.parametrize(
    "error", [KeyError(SECRET), RecordError("bad_value", SECRET), StopIteration(SECRET), SystemExit(0)]
)
def test_exceptions_of_a_method_become_connector_errors(error: BaseException) -> None:
    """The message has the stream, the method and what was read last."""
    with pytest.raises(ConnectorError) as caught, connector_code(BOUND, "pull", lambda: "page 3"):
        raise error
    assert str(caught.value).startswith(f"w.accounts: pull raised {type(error).__name__} in line ")
    assert "after page 3" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("error", [UnavailableError("down"), StoppedError(""), InternalError(""), MemoryError()])
def test_other_exceptions_pass(error: Exception) -> None:
    """Errors that the connector raises on purpose, and those of the engine, stay as they are."""
    with pytest.raises(type(error)), connector_code(BOUND, "pull"):
        raise error


def test_a_message_is_short_and_printable() -> None:
    """At most 500 characters, with escapes for control characters."""
    assert brief("a\x1b") == "a\\x1b"
    assert len(brief("a" * 1_000)) == 500


def test_failures_are_counted_up_to_both_limits() -> None:
    """Only failures of the mapping code count, and both limits must be exceeded."""
    bound = bound_accounts()
    bound.stream.mapping_failed = FailureLimits(at_most=1, at_most_percent=50)
    record, failed, bad = account(bound, "A").record, RecordError("mapping_failed", "x"), RecordError("bad_value", "x")
    counted = FailureCount(bound, 4)
    refusals = [counted.refusal(record, error) for error in (failed, bad, bad, failed, failed)]
    assert [refusal is not None for refusal in refusals] == [False, False, False, False, True]
    assert refusals[-1] is not None
    assert refusals[-1].message.startswith("the mapping failed for 3 of 4 records, which exceeds mapping_failed: ")
    assert refusals[-1].where == "a.csv:2"
    unlimited = FailureCount(bound, None)
    assert [unlimited.refusal(record, failed) for _ in range(9)] == [None] * 9
