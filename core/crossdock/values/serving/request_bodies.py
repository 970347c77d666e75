"""Bodies of requests, of a limited length, and their media types."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request


async def read_body_cut_if_longer(request: Request, max_bytes: int) -> bytes:
    """Read the body. Only the beginning of a longer one is returned, which is also longer than *max_bytes*."""
    body = b""
    async for chunk in request.stream():  # to its end even if it is too long: then the client reads the response
        if len(body) <= max_bytes:
            body += chunk
    return body


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
