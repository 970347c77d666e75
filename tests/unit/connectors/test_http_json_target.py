"""A target that a config declares: what is refused at load, its drafts, requests and answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossdock.config.project import project
from crossdock.errors import FindingsError, RecordError, RemoteError
from crossdock.mapping.resource_types import personal_members
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.sources import Api
from crossdock.targets import Answer, BatchProfile, ExpectedRecord, Outcome, Request, Update
from crossdock.testing import ManualClock
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock
from crossdock.values.raw_rows_and_records import Record
from crossdock_connectors.http_json.recognized_answers import ThrottledAnswer
from crossdock_connectors.http_json.target import HttpJsonTarget
from crossdock_connectors.http_json.target_settings import TargetConfig

CONFIG = """
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
connections:
  plain:
    kind: http_json
    base_url: https://plain.example
    target:
      resources:
        orders:
          members:
            owner: {type: text, required: true, max_length: 8}
            due: date
            urgent: boolean
            ship_to: {type: object, members: {name: {type: text, personal: true}}}
            lines: {type: list, members: {sku: {type: text, required: true}, quantity: number, pieces: integer}}
          name: reference
          name_max_length: 20
          create: POST /orders
          update: PATCH /orders/{id}
          delete: POST /orders/{id}/cancel
          read: GET /orders/{id}
          look_up: {path: /orders, params: {reference: "{name}", all: true}, records: data.orders}
  wms:
    kind: folder_warehouse
    path: out
    streams:
      orders:
        files: "*.csv"
        mode: snapshot
        format: {}
        key: [ORDER]
        group_by: [ORDER]
        to: plain.orders
        map: {owner: OWNER, ship_to: {object: {name: NAME}}, lines: {each: {sku: SKU}}}
"""
WRONG = """
- {resource: {create: PATCH /orders}, says: "orders.create: must be a method (POST, PUT) and a path, such as POST"}
- {resource: {update: PATCH /orders}, says: "orders.update: must be a method (PATCH, PUT, POST) and a path, such as"}
- {resource: {name: null, look_up: false, update: PUT /orders}, says: "orders.update: must be a method (PATCH, PUT"}
- {resource: {batch: {size: 0}}, says: "orders.batch.size: "}
- {resource: {batch: {size: 9}, idempotency_header: Key}, says: "orders.idempotency_header: is the key of one record"}
- {resource: {batch: {size: 9}, idempotency_member: key}, says: "orders.idempotency_member: is the key of one record"}
- {resource: {idempotency_header: Key, idempotency_member: key}, says: "orders.idempotency_member: cannot be used with"}
- {resource: {batch: {size: 9, id: id}, update: PUT /orders, conditional: true}, says: "conditional: is for changes of"}
- {resource: {batch: {size: 9}, create: "POST /o/{owner}"}, says: "orders.create: has a member in the path, which a"}
- {resource: {batch: {size: 9}, create: {path: /g, body: ["{record}"]}}, says: "orders.batch: is for requests that are"}
- {resource: {batch: {size: 9}, create: null}, says: "orders.batch: needs a create, or an update or delete whose"}
- {resource: {batch: {size: 9}, update: PATCH /orders}, says: "orders.update: must be a method (PATCH, PUT, POST)"}
- {resource: {read: null}, says: "orders.read: is missing: an update or delete in doubt is looked up by its id"}
- {resource: {name: null}, says: "orders.look_up: needs name"}
- {resource: {name: owner}, says: "orders.name: holds the external id of the record: leave it out of members"}
- {resource: {look_up: {path: /o, params: {a: b}, records: ""}}, says: "look_up.params: the query does not use {name}"}
- {resource: {look_up: {path: /o, params: {a: "{name}"}}}, says: "look_up.records: give either records, if"}
- {resource: {look_up: {path: "/o/{name}", records: "", absent: ""}}, says: "records: give either records"}
- {resource: {look_up: {path: "/o/{name}", absent: "", total: n}}, says: "look_up.total: needs records"}
- {resource: {look_up: false, repeated: {status: 409, text: x}}, says: "orders.repeated: needs look_up"}
- {resource: {update: null, delete: null, conditional: true}, says: "orders.conditional: needs update or delete"}
- {resource: {create: {path: /g, graphql: m}}, says: "orders.create: has no {record} in its body or variables"}
- {resource: {create: {path: /g, body: "a {record.owner}"}}, says: "orders.create.body: a {record.owner} has"}
- {resource: {create: {path: /g, body: "{record.ower.a}"}}, says: "orders.create: {record.ower} is none of members"}
- {resource: {update: {path: /g, body: ["{record}"]}}, says: "orders.update: has no {id} in its path, params, body or"}
- {resource: {read: {path: /g}}, says: "orders.read.body: is missing: a request other than a GET has"}
- {resource: {read: {method: GET, path: "/g/{id}", body: {}}}, says: "orders.read.method: cannot be used with body"}
- {resource: {read: {method: GET, path: /g}}, says: "orders.read: has no {id} in its path, params, body or"}
- {resource: {look_up: {path: /g, graphql: q, records: ""}}, says: "orders.look_up.params: the query does not use"}
- resource: {create: {path: /g, graphql: "mutation($order: Order) {a}", variables: {input: "{record}"}}}
  says: "orders.create.variables.input: the query does not name $input, and servers ignore a variable"
