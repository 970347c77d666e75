"""Nights with an API that changes its records while it is read, hides some, or is out of order for one night."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.folder_project import FolderProject
from tests.ended_commands import Done
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving

from crossdock.reading.sources import list_completeness_evidence
from crossdock.sandbox import SandboxServer
from crossdock.values.clock import SystemClock

Item = dict[str, Any]
PRODUCT = {"path": "/items", "records": "items", "key": ["id"], "resource": "product"}
NAMED: dict[str, Any] = {**PRODUCT, "map": {"sku": "id", "name": "title"}}
CHANGES = {**NAMED, "mode": "incremental", "params": {"since": "{since}"}}
REMOVED = {"mode": "snapshot", "on_gone": "delete", "gone": {"at_most_percent": 50, "rows_within_percent": 90}}
SIZE = 4


class Shop:
    """An API with *items*; *answering* may change how it answers."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.effects: list[dict[str, Any]] = []
        self.answering: Callable[[PartnerRequest], PartnerAnswer | dict[str, Any]] = self.page
        self.after_first: Callable[[], None] | None = None
        self.url = ""

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        found = self.answering(request)
        return found if isinstance(found, PartnerAnswer) else PartnerAnswer(200, found)

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429)

    def listed(self, request: PartnerRequest) -> list[Item]:
        since = request.param("since")
        found = [item for item in self.items if not since or str(item.get("changed")) >= since]
        return sorted(found, key=lambda item: (item["changed"], item["id"])) if since else found

    def page(self, request: PartnerRequest) -> PartnerAnswer:
        """A page by its number, with a link to the next one."""
        number, found = int(request.param("page", "1")), self.listed(request)
        part = [dict(item) for item in found[(number - 1) * SIZE : number * SIZE]]
        if number == 1 and self.after_first is not None:
            change, self.after_first = self.after_first, None
            change()
        since = f"&since={request.param('since')}" if request.param("since") else ""
        following = f"{self.url}/items?page={number + 1}{since}" if number * SIZE < len(found) else None
        headers = {"link": f'<{following}>; rel="next"'} if following else {}
        return PartnerAnswer(200, {"items": part, "then": following}, headers)


class Nights:
    """A sync each night, a day apart."""

    def __init__(self, folder: Path, platform: SandboxServer, shop: Shop) -> None:
        self.folder, self.platform, self.shop = folder, platform, shop
        self.days = -40

    def begin(self, stream: Mapping[str, Any]) -> None:
        connection = {"kind": "http_json", "base_url": self.shop.url, "streams": {"list": dict(stream)}}
        self.project = FolderProject(self.folder, self.platform, {"shop": connection})
        assert self.project.run("init").exit_code == 0, self.project.run("init").stderr

    def now(self, days: float = 0, **later: float) -> datetime:
        return datetime.now(UTC) + timedelta(days=self.days + days, **later)

    def at(self, days: float = 0, **later: float) -> str:
        return self.now(days, **later).strftime("%Y-%m-%dT%H:%M:%SZ")

    def begin_to_remove(self) -> None:
        """Before the first one is removed, three snapshots are needed to compare with."""
        for _ in range(3):
            self.night()

    def night(self, *exit_codes: int) -> Done:
        done = self.project.run("sync")
        assert done.exit_code in (exit_codes or (0,)), f"{done.exit_code} {done.stdout}{done.stderr}"
        self.days += 1
        return done

    @property
    def held(self) -> dict[str, Any]:
        """The names of the platform's products by their keys."""
        found: dict[str, Any] = {}
        for effect in self.project.effects():
            body = effect["body"] or {}
            if effect["operation"] == "delete":
                found.pop(effect["id"], None)
            else:
                found[effect["id"]] = {**found.get(effect["id"], {}), **body}
        return {each["externalId"].removeprefix("shop:"): each["name"] for each in found.values()}

    @property
    def truth(self) -> dict[str, Any]:
        return {str(item["id"]): item["title"] for item in self.shop.items}


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    shop = Shop()
    with SandboxServer(tmp_path / "sandbox") as platform, serving(PartnerServer(shop)) as server:
        shop.url = server.url
        made = Nights(tmp_path, platform, shop)
        monkeypatch.setattr(SystemClock, "now", lambda _: made.now())
        yield made


def items(numbers: Sequence[int], changed: str) -> list[Item]:
    return [{"id": number, "title": f"t{number}", "changed": changed} for number in numbers]


