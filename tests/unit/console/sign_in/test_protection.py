"""A console that others can reach has TLS and sign-in, or does not start."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from tests.consoles import PASSWORD, ServedConsole, served

from crossdock.console import tenant_configs_and_states, web_server
from crossdock.console import tls_proxy_and_sign_in as module
from crossdock.console.sign_in.accounts import AccountFile
from crossdock.console.tls_proxy_and_sign_in import Protection
from crossdock.errors import ConfigError
from crossdock.testing.manual_clock import ManualClock

FILE = Path("file")
HTTPS = {"x-forwarded-proto": "https"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "console.example"])
@pytest.mark.parametrize(
    ("protection", "told"),
    [
        (Protection(), "TLS"),
        (Protection(accounts=FILE), "TLS"),
        (Protection(oidc=FILE), "TLS"),
        (Protection(certificate=FILE, key=FILE), "everything"),
        (Protection(proxies=("10.0.0.1",)), "everything"),
    ],
)
def test_it_does_not_start_unprotected(host: str, protection: Protection, told: str) -> None:
    """Without TLS or a proxy that has it, or without sign-in, the error names the options."""
    with pytest.raises(ConfigError, match=told) as refused:
        protection.raise_if_unprotected(host)
    assert refused.value.hint is not None
    assert "--" in refused.value.hint


def test_the_server_itself_refuses(fleet: Path) -> None:
    """Whoever starts it, nothing is served."""
    with (
        pytest.raises(ConfigError, match="TLS"),
        web_server.serve_console_in_thread(
            tenant_configs_and_states.fleet_tenants(str(fleet), ()), ManualClock(), "0.0.0.0"
        ),
    ):
        pytest.fail("it was served")


@pytest.mark.parametrize(
    ("host", "protection"),
    [
        ("127.0.0.1", Protection()),
        ("localhost", Protection()),
        ("::1", Protection()),
        ("0.0.0.0", Protection(certificate=FILE, accounts=FILE)),
        ("0.0.0.0", Protection(proxies=("10.0.0.0/24", "::1"), oidc=FILE)),
    ],
)
def test_it_starts_protected(host: str, protection: Protection) -> None:
    """On loopback, nothing is needed."""
    protection.raise_if_unprotected(host)


def test_loopback_behind_a_proxy_needs_sign_in() -> None:
    """The clients of the proxy are not users of this machine."""
    with pytest.raises(ConfigError, match="everything"):
        Protection(proxies=("127.0.0.1",)).raise_if_unprotected("127.0.0.1")


@pytest.mark.parametrize("proxy", ["*", "proxy.example", "10.0.0.1/8", ""])
def test_a_proxy_is_an_address(proxy: str) -> None:
    """A name could be anybody's."""
    with pytest.raises(ConfigError, match="no address or network"):
        Protection(proxies=(proxy,), accounts=FILE).raise_if_unprotected("127.0.0.1")


