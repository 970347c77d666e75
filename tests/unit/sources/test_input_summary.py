"""What a stream found at its source."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from crossdock.reading.sources.listed_and_known_files import is_new_or_resent_file
from crossdock.reading.sources.stream_input_report import LISTED, FileInInputReport, InputFacts, report_of_stream_input
from crossdock.state import FileFacts

AT = datetime(2026, 3, 9, tzinfo=UTC)
OLD = FileFacts("a.csv", "h1", 3, AT, "2026-03-09", AT)
AGAIN = structs.replace(OLD, modified_at=AT + timedelta(days=1), stamp="2026-03-10", accepted_at=None)
NEW = FileFacts("b.csv", "h2", 4, AT + timedelta(days=1), "2026-03-10")


@pytest.mark.parametrize(
    ("known", "taken", "unread", "state", "names", "has_arrived"),
    [
        pytest.param([], [], [], "none", [], False, id="nothing ever"),
        pytest.param([OLD], [], [], "none", [], False, id="nothing new"),
        pytest.param([OLD], [AGAIN], [], "unchanged", ["a.csv"], True, id="exported again"),
        pytest.param([OLD], [NEW], [NEW], "new", ["b.csv"], True, id="new"),
        pytest.param([OLD], [OLD], [OLD], "new", ["a.csv"], False, id="read again after a change of the mapping"),
    ],
)
def test_inputs(
    known: list[FileFacts],
    taken: list[FileFacts],
    unread: list[FileFacts],
    state: str,
    names: list[str],
    has_arrived: bool,
) -> None:
    """New content, known content in a new file, or neither; a file that is read again has not arrived."""
    facts = report_of_stream_input(known, taken, unread)
    assert (facts.state, [file.name for file in facts.files], facts.has_arrived) == (state, names, has_arrived)
    assert facts.newest == (("a.csv", AT) if known else None)


def test_a_snapshot_that_is_exported_again_is_remembered() -> None:
    """Its new modification time is, so that the same file is not new on the next day; an older one is not."""
    finished = {"h1": OLD}
    assert is_new_or_resent_file(AGAIN, finished, snapshot=True)
    assert not is_new_or_resent_file(AGAIN, finished, snapshot=False)
    assert not is_new_or_resent_file(OLD, finished, snapshot=True)
    assert not is_new_or_resent_file(structs.replace(AGAIN, stamp="2026-03-08"), finished, snapshot=True)
    assert is_new_or_resent_file(NEW, finished, snapshot=True)


def test_a_report_lists_some_files() -> None:
    """The others are a number."""
    facts = InputFacts("new", [FileInInputReport(f"{number}", 1) for number in range(LISTED + 2)])
    listed = facts.as_json()
    assert (len(listed["files"]), listed["more_files"], listed["newest_file"]) == (LISTED, 2, None)