@pytest.mark.nightly(but=["single_page"])
@pytest.mark.parametrize("kind", ["single_page", "link_header"])
def test_a_list_that_outgrows_its_page_deletes_nothing(nights: Nights, kind: str) -> None:
    """The answer tells that there are more: what was read is delivered, and those that it does not list are kept."""
    shop = nights.shop
    shop.answering = lambda _: {"items": shop.items[:SIZE], "total": len(shop.items)}
    nights.begin({**NAMED, **REMOVED, "pagination": {"kind": kind}})
    shop.items = items(range(SIZE), nights.at())
    nights.begin_to_remove()
    shop.items = [*items([10, 11], nights.at()), *shop.items]
    assert "although /total is 6, and 4 were read" in nights.night(4).stderr
    assert nights.held == nights.truth


LINKED = [{"kind": "link_header"}, {"kind": "next_url", "path": "then"}]


@pytest.mark.nightly(but=["pagination0"])
@pytest.mark.parametrize("pagination", LINKED)
def test_a_list_behind_links_by_position_deletes_nothing_that_exists(
    nights: Nights, pagination: Mapping[str, Any]
) -> None:
    """A record leaves the first page while the list is read: the one that moves there is not gone."""
    shop = nights.shop
    nights.begin({**NAMED, **REMOVED, "pagination": pagination})
    shop.items = items(range(3 * SIZE), nights.at())
    nights.begin_to_remove()
    shop.after_first = lambda: shop.items.__delitem__(1)
    nights.night(4)
    assert nights.held.items() >= nights.truth.items()
    nights.night()
    assert nights.held == nights.truth


def test_a_snapshot_whose_records_are_expanded_shows_what_is_gone(nights: Nights) -> None:
    """A record that cannot be expanded is a dead letter, and is not gone; equal lists below records mean nothing."""
    shop, refused = nights.shop, list[int]()

    def answer(request: PartnerRequest) -> PartnerAnswer | dict[str, Any]:
        if not request.path.endswith("/parts"):
            return shop.page(request)
        return PartnerAnswer(404) if int(request.path.split("/")[2]) in refused else {"parts": [{"number": "same"}]}

    shop.answering = answer
    expand = {"parts": {"path": "/items/{id}/parts", "records": "parts"}}
    parts = {"expand": expand, "map": {**NAMED["map"], "description": "parts.0.number"}}
    nights.begin({**NAMED, **REMOVED, "pagination": {"kind": "link_header"}, **parts})
    shop.items = items(range(2 * SIZE), nights.at())
    nights.begin_to_remove()
    del shop.items[1]
    refused.append(6)
    nights.night(1)
    assert nights.held == nights.truth


def test_elements_that_cannot_be_read_are_not_gone(nights: Nights) -> None:
    """The list below one record is refused for a night: a warning says so, and its elements are kept."""
    shop, refused = nights.shop, list[int]()

    def answer(request: PartnerRequest) -> PartnerAnswer | dict[str, Any]:
        if not request.path.endswith("/parts"):
            return shop.page(request)
        number = int(request.path.split("/")[2])
        return PartnerAnswer(404) if number in refused else {"parts": [{"id": number, "title": f"t{number}"}]}

    shop.answering = answer
    expand = {"parts": {"path": "/items/{id}/parts", "records": "parts"}}
    parts = {"key": ["parts.id"], "map": {"sku": "parts.id", "name": "parts.title"}, "explode": "parts"}
    nights.begin({**NAMED, **REMOVED, "pagination": {"kind": "link_header"}, "expand": expand, **parts})
    shop.items = items(range(2 * SIZE), nights.at())
    nights.begin_to_remove()
    refused.append(6)
    assert "parts could not be read" in nights.night(1, 4).stderr
    assert nights.held == nights.truth
    refused.clear()
    del shop.items[1]
    nights.night()
    assert nights.held == nights.truth


ACTIVE = {"field": "detail.status", "equals": "active"}
TESTS_OF_DETAIL: list[dict[str, Any]] = [
    {"skip": {"inactive": {"not": ACTIVE}}},
    {"deleted": {"not": ACTIVE}, "on_gone": "delete", "gone": {"at_most_percent": 50}},
    {"map": {**NAMED["map"], "description": "detail.note"}},
]


