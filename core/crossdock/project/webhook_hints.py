"""The hints of a connector for one webhook, checked against the streams of its connection."""

from __future__ import annotations

from typing import Any

from crossdock.errors import ConnectorError, RecordError
from crossdock.project.connector_exceptions import UNTOUCHED, brief
from crossdock.project.connector_instances import Connection
from crossdock.webhooks import Hint, Webhook, Webhooks


def hints_of(connection: Connection, webhooks: Webhooks[Any], webhook: Webhook) -> list[Hint]:
    """The records that *webhook* is about, each once, of the streams that fetch named records.

    Raises:
        RecordError: If its body cannot be read.
        ConnectorError: If the connector names no stream of the connection, or a key with another number of columns than
            the stream's, or raises anything else.
    """
    try:
        found = list(dict.fromkeys(webhooks.hints(webhook)))
    except (RecordError, *UNTOUCHED):
        raise
    except Exception as error:
        raise ConnectorError(
            f"hints raised {brief(type(error).__name__)}",
            where=connection.name,
            hint="fix the connector; the exception's text is not shown because it may quote data",
        ) from error
    streams = {stream.name: stream for stream in connection.streams}
    for hint in found:
        stream = streams.get(hint.stream)
        if stream is None:
            raise _defect(connection, f"names the stream {hint.stream!r}; known: {', '.join(sorted(streams))}")
        if len(hint.key) != len(stream.key):
            columns = ", ".join(stream.key)
            raise _defect(connection, f"names a key of {hint.stream} with {len(hint.key)} columns instead of {columns}")
        if {*map(type, hint.key)} - {str}:
            raise _defect(connection, f"names a key of {hint.stream} that is no text")
    return [hint for hint in found if streams[hint.stream].fetches]


def _defect(connection: Connection, what: str) -> ConnectorError:
    return ConnectorError(f"a hint {what}", where=connection.name, hint="fix the function hints of the connector")
