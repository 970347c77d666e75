"""Which Host and Origin headers a server accepts."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.errors import ConfigError
from crossdock.values.serving import AllowedHostNames

NAMES = AllowedHostNames(["Sandbox.example", "proxy.example:9000"], "crossdock sandbox")


def refusal(host: str | None, *origins: str, local: tuple[str, int] | None = ("127.0.0.1", 8080)) -> str | None:
    """The refusal of a request with these headers on a connection to *local*."""
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    headers += [(b"origin", origin.encode("latin-1")) for origin in origins]
    return NAMES.refusal_reason({"type": "http", "headers": headers, "server": local})


@pytest.mark.parametrize(
    "host",
    [
        "localhost:8080",
        "LocalHost:8080",
        "127.0.0.1:8080",
        "127.8.9.10:8080",
        "[::1]:8080",
        "[0:0:0:0:0:0:0:1]:8080",
        "sandbox.example",
        "sandbox.example:8080",
        "SANDBOX.example:443",
        "proxy.example:9000",
    ],
)
def test_own_and_allowed_names_are_answered(host: str) -> None:
    """Loopback names with the port, an allowed name with any port, an allowed name and port as configured."""
    assert refusal(host) is None
    assert refusal(host, f"http://{host}", f"https://{host.lower()}") is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "localhost",
        "localhost:8081",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost.:8080",
        "localhost.evil.example:8080",
        "127.0.0.1.evil.example:8080",
        "evil.example:8080",
        "evil.example@localhost:8080",
        "localhost:8080@evil.example",
        "localhost:8080, evil.example",
        "192.0.2.7:8080",
        "[::1]",
        "[::2]:8080",
        "[::1:8080",
        "::1",
        "2130706433:8080",
        "0177.0.0.1:8080",
        "localhost:080800",
        "localhost:\xb2",
        "proxy.example",
        "proxy.example:9001",
        "x.sandbox.example",
    ],
)
def test_other_names_are_refused(host: str | None) -> None:
    """The sentence names two accepted names and the option that allows another, and repeats nothing."""
    assert refusal(host) == (
        "Host is not this server. Use localhost:8080 or 127.0.0.1:8080, or allow the name: crossdock sandbox"
        " --allow-host NAME."
    )


@pytest.mark.parametrize(
    "origins",
    [
        ("http://evil.example",),
        ("null",),
        ("",),
        ("http://localhost:3000",),
        ("http://localhost",),
        ("http://127.0.0.1:8080",),
        ("http://localhost:8080/",),
        ("ftp://localhost:8080",),
        ("http://localhost:8080", "http://evil.example"),
        ("http://localhost:8080, http://evil.example",),
    ],
)
def test_pages_of_other_sites_are_refused(origins: tuple[str, ...]) -> None:
    """Origin must match Host or be absent; the sentence says what to do."""
    refusal_text = "Origin is another site. Send the request from a page of this server, or without Origin."
    assert refusal("localhost:8080", *origins) == refusal_text


def test_the_address_of_the_connection_is_accepted() -> None:
    """A server that listens beyond loopback accepts the address of the connection with the port, and no other one."""
    assert refusal("192.0.2.7:8080", local=("192.0.2.7", 8080)) is None
    assert refusal("[2001:DB8::7]:8080", local=("2001:db8::7", 8080)) is None
    assert refusal("192.0.2.8:8080", local=("192.0.2.7", 8080))
    assert refusal("localhost:8080", local=("192.0.2.7", 8080)) is None


def test_port_80_may_be_omitted() -> None:
    """Browsers omit the default port."""
    assert refusal("localhost", local=("127.0.0.1", 80)) is None
    assert refusal("localhost:80", "http://localhost:80", local=("127.0.0.1", 80)) is None
    assert refusal("localhost", local=None) is None


@given(st.text(st.characters(max_codepoint=255), max_size=30), st.text(st.characters(max_codepoint=255), max_size=30))
@example("localhost:8080", "")
@example("[", "")
def test_only_names_of_this_server_are_accepted(host: str, origin: str) -> None:
    """No text raises an exception; accepted are loopback addresses and allowed names with their own origin."""
    if refusal(host, origin) is None:
        assert origin.lower() in {f"http://{host.lower()}", f"https://{host.lower()}"}
    if refusal(host) is None:
        name, _, port = host.lower().rpartition(":")
        assert (name, port) == ("localhost", "8080") or "127." in name or "::1" in name or ".example" in host.lower()


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_other_addresses_are_refused(address: IPv4Address | IPv6Address) -> None:
    """Only loopback addresses are accepted."""
    host = f"[{address}]:8080" if address.version == 6 else f"{address}:8080"
    assert (refusal(host) is None) == address.is_loopback


@pytest.mark.parametrize("name", ["http://metrics.example", "", "a b", "host:port", "*", "a/b", "host:", "ä.example"])
def test_invalid_allowed_names_are_refused(name: str) -> None:
    """The error for a URL or a pattern names the option and an example."""
    with pytest.raises(ConfigError, match="--allow-host: .* is not a valid host\n  Use HOST or HOST:PORT"):
        AllowedHostNames([name], "crossdock schedule")


@pytest.mark.parametrize(
    ("site", "mode", "dest", "is_answered"),
    [
        ("none", "navigate", "document", True),
        ("same-origin", "cors", "empty", True),
        ("cross-site", "navigate", "document", True),
        ("same-site", "navigate", "document", True),
        ("cross-site", "no-cors", "image", False),
        ("same-site", "no-cors", "script", False),
        ("cross-site", "navigate", "iframe", False),
        ("same-site", "cors", "empty", False),
        ("cross-site", "navigate", "object", False),
    ],
)
def test_parts_of_pages_of_other_sites_are_refused(site: str, mode: str, dest: str, *, is_answered: bool) -> None:
    """A link to an address is answered; as an image, a script or a frame it is not, before anything is done."""
    given = {"host": "localhost:8080", "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    headers = [(name.encode(), value.encode()) for name, value in given.items()]
    refused = NAMES.refusal_reason({"type": "http", "headers": headers, "server": ("127.0.0.1", 8080)})
    assert (refused is None) is is_answered