@pytest.mark.parametrize("tests_of_detail", TESTS_OF_DETAIL, ids=["skip", "deleted", "map"])
def test_a_record_whose_expanded_member_was_not_read_is_not_taken_for_another(
    nights: Nights, tests_of_detail: dict[str, Any]
) -> None:
    """No filter leaves it out or deletes it because the member is empty, nor does it seem to be unchanged."""
    shop, refused, notes = nights.shop, list[int](), dict[int, str]()

    def answer(request: PartnerRequest) -> PartnerAnswer | dict[str, Any]:
        if not request.path.endswith("/detail"):
            return shop.page(request)
        number = int(request.path.split("/")[2])
        return PartnerAnswer(404) if number in refused else {"status": "active", "note": notes.get(number)}

    shop.answering = answer
    cursor = {"cursor": {"column": "changed", "as": "instant", "sorted": False}}
    expand = {"expand": {"detail": {"path": "/items/{id}/detail"}}}
    nights.begin({**CHANGES, **cursor, **expand, "pagination": {"kind": "link_header"}, **tests_of_detail})
    shop.items = items(range(3), nights.at(hours=-2))
    nights.night()
    held = nights.held
    shop.items[1] |= {"changed": nights.at(hours=-2)}
    notes[1] = "n"
    refused.append(1)
    nights.night(1)
    assert nights.held == held
    (rejected,) = json.loads(nights.project.run("records", "list", "--json").stdout)
    assert rejected["key"] == "1"
    assert rejected["why"].startswith("unmatched: could not be read")


def test_a_list_behind_opaque_cursors_deletes_nothing_that_exists(nights: Nights) -> None:
    """A cursor may be a position: a record is gone if a second reading lacks it too, whatever was created meanwhile."""
    shop, places = nights.shop, ["", "ant", "bee"]
    changes: list[Callable[[], None] | None] = []  # before each of the next requests

    def page(request: PartnerRequest) -> dict[str, Any]:
        if changes and (change := changes.pop(0)) is not None:
            change()
        number = places.index(request.param("at", ""))
        part, following = shop.items[number * SIZE : (number + 1) * SIZE], [*places[1:], None][number]
        return {"items": part, "then": following if len(shop.items) > (number + 1) * SIZE else None}

    shop.answering = page
    nights.begin({**NAMED, **REMOVED, "pagination": {"kind": "cursor_in_body", "path": "then", "param": "at"}})
    shop.items = items(range(3 * SIZE), nights.at())
    nights.begin_to_remove()
    changes += [None, lambda: shop.items.__delitem__(1)]
    assert "it has 1 of the records that seemed to be gone" in nights.night(4).stderr
    assert nights.held.items() >= nights.truth.items()
    changes += [None, None, None, lambda: shop.items.extend(items([90], nights.at()))]
    nights.night()
    assert 1 not in {int(key) for key in nights.held}
    nights.night()
    assert nights.held == nights.truth


@pytest.mark.nightly(but=["pagination0"])
@pytest.mark.parametrize("pagination", LINKED)
def test_changes_behind_links_by_position_are_not_passed_over(nights: Nights, pagination: Mapping[str, Any]) -> None:
    """A record moves to the end while its list is read: the cursor stays, and the next night reads what moved up."""
    shop = nights.shop
    nights.begin({**CHANGES, "cursor": {"column": "changed", "as": "instant"}, "pagination": pagination})
    shop.items = items(range(3 * SIZE), nights.at(hours=-2))
    nights.night()
    for number, item in enumerate(shop.items):
        item |= {"title": "v2", "changed": nights.at(hours=-2, minutes=number)}
    shop.after_first = lambda: shop.items[1].update(changed=nights.at(), title="v3")
    nights.night(4)
    nights.night()
    assert nights.held == nights.truth


@pytest.mark.nightly(but=["answer0-unsorted", "answer1-windows", "answer2-unsorted"])
@pytest.mark.parametrize(
    "continues",
    [
        {"cursor": {"column": "changed", "as": "instant", "sorted": False}},
        {"windows": {"size": "7d"}, "params": {"since": "{start}", "to": "{end}"}},
    ],
    ids=["unsorted", "windows"],
)
@pytest.mark.parametrize(
    "answer", [{"items": []}, {"items": [], "errors": ["shard 3"]}, PartnerAnswer(202, {"items": []})]
)
def test_a_night_without_records_moves_no_cursor(
    nights: Nights, continues: Mapping[str, Any], answer: dict[str, Any] | PartnerAnswer
) -> None:
    """The API may be out of order: what changed meanwhile is read in the next night."""
    shop = nights.shop
    first = {"first": nights.at(days=-3)} if "windows" in continues else {}
    nights.begin({**CHANGES, "pagination": {"kind": "link_header"}, **continues, **first})
    shop.items = items(range(3), nights.at(hours=-2))
    nights.night()
    shop.items[1] |= {"title": "v2", "changed": nights.at(hours=-2)}
    shop.answering = lambda _: answer
    nights.night(0, 4)
    shop.answering = shop.page
    nights.night()
    assert nights.held == nights.truth