- {resource: {delete: null, deleted: {field: a, equals: b}}, says: "orders.deleted: needs delete"}
- {resource: {name: null, look_up: false}, says: "orders.name_max_length: needs name"}
- {resource: {members: {a: {type: list}}}, says: "members.a.members: is missing: a list has members"}
- {resource: {members: {a: {type: number, max_length: 3}}}, says: "members.a.max_length: needs type: text"}
- {resource: {members: {a: {type: date, format: "%d"}}}, says: "members.a.format: needs type: instant"}
- {resource: {members: {a: {type: instant, timezone: UTC}}}, says: "members.a.timezone: needs format"}
- {resource: {members: {a: {type: instant, format: now}}}, says: "members.a.format: must be unix, unix_ms, or a format"}
- {resource: {members: {a: words}}, says: "members.a"}
- {resource: {members: {}}, says: "orders.members"}
- {stream: {to: plain.order}, says: "streams.orders.to: unknown resource; did you mean 'orders'?"}
- {stream: {to: wms.orders}, says: "no connection 'wms' is a target; targets: plain"}
- {stream: {map: {owner: A, line: B}}, says: "map.line: unknown key; did you mean 'lines'?"}
- {stream: {map: {due: A}}, says: "map: lacks owner, which every orders needs"}
- {stream: {map: {owner: {const: a long owner}}}, says: "map.owner.const: "}
- {stream: {map: {owner: A, ship_to: {object: {nam: B}}}}, says: "did you mean 'name'?"}
- {stream: {map: {owner: A, reference: B}}, says: "map.reference: unknown key"}
- {stream: {on_gone: archive}, says: "on_gone: archive is impossible: orders has no member active"}
- {stream: {on_gone: delete}, resource: {delete: null}, says: "on_gone: delete is impossible: orders has no delete"}
- {stream: {on_gone: archive}, resource: {update: null}, says: "archive is impossible: orders is written once"}
- {stream: {on_gone: delete}, resource: {update: null, delete: null, read: null}, says: "on_gone: must be nothing"}
- {resource: {compare: {due: seen_due}, update: null, delete: null, read: null}, says: "compare: needs update"}
- {resource: {compare: {dew: seen_due}}, says: "compare: has a key that is not one of members"}
- {resource: {shown: [ower]}, says: "shown: has a name that is not one of members"}
- {resource: {outdated: {status: 409, text: x}, update: null}, says: "outdated: needs update"}
- {resource: {create: "POST /o/{due}"}, says: "create: has due in the path, which must be a required member"}
- {resource: {create: null, update: null}, says: "create: is missing: without it, update is needed"}
- {resource: {name: null, look_up: false, id: "{name}"}, says: "id: needs name"}
- {resource: {id: "{name}", id_form: "/orders/{id}/"}, says: "id_form: needs id"}
- {resource: {id_form: /orders/}, says: "id_form"}
- {resource: {name: null, look_up: false, repeated: ignored}, says: "repeated: needs name"}
- {resource: {create: null}, says: "contributes: is missing: the target has no request that creates orders"}
"""


def load(folder: Path, resource: dict[str, Any] | None = None, stream: dict[str, Any] | None = None) -> project.Project:
    data = yaml.safe_load(CONFIG)
    data["connections"]["plain"]["target"]["resources"]["orders"] |= resource or {}
    data["connections"]["wms"]["streams"]["orders"] |= stream or {}
    path = folder / "c.yaml"
    path.write_bytes(exact_json.dumps(data))
    return project.load(path)


def target(failed: Any = None, **resource: Any) -> HttpJsonTarget:
    section = yaml.safe_load(CONFIG)["connections"]["plain"]["target"]
    section["resources"]["orders"] |= resource
    made = HttpJsonTarget(TargetConfig.model_validate(section | {"failed": failed}))
    made.connect("plain", "acme", lambda: Api("https://plain.example"), ManualClock())
    return made


@pytest.mark.parametrize("wrong", yaml.safe_load(WRONG), ids=lambda wrong: wrong["says"])
def test_what_is_impossible_is_refused_in_its_place(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A target's section and the streams that name it are checked when the config is loaded."""
    with pytest.raises(FindingsError) as refused:
        load(tmp_path, wrong.get("resource"), wrong.get("stream"))
    assert wrong["says"] in str(refused.value)


def test_a_record_that_is_written_once_may_be_deleted(tmp_path: Path) -> None:
    """An API that creates and cancels, and changes nothing, is one that many 3PLs have."""
    kind = load(tmp_path, {"update": None}, {"on_gone": "delete"}).connections[1].streams[0].resource_type
    assert (kind.write_once, kind.deletes) == (True, True)


def test_a_connection_has_streams_or_a_target(tmp_path: Path) -> None:
    """One with neither is refused."""
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG[: CONFIG.index("    target:")])
    with pytest.raises(FindingsError, match=r"streams: is missing: a connection has streams, a target, or both"):
        project.load(path)


def test_a_draft_has_the_declared_members(tmp_path: Path) -> None:
    """Numbers stay exact, names are those of the config, and a list with a personal member is personal."""
    model = load(tmp_path).connections[1].streams[0].resource_type.draft
    lines = [{"sku": "0017", "quantity": Decimal("1.50"), "pieces": 3}]
    assert model.model_validate({"owner": "acme", "lines": lines}).payload() == {"owner": "acme", "lines": lines}
    assert personal_members(model) == {"ship_to"}


def test_an_instant_is_sent_as_the_api_wants_it(tmp_path: Path) -> None:
    """In local time, also inside of a list; a member that is left out stays so."""
    local = {"type": "instant", "format": "%Y-%m-%d %H:%M", "timezone": "America/Los_Angeles"}
    members = {"due": local, "lines": {"type": "list", "members": {"at": {"type": "instant", "format": "unix"}}}}
    loaded = load(tmp_path, {"members": members}, {"map": {"due": "ORDER"}})
    model = loaded.connections[1].streams[0].resource_type.draft
    given = {"due": "2026-03-08T10:30:00Z", "lines": [{"at": "2026-01-01T00:00:00Z"}, {}]}
    written = {"due": "2026-03-08 03:30", "lines": [{"at": "1767225600"}, {}]}
    assert model.model_validate(given).payload() == written


def test_a_bad_draft_names_the_member_as_the_config_does(tmp_path: Path) -> None:
    """A pointer has no other case than the name."""
    loaded = load(
        tmp_path, {"members": {"owner_id": {"type": "text", "max_length": 2}}}, {"map": {"owner_id": "OWNER"}}
    )
    stream = loaded.connections[1].streams[0]
    targets = loaded.targets(SystemClock())
    context: Any = None
    bound = loaded.connections[1].bind_stream("wms.orders", stream, targets, context)
    record = Record("1", ({"ORDER": "1", "OWNER": "acme", "SKU": "", "NAME": ""},), "f.csv", (2,))
    with pytest.raises(RecordError) as refused:
        map_record_to_draft_members(bound, record)
    assert refused.value.pointer == "/owner_id"


