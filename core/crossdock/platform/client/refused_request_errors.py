"""`ProblemError`, which a refused request raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crossdock.errors import RemoteError
from crossdock.printable import printable
from crossdock.reading.transport import error_answer_parsing
from crossdock.values import exact_json


@dataclass(frozen=True, slots=True)
class FieldError:
    """One member of a request that the platform refuses. *pointer* has fragment form: ``#/items/0/quantity``."""

    pointer: str
    detail: str


class ProblemError(RemoteError):
    """The platform refused the request, and answered with a problem document (RFC 9457) or with any other error.

    Attributes:
        status: The HTTP status, 300 to 599.
        kind: URI of the problem type, ``about:blank`` by default.
        errors: The members that are wrong, at most 100.
    """

    code = "answer_refused"

    def __init__(self, status: int, body: bytes, *, where: str, hint: str | None = None) -> None:
        problem = error_answer_parsing.read(status, body)
        super().__init__(f"HTTP {status}: {problem.message}", where=where, hint=hint)
        self.status = status
        self.kind = problem.kind
        self.errors = tuple(_field_errors(body))


def _field_errors(body: bytes) -> list[FieldError]:
    try:
        document: Any = exact_json.loads(body)
    except ValueError:
        return []
    errors = document.get("errors") if isinstance(document, dict) else None
    found = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return [
        FieldError(
            _printable_text(each.get("pointer"), error_answer_parsing.MAX_POINTER),
            _printable_text(each.get("detail"), error_answer_parsing.SHOWN),
        )
        for each in found[: error_answer_parsing.MAX_ERRORS]
    ]


def _printable_text(value: object, most: int) -> str:
    return printable(value[:most]) if isinstance(value, str) else ""
