"""What a stream's input was in a run: the files that it found, as its report tells them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct, field

from crossdock.state import FileDescription, FileFacts

LISTED = 100  # most files in a report

InputState = Literal["new", "unchanged", "none"]
"""``new``: files with unknown content. ``unchanged``: a snapshot arrived again with the content that was read last.
``none``: no new file."""


class FileInInputReport(Struct):
    """A file that was read; *rows* is None if its content was known, so that it was not parsed."""

    name: str
    rows: int | None


class InputFacts(Struct):
    """The input of one stream. `has_arrived` means that a file came that is new to the source, or that changed, and
    `is_read_again` that one is read which an earlier run has finished, as after a change of the mapping.
    `first_read_at` has when each file that is read was first accepted, by name, without new files.
    """

    state: InputState
    files: list[FileInInputReport] = field(default_factory=list)
    newest: tuple[str, datetime] | None = None
    has_arrived: bool = False
    is_read_again: bool = False
    first_read_at: Mapping[str, datetime] = {}

    def first_read_time_of(self, source: str) -> datetime | None:
        """Return when an earlier run has first read *source*, a file or ARCHIVE/MEMBER; None if none has."""
        return self.first_read_at.get(source) or self.first_read_at.get(source.partition("/")[0])

    def as_json(self) -> dict[str, Any]:
        newest = self.newest and {"name": self.newest[0], "modified_at": self.newest[1].astimezone(UTC).isoformat()}
        return {
            "input": self.state,
            "files": [{"name": file.name, "rows": file.rows} for file in self.files[:LISTED]],
            "more_files": max(0, len(self.files) - LISTED),
            "newest_file": newest,
        }


def report_of_stream_input(
    known: Sequence[FileFacts],
    taken: Iterable[FileFacts],
    unread: Sequence[FileFacts],
    passed: Collection[FileDescription] = (),
) -> InputFacts:
    """Describe the input of a stream. *taken* are the files of this run; it has not finished the *unread* ones."""
    latest = newest_accepted_file(known)
    newest = (latest.name, latest.modified_at) if latest else None
    listed_before = {*(name_size_and_time_of_known_file(facts) for facts in known if not facts.is_read_again), *passed}
    arrived = [facts for facts in taken if name_size_and_time_of_known_file(facts) not in listed_before]
    if unread:
        read = [FileInInputReport(facts.name, None) for facts in unread]
        return InputFacts(
            "new", read, newest, has_arrived=bool(arrived), first_read_at=_first_acceptance_time_by_name(known, unread)
        )
    files = [FileInInputReport(facts.name, None) for facts in arrived]
    return InputFacts("unchanged" if arrived else "none", files, newest, has_arrived=bool(arrived))


def _first_acceptance_time_by_name(known: Sequence[FileFacts], unread: Sequence[FileFacts]) -> dict[str, datetime]:
    wanted, found = {(facts.name, facts.content_hash) for facts in unread}, dict[str, datetime]()
    for facts in known:
        if facts.accepted_at is not None and (facts.name, facts.content_hash) in wanted:
            found[facts.name] = min(found.get(facts.name, facts.accepted_at), facts.accepted_at)
    return found


def newest_accepted_file(files: Iterable[FileFacts]) -> FileFacts | None:
    return max(files, key=lambda facts: (facts.accepted_at or facts.modified_at, facts.modified_at), default=None)


def comma_separated_first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"


def files_passed_over_text(names: Sequence[str], reason: str) -> str:
    return f"passed over {comma_separated_first_names(names)}: {reason}"


def name_size_and_time_of_known_file(facts: FileFacts) -> FileDescription:
    return facts.name, facts.size, facts.modified_at