@pytest.mark.nightly(but=["old-unsorted", "cut-windows"])
@pytest.mark.parametrize(
    "continues",
    [
        {"cursor": {"column": "changed", "as": "instant", "sorted": False}},
        {"windows": {"size": "7d"}, "params": {"since": "{start}", "to": "{end}"}},
    ],
    ids=["unsorted", "windows"],
)
@pytest.mark.parametrize("why", ["cut", "old"])
def test_a_list_that_may_be_cut_or_old_moves_no_cursor(
    nights: Nights, monkeypatch: pytest.MonkeyPatch, continues: Mapping[str, Any], why: str
) -> None:
    """It has as many records as some APIs list, or a cache gave it: what it lacks is read in the next night."""
    shop = nights.shop
    monkeypatch.setattr(list_completeness_evidence, "USUAL_CAPS", {3} if why == "cut" else set())
    first = {"first": nights.at(days=-3)} if "windows" in continues else {}
    nights.begin({**CHANGES, "pagination": {"kind": "single_page"}, **continues, **first})
    shop.items = items(range(SIZE), nights.at(hours=-2))
    headers = {"age": "7200"} if why == "old" else {}
    shop.answering = lambda _: PartnerAnswer(200, {"items": shop.items[:3]}, headers)
    for _ in range(2):
        assert "the next run reads the list again" in nights.night(4).stderr
    assert len(nights.held) == 3
    shop.answering = lambda request: PartnerAnswer(200, {"items": shop.listed(request)})
    nights.night()
    assert nights.held == nights.truth


def test_times_that_are_behind_hide_no_change(nights: Nights) -> None:
    """An API that writes local times as UTC is asked for what follows its own latest one less the overlap."""
    shop, asked = nights.shop, list[str]()

    def page(request: PartnerRequest) -> PartnerAnswer:
        asked.append(request.param("since", ""))
        return shop.page(request) if len(asked) < 3 else PartnerAnswer(200, {"items": shop.items})

    shop.answering = page
    cursor = {"column": "changed", "as": "instant", "sorted": False}
    nights.begin({**CHANGES, "cursor": cursor, "pagination": {"kind": "single_page"}})
    shop.items = items(range(2), nights.at(hours=-30))
    nights.night()
    shop.items += items([7], nights.at(days=-1, hours=-5))  # after the first night
    nights.night()
    assert nights.held == nights.truth
    latest = datetime.fromisoformat(shop.items.pop()["changed"])
    nights.night()  # all others are listed, whatever is asked for
    nights.night()
    assert [datetime.fromisoformat(since) for since in asked[2:]] == [latest - timedelta(minutes=10)] * 2


def test_windows_of_an_api_that_writes_local_times_hide_no_change(nights: Nights) -> None:
    """The records of a window show that it had not ended by their times: it is read again in the next night."""
    shop = nights.shop
    windows = {"windows": {"size": "2h"}, "params": {"since": "{start}", "to": "{end}"}, "first": nights.at(hours=-9)}
    nights.begin({**CHANGES, "pagination": {"kind": "single_page"}, **windows})
    for number in range(4):  # changed a minute after the night before, in New York
        shop.items += items([number], nights.at(days=-1, hours=-5, minutes=1) if number else nights.at(hours=-5))
        nights.night()
        assert nights.held == nights.truth


@pytest.mark.nightly(but=["stand_in1"])
@pytest.mark.parametrize("stand_in", [None, {"id": None}, {"error": "forbidden"}])
def test_a_row_without_key_of_a_list_of_changes_stays_open(nights: Nights, stand_in: Item | None) -> None:
    """The cursor has moved past the record that it stands for, so that later lists do not show whether it came."""
    shop = nights.shop
    nights.begin({**CHANGES, "cursor": {"column": "changed", "as": "instant"}, "pagination": {"kind": "link_header"}})
    shop.items = items(range(3), nights.at(hours=-2))
    nights.night()
    shop.answering = lambda _: {"items": [stand_in]}
    nights.night(1)
    shop.answering = shop.page
    for _ in range(2):
        assert "open: 1 rejected" in nights.night(1).stdout
    assert nights.project.run("records", "drop", "shop.list", "--reason", "key_missing", "--yes").exit_code == 0
    nights.night()


def test_a_date_in_the_future_is_no_place_to_continue(nights: Nights) -> None:
    """A cursor is text by default: one wrong date would hide all later changes."""
    shop = nights.shop
    nights.begin({**CHANGES, "cursor": {"column": "changed"}, "pagination": {"kind": "link_header"}})
    shop.items = [*items(range(3), nights.at(hours=-2)), *items([9], "2099-12-31T00:00:00Z")]
    assert "the cursor 'changed' has dates in the future" in nights.night().stdout
    shop.items[1] |= {"title": "v2", "changed": nights.at(hours=-1)}
    nights.night()
    assert nights.held == nights.truth


