"""The platform section of a config file: credentials, errors, and rules after an ambiguous answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from crossdock.errors import ConfigError
from crossdock.platform.platform_config import ApiKey, ClientCredentials, Profile
from crossdock.values import config_file
from crossdock.values.web_address_checks import is_loopback

HEAD = "base_url: https://api.example.com/\ntenant: acme\nauth:\n"
CLIENT = "  kind: oauth2_client_credentials\n  client_id: me\n  client_secret: env:SECRET\n"


def read(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    document = config_file.read_config_with_overrides(path)
    return document.validated_as_model(Profile, document.data)


def test_a_key(tmp_path: Path) -> None:
    """``api_key`` selects an API key."""
    assert isinstance(read(tmp_path, "  kind: api_key\n  token: env:KEY\n").auth, ApiKey)


def test_a_client_and_its_token_endpoint(tmp_path: Path) -> None:
    """The token endpoint is the platform's by default, and may be on another host."""
    profile = read(tmp_path, CLIENT)
    assert isinstance(profile.auth, ClientCredentials)
    assert profile.auth.token_address(profile.base_url) == "https://api.example.com/oauth/token"
    assert (profile.auth.client_auth, profile.auth.scopes) == ("basic", ())
    assert ("tokens", "OAuth 2.0 client credentials at https://api.example.com/oauth/token") in profile.assumptions()
    other = read(tmp_path, CLIENT + "  token_url: https://login.example.org/t/\n  scopes: [invoices:write, 'a/b']\n")
    assert isinstance(other.auth, ClientCredentials)
    assert other.auth.token_address(other.base_url) == "https://login.example.org/t/"
    assert other.auth.scopes == ("invoices:write", "a/b")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param("  kind: oauth2\n", ":3:1: auth", "unknown kind; known: 'api_key', 'oauth", id="unknown kind"),
        pytest.param("  token: env:KEY\n", ":3:1: auth", "kind is missing", id="no kind"),
        pytest.param("  hunter2\n", ":3:1: auth", "must be a section of keys", id="text"),
        pytest.param(CLIENT.replace("env:", ""), ":6:3: auth.client_secret", "env:NAME or file:PATH", id="literal"),
        pytest.param(CLIENT.replace("client_id", "client"), ":5:3: auth.client", "'client_id'", id="unknown key"),
        pytest.param(CLIENT.replace("me", "''"), ":5:3: auth.client_id", "at least 1", id="no id"),
        pytest.param(CLIENT + "  token_url: http://a.example/t\n", ":7:3: auth.token_url", "must be https", id="http"),
        pytest.param(CLIENT + "  token_url: a.example\n", ":7:3: auth.token_url", "address such as", id="no address"),
        pytest.param(CLIENT + "  token_url: https://u:p@a.example/t\n", ":7:3: auth.token_url", "such as", id="user"),
        pytest.param(CLIENT + "  client_auth: jwt\n", ":7:3: auth.client_auth", "'basic' or 'post'", id="client_auth"),
        pytest.param(CLIENT + "  scopes: [a b]\n", ":7:12: auth.scopes.0", "pattern", id="blank in a scope"),
        pytest.param(CLIENT + "  scopes: a\n", ":7:3: auth.scopes", "must be a list", id="scopes as text"),
        pytest.param("  kind: api_key\n  client_id: me\n", ":5:3: auth.client_id", "unknown key", id="key of another"),
    ],
)
def test_errors_show_their_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    """Line, column and path are shown; a literal secret is not."""
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert f"c.yaml{place}: " in str(refused.value)
    assert message in str(refused.value)
    assert "SECRET" not in str(refused.value)


def profile(**settings: Any) -> Profile:
    facts = {"base_url": "http://127.0.0.1:1", "tenant": "acme", "auth": {"kind": "api_key", "token": "env:KEY"}}
    return Profile.model_validate(facts | settings, context={"folder": Path()})


NO_KEYS = {"idempotency": {"enabled": False}}
NO_LOOK_UP = {"lookup": {"enabled": False}}


@pytest.mark.parametrize(
    ("settings", "invoice", "order", "update"),
    [
        pytest.param({}, "resend", "resend", "resend", id="keys"),
        pytest.param(NO_KEYS, "park", "verify", "verify", id="no keys"),
        pytest.param(NO_KEYS | NO_LOOK_UP, "park", "park", "verify", id="neither"),
        pytest.param({"after_ambiguous": "park"}, "park", "park", "park", id="always park"),
        pytest.param({"after_ambiguous": "verify"}, "resend", "verify", "verify", id="verify where it can be"),
        pytest.param({"after_ambiguous": {"invoice": "park"}}, "park", "resend", "resend", id="one resource"),
    ],
)
def test_the_first_possible_rule_applies(settings: dict[str, Any], invoice: str, order: str, update: str) -> None:
    """Resend with keys, verify with a look-up, otherwise park; a setting overrides it."""
    rules = profile(**settings)
    assert (
        rules.rule_after_ambiguous_answer("invoice", "create"),
        rules.rule_after_ambiguous_answer("order", "create"),
    ) == (
        invoice,
        order,
    )
    assert rules.rule_after_ambiguous_answer("order", "update") == update


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param({"after_ambiguous": {"invoice": "verify"}}, "invoice, which has no external id", id="no name"),
        pytest.param({"after_ambiguous": "verify"} | NO_LOOK_UP, "lookup.enabled is false", id="no look-up"),
        pytest.param({"after_ambiguous": "resend"} | NO_KEYS, "carried out twice", id="no keys"),
        pytest.param({"after_ambiguous": {"order": "resend"}} | NO_KEYS, "carried out twice", id="no keys for one"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(settings: dict[str, Any], said: str) -> None:
    """``verify`` needs a look-up and ``resend`` needs keys; the config is rejected otherwise."""
    with pytest.raises(ValidationError, match=said):
        profile(**settings)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True),
        ("0.0.0.0", False), ("10.0.0.1", False), ("localhost.example.com", False), ("127.0.0.1.example.com", False),
        ("2130706433", False), ("0x7f000001", False),
    ],
)  # fmt: skip
def test_loopback(host: str, loopback: bool) -> None:
    """Only names and addresses that cannot lead to another host are loopback."""
    assert is_loopback(host) is loopback
