"""What a run tells: its progress, to a listener, and its messages, which the state stores.

Messages are errors that stopped the run or one of its streams, warnings and notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Literal, Protocol

from crossdock.errors import (
    CrossdockError,
    FindingsError,
    add_code_to_first_line,
    strip_traceback_and_causes,
    worst_exit_code,
)
from crossdock.printable import printable_lines

Unit = Literal["records", "bytes", "requests"]
"""The unit of a stage's steps."""


class Progress(Protocol):
    """A listener. Every call returns at once."""

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        """Begin a stage; *total* is None if its size is unknown."""

    def advance(self, steps: int = 1) -> None:
        """Report that some steps of the stage are done."""

    def allowance(self, tokens: int | None) -> None:
        """Report the number of requests that could be sent now; None if unknown."""

    def waiting(self, wait: timedelta) -> None:
        """Report that the rate limit of a source makes the run wait; zero ends the wait."""

    def warn(self, text: str) -> None:
        """Report something that needs attention, though the work continues."""


class SilentProgress:
    """A listener that ignores all reports."""

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        pass

    def advance(self, steps: int = 1) -> None:
        pass

    def allowance(self, tokens: int | None) -> None:
        pass

    def waiting(self, wait: timedelta) -> None:
        pass

    def warn(self, text: str) -> None:
        pass


_LONGEST_CODE = 32  # of an author's error or warning; what is longer is cut
Level = Literal["error", "warning", "note"]
MOST = 1_000  # warnings and notes of one run that are kept


@dataclass(frozen=True, slots=True)
class RunMessage:
    """One message of a run.

    Attributes:
        level: ``error`` stopped a stream or the run; people are notified about a ``warning``, and not about a ``note``.
        stream: The stream, connection or target; empty for the run itself.
        message: What happened, without the place, secrets and personal data.
        code: What happened, for ``crossdock explain``; None for a note, and for a warning of an author without one.
        category: `CrossdockError.category` of an error; None for others, and for those of crossdock 0.1.
    """

    level: Level
    stream: str
    message: str
    code: str | None = None
    place: str | None = None
    advice: str | None = None
    category: str | None = None

    @classmethod
    def of_error(cls, stream: str, error: CrossdockError) -> RunMessage:
        message = "\n".join(error.lines) if isinstance(error, FindingsError) else error.message
        return cls("error", stream, message, error.code[:_LONGEST_CODE], error.where, error.hint, error.category)

    @property
    def text_with_place_and_advice(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}\n  {self.advice}" if self.advice else text

    @property
    def text_with_code(self) -> str:
        """The text with the code, as people see an error or a warning."""
        return add_code_to_first_line(self.text_with_place_and_advice, self.code)

    @property
    def text_with_stream_and_code(self) -> str:
        return f"{self.stream}: {self.text_with_code}" if self.stream else self.text_with_code

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class RunMessages:
    """The messages of one run, each once, in order. *earlier* are those of the run that is continued."""

    def __init__(self, earlier: Iterable[RunMessage] = ()) -> None:
        self._said: dict[RunMessage, CrossdockError | None] = dict.fromkeys(earlier)
        self._remarks = sum(each.level != "error" for each in self._said)

    def __iter__(self) -> Iterator[RunMessage]:
        yield from self._said
        if (more := self._remarks - MOST) > 0:
            yield RunMessage("note", "", f"{more:,} more warnings and notes of this run are not kept")

    def add_error(self, stream: str, error: CrossdockError) -> None:
        """Record that *error* stopped *stream*, or the run if the name is empty. It counts for the exit code."""
        self._said.setdefault(RunMessage.of_error(stream, error), strip_traceback_and_causes(error))

    def add_warning(self, stream: str, text: str, *, code: str | None) -> None:
        self._add_remark(RunMessage("warning", stream, printable_lines(text), code and code[:_LONGEST_CODE]))

    def add_note(self, stream: str, text: str) -> None:
        self._add_remark(RunMessage("note", stream, printable_lines(text)))

    def remove_errors(self) -> None:
        self._said = {message: None for message in self._said if message.level != "error"}

    @property
    def first_exception_by_stream(self) -> Mapping[str, CrossdockError]:
        """The first error of each stream, and of the run under an empty name."""
        first: dict[str, CrossdockError] = {}
        for message, error in self._said.items():
            if error is not None:
                first.setdefault(message.stream, error)
        return MappingProxyType(first)

    @property
    def exceptions_of_this_run(self) -> list[CrossdockError]:
        return [error for error in self._said.values() if error is not None]

    @property
    def exit_code(self) -> int:
        return worst_exit_code(self.exceptions_of_this_run)

    def _add_remark(self, message: RunMessage) -> None:
        if message in self._said:
            return
        self._remarks += 1
        if self._remarks <= MOST:
            self._said[message] = None


def error_texts(messages: Iterable[RunMessage]) -> list[str]:
    """Return each error once with its code, after the streams that it stopped. Its advice is a line of its own."""
    streams: dict[str, list[str]] = {}
    for each in messages:
        if each.level == "error":
            streams.setdefault(each.text_with_code, []).append(each.stream)
    return [f"{', '.join(filter(None, names)) + ': ' if any(names) else ''}{text}" for text, names in streams.items()]


def error_documents(errors: Mapping[str, CrossdockError]) -> list[dict[str, Any]]:
    """Return the *errors* of streams for the member ``messages`` of a JSON document."""
    return [RunMessage.of_error(name, error).as_json() for name, error in errors.items()]


def joined_error_text_by_stream(messages: Iterable[RunMessage]) -> dict[str, str]:
    """Return the errors by stream, ``run`` for the run itself. Several errors of one stream are lines of one text."""
    found: dict[str, list[str]] = {}
    for each in messages:
        if each.level == "error":
            found.setdefault(each.stream or "run", []).append(each.text_with_place_and_advice)
    return {name: "\n".join(texts) for name, texts in found.items()}


def warning_and_note_texts_by_stream(messages: Iterable[RunMessage]) -> dict[str, list[str]]:
    """Return warnings and notes by stream, without those of the run itself."""
    found: dict[str, list[str]] = {}
    for each in messages:
        if each.level != "error" and each.stream:
            found.setdefault(each.stream, []).append(each.message)
    return found


def streams_and_messages_document(accounts: Mapping[str, Any], messages: Iterable[RunMessage]) -> dict[str, Any]:
    """Return ``streams``, ``errors`` and ``messages`` for the JSON of a run, from the *accounts* of its streams."""
    said = list(messages)
    notes = warning_and_note_texts_by_stream(said)
    return {
        "streams": {name: {**account, "notes": notes.get(name, [])} for name, account in accounts.items()},
        "errors": joined_error_text_by_stream(said),
        "messages": [message.as_json() for message in said],
    }


def warning_and_note_texts(messages: Iterable[RunMessage]) -> list[str]:
    return [each.text_with_stream_and_code for each in messages if each.level != "error"]


def warning_texts(messages: Iterable[RunMessage]) -> list[str]:
    return [each.text_with_stream_and_code for each in messages if each.level == "warning"]
