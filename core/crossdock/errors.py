"""All errors, grouped by what the engine does about them.

CrossdockError
├── ConfigError            a file or a command must be edited (exit 2)
│   ├── FindingsError      several places of a config file
│   └── NotConfirmedError  a person did not want it
├── StateError             the state is missing, locked, newer, or another platform's (exit 3)
├── RefusedError           an input that could do harm: a short, growing or damaged file (exit 4)
├── RecordError            one record is bad: it becomes a dead letter, the run continues
├── ConnectorError         the code of a connector failed (exit 3)
├── RemoteError            the other system failed (exit 3)
│   ├── UnauthorizedError  it does not accept the credentials; a retry is pointless
│   ├── UnavailableError   it may answer later
│   └── ClockError         its clock and this machine's differ too much for dates
├── StoppedError           the run was asked to stop (exit 130)
└── InternalError          a defect of crossdock, such as a tally that does not balance (exit 70)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from crossdock.printable import printable

__all__ = [
    "ClockError", "ConfigError", "ConnectorError", "CrossdockError", "FindingsError", "InternalError",
    "NotConfirmedError", "RecordError", "RefusedError", "RemoteError", "StateBusyError", "StateError", "StoppedError",
    "UnauthorizedError", "UnavailableError",
]  # fmt: skip

_Error = TypeVar("_Error", bound=BaseException)
_BY_SEVERITY = (70, 130, 3, 4, 2, 1)


class CrossdockError(Exception):
    """Base of all errors shown to users.

    Its texts may quote other systems, files and configs, so they are made `printable`.

    Args:
        message: What happened, without the place.
        where: The place: ``file:line:column``, a config path, a host.
        hint: What to do about it.
        code: What happened as one word, for ``crossdock explain``; by default that of the class.

    Attributes:
        category: The kind of error as one word: what scripts decide by.
    """

    exit_code = 70
    category = "internal"
    code: str = ""

    def __init__(
        self, message: str, *, where: str | None = None, hint: str | None = None, code: str | None = None
    ) -> None:
        self.message = printable(str(message))  # an author may give an exception
        super().__init__(self.message)
        self.code = code or type(self).code or self.category
        self.where = where and printable(where)
        self.hint = hint and printable(hint)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text


class ConfigError(CrossdockError):
    """A file or a command must be edited."""

    exit_code = 2
    category = "config"


class FindingsError(ConfigError):
    """Several findings in one config file, a line each with its place."""

    code = "config_invalid"

    def __init__(self, findings: Iterable[str]) -> None:
        lines = [printable(finding) for finding in findings]
        super().__init__("; ".join(lines))
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


class NotConfirmedError(ConfigError):
    """A person did not confirm what a command was about to do, or nobody could be asked. Nothing was changed."""

    code = "not_confirmed"


class StateError(CrossdockError):
    """The state is missing, locked, newer than this crossdock, or belongs to another platform."""

    exit_code = 3
    category = "state"


class StateBusyError(StateError):
    """Another run is using the state."""

    category = "state_busy"


class RefusedError(CrossdockError):
    """An input is refused as a whole because it could do harm. Nothing of it was imported."""

    exit_code = 4
    category = "refused"


class RecordError(CrossdockError):
    """One record cannot be mapped or delivered.

    Args:
        code: The reason, from the closed list `crossdock.values.raw_rows_and_records.Reason`.
        message: What is wrong, without personal data.
        pointer: The place in the record or draft: a column name or a JSON pointer.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message, where=pointer, code=code)
        self.pointer = self.where
        self.line: int | None = None

    def at(self, line: int) -> RecordError:
        """Set the line of the row with the error, and return the error."""
        self.line = line
        return self


class ConnectorError(CrossdockError):
    """The code of a connector, outside a mapping, raised an unexpected exception."""

    exit_code = 3
    category = "connector"


class RemoteError(CrossdockError):
    """Another system failed."""

    exit_code = 3
    category = "remote"


class UnauthorizedError(RemoteError):
    """The other system does not accept our credentials, host key or tenant."""

    category = "unauthorized"


class UnavailableError(RemoteError):
    """The other system cannot be reached or is out of service for now."""

    category = "unavailable"


class ClockError(RemoteError):
    """The clocks of the other system and this machine differ too much to trust a date."""

    category = "clock"
    code = "clock_differs"


class StoppedError(CrossdockError):
    """The run was asked to stop before it was finished; everything it did is kept."""

    exit_code = 130
    category = "stopped"


class InternalError(CrossdockError):
    """A defect of crossdock."""

    exit_code = 70


def add_code_to_first_line(text: str, code: str | None) -> str:
    """Return *text*, the text of an error, with its code at the end of the first line."""
    first, newline, others = text.partition("\n")
    return f"{first} [{code}]{newline}{others}" if code else text


def text_with_code(error: CrossdockError) -> str:
    """Return the text of *error* with its code, as each place shows it to people."""
    return add_code_to_first_line(str(error), error.code)


def strip_traceback_and_causes(error: _Error) -> _Error:
    """Prepare *error* for storage: otherwise it keeps what frames hold, its own and those of its causes.

    To clear the frames would not be enough: the one that stores the error still runs, and closures keep what they refer
    to. The causes themselves stay as they are, since one of them may still be on its way.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def worst_exit_code(errors: Iterable[CrossdockError]) -> int:
    """Return the exit code of the most severe of *errors*; 0 without errors."""
    codes = {error.exit_code for error in errors}
    return next((code for code in _BY_SEVERITY if code in codes), 0)


def as_crossdock_error(error: BaseException) -> CrossdockError:
    """Return *error*, or a replacement for an exception that ended a run, without texts that may quote data."""
    if isinstance(error, CrossdockError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StoppedError("interrupted twice", hint="run again: it continues from what was delivered")
    return InternalError(f"unexpected {type(error).__name__}")