def test_requests(tmp_path: Path) -> None:
    """PATCH has the changes, PUT the whole record; ids and names are escaped."""
    made, whole = target(), {"owner": "acme"}
    update = Update({}, {"due": None}, whole)
    assert made.create("orders", whole).body == b'{"owner":"acme"}'
    patch = made.update("orders", "a/b", update)
    assert (patch.method, patch.path, patch.body) == ("PATCH", "/orders/a%2Fb", b'{"due":null}')
    assert target(update="PUT /orders/{id}").update("orders", "7", update).body == b'{"owner":"acme"}'
    cancel = made.delete("orders", "7")
    assert (cancel.method, cancel.path, cancel.body) == ("POST", "/orders/7/cancel", None)
    assert made.look_up("orders", "wms:A 1", None).path == "/orders?reference=wms%3AA+1&all=true"
    assert made.look_up("orders", None, "7").path == "/orders/7"
    moved = target(create="POST /owners/{owner}/orders").create("orders", {"owner": "a/b", "due": "2026-01-01"})
    assert (moved.path, moved.body) == ("/owners/a%2Fb/orders", b'{"due":"2026-01-01"}')
    wrapped = target(body="order")
    assert wrapped.create("orders", whole).body == b'{"order":{"owner":"acme"}}'
    assert wrapped.update("orders", "7", update).body == b'{"order":{"due":null}}'


def test_an_api_that_knows_records_by_their_names() -> None:
    """The name is in the path of a PUT, whose answer names the record otherwise; or in the body of a POST."""
    made = target(create="PUT /customers/eid:{reference}", update="POST /orders/save")
    created = made.create("orders", {"reference": "wms:A/1", "owner": "acme"})
    assert (created.method, created.path, created.body) == ("PUT", "/customers/eid:wms%3AA%2F1", b'{"owner":"acme"}')
    answer = Answer(204, {"location": "https://plain.example/rest/customers/647"}, b"")
    outcome = made.outcome("orders", answer, ExpectedRecord(created.path, None, "wms:A/1"))
    assert (outcome.kind, outcome.target_id) == ("delivered", "647")
    elsewhere = Answer(204, {"location": "https://plain.example/rest/vendors/647"}, b"")
    assert made.outcome("orders", elsewhere, ExpectedRecord(created.path, None, "wms:A/1")).kind == "in_doubt"
    update = Update({}, {"owner": "b"}, {"reference": "wms:A/1", "owner": "b", "due": "2026-01-01"})
    saved = made.update("orders", "647", update)
    assert (saved.method, saved.path) == ("POST", "/orders/save")
    assert exact_json.loads(saved.body or b"") == update.after


@pytest.mark.parametrize("update", ["PATCH /orders/{id}", "PUT /orders/{id}"])
def test_an_update_has_the_values_that_it_replaces(update: str) -> None:
    """As far as it changes them; a refusal because they differ is followed by a look-up."""
    made = target(update=update, compare={"due": "seen"}, outdated={"status": 409, "text": "stale"})
    body = made.update("orders", "7", Update({"due": "A"}, {"due": "B"}, {"due": "B"})).body
    assert body == b'{"due":"B","seen":"A"}'
    assert made.update("orders", "7", Update({"due": "A"}, {"owner": "x"}, {"owner": "x"})).body == b'{"owner":"x"}'
    kinds = [
        made.outcome("orders", Answer(status, {}, text), ExpectedRecord(target_id="7")).kind
        for status, text in ((409, b'{"error":"Stale"}'), (409, b'{"error":"no"}'), (412, b""), (422, b'"stale"'))
    ]
    assert kinds == ["changed", "rejected", "changed", "rejected"]
    assert (made.resources["orders"].endpoint.compares, target().resources["orders"].endpoint.compares) == (True, False)


@pytest.mark.parametrize(
    ("resource", "rules"),
    [
        ({"idempotency_header": "Key"}, ("resend", "resend", "resend")),
        ({"idempotency_member": "key"}, ("resend", "resend", "verify")),
        ({"repeated": {"status": 409, "text": "x"}}, ("resend", "verify", "verify")),
        ({"repeated": "ignored"}, ("resend", "verify", "verify")),
        ({}, ("verify", "verify", "verify")),
        ({"look_up": False}, ("park", "verify", "verify")),
    ],
)
def test_the_rule_after_an_ambiguous_answer(resource: dict[str, Any], rules: tuple[str, ...]) -> None:
    """A key protects each operation, a unique name creates only."""
    made = target(**resource)
    assert (
        tuple(made.resources["orders"].endpoint.rule(operation) for operation in ("create", "update", "delete"))
        == rules
    )


def test_a_key_in_the_body_is_beside_the_record() -> None:
    """Or where a path says, such as in the variables of a mutation."""
    made = target(idempotency_member="key", body="order")
    create = made.with_key("orders", made.create("orders", {"owner": "acme"}), "k1")
    assert create.body == b'{"key":"k1","order":{"owner":"acme"}}'
    made = target(**MUTATIONS, idempotency_member="variables.input.key")
    create = made.with_key("orders", made.create("orders", {"owner": "acme"}), "k1")
    assert b'"variables":{"input":{"key":"k1","owner":"acme"}}' in (create.body or b"")


MUTATIONS: dict[str, Any] = {
    "create": {"path": "/graphql", "graphql": "mutation C $input", "variables": {"input": "{record}"}},
    "update": {
        "path": "/graphql",
        "graphql": "mutation U $id $input",
        "variables": {"id": "{id}", "input": "{changes}"},
    },
    "delete": {"path": "/graphql", "graphql": "mutation D $id", "variables": {"id": "{id}"}},
    "read": {"path": "/graphql", "graphql": "query R $id", "variables": {"id": "{id}"}},
    "look_up": {
        "path": "/graphql",
        "graphql": "query L $ref",
        "variables": {"ref": "{name}"},
        "records": "data.orders",
    },
    "record": "data.order",
}
CALLS: dict[str, Any] = {
    "create": {"path": "/rpc", "body": {"method": "create", "params": ["{record}"]}},
    "update": {"path": "/rpc", "body": {"method": "write", "params": [["{id}"], "{record}"]}, "numbers": ["id"]},
    "delete": {"path": "/rpc", "body": {"method": "unlink", "params": [["{id}"]]}, "numbers": ["id"]},
    "read": {"path": "/rpc", "body": {"method": "read", "params": [["{id}"]]}, "numbers": ["id"]},
    "look_up": {"path": "/rpc", "body": {"params": [[["ref", "=", "{name}"]]]}, "records": "result"},
    "record": "result.0",
}


