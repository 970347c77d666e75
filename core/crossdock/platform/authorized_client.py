"""An HTTP client that authorizes each request. It is imported when something is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crossdock.errors import UnavailableError
from crossdock.platform.credentials import Credential
from crossdock.printable import mask_secrets
from crossdock.reading.transport.http_answers_and_errors import Answer, NotSentError, redacted_answer
from crossdock.reading.transport.httpcore_client import HttpClient


class AuthorizedClient(HttpClient):
    """An `HttpClient` that authorizes each request, and repeats it once with a new token after a 401."""

    def __init__(self, credential: Credential, base_url: str, **options: Any) -> None:
        super().__init__(base_url, **options)
        self._credential = credential

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
        """Send one request as `HttpClient.send` does. After an UnauthorizedError nothing was sent."""
        sent: list[str] = []
        for is_last in (False, True):
            authorization = self._authorization_or_raise_not_sent()
            sent.append(authorization.removeprefix("Bearer "))
            merged = {**(headers or {}), "authorization": authorization}
            answer = super().send(method, path, body=body, headers=merged, params=params, may_leave=may_leave)
            if is_last or answer.status != 401 or not self._credential.record_refusal_and_allow_retry(authorization):
                break
        return redacted_answer(answer, lambda text: mask_secrets(text, sent))

    def _authorization_or_raise_not_sent(self) -> str:
        try:
            return self._credential.authorization()
        except UnavailableError as error:
            raise NotSentError(f"{error.where}: {error.message}", where=self._base_url, code=error.code) from error
