"""Addresses in a config: no user, no password and no other secret stands in them, however it is spelled."""

from __future__ import annotations

import pytest

from crossdock.values.web_address_checks import (
    address_within_origin,
    check_address_without_query,
    check_https_or_loopback_address,
    forbidden_setting_address_reason,
    has_secret_parameter,
    other_origin_text_and_hint,
    query_has_secret,
)

CANARY = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        f"https://u:{CANARY}@a.example",
        f"https://:{CANARY}@a.example",
        f"https://{CANARY}@a.example",
        "https://@a.example",
        f"https://u:{CANARY}%40a.example",
        f"https://u%3A{CANARY}%2540a.example",
        f"http://:{CANARY}@127.0.0.1",
        f"https://a.example\\@{CANARY}",
        f"https://{CANARY}:x/",
        f"https://[::1/{CANARY}",
        f"https://a.example:99999/{CANARY}",
        f"https://a.example/{CANARY}\n",
        f"https://a.example/{CANARY}#",
    ],
)
def test_no_user_stands_in_an_address(url: str) -> None:
    """Neither a user nor a password is taken, and the refusal does not repeat it."""
    with pytest.raises(ValueError, match="must be an address such as") as refused:
        check_https_or_loopback_address(url)
    assert CANARY not in str(refused.value)


def test_an_empty_port_is_refused() -> None:
    """A variable that is set and empty would leave the address of another server."""
    with pytest.raises(ValueError, match="the port is empty"):
        check_https_or_loopback_address("http://127.0.0.1:")
    assert check_https_or_loopback_address("http://127.0.0.1:8080") == "http://127.0.0.1:8080"


def test_an_endpoint_has_no_query() -> None:
    """Paths are appended to it, so that a query would have them swallowed, and it may hold a key."""
    assert check_address_without_query("https://a.example/v1/") == "https://a.example/v1/"
    for url in ("https://a.example?", f"https://a.example/?key={CANARY}"):
        with pytest.raises(ValueError, match="without a query") as refused:
            check_address_without_query(url)
        assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWORD",
        "PassWord",
        "pass%77ord",
        "%70%61%73%73word",
        "pass%2577ord",
        "sslpassword",
        "api_key",
        "access_token",
        "client-secret",
        "x.pwd",
        "scram_client_key",
        "oauth_client_secret",
        "password%20",
    ],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    """Upper case, percent-encoding, also twice, and prefixes do not hide it."""
    assert has_secret_parameter(f"postgresql://h/d?sslmode=require&{name}={CANARY}")
    assert query_has_secret(f"https://a.example/hook?channel=ops&{name}={CANARY}")


@pytest.mark.parametrize("text", ["h/d?passfile=/x", "h/d?sslkey=/x&sslmode=require", "h/d?require_auth=password"])
def test_what_is_no_secret_may_stand_there(text: str) -> None:
    """Paths of files and words that only sound like a secret are no names of one."""
    assert not has_secret_parameter(text)


def test_secrets_are_looked_for_in_linear_time() -> None:
    """A long text that nearly matches everywhere is looked through: a quadratic search would take minutes."""
    assert not has_secret_parameter("pwd" * 100_000)
    assert not has_secret_parameter("a " * 100_000)
    assert not has_secret_parameter("%25" * 100_000)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("note", "https://u:canary@shop.example", "must not hold a user or a password"),
        ("note", "see HTTPS://u:canary@shop.example/x", "must not hold a user or a password"),
        ("note", "https://u%3Acanary%40shop.example", "must not hold a user or a password"),
        (None, "http://canary@127.0.0.1", "must not hold a user or a password"),
        ("login_url", "http://shop.example", "must be https; http is for this machine only"),
        ("callback_uri", "https://shop.example/x?api_key=canary", "must not contain a credential"),
        ("API_ENDPOINT", "https://[canary", "must be an address"),
        ("address", "https://shop.example:", "the port is empty"),
        ("login_url", "http://localhost:8080/login?tenant=a", None),
        ("login_url", "/login", None),
        ("address", "1 Main Street", None),
        ("xmlns", "http://schemas.example/order", None),
        (None, "http://schemas.example/order", None),
        ("login_url", "env:SHOP_URL", None),
        ("mail", "sync@example.com", None),
        ("note", "https://shop.example/@sync?to=a@b.example", None),
    ],
)
def test_settings_must_not_be_unsafe_addresses(name: str | None, text: str, fault: str | None) -> None:
    """Credentials are found in every setting, plain http in those that are named like addresses."""
    found = forbidden_setting_address_reason(name, text)
    assert (fault is None) == (found is None)
    assert (fault or "") in (found or "")
    assert "canary" not in (found or "")


@pytest.mark.parametrize(
    ("address", "own", "expected"),
    [
        ("https://a.example:443/x?p=2", "https://a.example/api", "https://a.example/x?p=2"),
        ("HTTPS://A.Example/X", "https://a.example", "https://a.example/X"),
        ("https://a.example/x", "https://A.example:443", "https://A.example:443/x"),
        ("https://[::A]:443/x", "https://[::a]", "https://[::a]/x"),
        ("http://127.0.0.1:80/x", "http://127.0.0.1", "http://127.0.0.1/x"),
    ],
)
def test_an_origin_has_several_spellings(address: str, own: str, expected: str) -> None:
    """An address within the origin is returned as the connection spells it, whatever its letter case and port."""
    assert address_within_origin(address, own) == expected


@pytest.mark.parametrize(
    ("address", "own", "text", "hint"),
    [
        ("https://b.example/x", "https://a.example", "is on another host", "name it"),
        ("https://a.example:80/x", "https://a.example", "is on another host", "name it"),
        ("https://a.example:0/x", "https://a.example", "is on another host", "name it"),
        ("https://a.example:x/x", "https://a.example", "is on another host", "name it"),
        ("https://a.example./x", "https://a.example", "is on another host", "name it"),
        ("https://canary@a.example/x", "https://a.example", "is on another host", "name it"),
        ("http://canary@a.example/x", "https://a.example", "is on another host", "name it"),
        ("http://b.example/x", "https://a.example", "is on another host", "name it"),
        ("javascript:alert(1)", "https://a.example", "is on another host", "name it"),
        ("http://A.example/x", "https://a.example", "has the scheme http, and the connection has https", "X-Forwarded"),
        ("http://a.example:8443", "https://a.example:8443", "has the scheme http", "X-Forwarded-Proto"),
        ("https://127.0.0.1:9/x", "http://127.0.0.1:9", "has the scheme https", "write https in the address"),
    ],
)
def test_what_is_of_another_origin_is_told_how(address: str, own: str, text: str, hint: str) -> None:
    """No credentials go to another host, port or user, nor from https to http, and only the scheme is told apart."""
    assert address_within_origin(address, own) is None
    found = other_origin_text_and_hint(address, own, "name it")
    assert found[0].startswith(text)
    assert hint in found[1]
