"""Answers that a config recognizes by their status and a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from crossdock import ConfigModel, Filter
from crossdock.values import exact_json
from crossdock.values.json_paths import at_path, text_of

REFUSED = 422


class _RecognizedAnswer(ConfigModel):
    status: Annotated[int, Field(ge=200, le=599)]
    text: Annotated[str, Field(min_length=1)]
    """Part of the JSON body, in upper or lower case."""

    def matches(self, status: int, body: Any) -> bool:
        return status == self.status and self.text.casefold() in exact_json.dumps(body).decode().casefold()


class ThrottledAnswer(_RecognizedAnswer):
    """An answer by which the API limits the rate other than by 429."""


class RepeatedAnswer(_RecognizedAnswer):
    """The refusal of a second record with the same name."""


class OutdatedAnswer(_RecognizedAnswer):
    """The refusal of an update whose record has changed since."""


class FailedAnswer(ConfigModel):
    """An answer of success whose body says that the request failed."""

    when: Filter
    """A condition on the body; fields are dotted paths."""
    statuses: Mapping[str, Annotated[int, Field(ge=400, le=599)]] = {}
    """The status that such an answer stands for, by a part of its text, in upper or lower case; the first that is found
    counts. Default: 422, a refusal."""

    def status_of(self, body: Any) -> int:
        """Return the status that a failed answer stands for."""
        text = exact_json.dumps(body).decode().casefold()
        return next((status for part, status in self.statuses.items() if part.casefold() in text), REFUSED)


def condition(rule: Filter) -> Callable[[Any], bool]:
    meets, columns = rule.predicate(), tuple(rule.columns())
    return lambda value: meets({column: text_of(at_path(value, column)) for column in columns})
