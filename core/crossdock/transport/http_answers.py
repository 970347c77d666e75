"""What became of an HTTP request: an answer, or one of two failures. Who reads answers need not load what asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crossdock.errors import UnavailableError


class NotSentError(UnavailableError):
    """The request never left this machine whole: it can be sent again without harm."""


class ExpiredError(NotSentError):
    """The time in which the request was allowed to leave was over before its first byte did."""


class AmbiguousError(UnavailableError):
    """The request may or may not have been carried out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; header names are in lower case, and lines of one name are joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes
