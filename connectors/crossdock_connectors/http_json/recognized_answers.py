"""Answers that a config recognizes by their status and a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from crossdock import ConfigModel, Filter
from crossdock.sources import stated_wait_s
from crossdock.values import exact_json
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing

REFUSED = 422


class _RecognizedAnswer(ConfigModel):
    status: Annotated[int, Field(ge=200, le=599)]
    """The status of the answer."""
    text: Annotated[str, Field(min_length=1)]
    """Part of the JSON body, in upper or lower case."""

    def matches(self, status: int, body: Any) -> bool:
        return status == self.status and is_text_in_body(body, self.text)


class ThrottledAnswer(_RecognizedAnswer):
    """An answer by which the API limits the rate other than by 429."""

    text: Annotated[str, Field(min_length=1)]
    """Part of the JSON body, in upper or lower case; in an answer of success, of its members ``errors`` and ``error``.
    """
    wait: Annotated[str, Field(min_length=1)] | None = None
    """Where the body states the wait, such as ``errors.0.time_remaining``: a number of seconds, or a text such as
    ``18 seconds``. Default: ``Retry-After``, or what the text says."""

    def match_or_stated_wait(self, status: int, body: Any) -> bool | float:
        """Return whether it is this answer, or the wait that it states."""
        if status != self.status or not is_text_in_body(error_members_in(body) if status < 300 else body, self.text):
            return False
        stated = None if self.wait is None else json_value_as_column_text(value_at_path_or_missing(body, self.wait))
        wait = None if stated is None else stated_wait_s(stated)
        return True if wait is None else wait


class RepeatedAnswer(_RecognizedAnswer):
    """The refusal of a second record with the same name."""


class OutdatedAnswer(_RecognizedAnswer):
    """The refusal of an update whose record has changed since."""


def is_text_in_body(body: Any, text: str) -> bool:
    return text.casefold() in exact_json.dumps(body).decode().casefold()


def error_members_in(body: Any) -> Mapping[str, Any]:
    """Return what an answer of success says of errors, since its data may have any text."""
    return {name: body[name] for name in ("errors", "error") if isinstance(body, Mapping) and body.get(name)}


class FailedAnswer(ConfigModel):
    """An answer of success whose body says that the request failed."""

    when: Filter
    """A condition on the body; fields are dotted paths."""
    statuses: Mapping[str, Annotated[int, Field(ge=400, le=599)]] = {}
    """The status that such an answer stands for, by a part of its text, in upper or lower case; the first that is found
    counts. Default: 422, a refusal."""

    def status_of_failed_body(self, body: Any) -> int:
        """Return the status that a failed answer stands for."""
        text = exact_json.dumps(body).decode().casefold()
        return next((status for part, status in self.statuses.items() if part.casefold() in text), REFUSED)