@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_time_in_the_future_does_not_hide_that_others_are_behind(nights: Nights, is_sorted: bool) -> None:
    """One wrong time would hide all later changes of an API that writes local times as UTC."""
    shop, cursor = nights.shop, {"column": "changed", "as": "instant", "sorted": is_sorted}
    nights.begin({**CHANGES, "cursor": cursor, "pagination": {"kind": "link_header"}})
    shop.items = [*items(range(3), nights.at(hours=-5)), *items([9], "2099-12-31T00:00:00Z")]
    nights.night()
    nights.days -= 1
    shop.items[1] |= {"title": "v2", "changed": nights.at(hours=-5, minutes=1)}
    assert "the cursor 'changed' has dates in the future" in nights.night().stdout
    assert nights.held == nights.truth


def test_a_cursor_that_cannot_be_read_stops_only_its_record(nights: Nights) -> None:
    """Such as MySQL's zero date: it moves no cursor, and the others are delivered."""
    shop = nights.shop
    nights.begin({**CHANGES, "cursor": {"column": "changed", "as": "instant"}, "pagination": {"kind": "link_header"}})
    shop.items = [*items([0], "0000-00-00 00:00:00"), *items(range(1, 7), nights.at(hours=-2))]
    assert "rows without the cursor 'changed': 1 (1 cannot be read: " in nights.night().stdout
    assert nights.held == nights.truth
    shop.items[4] |= {"title": "v2", "changed": nights.at(hours=-1)}
    nights.night()
    assert nights.held == nights.truth


def test_null_in_place_of_a_list_shows_no_record_to_be_gone(nights: Nights) -> None:
    """The elements of such a list are kept, and the run says why."""
    shop = nights.shop
    columns = {"key": ["variants.sku"], "map": {"sku": "variants.sku", "name": "title"}}
    exploded = {**PRODUCT, **columns, "explode": "variants", "pagination": {"kind": "link_header"}}
    nights.begin({**exploded, **REMOVED})
    both = [{"sku": "a"}, {"sku": "b"}]
    shop.items = [{"id": 1, "title": "one", "variants": both}, {"id": 2, "title": "two", "variants": [{"sku": "c"}]}]
    nights.begin_to_remove()
    shop.items[0]["variants"] = None
    assert "variants is null in 1 record" in nights.night(4).stderr
    assert nights.held == {"a": "one", "b": "one", "c": "two"}
    shop.items[0]["variants"] = both[:1]
    nights.night()
    assert nights.held == {"a": "one", "c": "two"}


@pytest.mark.parametrize("beside", [{"pageInfo": {"hasNextPage": True}}, {"totalCount": 3}])
def test_a_list_in_a_record_that_is_cut_is_not_delivered_in_part(nights: Nights, beside: Item) -> None:
    """An order of which the API gives only some lines is a dead letter, and others are delivered."""
    shop = nights.shop
    line = {"productId": {"const": "prd_1"}, "quantity": {"from": "n", "as": "integer"}}
    item = {"of": "lines.nodes", "each": {**line, "unitPrice": {"const": 1}}}
    order = {"customerId": {"const": "cus_1"}, "currency": {"const": "EUR"}, "placedAt": {"const": nights.at()}}
    mapped = {"resource": "order", "map": {**order, "items": item}, "pagination": {"kind": "link_header"}}
    nights.begin({**PRODUCT, **mapped, "mode": "snapshot"})
    lines = {"nodes": [{"n": 1}, {"n": 2}]}
    whole = {**lines, "totalCount": 2, "done": False, "last": False}  # of the order, and not of the list
    shop.items = [{"id": 1, "lines": {**lines, **beside}}, {"id": 2, "lines": whole}]
    nights.night(1)
    (letter,) = [
        each for each in json.loads(nights.project.run("records", "list", "--json").stdout) if "is cut" in each["why"]
    ]
    assert (letter["key"], letter["pointer"]) == ("1", "lines.nodes")


def test_a_grouped_record_is_never_made_of_two_readings(nights: Nights) -> None:
    """A row that comes again, because the list moved, would be a second line of its invoice."""
    shop = nights.shop
    grouped = {"group_by": ["id"], "map": {"sku": "id", "name": "title"}, "pagination": {"kind": "link_header"}}
    nights.begin({**PRODUCT, **grouped, "mode": "snapshot"})
    shop.items = items(range(2 * SIZE), nights.at())
    nights.night()
    shop.after_first = lambda: shop.items.insert(0, items([99], nights.at())[0])
    refused = nights.night(4)
    assert "on two pages" in refused.stderr
    assert "nothing of it is delivered" in refused.stderr
    nights.night()
    assert nights.held == nights.truth


