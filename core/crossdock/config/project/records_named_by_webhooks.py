"""The records that one webhook names (`Hint`), checked against the streams of its connection."""

from __future__ import annotations

from typing import Any

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.errors import ConnectorError, RecordError
from crossdock.mapping.external_ids import Ours
from crossdock.values.author_code_errors import AuthorCodeError, convert_author_errors, storable_copy_of_error
from crossdock.values.record_keys import key_parts_of
from crossdock.webhooks import Hint, Webhook, Webhooks


def checked_webhook_hints(connection: Connection, webhooks: Webhooks[Any], webhook: Webhook) -> list[Hint]:
    """Return the records that *webhook* is about, each once, for the streams that fetch named records.

    Raises RecordError if its body cannot be read, and ConnectorError if a hint fits no stream or the code fails.
    """
    try:
        with convert_author_errors(
            "hints", connection.name, code=webhooks.hints, settings=connection.settings, data=[webhook.body]
        ):
            found: list[object] = list(dict.fromkeys(webhooks.hints(webhook)))
    except AuthorCodeError as error:
        if isinstance(error.__cause__, RecordError) and (short := storable_copy_of_error(error.__cause__)) is not None:
            raise short from None
        raise
    hints = [each for each in found if isinstance(each, Hint)]
    for wrong in (each for each in found if not isinstance(each, Hint)):
        raise _webhook_hint_error(connection, f"is a {type(wrong).__name__} instead of a Hint")
    streams = {stream.name: stream for stream in connection.streams}
    for hint in hints:
        stream = streams.get(hint.stream)
        if stream is None:
            raise _webhook_hint_error(
                connection, f"names the stream {hint.stream!r}; known: {', '.join(sorted(streams))}"
            )
        if not isinstance(hint.key, tuple):
            raise _webhook_hint_error(
                connection, f"names a key of {hint.stream} that is a {type(hint.key).__name__}, not a tuple"
            )
        if len(hint.key) != len(stream.key):
            columns = ", ".join(stream.key)
            raise _webhook_hint_error(
                connection, f"names a key of {hint.stream} with {len(hint.key)} columns instead of {columns}"
            )
        if {*map(type, hint.key)} - {str}:
            raise _webhook_hint_error(connection, f"names a key of {hint.stream} that is not text")
    wanted = [hint for hint in hints if streams[hint.stream].enabled and streams[hint.stream].fetches]
    return [
        own for hint in wanted if (own := _replace_external_id_in_hint(hint, streams[hint.stream].own_keys)) is not None
    ]


def _replace_external_id_in_hint(hint: Hint, ours: Ours | None) -> Hint | None:
    """Return *hint* with the key of the record in place of its external id; None for a record of others."""
    if ours is None:
        return hint
    key = ours.key_in(hint.key[0])
    return None if key is None else Hint(hint.stream, key_parts_of(key))


def _webhook_hint_error(connection: Connection, what: str) -> ConnectorError:
    return ConnectorError(
        f"a hint {what}",
        where=connection.name,
        hint="fix the function hints of the connector",
        code="connector_invalid",
    )
