"""The partner that acceptances make of what the tests of a target state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import httpx
import pytest

from crossdock import Connector
from crossdock.resources import ResourceModel, Text
from crossdock.sources import HttpSettings
from crossdock.targets import ApiTarget, BatchProfile, EndpointProfile, RecordShape, Request, TargetResource, Update
from crossdock.testing.example_partner import ExamplePartner
from crossdock.testing.target_under_test import TargetUnderTest

BASE = "https://depot.example.com/api"


class Note(ResourceModel, alias_generator=None):
    text: Text
    place: Text | None = None


class DepotSettings(HttpSettings):
    kind: Literal["depot"]


def partner(kind: type[ApiTarget] = ApiTarget, **facts: Any) -> ExamplePartner:
    """A partner of notes with these facts of their resource."""
    declared = {"endpoint": EndpointProfile(look_up=True), "shape": RecordShape(listed="/notes"), **facts}
    note = TargetResource("notes", Note, path="/notes", name_member="reference", **declared)
    made = type("Depot", (kind,), {"resources": {"notes": note}})

    class Notes(TargetUnderTest):
        connector = Connector(
            "depot", "A depot", DepotSettings, lambda _: (), api=lambda own: own.api(), target=lambda _: made()
        )
        settings = {"base_url": BASE}
        environment: Mapping[str, str] = {}

        def members(self, resource: str, number: int) -> Mapping[str, Any]:
            return {"text": f"text {number}", "place": "A"}

        def answered(self, resource: str, operation: str, record: Any) -> Any:
            return {"note": record} if note.body else record

        def listing(self, resource: str, records: Sequence[Any]) -> Any:
            return {"notes": records}

    return ExamplePartner(Notes())


def ask(one: ExamplePartner, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    answer = one.answer(httpx.Request(method, f"{BASE}{path}", json=body, headers=headers))
    return answer.status_code, answer.json()


def test_it_keeps_what_it_is_sent() -> None:
    """It creates, merges changes, finds by id and by name, and deletes; what it does not have is missing."""
    one, note = partner(), {"reference": "a:1/2", "text": "x", "place": "A"}
    status, shown = ask(one, "POST", "/notes", note)
    path = f"/notes/{shown.pop('id')}"
    assert (status, shown) == (201, note)
    assert ask(one, "PATCH", path, {"text": "y", "place": None})[1]["text"] == "y"
    assert one.stored_records() == [{"reference": "a:1/2", "text": "y"}]
    assert ask(one, "GET", path)[0] == 200
    assert ask(one, "GET", "/notes?reference=a%3A1%2F2&limit=5")[1]["notes"][0]["text"] == "y"
    assert ask(one, "GET", "/notes?reference=a%3A1")[1] == {"notes": []}
    assert [ask(one, "DELETE", path)[0] for _ in range(2)] == [200, 404]
    assert (one.stored_records(), ask(one, "GET", path)[0], ask(one, "POST", "/other", {})[0]) == ([], 404, 404)


def test_requests_have_the_form_that_the_resource_declares() -> None:
    """The record in a member, the whole record in an update, and a second create with its key has no effect."""
    profile = EndpointProfile(key_member="/key")
    one, note = partner(endpoint=profile, body="note", update_method="PUT"), {"reference": "a:1", "text": "x"}
    first, again, other = (ask(one, "POST", "/notes", {"note": note, "key": key})[1]["note"] for key in ("k", "k", "l"))
    assert first == again == {"id": first["id"], **note}
    assert first["id"] != other["id"]
    ask(one, "PUT", f"/notes/{first['id']}", {"note": {"reference": "a:1"}})
    assert one.stored_records() == [{"reference": "a:1"}, note]


def test_a_header_has_the_key() -> None:
    """Without one, a create is another record: nothing hides that a target repeats it."""
    one = partner(endpoint=EndpointProfile(header="Idempotency-Key"))
    for key in ("k1", "k1", "k2"):
        ask(one, "POST", "/notes", {"reference": "a:1"}, **{"Idempotency-Key": key})
    ask(one, "POST", "/notes", {"reference": "a:1"})
    assert len(one.stored_records()) == 3


def test_tokens_are_granted() -> None:
    """OAuth 2.0 has one form for their requests, at any address."""
    request = httpx.Request("POST", "https://login.example.com/token", data={"grant_type": "refresh_token"})
    assert json.loads(partner().answer(request).content)["access_token"]


class Wrapping(ApiTarget):
    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request.json("POST", "/changes", {"id": target_id, **update.changes})


@pytest.mark.parametrize(
    ("kind", "facts", "message"),
    [
        (Wrapping, {}, "Depot.update, notes: no partner can be made of the example"),
        (ApiTarget, {"batch": BatchProfile(size=5)}, "notes is sent in batches, or looked up before each write"),
    ],
)
def test_other_forms_need_a_partner_of_the_author(kind: type[ApiTarget], facts: dict[str, Any], message: str) -> None:
    """A partner that guesses would accept what the API refuses."""
    with pytest.raises(AssertionError, match=message):
        partner(kind, **facts)
