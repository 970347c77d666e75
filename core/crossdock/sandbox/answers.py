"""What the sandbox answers: a finished answer, and the problem documents of RFC 9457."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
PROBLEM_MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; equal answers are equal bytes, so that it can be stored and replayed."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a body, at a JSON pointer in fragment form (RFC 6901 section 6)."""

    pointer: str
    detail: str


class ProblemError(Exception):
    """The request is refused; no effect has happened.

    Args:
        status: HTTP status.
        detail: What is wrong, without a value out of the request.
        findings: Where in the body, if it is the body.
        headers: What the answer carries besides its media type.
        kind: The problem type, ``about:blank`` where the status says it all.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        findings: Sequence[Finding] = (),
        headers: Mapping[str, str] | None = None,
        kind: str = "about:blank",
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.findings = findings
        self.headers = headers or {}
        self.kind = kind

    def answer(self) -> Answer:
        document: dict[str, object] = {
            "type": self.kind,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.findings:
            document["errors"] = [{"pointer": each.pointer, "detail": each.detail} for each in self.findings]
        return Answer(self.status, json.dumps(document).encode(), {"content-type": PROBLEM_MEDIA_TYPE, **self.headers})