def test_mutations_and_calls() -> None:
    """The record is a value in the body, and never a part of the query; a text of it in braces is not replaced."""
    made, record = target(**MUTATIONS), {"owner": "{id}"}
    update = Update({}, {"due": None}, record)
    requests = [
        made.create("orders", record),
        made.update("orders", "7", update),
        made.look_up("orders", "wms:1", None),
    ]
    assert [exact_json.loads(request.body or b"") for request in requests] == [
        {"query": "mutation C $input", "variables": {"input": record}},
        {"query": "mutation U $id $input", "variables": {"id": "7", "input": {"due": None}}},
        {"query": "query L $ref", "variables": {"ref": "wms:1"}},
    ]
    rpc = target(**CALLS)
    sent = [rpc.update("orders", "7", update), rpc.delete("orders", "7"), rpc.look_up("orders", None, "7")]
    assert [(each.method, each.path) for each in sent] == [("POST", "/rpc")] * 3
    params = [exact_json.loads(each.body or b"")["params"] for each in sent]
    assert params == [[[7], record], [[7]], [[7]]]
    with pytest.raises(RemoteError, match="no whole number"):
        rpc.delete("orders", "seven")


def test_a_graphql_api_is_asked_for_what_each_has() -> None:
    """A GET would be answered with 404, as if the path were wrong; the query changes nothing."""
    asked = target(**MUTATIONS).ping("orders")
    assert (asked.method, asked.path, asked.body) == ("POST", "/graphql", b'{"query":"{ __typename }"}')


def test_a_graphql_api_has_no_404_of_a_record() -> None:
    """It is a proxy's, or the path is wrong; null says so, or an error that ``failed`` declares as one."""
    failed = {"when": {"field": "errors.0.message", "empty": False}, "statuses": {"no such order": 404}}
    expected = ExpectedRecord("/graphql", "7", "wms:1")

    def kind(status: int, body: Any, **form: Any) -> str:
        return target(failed, **form).found("orders", Answer(status, {}, exact_json.dumps(body)), expected).kind

    assert kind(404, {}, **MUTATIONS) == "unavailable"
    assert kind(404, {}, **CALLS) == "absent"
    assert kind(200, {"data": {"order": None}}, **MUTATIONS) == "absent"
    assert kind(200, {"data": None, "errors": [{"message": "no such order"}]}, **MUTATIONS) == "absent"


def test_a_request_may_have_members_of_the_record_alone() -> None:
    """As JSON values of their type, beside the id and wherever the API wants them; null for one without a value."""
    values = {"sku": "{record.lines.0.sku}", "due": "{record.due}"}
    create = MUTATIONS["create"] | {"graphql": "mutation C $sku $due", "variables": values}
    update = MUTATIONS["update"] | {"variables": {"input": [{"id": "{id}", "urgent": "{record.urgent}"}]}}
    made = target(**MUTATIONS | {"create": create, "update": update})
    record = {"owner": "acme", "urgent": True, "lines": [{"sku": "0017"}]}
    sent = [made.create("orders", record), made.update("orders", "7", Update({}, {"owner": "acme"}, record))]
    assert [exact_json.loads(each.body or b"")["variables"] for each in sent] == [
        {"sku": "0017", "due": None},
        {"input": [{"id": "7", "urgent": True}]},
    ]


def test_a_request_whose_body_is_not_the_record_alone_has_any_method() -> None:
    """The id is percent-encoded in the path and in the query; a GET has no body."""
    made = target(
        update={"method": "PUT", "path": "/stock/{id}", "body": {"items": ["{record}"]}},
        read={"method": "GET", "path": "/stock", "params": {"sku": "{id}", "all": "true"}},
    )
    update = made.update("orders", "A/1 &", Update({}, {"due": None}, {"owner": "{id}"}))
    assert (update.method, update.path) == ("PUT", "/stock/A%2F1%20%26")
    assert exact_json.loads(update.body or b"") == {"items": [{"owner": "{id}"}]}
    read = made.look_up("orders", None, "A/1 &")
    assert (read.method, read.path, read.body) == ("GET", "/stock?sku=A%2F1+%26&all=true", None)


def test_the_id_may_be_in_the_path_of_a_request_with_a_body() -> None:
    """As of a cancellation with its reason."""
    made = target(delete={"path": "/orders/{id}/canceler", "body": {"reason": "no {id}"}})
    cancel = made.delete("orders", "a/7")
    assert (cancel.method, cancel.path, cancel.body) == ("POST", "/orders/a%2F7/canceler", b'{"reason":"no a/7"}')


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"total": 0}, "absent"),
        ({"total": 0, "data": {"orders": []}}, "absent"),
        ({"total": 1}, "unavailable"),
        ({}, "unavailable"),
    ],
)
def test_a_look_up_without_a_list_believes_a_total_of_0(body: Any, kind: str) -> None:
    """An answer without list and total says nothing."""
    look_up = {"path": "/orders", "params": {"q": "{name}"}, "records": "data.orders", "total": "total"}
    answer = Answer(200, {}, exact_json.dumps(body))
    assert target(look_up=look_up).found("orders", answer, ExpectedRecord(name="wms:1")).kind == kind


BATCH = {"size": 9, "items": "orders", "results": "results", "status": "status", "record": "order", "id": "id"}
EXPECTED = [ExpectedRecord(name=f"wms:{number}") for number in (1, 2)]


def test_several_records_are_one_request() -> None:
    """Their bytes are in the list as each operation has them, with the id in those of changes and deletes."""
    made = target(batch=BATCH, update="PUT /orders", delete="POST /orders/cancel")
    assert made.resources["orders"].batch == BatchProfile(9, frozenset({"create", "update", "delete"}))
    creates = [made.create("orders", {"owner": name}) for name in ("a", "b")]
    assert made.batch("orders", creates) == Request("POST", "/orders", b'{"orders":[{"owner":"a"},{"owner":"b"}]}')
    update = made.update("orders", "7", Update({}, {}, {"owner": "a"}))
    delete = made.delete("orders", "7")
    assert [(each.method, each.path, each.body) for each in (update, delete)] == [
        ("PUT", "/orders", b'{"id":"7","owner":"a"}'),
        ("POST", "/orders/cancel", b'{"id":"7"}'),
    ]
    inner = target(batch=BATCH, update="PUT /orders", body="fields").update(
        "orders", "7", Update({}, {}, {"owner": "a"})
    )
    assert inner.body == b'{"fields":{"owner":"a"},"id":"7"}', "the id belongs beside the record's own member"
    bare = target(batch={"size": 9, "id": "id", "numbers": ["id"]}, update="PATCH /orders")
    changes = [bare.update("orders", number, Update({}, {"urgent": True}, {})) for number in ("7", "8")]
    assert bare.batch("orders", changes).body == b'[{"id":7,"urgent":true},{"id":8,"urgent":true}]'


