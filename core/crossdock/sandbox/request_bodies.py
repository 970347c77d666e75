"""Bodies of requests, read whole and never more of them than allowed."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from crossdock.sandbox.problem_answers import ProblemError

_JSON = "application/json"
_MAX_DOOR_BODY_BYTES = 64 << 10


async def read(request: Request, most_bytes: int) -> bytes:
    """The body, or of one that is too long its beginning, which is longer than *most_bytes*, too."""
    body = b""
    async for chunk in request.stream():  # to its end even if it is too long, so that the client then listens
        if len(body) <= most_bytes:
            body += chunk
    return body


async def read_at_door(request: Request) -> bytes:
    """The body of a request to the sandbox itself: JSON by its media type, at most 64 KiB, or nothing.

    Browsers send other media types for a page of any site, but this one only where the server allows it.
    """
    body = await read(request, _MAX_DOOR_BODY_BYTES)
    if (body or "content-type" in request.headers) and media_type(request.headers) != _JSON:
        raise ProblemError(415, f"Send the body as Content-Type: {_JSON}.", headers={"accept": _JSON})
    if len(body) > _MAX_DOOR_BODY_BYTES:
        raise ProblemError(413, f"The body is longer than {_MAX_DOOR_BODY_BYTES} bytes. Send a shorter one.")
    return body


def media_type(headers: Mapping[str, str]) -> str:
    """What Content-Type says, without its parameters; "" where there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()
