"""Exceptions of connector code: shown by class and place, never with their text, which may quote data (law 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import CodeType
from typing import Any

from crossdock.connector import Stream
from crossdock.errors import ConnectorError, CrossdockError, InternalError, RecordError, RefusedError, StoppedError
from crossdock.mapping.python_function import MODULE_PREFIX
from crossdock.printable import printable
from crossdock.project.connector_instances import BoundStream
from crossdock.records import Record

UNTOUCHED = (StoppedError, InternalError, MemoryError)
"""Exceptions that are never a failure of a connector."""

_ENGINE = ("crossdock.delta.", "crossdock.planning.", "crossdock.project.", "crossdock.runs.")
_MAX_LENGTH = 500  # characters of an author's message
_CODE = "mapping_failed"


def described(error: BaseException, stream: Stream[Any], method: str) -> str:
    """The class of *error*, with the file and line of the connector code that raised it.

    Args:
        method: Of *stream*; its first line is shown if the traceback has no frame below it.
    """
    frames = list(_frames(error))
    package = type(stream).__module__.partition(".")[0]
    own = [frame for frame in frames if frame[0].startswith(MODULE_PREFIX)]
    own = own or [frame for frame in frames if frame[0].partition(".")[0] == package]
    name = brief(type(error).__name__)
    if frames:
        _, file, line = (own or frames)[-1]
        return f"{name} in line {line} of {brief(file)}"
    code: CodeType | None = getattr(getattr(stream, method), "__code__", None)
    return f"{name} in {method}, line {code.co_firstlineno} of {brief(code.co_filename)}" if code else name


def _frames(error: BaseException) -> Iterator[tuple[str, str, int]]:
    """Module, file and line of each frame outside the engine."""
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__"))
        if not module.startswith(_ENGINE):
            yield module, frame.f_code.co_filename, line


def brief(text: str) -> str:
    """The start of *text*, printable."""
    return printable(text[:_MAX_LENGTH])


def mapping_failed(error: BaseException, stream: Stream[Any]) -> RecordError:
    """The reason of the dead letter after any exception of `to_resource` other than a valid `RecordError`."""
    return RecordError(_CODE, f"the mapping raised {described(error, stream, 'to_resource')}")


@contextmanager
def connector_code(bound: BoundStream, method: str, after: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """Turn exceptions of *method* of the stream into `ConnectorError`.

    Args:
        after: Returns the file or page that was read last, or None.
    """
    try:
        yield
    except UNTOUCHED:
        raise
    except (Exception, SystemExit) as error:  # an author's sys.exit() must not end the run as if it were done
        if isinstance(error, CrossdockError) and not isinstance(error, RecordError):
            raise
        read = f" after {brief(source)}" if (source := after()) else ""
        raise ConnectorError(
            f"{method} raised {described(error, bound.stream, method)}{read}",
            where=bound.name,
            hint="fix the connector; the exception's text is not shown because it may quote data",
        ) from error


class FailureCount:
    """Counts the records of a run whose mapping failed, and stops the stream beyond its limits.

    Args:
        records: The number of records to map; None for no limit.
    """

    def __init__(self, bound: BoundStream, records: int | None) -> None:
        self._bound, self._records, self._failed = bound, records, 0

    def refusal(self, record: Record, error: RecordError) -> RefusedError | None:
        """Count *error*; returns why the stream stops, or None if it continues."""
        if error.code != _CODE:
            return None
        self._failed += 1
        limits = self._bound.stream.mapping_failed
        if self._records is None or not limits.exceeded(self._failed, self._records):
            return None
        return RefusedError(
            f"the mapping failed for {self._failed:,} of {self._records:,} records, which exceeds mapping_failed:"
            f" at_most ({limits.at_most:,}) and at_most_percent ({limits.at_most_percent:g}); last: {error.message}",
            where=f"{record.source}:{error.line or record.lines[0]}",
            hint="fix the mapping and run again to read the remaining records, then replay the rejected ones:"
            f" crossdock records replay {self._bound.name} --reason {_CODE}",
        )
