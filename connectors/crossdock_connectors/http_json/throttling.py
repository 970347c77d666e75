"""Answers by which an API limits the rate other than by 429, as a config declares them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from crossdock import ConfigModel, exact_json
from crossdock.sources import ApiAnswer


class ThrottledAnswer(ConfigModel):
    """An answer with this status and this text in its JSON body."""

    status: Annotated[int, Field(ge=200, le=599)]
    text: Annotated[str, Field(min_length=1)]
    """Part of the body, in upper or lower case."""


def is_throttled(answer: ApiAnswer, rule: ThrottledAnswer) -> bool:
    """Whether *answer* is one that *rule* describes."""
    if answer.status != rule.status:
        return False
    return rule.text.casefold() in exact_json.dumps(answer.body).decode().casefold()
