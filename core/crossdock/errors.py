"""What can go wrong, grouped by what the engine does about it.

CrossdockError
├── ConfigError            a person must edit a file or a command (exit 2)
│   └── FindingsError      several places of a config file
├── StateError             the state is missing, locked, newer, or another platform's (exit 3)
├── RefusedError           taken in, it could do harm: a short, growing or damaged file (exit 4)
├── RecordError            one record is bad: it becomes a dead letter, the run carries on
├── ConnectorError         the code of a connector failed (exit 3)
├── RemoteError            the other system failed (exit 3)
│   ├── UnauthorizedError  it does not accept who we are; asking again is pointless
│   ├── UnavailableError   it may answer later
│   └── ClockError         its clock and ours differ, so that dates cannot be trusted
├── StoppedError           a person or the machine asked for an end (exit 130)
└── InternalError          a promise of ours is broken: a tally that does not balance (exit 70)
"""

from __future__ import annotations

from collections.abc import Iterable

from crossdock.printable import printable


class CrossdockError(Exception):
    """Base of every error a user may meet.

    Its texts may quote other systems, files and configs. Each is made `printable`, so that it forges no line, and both
    databases take it.

    Args:
        message: What happened, as a sentence without the place.
        where: The place: ``file:line:column``, a config path, a host.
        hint: What to do about it.
    """

    exit_code = 70

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message = printable(str(message))  # an author may give an exception
        super().__init__(self.message)
        self.where = where and printable(where)
        self.hint = hint and printable(hint)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text


class ConfigError(CrossdockError):
    """A person must edit a file or a command."""

    exit_code = 2


class FindingsError(ConfigError):
    """Several findings in one config file: a line for each, which has its place."""

    def __init__(self, findings: Iterable[str]) -> None:
        lines = [printable(finding) for finding in findings]
        super().__init__("; ".join(lines))
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


class StateError(CrossdockError):
    """The state is missing, locked, newer than this crossdock, or belongs to another platform."""

    exit_code = 3


class StateBusyError(StateError):
    """Another run is at work on the state."""


class RefusedError(CrossdockError):
    """An input is refused as a whole because taking it could do harm; nothing of it has entered."""

    exit_code = 4


class RecordError(CrossdockError):
    """One record cannot be mapped or delivered.

    Args:
        code: Reason from the closed list `crossdock.records.Reason`.
        message: What is wrong, without personal data.
        pointer: Where in the record or draft: a column name or a JSON pointer.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message, where=pointer)
        self.code = code
        self.pointer = self.where
        self.line: int | None = None

    def at(self, line: int) -> RecordError:
        """The same error, with the line of the row that it speaks of."""
        self.line = line
        return self


class ConnectorError(CrossdockError):
    """The code of a connector raised an exception that it should not, outside of a mapping."""

    exit_code = 3


class RemoteError(CrossdockError):
    """Another system failed."""

    exit_code = 3


class UnauthorizedError(RemoteError):
    """The other system does not accept our credentials, host key or tenant."""


class UnavailableError(RemoteError):
    """The other system cannot be reached or does not work now; it may later."""


class ClockError(RemoteError):
    """The other system's clock and ours differ by too much to trust a date."""


class StoppedError(CrossdockError):
    """The run was asked to end before its work was done; everything it did is kept."""

    exit_code = 130


class InternalError(CrossdockError):
    """A promise of crossdock itself is broken."""

    exit_code = 70