@pytest.mark.nightly(but=["pagination0-exploded0", "pagination1-exploded1"])
@pytest.mark.parametrize("exploded", [{}, {"explode": "sizes", "key": ["sizes.sku"], "map": {"sku": "sizes.sku"}}])
@pytest.mark.parametrize(
    "pagination", [{"kind": "cursor_in_body", "path": "then", "param": "after"}, {"kind": "page_number"}]
)
def test_a_record_that_changes_while_a_snapshot_is_read_stops_no_other(
    nights: Nights, pagination: Mapping[str, Any], exploded: Mapping[str, Any]
) -> None:
    """Its later version counts. Only a list that is cut off by position may lack others, and is in doubt."""
    shop, later = nights.shop, list[Callable[[], None]]()

    def page(request: PartnerRequest) -> dict[str, Any]:
        rows = sorted(shop.items, key=lambda item: (item["changed"], item["id"]))
        after, skipped = request.param("after", ""), 2 * int(request.param("page", "1")) - 2
        listed = [row for row in rows if f"{row['changed']} {row['id']}" > after][skipped:]
        part = [dict(row) for row in listed[:2]]
        while later:
            later.pop()()
        return {"items": part, "then": f"{part[-1]['changed']} {part[-1]['id']}" if len(listed) > 2 else None}

    shop.answering = page
    mapped = exploded.get("map", {"sku": "id"})
    nights.begin(
        {**PRODUCT, **exploded, "map": {**mapped, "name": "title"}, "mode": "snapshot", "pagination": pagination}
    )
    shop.items = [{**each, "sizes": [{"sku": f"{each['id']}"}]} for each in items(range(6), nights.at(hours=-2))]
    later.append(lambda: shop.items[0].update(title="v2", changed=nights.at()))
    done = nights.night(*([4] if "page" in pagination["kind"] else []))
    assert nights.held["0"] == "v2"
    if "page" in pagination["kind"]:
        assert "the list changed while it was read" in done.stderr
        nights.night()
    else:
        assert "1 record was on several pages with different content" in done.stdout
    assert nights.held == nights.truth


ORDERED = {
    "/api/v1/sales/customers": {"externalId": "c", "name": "C"},
    "/api/v1/catalog/products": {"externalId": "p", "sku": "p", "name": "P"},
}
ONLY_AFTER = {"kind": "cursor_in_body", "path": "then", "param": "after"}


def orders(nights: Nights, quantity: str) -> dict[str, Any]:
    """A stream of orders that have a line for each row, of a customer and a product that the platform has."""
    platform = nights.platform
    headers = {"authorization": f"Bearer {platform.api_key}", "x-tenant-slug": platform.tenant}
    with httpx.Client(base_url=platform.base_url, headers=headers) as client:
        made = [client.post(path, json=body).json()["id"] for path, body in ORDERED.items()]
    customer, product = ({"const": each} for each in made)
    item = {"productId": product, "quantity": {"from": quantity, "as": "integer"}, "unitPrice": {"const": 1}}
    order = {"customerId": customer, "currency": {"const": "EUR"}, "placedAt": {"const": nights.at()}}
    return {**PRODUCT, "resource": "order", "group_by": ["id"], "map": {**order, "items": {"each": item}}}


def quantities(nights: Nights) -> list[tuple[str, list[int]]]:
    """The quantities of each order that was sent."""
    sent = [effect["body"] for effect in nights.project.effects() if effect["resource"] == "order"]
    return sorted((body["externalId"][-2:], sorted(item["quantity"] for item in body["items"])) for body in sent)


def test_a_record_whose_map_needs_a_cursor_that_cannot_be_read_is_a_dead_letter(nights: Nights) -> None:
    """Orders have a time, and only that order lacks it."""
    shop, stream = nights.shop, orders(nights, "n")
    items = {"of": "lines", **stream["map"]["items"]}
    mapped = {"map": {**stream["map"], "placedAt": {"from": "changed", "as": "instant"}, "items": items}}
    cursor = {"cursor": {"column": "changed", "as": "instant"}, "pagination": {"kind": "single_page"}}
    nights.begin({**CHANGES, "resource": "order", **mapped, **cursor})
    times = ["0000-00-00 00:00:00", nights.at(hours=-2), nights.at(hours=-1)]
    shop.items = [{"id": f"o{n}", "lines": [{"n": n + 1}], "changed": at} for n, at in enumerate(times)]
    nights.night(1)
    assert quantities(nights) == [("o1", [2]), ("o2", [3])]
    (letter,) = json.loads(nights.project.run("records", "list", "--json").stdout)
    assert (letter["key"], letter["pointer"], "is not a" in letter["why"]) == ("o0", "changed", True)


