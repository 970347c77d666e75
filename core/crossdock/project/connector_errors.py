"""What may be said of an exception of connector code: its class and its place, and never its text (law 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import CodeType
from typing import Any

from crossdock.connector import Stream
from crossdock.errors import ConnectorError, CrossdockError, InternalError, RecordError, RefusedError, StoppedError
from crossdock.printable import printable
from crossdock.project.project import BoundStream
from crossdock.records import Record

UNTOUCHED = (StoppedError, InternalError, MemoryError)
"""Exceptions that are no failure of a connector, wherever they are raised."""

_ENGINE = ("crossdock.delta.", "crossdock.planning.", "crossdock.project.", "crossdock.runs.")
_LONGEST = 500  # characters of an author's message that are kept
_CODE = "mapping_failed"


def described(error: BaseException, stream: Stream[Any], method: str) -> str:
    """The class of *error*, with the file and line of the connector's code that it came from.

    Args:
        method: Of *stream*; its first line is named where the traceback shows no line below it.
    """
    places = list(_places(error))
    package = type(stream).__module__.partition(".")[0]
    own = [place for place in places if place[0].partition(".")[0] == package]
    name = brief(type(error).__name__)
    if places:
        _, file, line = (own or places)[-1]
        return f"{name} in line {line} of {brief(file)}"
    code: CodeType | None = getattr(getattr(stream, method), "__code__", None)
    return f"{name} in {method}, line {code.co_firstlineno} of {brief(code.co_filename)}" if code else name


def _places(error: BaseException) -> Iterator[tuple[str, str, int]]:
    """Module, file and line of each frame below the run's own code."""
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        if not module.startswith(_ENGINE):
            yield module, frame.f_code.co_filename, line


def brief(text: str) -> str:
    """At most the first characters of *text*, printable."""
    return printable(text[:_LONGEST])


def mapping_failed(error: BaseException, stream: Stream[Any]) -> RecordError:
    """The dead letter's reason, when `to_resource` raised what is no `RecordError`."""
    return RecordError(_CODE, f"the mapping raised {described(error, stream, 'to_resource')}")


@contextmanager
def connector_code(bound: BoundStream, method: str, after: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """Turns what *method* of the stream raises into a `ConnectorError`.

    Args:
        after: Gives the file or page that was read last, None before the first.
    """
    try:
        yield
    except UNTOUCHED:
        raise
    except Exception as error:
        if isinstance(error, CrossdockError) and not isinstance(error, RecordError):
            raise
        read = f" after {brief(source)}" if (source := after()) else ""
        raise ConnectorError(
            f"{method} raised {described(error, bound.stream, method)}{read}",
            where=bound.name,
            hint="mend the connector; the text of the exception is not shown, since it may quote data",
        ) from error


class FailureCount:
    """Counts the records of a run that a stream's mapping fails at, and says when they are too many.

    Args:
        records: How many there are to map; None where any number may fail.
    """

    def __init__(self, bound: BoundStream, records: int | None) -> None:
        self._bound, self._records, self._failed = bound, records, 0

    def refusal(self, record: Record, error: RecordError) -> RefusedError | None:
        """Why the stream stops after *error*; None if it goes on."""
        self._failed += error.code == _CODE
        limits = self._bound.stream.mapping_failed
        if error.code != _CODE or self._records is None or not limits.exceeded(self._failed, self._records):
            return None
        allowed = f"at_most ({limits.at_most:,}) and at_most_percent ({limits.at_most_percent:g})"
        return RefusedError(
            f"the mapping failed at {self._failed:,} of {self._records:,} records, more than mapping_failed: {allowed}"
            f" allow; the last time {error.message}",
            where=f"{record.source}:{error.line or record.lines[0]}",
            hint="mend the mapping and run again, which reads the rest again;"
            f" then: crossdock records replay {self._bound.name} --reason {_CODE}",
        )
