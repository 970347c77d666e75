"""A client whose requests are authorized one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from crossdock import exact_json
from crossdock.errors import UnavailableError
from crossdock.platform.credentials import Credential
from crossdock.redaction import redacted
from crossdock.transport.http_answers import Answer, NotSentError
from crossdock.transport.http_client import HttpClient


class AuthorizedClient(HttpClient):
    """A client whose requests are authorized one by one; one with a refused token is sent once more with a new one.

    Args:
        known: What authorizes it, already prepared.
        options: Of `HttpClient`.
    """

    def __init__(self, known: Credential, base_url: str, **options: Any) -> None:
        super().__init__(base_url, **options)
        self._credential = known

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send one request, as `HttpClient.send` does. A 401 says that it was not carried out, so more may follow.

        Raises:
            NotSentError: If it surely was not sent, also for want of a token.
            AmbiguousError: If it may have been carried out.
            UnauthorizedError: If we get no token; it surely was not sent.
        """
        sent: list[str] = []
        for is_last in (False, True):
            given = self._authorization()
            sent.append(given["authorization"].removeprefix("Bearer "))
            merged = {**(headers or {}), **given}
            answer = super().send(method, path, body=body, headers=merged, params=params, may_leave=may_leave)
            if is_last or answer.status != 401 or not self._credential.refused(given["authorization"]):
                break
        return _without(answer, sent)

    def _authorization(self) -> dict[str, str]:
        try:
            return {"authorization": self._credential.authorization()}
        except UnavailableError as error:
            raise NotSentError(f"{error.where} {error.message}", where=self._base_url) from error


def _without(answer: Answer, secrets: Iterable[str]) -> Answer:
    """*answer* without the credentials that it may repeat, also in JSON's escapes (RFC 8259, section 7)."""
    headers = {name: redacted(value, secrets) for name, value in answer.headers.items()}
    body = answer.body
    with suppress(ValueError):  # what is no JSON has no escapes
        body = exact_json.dumps(exact_json.loads(body)) if b"\\" in body else body
    clean = redacted(body.decode("latin-1"), secrets).encode("latin-1")  # which is all bytes, and a credential is ASCII
    return replace(answer, headers=headers, body=clean)
