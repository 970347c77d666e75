"""The API that a connector declares is checked where it is declared, and its error names that place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from crossdock import Connector, Settings
from crossdock.errors import ConnectorError
from crossdock.reading.sources.api_declaration import declared_api
from crossdock.sources import Api, ApiAnswer, BearerAuth, PageNumber
from crossdock.testing.connector_context_and_reading import context

URL = "https://shop.example.com"
AnyApi: Any = Api


def without_settings() -> Api:
    return Api(URL)


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda _: None, "returned None instead of an Api; see line"),
        (lambda _: httpx.Client, "returned the class Client, and no object made by it, instead of an Api; see line"),
        (without_settings, "raised TypeError in api, line .* takes 0 positional arguments but 1 was given"),
        (lambda _: AnyApi(URL, auth=BearerAuth), "auth of Api is the class BearerAuth, .* such as BearerAuth"),
        (lambda _: AnyApi(URL, auth="Bearer x"), "auth of Api is str instead of a credential"),
        (lambda _: AnyApi(URL, transport=httpx.MockTransport), "transport of Api is the class MockTransport"),
        (lambda _: AnyApi(URL, rate=60), "rate of Api is int instead of a limit such as RateLimit"),
        (
            lambda _: AnyApi(URL, headers={"x": 5}),
            "headers of Api is dict instead of a dict whose names and",
        ),
        (lambda _: AnyApi(URL, throttled=True), "throttled of Api is bool instead of a function"),
        (lambda _: AnyApi(URL, timeout_s="5"), "timeout_s of Api is str instead of a number"),
    ],
)
def test_a_wrong_declaration_names_its_place(declare: Callable[..., Any], told: str) -> None:
    """Its line and this file, not those of the stream that reads first."""
    with pytest.raises(ConnectorError, match=f"api .*{told}") as refused:
        declared_api(declare, None, "shop")
    assert __file__.rpartition("/")[2] in refused.value.message


def test_a_rate_that_is_left_out_is_learned() -> None:
    """A setting for it may be optional."""
    assert AnyApi(URL, rate=None).rate == Api(URL).rate


@pytest.mark.parametrize("paginator", [PageNumber, "page"])
def test_what_is_no_paginator_is_refused(paginator: Any) -> None:
    """A class in place of an object is the usual mistake."""
    connector = Connector("shop", "A shop", Settings, lambda _: (), api=lambda _: Api(URL))
    api = context(connector, {}).api
    with pytest.raises(TypeError, match=r"paginator is .* instead of one such as PageNumber\('/items', 'page'\)"):
        next(api.pages("/items", paginator=paginator))


def test_what_is_no_json_pointer_is_refused() -> None:
    """It would mean the whole answer."""
    answer = ApiAnswer(URL, {"items": []}, 200, {})
    with pytest.raises(ValueError, match="'items' is not a JSON pointer"):
        answer.items("items")