@pytest.mark.parametrize("header", ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"])
def test_without_sign_in_a_proxy_is_refused(fleet: Path, accounts: AccountFile, header: str) -> None:
    """Somebody put one in front of a console for this machine, which would make its clients administrators."""
    with served(fleet, Protection()) as console:
        assert console.browser().is_signed_in
        assert console.browser(**{header: "x"}).get("/").status_code == 403


def test_headers_of_others_than_the_proxy_are_ignored(fleet: Path, accounts: AccountFile) -> None:
    """They change neither the address that is counted nor the scheme; and around the proxy, nobody is answered."""
    with served(fleet, Protection(accounts=accounts.path)) as console:
        for number in range(5):
            forged = console.browser(**HTTPS, **{"x-forwarded-for": f"192.0.2.{number}"})
            assert "secure" not in forged.get("/sign-in").headers["set-cookie"].lower()
            assert forged.sign_in("anna", "wrong horse battery").status_code == 401
        assert console.browser(**{"x-forwarded-for": "192.0.2.9"}).sign_in("anna").status_code == 429
    with served(fleet, Protection(accounts=accounts.path, proxies=("192.0.2.1",))) as console:
        assert console.browser(**HTTPS).get("/sign-in").status_code == 403


def test_the_proxy_says_who_asks(proxied: ServedConsole) -> None:
    """Attempts count for the last address that is no proxy's, whatever a client has sent before it."""
    assert "secure" in proxied.browser(**HTTPS).get("/sign-in").headers["set-cookie"].lower()
    plain = httpx.get(f"{proxied.url}/sign-in", headers={"x-forwarded-proto": "http"})
    assert plain.status_code == 403
    assert httpx.get(f"{proxied.url}/sign-in").status_code == 403

    def attempt(forwarded: str) -> int:
        """The status of an attempt; the client of a test keeps no secure cookies for http."""
        headers = HTTPS | {"x-forwarded-for": forwarded}
        page = httpx.get(f"{proxied.url}/sign-in", headers=headers)
        token = page.text.partition('name="csrf_token" value="')[2].partition('"')[0]
        fields = {"csrf_token": token, "name": "anna", "password": "wrong horse battery"}
        cookie = page.headers["set-cookie"].partition(";")[0]
        return httpx.post(f"{proxied.url}/sign-in", data=fields, headers=headers | {"cookie": cookie}).status_code

    assert [attempt(f"203.0.113.{number}, 192.0.2.1") for number in range(6)] == [401] * 5 + [429]
    assert attempt("192.0.2.1, 127.0.0.1") == 429
    assert attempt("192.0.2.2") == 401


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def write(authority: trustme.CA, file: Path, *names: str) -> None:
    file.write_bytes(authority.issue_cert(*names).private_key_and_cert_chain_pem.bytes())
    file.chmod(0o600)


def test_cookies_of_tls_are_for_this_host_alone(
    fleet: Path, accounts: AccountFile, authority: trustme.CA, tmp_path: Path
) -> None:
    """They are Secure and have the prefix __Host-; a form from the http page of the same host is refused."""
    write(authority, tmp_path / "pem", "127.0.0.1")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    protection = Protection(certificate=tmp_path / "pem", accounts=accounts.path)
    with served(fleet, protection) as console, httpx.Client(base_url=console.url, verify=trusting) as client:
        assert console.url.startswith("https://")
        page = client.get("/sign-in")
        cookie = page.headers["set-cookie"]
        assert cookie.startswith("__Host-")
        assert "secure" in cookie.lower()
        token = page.text.partition('name="csrf_token" value="')[2].partition('"')[0]
        fields = {"csrf_token": token, "name": "anna", "password": PASSWORD}
        of_http = console.url.replace("https:", "http:")
        assert client.post("/sign-in", data=fields, headers={"origin": of_http}).status_code == 403
        assert client.post("/sign-in", data=fields, headers={"origin": console.url}).status_code == 303
        assert client.get("/").status_code == 200


def shown(console: ServedConsole) -> bytes:
    host, port = console.url.removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port))).encode()


def test_a_renewed_certificate_is_shown(
    fleet: Path, accounts: AccountFile, authority: trustme.CA, tmp_path: Path
) -> None:
    """Without a restart; half of one is not."""
    write(authority, tmp_path / "pem", "127.0.0.1")
    with served(fleet, Protection(certificate=tmp_path / "pem", accounts=accounts.path)) as console:
        before = shown(console)
        (tmp_path / "pem").write_bytes(b"half")
        assert [shown(console), shown(console)] == [before, before]
        write(authority, tmp_path / "pem", "127.0.0.1")
        shown(console)  # this connection finds that the file has changed
        assert shown(console) != before


def test_a_key_that_others_may_read_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    """At the start."""
    write(authority, tmp_path / "pem", "127.0.0.1")
    (tmp_path / "pem").chmod(0o644)
    with pytest.raises(ConfigError, match="others may read"):
        module.Protection(certificate=tmp_path / "pem").self_renewing_tls_context()