@pytest.mark.parametrize(
    ("results", "by", "kinds"),
    [
        ([{"status": 201, "order": {"id": 1}}, {"status": 422, "message": "no"}], None, ["delivered", "rejected"]),
        ([{"status": "201", "order": {"id": 1}}, {"status": 503}], None, ["delivered", "in_doubt"]),
        ([{"order": {"id": 1}}], None, ["in_doubt"]),
        ([{"order": {"id": 1}}, {"status": "ERROR", "message": "locked"}], None, ["in_doubt", "in_doubt"]),
        ([None, "locked"], None, ["in_doubt", "in_doubt"]),
        ([{"status": 0, "order": {"id": 1}}, {"status": 600, "order": {"id": 2}}], None, ["in_doubt", "in_doubt"]),
        ({"1": "done"}, None, ["in_doubt"]),
        ([{"status": 201, "order": {"id": 2, "reference": "wms:2"}}], "order.reference", ["in_doubt", "delivered"]),
        ([{"ref": f"wms:{n}", "status": 201, "order": {"id": n}} for n in (2, 1)], "ref", ["delivered"] * 2),
        ([{"ref": "wms:1", "order": {"id": 2}}, {"ref": "wms:1", "order": {"id": 1}}], "ref", ["in_doubt"] * 2),
        (
            [{"status": 200, "order": {"id": 1, "reference": "wms:2"}}, {"status": 200, "order": {"id": 2}}],
            None,
            ["in_doubt", "delivered"],
        ),
    ],
)
def test_each_record_of_a_batch_has_an_outcome(results: Any, by: str | None, kinds: list[str]) -> None:
    """A result decides about its own record; one that is missing, doubled or of another record leaves it in doubt."""
    made = target(batch=BATCH | ({} if by is None else {"by": by}))
    told = made.batch_outcomes("orders", Answer(207, {}, exact_json.dumps({"results": results})), EXPECTED)
    assert [each.kind for each in ([told] if isinstance(told, Outcome) else told)] == kinds


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "throttled"), (500, "in_doubt"), (400, "rejected"), (401, "unauthorized")]
)
def test_an_answer_without_results_is_that_of_all(status: int, kind: str) -> None:
    """The refusal of one record is as that of any other request."""
    made = target(batch=BATCH, repeated={"status": 400, "text": "exists"})
    answer = Answer(status, {}, b'{"message": "exists"}')
    told = made.batch_outcomes("orders", answer, EXPECTED)
    assert isinstance(told, Outcome)
    assert (told.kind, told.reason) == (kind, "rejected" if kind == "rejected" else None)
    alone = made.batch_outcomes("orders", answer, EXPECTED[:1])
    assert isinstance(alone, Outcome)
    assert (alone.kind, alone.reason) == (kind, "conflict" if kind == "rejected" else None)


@pytest.mark.parametrize("count", [1, 2])
def test_a_redirected_batch_says_where_it_leads(count: int) -> None:
    """As any other request does: its path is that of its records."""
    answer = Answer(308, {"location": "https://new.example/v2/orders"}, b"")
    expected = [ExpectedRecord("/orders", name=f"wms:{number}") for number in range(count)]
    told = target(batch=BATCH).batch_outcomes("orders", answer, expected)
    assert isinstance(told, Outcome)
    message = "redirects to https://new.example/v2/orders, which is /orders below https://new.example/v2"
    assert (told.kind, told.status, told.message) == ("rejected", 308, message)


MADE: dict[str, Any] = {"status": 201, "order": {"id": 1}}
BAD: dict[str, Any] = {"status": 422, "message": "no"}
SAME: dict[str, Any] = {"status": 424}


@pytest.mark.parametrize(
    ("status", "results", "more", "kinds"),
    [
        (409, [MADE, BAD], {}, ["delivered", "rejected"]),
        (500, [MADE, {"status": 500}], {}, ["delivered", "in_doubt"]),
        (429, [MADE, {"status": 429}], {}, ["delivered", "unavailable"]),
        (207, [BAD, {"status": 429}], {}, ["rejected", "unavailable"]),
        (207, [{"status": 429}, {"status": 429}], {}, "throttled"),
        (422, [BAD, SAME], {}, ["rejected", "rejected"]),
        (422, [BAD, SAME], {"atomic": True}, "rejected"),
        (200, [BAD, SAME], {"atomic": True}, "rejected"),
        (200, [MADE, BAD], {"atomic": True}, ["delivered", "rejected"]),
        (400, [{"code": "E1"}, {"code": "E2"}], {}, "rejected"),
        (400, [{"id": 1}, {"id": 2}], {"status": None}, "rejected"),
        (202, [{"id": 0}, {"id": 1}], {"status": None, "record": None}, "pending"),
        (202, [{"status": "accepted"}] * 2, {}, "pending"),
        (202, [MADE, MADE], {}, ["delivered", "delivered"]),
        (207, [MADE], {"by": "order.reference"}, ["in_doubt", "in_doubt"]),
    ],
)
def test_results_count_whatever_the_answer_says_of_all(
    status: int, results: Any, more: dict[str, Any], kinds: list[str] | str
) -> None:
    """What was accepted is not sent again, what is only promised is not taken as done, a refusal of all for one is no
    refusal of each, and the rate of some is not that of all.
    """
    told = target(batch=BATCH | more).batch_outcomes(
        "orders", Answer(status, {}, exact_json.dumps({"results": results})), EXPECTED
    )
    assert (told.kind if isinstance(told, Outcome) else [each.kind for each in told]) == kinds


