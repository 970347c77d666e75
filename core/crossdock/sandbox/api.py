"""The platform's API: from a request to its answer, in the order credential, allowance, route, body, effect."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crossdock.sandbox import checks, exactjson, idempotency, operations, reading, routes
from crossdock.sandbox.answers import Answer, ProblemError
from crossdock.sandbox.auth import Caller, Keys
from crossdock.sandbox.bucket import Limits
from crossdock.sandbox.operations import Change
from crossdock.sandbox.requestlog import RequestLog
from crossdock.sandbox.settings import SandboxSettings
from crossdock.sandbox.storage import Work, Writer

logger = logging.getLogger(__name__)
_MEDIA_TYPES = {"POST": ("application/json",), "PATCH": ("application/merge-patch+json", "application/json")}


@dataclass(slots=True)
class Seen:
    """What becomes known of one request while it is answered."""

    request: Request
    body: bytes | None
    now: float
    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    credential: str | None = None
    claim: tuple[Caller, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)


class Api:
    """An ASGI application for everything outside ``/_sandbox``.

    Args:
        settings: Limits and manners.
        keys: The credentials in force.
        writer: Where changes go.
        reader: A connection of its own for what only reads.
        log: Where every request is noted before its answer leaves.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        *,
        settings: SandboxSettings,
        keys: Keys,
        writer: Writer,
        reader: sqlite3.Connection,
        log: RequestLog,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._writer = writer
        self._reader = reader
        self._log = log
        self._clock = clock
        self._limits = Limits(settings)
        self._running: set[tuple[Caller, str] | None] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            seen = Seen(request, await self._body(request), self._clock())
        except ClientDisconnect:
            return
        try:
            answer = await self._answer(seen)
            if self._settings.delay_s:
                await asyncio.sleep(self._settings.delay_s)
        finally:
            self._running.discard(seen.claim)
        self._log.note(
            answer.status,
            at=operations.now_text(seen.now),
            requestId=seen.request_id,
            method=request.method,
            path=request.url.path,
            credential=seen.credential,
            idempotencyKey=request.headers.get("idempotency-key"),
        )
        headers = {**seen.headers, "x-request-id": seen.request_id, **answer.headers}
        await Response(answer.body, answer.status, headers)(scope, receive, send)

    async def _body(self, request: Request) -> bytes | None:
        """The whole body, or None if it is too long.

        It is read before anything is judged, so that every answer finds a client that listens.
        """
        chunks: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size <= self._settings.max_body_bytes:
                chunks.append(chunk)
        return b"".join(chunks) if size <= self._settings.max_body_bytes else None

    async def _answer(self, seen: Seen) -> Answer:
        try:
            return await self._execute(seen)
        except ProblemError as problem:
            return problem.answer()
        except Exception:
            logger.exception("request %s failed", seen.request_id)
            return ProblemError(500, "The sandbox itself failed; its log says how.").answer()

    async def _execute(self, seen: Seen) -> Answer:
        request = seen.request
        seen.headers = self._limits.policy
        caller = self._keys.caller(request.headers)
        seen.credential = caller.credential
        seen.headers = self._limits.take(caller, seen.now)
        collection, target = self._route(request)
        if request.method == "GET" and target is None:
            return reading.page(self._reader, collection, caller, request.query_params)
        if request.method == "GET" and target is not None:
            return reading.one(self._reader, collection, caller, target)
        change = Change(
            collection=collection,
            caller=caller,
            request_id=seen.request_id,
            idempotency_key=idempotency.key_of(request.headers.get("idempotency-key")),
            now=seen.now,
            if_match=request.headers.get("if-match"),
        )
        return await self._change(seen, change, target)

    @staticmethod
    def _route(request: Request) -> tuple[routes.Collection, str | None]:
        found = routes.find(request.url.path)
        if found is None:
            raise ProblemError(404, "There is nothing at this path.")
        allowed = ("GET", "POST") if found[1] is None else ("GET", "PATCH", "DELETE")
        if request.method not in allowed:
            raise ProblemError(405, "This path has no such method.", headers={"allow": ", ".join(allowed)})
        return found

    async def _change(self, seen: Seen, change: Change, target: str | None) -> Answer:
        method, path, body = seen.request.method, seen.request.url.path, _acceptable_body(seen)
        if change.idempotency_key is None:
            return await self._write(_prepared(method, change, target, body), None)
        claim = (change.caller, change.idempotency_key)
        if claim in self._running:
            raise ProblemError(409, "A request under this Idempotency-Key is still running.")
        seen.claim = claim
        self._running.add(claim)
        try:
            work = _prepared(method, change, target, body)
        except ProblemError as problem:
            work = _refusal(problem)
        attempt = idempotency.Attempt(*claim, idempotency.fingerprint(method, path, body), change.now)
        return await self._write(work, attempt)

    async def _write(self, work: Work, attempt: idempotency.Attempt | None) -> Answer:
        answer = await self._writer.run(lambda connection: idempotency.execute(connection, attempt, work))
        assert isinstance(answer, Answer)
        return answer


def _acceptable_body(seen: Seen) -> bytes:
    method = seen.request.method
    media_type = seen.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    accepted = _MEDIA_TYPES.get(method)
    if accepted and media_type not in accepted:
        headers = {"accept-patch" if method == "PATCH" else "accept": ", ".join(accepted)}
        raise ProblemError(415, f"Content-Type must be {' or '.join(accepted)}.", headers=headers)
    if seen.body is None:
        raise ProblemError(413, "The body is too long.")
    return seen.body


def _prepared(method: str, change: Change, target: str | None, body: bytes) -> Work:
    """Do all that needs no storage, so that it overlaps with a commit, and return the rest.

    Raises:
        ProblemError: 400 for what is not JSON, 422 for what is no such resource.
    """
    if method == "DELETE":
        assert target is not None
        return partial(operations.delete, change=change, target=target)
    try:
        value = exactjson.read(body)
    except ValueError as error:
        raise ProblemError(400, f"The body is no acceptable JSON: {error}.") from None
    if target is not None:
        return partial(operations.update, change=change, target=target, patch=value)
    return partial(operations.create, change=change, body=checks.check(change.collection.model, value))


def _refusal(problem: ProblemError) -> Work:
    def refuse(_: sqlite3.Connection) -> Answer:
        raise problem

    return refuse
