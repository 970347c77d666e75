"""Sends one HTTP request for a webhook: the only module of the sandbox that opens connections.

A host is resolved once per attempt, and the connection is made to one of the checked addresses. Certificates are
verified for the host's name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import httpcore

from crossdock.sandbox.permitted_webhook_addresses import is_address_allowed, url_refusal_reason

Resolve = Callable[[str, int], Awaitable[list[str]]]

_RESOLVER_THREADS = 32
_SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]


class AttemptOutcome(NamedTuple):
    """The outcome of one attempt: *status* is None if there was no response; *problem* is None for a 2xx."""

    status: int | None
    problem: str | None


class WebhookTransport:
    """Sends webhooks. *timeout_s* bounds a whole attempt; *resolve* gives the addresses of a host. Close it."""

    def __init__(self, timeout_s: float, resolve: Resolve | None = None) -> None:
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_RESOLVER_THREADS, "webhook-resolver")
        self._resolve = resolve or self._resolve_with_system

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> AttemptOutcome:
        """Send a POST request. Redirects are not followed, and the body of the response is not read."""
        try:
            async with asyncio.timeout(self._timeout_s):
                status = await self._post_and_return_status(url, headers, body)
        except TimeoutError:
            return AttemptOutcome(None, f"no response within {self._timeout_s:g} s")
        except _RefusedAddressError as error:
            return AttemptOutcome(None, str(error))
        except httpcore.ConnectError as error:
            return AttemptOutcome(None, _describe_connection_error(error))
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError):
            return AttemptOutcome(None, "the connection failed before a complete response")
        if 200 <= status < 300:
            return AttemptOutcome(status, None)
        return AttemptOutcome(
            status, f"response {status}" + (", a redirect is not followed" if 300 <= status < 400 else "")
        )

    async def _post_and_return_status(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        if wrong := url_refusal_reason(url):
            raise _RefusedAddressError(f"the address is refused: it {wrong}")
        tls = _tls_context() if url.lower().startswith("https:") else None
        pool = httpcore.AsyncConnectionPool(
            tls, http2=False, network_backend=_NetworkWithPermittedAddresses(self._resolve)
        )
        async with pool, pool.stream("POST", url, headers=list(headers.items()), content=body) as response:
            return response.status

    async def _resolve_with_system(self, host: str, port: int) -> list[str]:
        find = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, find)
        return [str(each[4][0]) for each in found]


class _RefusedAddressError(Exception):
    pass


class _NetworkWithPermittedAddresses(httpcore.AsyncNetworkBackend):
    def __init__(self, resolve: Resolve) -> None:
        self._resolve, self._network = resolve, httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise _RefusedAddressError("the host name cannot be resolved") from None
        if not addresses or not all(is_address_allowed(each, host) for each in addresses):
            raise _RefusedAddressError(
                "the address is refused: it is neither public nor this machine, or the name of the host does not say so"
            )
        failure: httpcore.ConnectError | None = None
        for address in dict.fromkeys(addresses):
            try:
                options = [*(socket_options or ()), *_SOCKET_OPTIONS]
                return await self._network.connect_tcp(address, port, timeout, local_address, options)
            except httpcore.ConnectError as error:
                failure = error
        assert failure is not None
        raise failure


@cache
def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _describe_connection_error(error: httpcore.ConnectError) -> str:
    """Describe the error without its text, which may contain what the receiver sent."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "the receiver's certificate is not valid, or TLS failed"
        cause = cause.__cause__ or cause.__context__
    return "the receiver cannot be reached"