SLOW: dict[str, Any] = {"status": 429, "message": "too many requests"}
SOON = {"message": "retry in 7 s"}


@pytest.mark.parametrize(
    ("status", "results", "headers", "told"),
    [
        (207, [MADE, SLOW], {"retry-after": "20"}, [("delivered", None), ("unavailable", 20)]),
        (429, [MADE, SLOW], {"retry-after": "20"}, [("delivered", None), ("unavailable", 20)]),
        (207, [MADE, SLOW | SOON], {"retry-after": "20"}, [("delivered", None), ("unavailable", 7)]),
        (207, [SLOW, BAD], {"x-ratelimit-reset": "30"}, [("unavailable", 30), ("rejected", None)]),
        (207, [SLOW, SLOW], {"retry-after": "20"}, [("throttled", 20)]),
        (207, [SLOW], {"retry-after": "20"}, [("throttled", 20)]),
        (207, [SLOW | SOON], {}, [("throttled", 7)]),
        (429, [SLOW], {}, [("throttled", None)]),
        (207, [SLOW], {}, [("unavailable", None)]),
        (207, [{"status": 503}], {"retry-after": "20"}, [("in_doubt", None)]),
    ],
)
def test_throttled_results_wait_as_the_whole_answer_says(
    status: int, results: list[Any], headers: dict[str, str], told: list[tuple[str, float | None]]
) -> None:
    """Their own wait goes first. If nothing else tells of the rate, a record alone may be the reason itself."""
    answer = Answer(status, headers, exact_json.dumps({"results": results}))
    found = target(batch=BATCH).batch_outcomes("orders", answer, EXPECTED[: len(results)])
    outcomes = [(each.kind, each.retry_after_s) for each in ([found] if isinstance(found, Outcome) else found)]
    assert outcomes == told


@pytest.mark.parametrize(
    ("result", "target_id", "kind"),
    [
        ({"id": 0, "error": {"code": "sku", "message": "invalid SKU"}}, None, "rejected"),
        ({"success": False, "errors": [{"message": "invalid SKU"}]}, None, "rejected"),
        ({"success": False, "errors": [{"message": "invalid SKU"}]}, "7", "rejected"),
        ({"id": 7, "errors": [{"message": "invalid SKU"}]}, "7", "rejected"),
        ({"id": 7, "errors": [{"message": "not indexed yet"}]}, None, "in_doubt"),
        ({"id": 7, "success": True, "errors": []}, None, "delivered"),
    ],
)
def test_an_error_in_a_result_without_a_status_is_a_refusal(result: Any, target_id: str | None, kind: str) -> None:
    """Also if the config does not say how an answer of success refuses; what has an id may have been made."""
    made = target(batch={"size": 9, "id": "id"}, update="PUT /orders")
    told = made.batch_outcomes("orders", Answer(200, {}, exact_json.dumps([result])), [ExpectedRecord("", target_id)])
    assert not isinstance(told, Outcome)
    assert told[0].kind == kind
    assert told[0].message == ("invalid SKU" if kind == "rejected" else told[0].message)


@pytest.mark.parametrize(
    ("batch", "result", "target_id", "kind"),
    [
        ({"record": "order"}, {"order": None}, "7", "in_doubt"),
        ({"record": "order"}, {"order": False}, "7", "in_doubt"),
        ({"record": "order"}, {"order": []}, "7", "in_doubt"),
        ({"record": "order"}, {"id": 7}, "7", "delivered"),
        ({"record": "order"}, {"id": 7, "order": None}, None, "delivered"),
        ({"record": "order"}, {"order": None, "error": "no"}, "7", "rejected"),
        ({"record": "order", "status": "status"}, {"status": 204, "order": None}, "7", "delivered"),
        ({"record": "order", "status": "status"}, {"status": 200, "order": []}, "7", "in_doubt"),
        ({}, {"id": 7, "order": None}, "7", "delivered"),
    ],
)
def test_a_result_of_a_change_that_shows_no_record_is_no_success(
    batch: dict[str, Any], result: Any, target_id: str | None, kind: str
) -> None:
    """Null in place of the record is an empty body where a result has a status, and else says that there is none."""
    made = target(batch={"size": 9, "id": "id"} | batch, update="PUT /orders")
    told = made.batch_outcomes("orders", Answer(200, {}, exact_json.dumps([result])), [ExpectedRecord("", target_id)])
    assert not isinstance(told, Outcome)
    assert (told[0].kind, told[0].reason) == (kind, None if kind == "delivered" else "rejected")


def test_an_error_in_place_of_the_results_is_shown() -> None:
    """The records are in doubt, since the answer is one of success."""
    answer = Answer(200, {}, b'{"error": "the database is read only"}')
    told = target(batch=BATCH).batch_outcomes("orders", answer, EXPECTED)
    assert isinstance(told, Outcome)
    assert told.message == "answered a batch without a result for each record: the database is read only"


def test_results_of_a_failed_200_count() -> None:
    """``failed`` means the answer as a whole and each result."""
    failed = {"when": {"field": "ok", "equals": "false"}}
    made = target(failed, batch=BATCH | {"status": None, "record": None})
    body = {"ok": False, "results": [{"ok": True, "id": 1}, {"ok": False, "message": "bad SKU"}]}
    told = made.batch_outcomes("orders", Answer(200, {}, exact_json.dumps(body)), EXPECTED)
    assert not isinstance(told, Outcome)
    assert [(each.kind, each.message) for each in told] == [("delivered", ""), ("rejected", "bad SKU")]


def test_results_of_updates_are_found_by_the_id_where_no_name_is_known() -> None:
    """A contribution has no name. An answer without content is that to each, and two records of one name have none."""
    made = target(batch=BATCH | {"by": "order.reference"}, update="PUT /orders")
    expected = [ExpectedRecord(target_id=number) for number in ("7", "8")]
    results = [{"status": 200, "order": {"id": number, "reference": f"wms:{number}"}} for number in (8, 7)]

    def kinds(answer: Answer, expected: list[ExpectedRecord]) -> list[tuple[str, str | None]]:
        told = made.batch_outcomes("orders", answer, expected)
        assert not isinstance(told, Outcome)
        return [(each.kind, each.target_id) for each in told]

    done = Answer(200, {}, exact_json.dumps({"results": results}))
    assert kinds(done, expected) == [("delivered", "7"), ("delivered", "8")]
    assert kinds(Answer(204, {}, b""), expected) == [("delivered", "7"), ("delivered", "8")]
    assert kinds(done, [ExpectedRecord(name="wms:7")] * 2) == [("in_doubt", None)] * 2


