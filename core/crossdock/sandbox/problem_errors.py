"""`ProblemError`, which refuses a request with a problem document (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from starlette.responses import Response

from crossdock.values.serving.http_server import MEDIA_TYPE, problem_response

_TYPES = {429: "https://iana.org/assignments/http-problem-types#quota-exceeded"}

Finding = tuple[str, str]  # a JSON pointer in fragment form (RFC 6901 section 6), and what is wrong there


class ProblemError(Exception):
    """The request is refused with ``response`` and has no effect. The document repeats no value of the request."""

    def __init__(
        self, status: int, detail: str, *, findings: Sequence[Finding] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        errors = [{"pointer": pointer, "detail": wrong} for pointer, wrong in findings]
        members = {"errors": errors} if findings else {}
        kind = _TYPES.get(status, "about:blank")
        self.response = problem_response(status, detail, kind=kind, headers=headers, **members)


def method_not_allowed_error(allowed: str) -> ProblemError:
    return ProblemError(405, "This path does not support the method.", headers={"allow": allowed})


def convert_problem_to_plain_text(response: Response) -> None:
    """Turn a problem document into one line of text, without pointers and Retry-After."""
    if response.headers.get("content-type") == MEDIA_TYPE:
        text = f"{json.loads(bytes(response.body))['detail']}\n".encode()
        response.body = text
        response.headers.update({"content-type": "text/plain; charset=utf-8", "content-length": str(len(text))})
        del response.headers["retry-after"]
