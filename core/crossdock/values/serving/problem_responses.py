"""Problem documents (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"


def problem_response(
    status: int,
    detail: str,
    *,
    kind: str = "about:blank",
    headers: Mapping[str, str] | None = None,
    **members: object,
) -> Response:
    """Make a problem document as a response; *members* extend it (RFC 9457 section 3.2)."""
    document = {"type": kind, "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **members}
    return Response(json.dumps(document), status, headers, MEDIA_TYPE)
