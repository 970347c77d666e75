"""Which recorded answer a request gets, and what is said if there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from crossdock.errors import ConfigError
from crossdock.testing import NotRecordedError, record, replay


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Answers with the number of the request, and with a link."""
    numbers = iter(range(1, 100))

    def answer(_: httpx.Request) -> httpx.Response:
        link = {"link": "<https://shop.example/orders?page=2>; rel=next"}
        return httpx.Response(200, json={"number": next(numbers), "next": "https://shop.example/x"}, headers=link)

    with record(tmp_path / "rec", httpx.MockTransport(answer)) as transport:
        client = httpx.Client(transport=transport, base_url="https://shop.example")
        client.get("/orders", params={"page": 1, "limit": 2})
        client.get("/orders", params={"page": 2, "limit": 2, "api_key": "a-secret-key"})
        client.get("/orders", params={"page": 1, "limit": 2})
        client.post("/graphql", json={"query": "{a}", "variables": {"after": None, "first": 1.50}})
        client.post("/token", data={"grant_type": "x", "client_secret": "a-client-secret"})
    return tmp_path / "rec"


def client(folder: Path, **options: Any) -> httpx.Client:
    return httpx.Client(transport=replay(folder, **options), base_url="https://other.example")


def test_equal_requests_get_their_answers_in_order(folder: Path) -> None:
    """Each once; the order of parameters and of members does not matter."""
    shop = client(folder)
    assert shop.get("/orders", params={"limit": 2, "page": 1}).json()["number"] == 1
    assert shop.get("/orders", params={"page": 1, "limit": 2}).json()["number"] == 3
    assert (
        shop.post("/graphql", json={"variables": {"first": 1.5, "after": None}, "query": "{a}"}).json()["number"] == 4
    )
    with pytest.raises(NotRecordedError, match=r"GET /orders was recorded 2 times, in 0003-get-orders.json, and was"):
        shop.get("/orders", params={"page": 1, "limit": 2})


def test_the_host_and_the_values_of_secrets_do_not_matter(folder: Path) -> None:
    """Links lead to the host that was asked."""
    shop = client(folder)
    answer = shop.get("/orders", params={"page": 2, "limit": 2, "api_key": "another"})
    assert answer.json() == {"number": 2, "next": "https://other.example/x"}
    assert answer.headers["link"] == "<https://other.example/orders?page=2>; rel=next"
    assert shop.post("/token", data={"grant_type": "x", "client_secret": "another"}).json()["number"] == 5


@pytest.mark.parametrize(
    ("method", "path", "options", "nearest"),
    [
        ("GET", "/orders", {"params": {"page": 3, "limit": 2}},
         "0001-get-orders.json: its parameter page is '1', and not '3'"),
        ("GET", "/orders", {"params": {"page": 1}}, "0001-get-orders.json: it has the parameter limit"),
        ("GET", "/order", {"params": {"page": 1, "limit": 2}}, "0001-get-orders.json: its path is /orders"),
        ("PUT", "/orders", {"params": {"page": 1, "limit": 2}}, "0001-get-orders.json: its method is GET"),
        ("POST", "/graphql", {"json": {"query": "{a}", "variables": {"after": "x", "first": 1.5}}},
         "0004-post-graphql.json: its body differs at /json/variables/after"),
        ("POST", "/graphql", {"json": {"query": "{a}"}},
         "0004-post-graphql.json: its body has a member /json/variables"),
    ],
)  # fmt: skip
def test_the_nearest_recorded_request_is_named(
    folder: Path, method: str, path: str, options: dict[str, Any], nearest: str
) -> None:
    """With the difference, and without values that may be personal."""
    with pytest.raises(NotRecordedError) as caught:
        client(folder).request(method, path, **options)
    assert f"{method} {path} is not recorded as it was sent" in caught.value.message
    assert caught.value.hint == f"the nearest request is that in {nearest}"


def test_secrets_and_personal_values_are_not_in_the_error(folder: Path) -> None:
    """Of the request that was sent."""
    with pytest.raises(NotRecordedError) as caught:
        client(folder).get("/orders", params={"page": 9, "limit": 2, "api_key": "my-own-secret", "email": "a@b.de"})
    assert "my-own-secret" not in str(caught.value)
    assert "a@b.de" not in str(caught.value)


def test_parameters_can_be_ignored(folder: Path) -> None:
    """Such as one with the time of day."""
    assert client(folder, ignore=["page"]).get("/orders", params={"limit": 2}).json()["number"] == 1


def test_unused_files_are_named(folder: Path) -> None:
    """A test can assert that everything was requested."""
    transport = replay(folder)
    httpx.Client(transport=transport).get("https://shop.example/orders?page=1&limit=2")
    assert [name[:4] for name in transport.unused] == ["0002", "0003", "0004", "0005"]


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    """With the command that records."""
    with pytest.raises(ConfigError, match="has no recording"):
        replay(tmp_path / "missing")
