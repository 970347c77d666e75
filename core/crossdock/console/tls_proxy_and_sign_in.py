"""What protects a console that others than the users of this machine can reach: TLS, a proxy with it, and sign-in."""

from __future__ import annotations

import ipaddress
import ssl
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from crossdock.console.sign_in.accounts import AccountFile, import_password_hashes_module
from crossdock.console.sign_in.openid_provider import OpenIdProvider, load_openid_settings
from crossdock.console.sign_in.sign_in_methods_and_sessions import SignIn
from crossdock.errors import ConfigError
from crossdock.reading.transport.proxy_and_tls_settings import load_certificate_and_key
from crossdock.values.clock import Clock
from crossdock.values.web_address_checks import is_loopback

_BY_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto")


class Protection(Struct, frozen=True):
    """The options of a console for people beyond this machine.

    Attributes:
        key: The private key of *certificate*; None if it is in the same file.
        proxies: Addresses or networks of proxies that have TLS, such as ``127.0.0.1`` or ``10.0.0.0/24``.
        accounts: A file of ``crossdock console account``.
        oidc: A file as in `OpenIdSettings`.
    """

    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    accounts: Path | None = None
    oidc: Path | None = None

    def raise_if_unprotected(self, host: str) -> None:
        """Raise ConfigError if a console at *host* would not be protected."""
        for each in self.proxies:
            with suppress(ValueError):
                ipaddress.ip_network(each)
                continue
            raise ConfigError(
                f"{each!r} is no address or network of a proxy", where="--behind-proxy", code="option_value_invalid"
            )
        if self.key is not None and self.certificate is None:
            raise ConfigError(
                "a key needs its certificate",
                where="--tls-key",
                hint="add --tls-certificate FILE",
                code="options_incomplete",
            )
        if not self._is_reachable_remotely(host):
            return
        if self.certificate is None and not self.proxies:
            hint = "add --tls-certificate FILE and --tls-key FILE, or --behind-proxy ADDRESS of a proxy that has TLS"
            raise ConfigError(
                "the console is not served without TLS beyond this machine",
                where=host,
                hint=hint,
                code="console_unprotected",
            )
        if self.accounts is None and self.oidc is None:
            hint = "add --accounts FILE, which 'crossdock console account add' creates, or --oidc FILE"
            raise ConfigError(
                "whoever reaches the console could do everything", where=host, hint=hint, code="console_unprotected"
            )

    def make_sign_in(self, clock: Clock) -> SignIn | None:
        """Return how people sign in; None if nobody needs to. Raises ConfigError."""
        if self.accounts is None and self.oidc is None:
            return None
        accounts = None if self.accounts is None else AccountFile(self.accounts)
        if accounts is not None:
            import_password_hashes_module()
            accounts.all()
        return SignIn.from_accounts_and_provider(
            accounts, None if self.oidc is None else OpenIdProvider(load_openid_settings(self.oidc), clock), clock
        )

    def self_renewing_tls_context(self) -> ssl.SSLContext | None:
        """Return the context of the server. It shows a renewed certificate from the next connection on."""
        if self.certificate is None:
            return None
        certificate, key = self.certificate.absolute(), self.key and self.key.absolute()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_certificate_and_key(context, certificate, key)
        shown = _file_stamps(certificate, key)

        def renew(*_: object) -> None:
            nonlocal shown
            found = _file_stamps(certificate, key)
            if found != shown:
                with suppress(ConfigError):  # half of a renewal; the next connection tries again
                    load_certificate_and_key(context, certificate, key)
                    shown = found

        context.sni_callback = renew
        return context

    def wrap_app_with_proxy_checks(self, served: ASGIApp) -> ASGIApp:
        """Take the client's address and scheme from the proxies, and from nobody else."""
        if self.proxies:
            return _accept_only_proxies(self.proxies, served)
        return served if self.accounts or self.oidc else _refuse_proxied_requests(served)

    def _is_reachable_remotely(self, host: str) -> bool:
        return not is_loopback(host) or bool(self.proxies)


def _accept_only_proxies(proxies: tuple[str, ...], served: ASGIApp) -> ASGIApp:
    networks = [ipaddress.ip_network(each) for each in proxies]

    async def of_proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["scheme"] == "https":
            await served(scope, receive, send)
        else:
            text = "The proxy must be reached by https, and say so: X-Forwarded-Proto: https.\n"
            await PlainTextResponse(text, 403)(scope, receive, send)

    trusting = ProxyHeadersMiddleware(of_proxy, [str(each) for each in networks])  # type: ignore[arg-type]  # ASGI

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        address, port = scope["client"]
        client = ipaddress.ip_address(address)
        client = getattr(client, "ipv4_mapped", None) or client
        if any(client in each for each in networks):
            given = {**scope, "client": (str(client), port), "scheme": "http"}  # the proxy says by what it was reached
            await trusting(given, receive, send)  # type: ignore[arg-type]  # ASGI
        else:
            await PlainTextResponse("Use the address of the proxy.\n", 403)(scope, receive, send)

    return guarded


def _refuse_proxied_requests(served: ASGIApp) -> ASGIApp:
    """Refuse what a proxy sends: without sign-in, it would give the rights of this machine's user to its clients."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if any(name in Headers(scope=scope) for name in _BY_PROXIES):
            text = "This request came by a proxy. Start the console with --behind-proxy and --accounts or --oidc.\n"
            await PlainTextResponse(text, 403)(scope, receive, send)
        else:
            await served(scope, receive, send)

    return guarded


def _file_stamps(*paths: Path | None) -> list[tuple[int, int]]:
    found = list[tuple[int, int]]()
    for each in paths:
        with suppress(OSError):
            if each is not None:
                stat = each.stat()
                found.append((stat.st_mtime_ns, stat.st_ino))
    return found
