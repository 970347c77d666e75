"""Settings of connectors that read an HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from crossdock.sources import BearerAuth, HttpSettings


class ShopSettings(HttpSettings):
    kind: Literal["shop"]


def settings(**members: Any) -> ShopSettings:
    given = {"kind": "shop", "base_url": "https://shop.example/api/", **members}
    return ShopSettings.model_validate(given, context={"folder": Path("/etc/sync")})


def test_the_api_has_the_settings() -> None:
    """Address, time-outs, proxy and certificates come from the config; the connector adds the rest."""
    configured = settings(timeout_s=5, total_timeout_s=9, proxy="http://proxy.example:3128", ca_file="ca.pem")
    auth = BearerAuth("token")
    api = configured.api(auth=auth, headers={"x-version": "2"})
    assert (api.base_url, api.auth, api.headers) == ("https://shop.example/api", auth, {"x-version": "2"})
    assert (api.timeout_s, api.total_timeout_s) == (5.0, 9.0)
    assert (api.connection.proxy, api.connection.ca_file) == ("http://proxy.example:3128", Path("/etc/sync/ca.pem"))
    assert settings().api(timeout_s=120).timeout_s == 120


def test_nothing_is_taken_from_the_environment_by_default() -> None:
    """There is no proxy either."""
    connection = settings().api().connection
    assert (connection.trust_env, connection.proxy, connection.client_certificate) == (False, None, None)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"base_url": "http://shop.example"}, "must be https; http is for this machine only"),
        ({"base_url": "https://u:canary@shop.example"}, "must not hold a user or a password"),
        ({"base_url": "https://shop.example?page=1"}, "without a query"),
        ({"base_url": "https://shop.example?key=canary"}, "must not contain a credential"),
        ({"base_url": "https://shop.example/api_key=canary"}, "must not contain a credential"),
        ({"proxy": "http://u:canary@proxy.example:3128"}, "must not hold a user or a password"),
        ({"proxy": "socks5://proxy.example:1080"}, "must be an address"),
        ({"proxy": "http://proxy.example:3128/canary"}, "such as http://proxy.example.com:3128"),
        ({"proxy_user": "env:USER"}, "proxy_user needs proxy"),
        ({"proxy": "http://proxy.example", "proxy_password": "env:P"}, "proxy_password needs proxy_user"),
        ({"client_key": "client.key"}, "client_key needs client_certificate"),
        ({"client_key_passphrase": "env:P"}, "client_key_passphrase needs client_certificate"),
        ({"timeout_s": 0}, "greater than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(members: dict[str, str], message: str) -> None:
    """No message repeats a secret."""
    with pytest.raises(ValidationError, match=message) as refused:
        settings(**members)
    assert "canary" not in str(refused.value)