@pytest.mark.nightly(but=["snapshot-pagination0", "incremental-pagination1"])
@pytest.mark.parametrize("pagination", [ONLY_AFTER, {"kind": "offset", "size": 2, "size_param": "n", "total": "total"}])
@pytest.mark.parametrize("mode", ["snapshot", "incremental"])
def test_an_order_has_no_row_in_two_versions(nights: Nights, pagination: Mapping[str, Any], mode: str) -> None:
    """A row that changes while the list is read moves to its end. Its order waits for the next night, others do not."""
    shop, later = nights.shop, list[Callable[[], None]]()

    def page(request: PartnerRequest) -> dict[str, Any]:
        rows = sorted(shop.items, key=lambda row: (row["changed"], row["line"]))
        skipped, after = int(request.param("offset", "0")), request.param("after")
        listed = rows[skipped:] if not after else [row for row in rows if f"{row['changed']}{row['line']}" > after]
        part = [dict(row) for row in listed[:2]]
        while later:
            later.pop()()
        then = f"{part[-1]['changed']}{part[-1]['line']}" if len(listed) > 2 else None
        return {"items": part, "then": then, "total": len(rows)}

    shop.answering = page
    stream = orders(nights, "n")
    cursor = {"column": "changed", "as": "instant", "sorted": False}
    changes = {"params": {"since": "{since}"}, "cursor": cursor, "whole_groups": True} if mode == "incremental" else {}
    nights.begin({**stream, **changes, "mode": mode, "pagination": pagination})
    shop.items = [{"id": f"o{line % 3}", "line": line, "n": 1, "changed": nights.at(hours=-2)} for line in range(1, 6)]
    later.append(lambda: shop.items[0].update(n=7, changed=nights.at()))
    planned = nights.project.run("plan")
    assert (planned.exit_code, "the list changed while it was read" in planned.stderr) == (4, True)
    later.append(lambda: shop.items[1].update(n=8, changed=nights.at()))
    assert "the list changed while it was read" in nights.night(4).stderr
    nights.night()
    assert quantities(nights) == [("o0", [1]), ("o1", [1, 7]), ("o2", [1, 8])]


ONE, TWO = ({"id": f"o{number}", "lines": [{"n": 1}, {"n": 2}]} for number in (1, 2))
OTHER = {**ONE, "lines": [{"n": 1}]}


@pytest.mark.parametrize(
    ("same", "other"),
    [
        pytest.param([[ONE, ONE, TWO]], [[ONE, OTHER, TWO]], id="on one page"),
        pytest.param([[ONE], [TWO]], [[ONE], [OTHER, OTHER, ONE, TWO]], id="on one of two pages"),
    ],
)
def test_an_order_that_is_listed_twice_has_its_lines_once(
    nights: Nights, same: list[list[Item]], other: list[list[Item]]
) -> None:
    """Which of two versions is right, a snapshot does not say, and nothing of it is delivered."""
    listed = [other]

    def page(request: PartnerRequest) -> dict[str, Any]:
        first, *others = listed[-1]
        if request.param("at"):
            return {"items": others[0], "then": None}
        return {"items": first, "then": "bee" if others else None}

    nights.shop.answering = page
    pagination = {"kind": "cursor_in_body", "path": "then", "param": "at"}
    nights.begin({**orders(nights, "lines.n"), "explode": "lines", "mode": "snapshot", "pagination": pagination})
    assert "with different content" in nights.night(4).stderr
    assert quantities(nights) == []
    listed.append(same)
    nights.night()
    assert quantities(nights) == [("o1", [1, 2]), ("o2", [1, 2])]