def test_a_refusal_inside_a_200_is_no_success() -> None:
    """Without ``failed``, too, for mutations and calls; ``failed`` gives some of them another status."""
    refused = {"data": None, "errors": [{"message": "bad SKU"}]}
    error = {"error": {"code": 200, "message": "Server Error", "data": {"message": "bad SKU"}}}

    def kind(form: dict[str, Any], body: Any, target_id: str | None, failed: Any = None) -> str:
        expected = ExpectedRecord("/graphql", target_id, "wms:1")
        return target(failed, **form).outcome("orders", Answer(200, {}, exact_json.dumps(body)), expected).kind

    assert [kind(MUTATIONS, refused, target_id) for target_id in (None, "7")] == ["rejected", "rejected"]
    assert [kind(CALLS, error, target_id) for target_id in (None, "7")] == ["rejected", "rejected"]
    busy = {"when": {"field": "data.busy", "equals": "true"}, "statuses": {"bad sku": 504}}
    assert kind(MUTATIONS, refused, None, busy) == "in_doubt"


def test_a_throttled_mutation_waits_as_the_answer_says() -> None:
    """The wait is that of the member which the connection names."""
    rule = ThrottledAnswer.model_validate({"status": 200, "text": "credits", "wait": "errors.0.time_remaining"})
    made = target(**MUTATIONS)
    recognized = lambda answer: rule.match_or_stated_wait(answer.status, answer.body)  # noqa: E731  as a connection has it
    made.connect("plain", "acme", lambda: Api("https://plain.example", throttled=recognized), ManualClock())
    body = {"errors": [{"message": "Not enough credits", "time_remaining": "3 seconds"}], "data": {"order": None}}
    found = made.outcome("orders", Answer(200, {}, exact_json.dumps(body)), ExpectedRecord("/graphql", None, "wms:1"))
    assert (found.kind, found.retry_after_s) == ("throttled", 3.0)


def test_a_call_may_answer_with_the_id_of_the_new_record_alone() -> None:
    """Then ``create.id`` says where it is, and the record is delivered at once; without an id it is in doubt."""
    create = {"path": "/rpc", "body": {"method": "create", "params": [["{record}"]]}, "id": "result.0"}
    erp = target(**CALLS | {"create": create})

    def made(body: Any, target_id: str | None = None) -> tuple[str, str | None]:
        answer = Answer(200, {}, exact_json.dumps(body))
        found = erp.outcome("orders", answer, ExpectedRecord("/rpc", target_id, "wms:1"))
        return found.kind, found.target_id

    assert made({"result": [253]}) == ("delivered", "253")
    assert made({"result": [{"id": 253}]}) == made({"result": []}) == made({"result": [True]}) == ("in_doubt", None)
    assert made({"error": ["UserError", ["taken"]]}) == ("rejected", None)
    assert made({"result": None}, "7") == ("delivered", "7")


@pytest.mark.parametrize(
    ("edges", "kind"),
    [
        ([], "absent"),
        ([{"node": {"id": "7", "reference": "wms:1"}}], "found"),
        ([{"node": {"id": "7", "reference": "wms:2"}}], "unavailable"),
        ([{"node": {"id": "7", "reference": "wms:1", "state": "canceled"}}], "removed"),
        ([{"cursor": "c"}], "unavailable"),
        (None, "unavailable"),
    ],
)
def test_a_look_up_finds_records_in_the_edges_of_a_connection(edges: Any, kind: str) -> None:
    """An asterisk stands for each element of the list."""
    look_up = MUTATIONS["look_up"] | {"records": "data.orders.edges.*.node"}
    made = target(**MUTATIONS | {"look_up": look_up, "deleted": {"field": "state", "equals": "canceled"}})
    body = exact_json.dumps({"data": {"orders": {"edges": edges}}})
    assert made.found("orders", Answer(200, {}, body), ExpectedRecord(name="wms:1")).kind == kind


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (["UserError", ["The code must be unique.", "", None]], "UserError; The code must be unique."),
        (["", ""], "the answer says that it failed, and gives no reason"),
    ],
)
def test_the_reason_of_a_refused_call_is_shown(error: Any, message: str) -> None:
    """Never a status that the API did not answer with."""
    answer = Answer(200, {}, exact_json.dumps({"id": 3, "error": error}))
    assert target(**CALLS).outcome("orders", answer, ExpectedRecord("/rpc", "7", "wms:1")).message == message


@pytest.mark.parametrize(
    ("form", "body", "kind"),
    [
        (MUTATIONS, {"data": {"order": None}}, "absent"),
        (MUTATIONS, {"data": {"order": {"id": 7, "reference": "wms:1"}}}, "found"),
        (MUTATIONS, {"data": {}}, "unavailable"),
        (MUTATIONS, {"data": {"order": None}, "errors": [{"message": "forbidden"}]}, "unavailable"),
        (MUTATIONS, None, "unavailable"),
        (CALLS, {"result": []}, "absent"),
        (CALLS, {"result": [{"id": 7, "reference": "wms:1"}]}, "found"),
        (CALLS, {"error": {"message": "busy"}}, "unavailable"),
    ],
)
def test_null_is_an_absent_record(form: dict[str, Any], body: Any, kind: str) -> None:
    """An answer without the member, or with errors, says nothing about it."""
    answer = Answer(200, {}, exact_json.dumps(body))
    assert target(**form).found("orders", answer, ExpectedRecord(target_id="7", name="wms:1")).kind == kind


