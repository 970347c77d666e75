"""Streams over the platform, of which only the answers matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from tests.unit.platform_source.test_settings import loaded

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.connector import Context
from crossdock.errors import RefusedError, UnavailableError
from crossdock.mapping.row_order_and_cursors import Checkpoint
from crossdock.runs.platform_source import CONNECTOR
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.testing import context
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import RawBatch

NEVER = httpx.MockTransport(lambda _: httpx.Response(500))


def product(number: int, changed: str) -> dict[str, Any]:
    return {"id": f"p{number}", "sku": f"S{number}", "updatedAt": changed}


def loaded_rows(batch: RawBatch | Checkpoint) -> pl.DataFrame:
    assert isinstance(batch, RawBatch)
    return batch.load()


def opened(folder: Path, connection: Connection, transport: httpx.MockTransport) -> Context[PlatformSourceSettings]:
    assert isinstance(connection.settings, PlatformSourceSettings)
    return context(CONNECTOR, connection.settings, transport=transport, folder=folder)


def pulled(folder: Path, items: list[Any], since: str | None) -> tuple[list[str], dict[str, list[str]], httpx.URL]:
    """The ids of the rows of one page with *items*, the notes, and the request."""
    requests: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url)
        return httpx.Response(200, content=exact_json.dumps({"data": items, "nextCursor": None}))

    (connection,) = loaded(folder, {"read": "product"}).connections
    transport = httpx.MockTransport(answer)
    ctx = opened(folder, connection, transport)
    rows = [key for batch in connection.streams[0].pull(ctx, since) for key in loaded_rows(batch)["id"]]
    return rows, ctx.run.notes, requests[0]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key-of-the-tests")


def test_a_platform_that_ignores_updated_since_is_noticed(tmp_path: Path) -> None:
    """Older records are left out, since they were not asked for, and a note says what each run costs."""
    items = [product(1, "2026-01-01T00:00:00Z"), product(2, "2026-01-02T01:00:00+01:00"), product(3, "2026-01-03")]
    rows, notes, url = pulled(tmp_path, items, "2026-01-02T00:00:00Z")
    assert rows == ["p2", "p3"]
    assert notes == {"platform.orders": [notes["platform.orders"][0]]}
    assert "ignores updatedSince" in notes["platform.orders"][0]
    assert url.params["updatedSince"] == "2026-01-02T00:00:00Z"


def test_a_platform_that_honours_it_gives_no_note(tmp_path: Path) -> None:
    """The record at the cursor itself is read again."""
    rows, notes, _ = pulled(tmp_path, [product(1, "2026-01-02T00:00:00.000000Z")], "2026-01-02T00:00:00Z")
    assert (rows, notes) == (["p1"], {})


def test_the_first_request_of_all_has_no_time(tmp_path: Path) -> None:
    """Everything is listed, in pages of the configured size."""
    assert dict(pulled(tmp_path, [], None)[2].params) == {"limit": "100"}


@pytest.mark.parametrize("items", [[17], ["text"], [None], [{"id": None}]])
def test_items_that_are_no_records_are_rows_without_a_key(tmp_path: Path, items: list[Any]) -> None:
    """They are refused later, one by one, and not lost."""
    assert pulled(tmp_path, items, "2026-01-02T00:00:00Z")[0] == [None]


@pytest.mark.parametrize("body", [{}, {"data": None}, [], {"data": {}}])
def test_an_answer_without_a_list_is_refused(tmp_path: Path, body: Any) -> None:
    """It is not an empty list."""
    (connection,) = loaded(tmp_path).connections
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=exact_json.dumps(body)))
    ctx = opened(tmp_path, connection, transport)
    with pytest.raises(RefusedError, match="no list at /data"):
        list(connection.streams[0].pull(ctx, None))


def test_a_failing_platform_shows_the_tenant_and_no_key(tmp_path: Path) -> None:
    """The tenant is no secret; the key is."""
    (connection,) = loaded(tmp_path).connections
    text = {"detail": "acme-logistics key-of-the-tests is unknown"}
    transport = httpx.MockTransport(lambda _: httpx.Response(422, json=text))
    ctx = opened(tmp_path, connection, transport)
    with pytest.raises(Exception, match="acme-logistics") as failed:
        list(connection.streams[0].pull(ctx, None))
    assert "key-of-the-tests" not in str(failed.value)


def test_a_platform_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    """``crossdock check`` reports it, and asks for no other resource."""
    (connection,) = loaded(tmp_path, {"expand": ["customerId", "productId"]}).connections
    ctx = opened(tmp_path, connection, NEVER)
    assert connection.connector.check is not None
    (finding,) = connection.connector.check(ctx)
    assert not finding.ok
    assert finding.text.startswith("order: ")
    assert UnavailableError.__name__ not in finding.text


def fetched(folder: Path, transport: httpx.MockTransport, *ids: str) -> list[RawBatch]:
    (connection,) = loaded(folder, {"read": "product"}).connections
    ctx = opened(folder, connection, transport)
    return list(connection.streams[0].fetch(ctx, [(each,) for each in ids]))


def test_a_record_that_is_gone_is_left_as_it_is(tmp_path: Path) -> None:
    """A list of existing records shows it, or a mark of the record; others are fetched."""

    def answer(request: httpx.Request) -> httpx.Response:
        is_there = request.url.path.endswith("/p2")
        return httpx.Response(200, json=product(2, "2026-01-01T00:00:00Z")) if is_there else httpx.Response(404)

    (batch,) = fetched(tmp_path, httpx.MockTransport(answer), "p1", "p2")
    assert loaded_rows(batch)["id"].to_list() == ["p2"]
    assert batch.deleted == ()


class OutOfOrder:
    """A platform whose list works, and whose gateway finds no single record, but those of *found* as often as said."""

    def __init__(self, **found: int) -> None:
        self.found = found

    def __call__(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        if name == "products":
            return httpx.Response(200, json={"data": [product(2, "2026-01-01T00:00:00Z")], "nextCursor": None})
        self.found[name] = self.found.get(name, 0) - 1
        is_found = self.found[name] >= 0
        return httpx.Response(200, json=product(2, "2026-01-01T00:00:00Z")) if is_found else httpx.Response(404)


def test_a_platform_that_finds_nothing_that_is_there_is_out_of_order(tmp_path: Path) -> None:
    """No record counts as missing: those that are followed until they are final would be given up."""
    with pytest.raises(UnavailableError, match="and so it is for records that are there"):
        fetched(tmp_path, httpx.MockTransport(OutOfOrder()), "p1")
    assert fetched(tmp_path, httpx.MockTransport(OutOfOrder(p2=1)), "p1") == []


@pytest.mark.parametrize("times", [0, 1])
def test_a_referenced_record_is_missing_only_where_others_are_found(tmp_path: Path, times: int) -> None:
    """Its members would be sent as empty, also if the gateway goes out of order while the list is read."""
    answers = OutOfOrder(p2=times)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/orders"):
            items = [{"productId": each} for each in ("p2", "p1")]
            return httpx.Response(
                200, json={"data": [{"id": "o1", "updatedAt": "2026-01-01T00:00:00Z", "items": items}]}
            )
        return answers(request)

    (connection,) = loaded(tmp_path, {"read": "order", "expand": ["productId"]}).connections
    ctx = opened(tmp_path, connection, httpx.MockTransport(answer))
    with pytest.raises(UnavailableError, match="and so it is for records that are there"):
        list(connection.streams[0].pull(ctx, None))


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 65])
def test_what_is_no_id_of_the_platform_is_not_requested(tmp_path: Path, name: str) -> None:
    """It would be the path of something else."""
    assert fetched(tmp_path, NEVER, name) == []


def test_records_are_fetched_by_their_id_only(tmp_path: Path) -> None:
    """The platform's address of a record has its id; another key is not looked up."""
    for key, fetches in (("id", True), ("externalId", False)):
        (connection,) = loaded(tmp_path, {"key": [key]}).connections
        assert connection.streams[0].fetches is fetches