@pytest.mark.nightly(but=["facts0-pagination1", "facts1-pagination2"])
@pytest.mark.parametrize(
    "pagination",
    [
        {"kind": "page_number"},
        {"kind": "page_number", "total": "total"},
        {"kind": "link_header"},
        {"kind": "next_url", "path": "then"},
    ],
)
@pytest.mark.parametrize(
    "facts",
    [
        {"order_by": [{"column": "changed", "as": "instant"}]},
        {"explode": "sizes", "key": ["sizes.sku"], "map": {"sku": "sizes.sku", "name": "title"}},
    ],
)
def test_a_record_that_moves_among_versions_and_parts_is_noticed(
    nights: Nights, pagination: Mapping[str, Any], facts: Mapping[str, Any]
) -> None:
    """A record is edited while its list is read by position, and another one takes its place; the next night has it."""
    shop = nights.shop

    def page(request: PartnerRequest) -> PartnerAnswer:
        total, answer = len(shop.listed(request)), shop.page(request)
        assert isinstance(answer.body, dict)
        items = [{**item, "sizes": [{"sku": item["id"]}]} for item in answer.body["items"]]
        return PartnerAnswer(200, {**answer.body, "items": items, "total": total}, answer.headers)

    shop.answering = page
    cursor = {"column": "changed", "as": "instant", "sorted": False}
    nights.begin({**CHANGES, **facts, "cursor": cursor, "pagination": dict(pagination)})
    shop.items = [{"id": f"p{n}", "title": "v1", "changed": nights.at(hours=-12)} for n in range(3 * SIZE)]
    nights.night()
    for number, item in enumerate(shop.items):
        item.update(title="v2", changed=nights.at(hours=-2, seconds=number))

    def edit() -> None:
        shop.items[1].update(title="v3", changed=nights.at(seconds=5))

    shop.after_first = edit
    assert "the list changed while it was read" in nights.night(4).stderr
    nights.night()
    assert nights.held == nights.truth


def test_versions_of_a_record_on_two_pages_are_no_change_of_the_list(nights: Nights) -> None:
    """A history lists each change; those were made before the reading began."""
    cursor = {"column": "changed", "as": "instant", "sorted": False}
    order = [{"column": "changed", "as": "instant"}]
    nights.begin({**CHANGES, "order_by": order, "cursor": cursor, "pagination": {"kind": "page_number"}})
    nights.shop.items = [
        {"id": f"p{n % 5}", "title": f"v{n}", "changed": nights.at(hours=-12, seconds=n)} for n in range(3 * SIZE)
    ]
    nights.night()
    assert nights.held == nights.truth


@pytest.mark.parametrize("order_by", [[], [{"column": "changed", "as": "instant"}]])
def test_a_list_may_lag_behind_a_record_that_was_fetched(nights: Nights, order_by: list[dict[str, str]]) -> None:
    """With ``order_by`` the newer version stays; without it, the check says what may happen."""
    shop, one = nights.shop, dict[str, Any]()
    cursor = {"column": "changed", "as": "instant"}
    stream = {**CHANGES, "cursor": cursor, "pagination": {"kind": "link_header"}, "fetch": {"path": "/items/{id}"}}
    nights.begin({**stream, **({"order_by": order_by} if order_by else {})})
    shop.items = items([1, 2], nights.at(hours=-2))
    shop.answering = lambda request: one if request.path.endswith("/1") else shop.page(request)
    warned = (
        "older versions over those of webhooks: declare order_by with changed" in nights.project.run("check").stdout
    )
    nights.night()
    one |= {**shop.items[0], "title": "v2", "changed": nights.at(hours=-1)}
    assert nights.project.run("sync", "shop.list", "--key", "1").exit_code == 0
    assert nights.held == {"1": "v2", "2": "t2"}
    nights.night()
    assert (warned, nights.held["1"]) == ((False, "v2") if order_by else (True, "t1"))


@pytest.mark.nightly(but=["delete"])
@pytest.mark.parametrize("on_gone", ["delete", "archive"])
def test_a_removed_record_that_exists_again_without_a_new_mark_is_told(nights: Nights, on_gone: str) -> None:
    """No list of changes shows it: each run warns until it is sent by its key."""
    shop, hidden = nights.shop, list[int]()

    def answer(request: PartnerRequest) -> PartnerAnswer | dict[str, Any]:
        found = [item for item in shop.listed(request) if item["id"] not in hidden]
        if request.path.startswith("/items/"):
            return next(item for item in found if request.path == f"/items/{item['id']}")
        return {"ids": [item["id"] for item in found]} if request.path == "/ids" else {"items": found}

    shop.answering = answer
    nights.begin(
        {
            **CHANGES,
            "cursor": {"column": "changed", "as": "instant"},
            "pagination": {"kind": "single_page"},
            "fetch": {"path": "/items/{id}"},
            "on_gone": on_gone,
            "existing": {"path": "/ids", "records": "ids"},
            "gone": {"at_most_percent": 50, "rows_within_percent": 90},
        }
    )
    shop.items = items(range(8), nights.at())
    nights.begin_to_remove()
    shop.items += items([20], nights.at())  # the cursor passes the others
    hidden.append(3)
    assert "removed_exists" not in nights.night().stderr
    hidden.clear()
    for _ in range(2):
        assert "1 record that was removed is listed as existing again, and not as changed" in nights.night().stderr
    sent = nights.project.run("sync", "shop.list", "--key", "3")
    assert sent.exit_code == 0, sent.stderr
    assert nights.held == nights.truth
    assert "removed_exists" not in nights.night().stderr