FAILED = {"when": {"field": "Success", "equals": "false"}, "statuses": {"no such": 404}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "reason", "message"),
    [
        (201, {"id": 7}, "delivered", None, ""),
        (201, {"id": 7, "reference": "wms:2"}, "in_doubt", None, "another record"),
        (200, {"Success": False, "Errors": ["bad SKU"]}, "rejected", "rejected", "bad SKU"),
        (200, {"Success": False, "Errors": ["name taken"]}, "rejected", "conflict", "name taken"),
        (422, {"message": "name taken"}, "rejected", "conflict", "name taken"),
        (422, {"message": "too heavy"}, "rejected", "rejected", "too heavy"),
        (200, {"Success": True}, "in_doubt", None, "without an id"),
        (503, {}, "in_doubt", None, "HTTP 503"),
    ],
)
def test_answers(status: int, body: Any, kind: str, reason: str | None, message: str) -> None:
    """The reason of a refusal is the partner's own text, and a refused repeat is a conflict about the name."""
    made = target(FAILED, repeated={"status": 422, "text": "Name taken"})
    outcome = made.outcome(
        "orders", Answer(status, {}, exact_json.dumps(body)), ExpectedRecord("/orders", None, "wms:1")
    )
    assert (outcome.kind, outcome.reason) == (kind, reason)
    assert message in outcome.message
    assert outcome.pointer == ("/reference" if reason == "conflict" else None)


def test_a_new_record_may_be_known_by_its_address() -> None:
    """As in APIs of Django REST framework, whose records show their address and no id."""
    made = target(id="url", id_form="/orders/{id}/")
    told = Answer(201, {}, b'{"url":"https://shop.example/api/orders/7/","reference":"wms:1"}')
    outcome = made.outcome("orders", told, ExpectedRecord("/orders", None, "wms:1"))
    assert (outcome.kind, outcome.target_id) == ("delivered", "7")


def test_look_ups() -> None:
    """A deleted record is absent by its id and removed by its name; one of which a failed answer says so is absent."""
    made = target(FAILED, deleted={"field": "state", "equals": "void"})
    void, live = ({"id": number, "reference": "wms:1", "state": state} for number, state in ((1, "void"), (2, "new")))

    def kind(body: Any, **expected: Any) -> str:
        answer = Answer(200, {}, exact_json.dumps(body))
        return made.found("orders", answer, ExpectedRecord(name="wms:1", **expected)).kind

    assert kind(live, target_id="2") == "found"
    assert kind(void, target_id="1") == "absent"
    assert kind({"Success": False, "Errors": ["no such order"]}, target_id="1") == "absent"
    assert kind({"data": {"orders": [void, live]}}) == "found"
    assert kind({"data": {"orders": [void]}}) == "removed"
    assert kind({"data": {"orders": [void, {**void, "id": 3}]}}) == "removed"
    assert kind({"data": {"orders": [{**void, "reference": "wms:2"}]}}) == "unavailable"
    assert kind({"data": {"orders": []}}) == "absent"
    assert kind({"data": {"orders": [], "total": 1}}) == "unavailable"
    assert kind({"state": "void"}, target_id="1") == "absent"
    assert kind({"data": {"orders": [live, live]}}) == "unavailable"
    assert kind({"data": {}}) == "unavailable"


def test_signs_of_other_things_in_a_look_up_are_declared() -> None:
    """Such as the number of all records of the account beside an empty list. A total of 0 does not hide errors."""
    look_up = {"path": "/orders", "params": {"reference": "{name}"}, "records": "data", "total": "found"}

    def kind(body: Any, **more: Any) -> str:
        made = target(look_up=look_up | more, deleted={"field": "state", "equals": "void"})
        return made.found("orders", Answer(200, {}, exact_json.dumps(body)), ExpectedRecord(name="wms:1")).kind

    assert kind({"data": [], "recordsTotal": 5000}) == "unavailable"
    assert kind({"data": [], "recordsTotal": 5000}, ignore=["recordsTotal"]) == "absent"
    assert kind({"data": [], "recordsTotal": 5000, "error": "timeout"}, ignore=["recordsTotal"]) == "unavailable"
    assert (kind({"found": 0}), kind({"found": 0, "success": False})) == ("absent", "unavailable")


def test_an_error_that_looks_like_a_deleted_record_shows_none() -> None:
    """The condition of ``deleted`` may hold for anything that is not an open record."""
    made = target(deleted={"field": "open", "empty": True})
    by_id = ExpectedRecord(target_id="7", name="wms:1")
    told = [made.found("orders", Answer(200, {}, body), by_id).kind for body in (b'{"error":"busy"}', b'{"id":7}')]
    assert told == ["unavailable", "absent"]


@pytest.mark.parametrize(
    ("failed", "kind"), [(None, "in_doubt"), ({"when": {"field": "success", "equals": "false"}}, "delivered")]
)
def test_the_rule_of_a_config_decides_about_errors(failed: Any, kind: str) -> None:
    """Where ``failed`` says what a refusal is, other members say nothing."""
    told = Answer(200, {}, b'{"id": 7, "reference": "wms:1", "success": true, "errors": ["late"]}')
    assert target(failed).outcome("orders", told, ExpectedRecord("/orders", None, "wms:1")).kind == kind


BY_REFERENCE = {"path": "/orders/by-reference/{name}", "absent": "No such order"}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b'{"id": 7, "reference": "wms:a/1"}', "found"),
        (200, b'{"id": 7, "reference": "wms:2"}', "unavailable"),
        (200, b'{"data": [{"id": 7, "reference": "wms:a/1"}]}', "unavailable"),
        (200, b"null", "absent"),
        (404, b'{"message": "no such order"}', "absent"),
        (404, b'{"message": "no route"}', "unavailable"),
        (404, b"<html>not found</html>", "unavailable"),
        (500, b'{"message": "no such order"}', "unavailable"),
    ],
)
def test_a_look_up_with_the_name_in_its_path(status: int, body: bytes, kind: str) -> None:
    """It answers with the record itself, or with the declared 404; any other 404 may come from a wrong path."""
    made = target(look_up=BY_REFERENCE)
    assert made.look_up("orders", "wms:a/1", None).path == "/orders/by-reference/wms%3Aa%2F1"
    assert made.ping("orders").path == "/orders"
    assert made.found("orders", Answer(status, {}, body), ExpectedRecord(name="wms:a/1")).kind == kind


def test_a_deleted_record_with_the_name_in_its_path_is_removed() -> None:
    """As it is in a list."""
    made = target(look_up=BY_REFERENCE, deleted={"field": "state", "equals": "void"})
    answer = Answer(200, {}, b'{"id": 7, "reference": "wms:1", "state": "void"}')
    assert made.found("orders", answer, ExpectedRecord(name="wms:1")).kind == "removed"
