"""Answers that a config recognizes by their status and a text."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from crossdock import ConfigModel
from crossdock.values import exact_json


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
