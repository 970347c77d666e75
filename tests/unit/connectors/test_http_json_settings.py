"""Settings of the kind ``http_json``: what is refused, where, and which changes read everything again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from crossdock.config.project import connections_and_bound_streams, project
from crossdock.config.project.config_schema import config_schema
from crossdock.errors import FindingsError
from crossdock.values import exact_json
from crossdock_connectors.http_json import CONNECTOR
from crossdock_connectors.http_json.settings import HttpJsonSettings

CONFIG = """
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
connections:
  shop:
    kind: http_json
    base_url: https://shop.example/api
    pagination: {kind: link_header}
    streams:
      items:
        path: /items
        records: items
        mode: snapshot
        key: [id]
        resource: product
        map: {sku: sku, name: title}
"""
WRONG = """
- {change: {records: null}, says: "streams.items.records"}
- {change: {path: "https://other.example/x"}, says: "must be a path below base_url"}
- {change: {path: "/items?a=b"}, says: "without a query: use params"}
- {change: {records: "/a~2"}, says: "must be a dotted path such as data.items"}
- {change: {pagination: {kind: links}}, says: "streams.items.pagination"}
- {change: {pagination: {kind: graphql_connection, path: data}}, says: "needs graphql"}
- {change: {variables: {a: 1}}, says: "variables: needs graphql"}
- {change: {graphql: "{a}", body: {}}, says: "body: cannot be used with graphql"}
- {change: {expand: {x: {path: "/x/{id}", graphql: "{a}", body: {}}}}, says: "x.body: cannot be used with graphql"}
- {change: {expand: {x: {path: "/x/{id}", variables: {a: 1}}}}, says: "x.variables: needs graphql"}
- {change: {cursor: {column: id}}, says: "cursor: needs mode: incremental"}
- {change: {mode: incremental, cursor: {column: id}}, says: "cursor: the request does not use {since}"}
- {change: {existing: {path: /ids, records: ids}}, says: "existing: is for other modes"}
- {change: {gone: {every: 1d}}, says: "gone.every: needs existing"}
- {change: {mode: append, existing: {path: /ids, records: ids}}, says: "existing: needs on_gone"}
- change: {mode: append, deleted: {field: x, equals: y}, on_gone: delete, existing: {path: /ids, records: ids}}
  says: "existing: cannot be used with deleted"
- change:
    {mode: append, on_gone: delete, existing: {path: /ids, records: ids},
     graphql: "{a(a: $after)}", pagination: {kind: graphql_connection, path: data}}
  says: "existing: needs a pagination of its own"
- {change: {whole_groups: true}, says: "whole_groups: needs group_by, and a cursor with sorted: false"}
- {change: {mode: append, group_by: [id], whole_groups: true}, says: "whole_groups: needs group_by, and a cursor"}
- {change: {headers: {X-Since: "{since}"}}, says: "{since} needs cursor"}
- {change: {headers: {Authorization: Basic abc}}, says: "Authorization: a secret is never written here"}
- {change: {body: {}, pagination: {kind: offset}}, says: "pagination.in: is missing: the request is a POST"}
- {change: {graphql: "{a}", pagination: {kind: page_number}}, says: "such as in: variables"}
- {change: {pagination: {kind: offset, in: body}}, says: "pagination.in: needs body"}
- {change: {graphql: "{a}", pagination: {kind: offset, in: body}}, says: "pagination.in: needs in: variables"}
- {change: {body: {}, pagination: {kind: offset, in: variables}}, says: "pagination.in: needs graphql"}
- {change: {body: [1], pagination: {kind: offset, in: body}}, says: "pagination.param: has no place in body: what is"}
- change: {body: {paging: all}, pagination: {kind: offset, in: body, size: 5, size_param: paging.top}}
  says: "pagination.size_param: has no place in body"
- change: {body: {params: [[], 0, 100]}, pagination: {kind: offset, in: body, param: params.2}}
  says: "pagination.param: params.2 is 100 in body, and the first request would have 0: name another place, or write 0"
- change:
    {body: {params: [[], 0, 100]},
     pagination: {kind: offset, in: body, param: params.1, size: 50, size_param: params.2}}
  says: "pagination.size_param: params.2 is 100 in body, and the first request would have 50"
- change:
    {graphql: "{a(b: $options)}", variables: {options: {take: 100}},
     pagination: {kind: page_number, in: variables, param: options.take}}
  says: "pagination.param: options.take is 100 in variables, and the first request would have 1"
- {change: {graphql: "{a(b: $c)}", variables: {b: 1}}, says: "variables.b: the query does not name $b, and servers ig"}
- {change: {graphql: "{a} # $b", variables: {b: 1}}, says: "a variable that they do not know; it names no variable"}
- {change: {graphql: '{a(b: "$b")}', variables: {b: 1}}, says: "variables.b: the query does not name $b"}
- {change: {expand: {x: {path: "/g", graphql: "{a}", variables: {b: "{id}"}}}}, says: "x.variables.b: the query does"}
- {change: {graphql: "{a(b: $first)}", pagination: {kind: offset, in: variables}}, says: "param: the query does not"}
- change: {graphql: "{a(b: $cursor)}", pagination: {kind: graphql_connection, path: data}}
  says: "pagination.cursor: the query does not name $after, and servers ignore a variable that they do not know"
- change:
    {graphql: "{a(b: $after)}", pagination: {kind: graphql_connection, path: data, size: 5, size_variable: page.first}}
  says: "pagination.size_variable: the query does not name $page"
- change:
    {rest: {lines: {path: /g, graphql: "query($id: ID!, $cursor: String) {order(id: $id) {lines(after: $cursor)}}",
     variables: {id: "{id}"}, connection: data.order.lines}}}
  says: "rest.lines.cursor: the query does not name $after, and servers ignore a variable that they do not know"
- change: {rest: {lines: {path: /g, graphql: "{order(a: $after)}", variables: {id: "{id}"}, connection: data.order}}}
  says: "rest.lines.variables.id: the query does not name $id"
- change: {params: {limit: 250}, pagination: {kind: offset, size: 100}}
  says: "pagination.size_param: limit is 250 in params, and the first request would have 100"
- {change: {params: {top: 250}, pagination: {kind: offset, param: top}}, says: "pagination.param: top is 250 in params"}
- change:
    {mode: append, on_gone: delete, existing: {path: /ids, records: ids},
     body: {}, pagination: {kind: offset, in: body}}
  says: "needs a pagination of its own: this list is requested with GET"
- {change: {fetch: {path: /items}}, says: "fetch.path: names no column of the key, such as {id}"}
- {change: {fetch: {path: "/items/{sku}"}}, says: "fetch.path: {sku} is no column of the key: id"}
- {change: {fetch: {path: "/items?id={id}"}}, says: "fetch.path: must be a path below base_url"}
- {change: {fetch: {path: "/items/{id}", record: "/a~2"}}, says: "fetch.record: must be a dotted path"}
- {change: {deleted: {field: x, equals: y}}, says: "deleted: is for other modes"}
- {change: {params: {a: "{since}"}}, says: "params: {since} needs cursor"}
- {change: {params: {a: "{end}"}}, says: "params: {end} needs windows"}
- {change: {params: {api_key: abc}}, says: "params: api_key: a secret is never written here"}
- {change: {pagination: {kind: page_number, stop: {statuses: [500]}}}, says: "statuses: 500 is none of 204, 304, 400"}
- {change: {pagination: {kind: page_number, stop: {statuses: [404]}}}, says: "statuses: needs total, pages or cap"}
- {change: {pagination: {kind: offset, stop: {repeated: true}}}, says: "repeated: needs total or pages"}
- {change: {time_format: unix}, says: "time_format: needs windows, or a cursor with as: instant"}
- {change: {time_format: iso}, says: "time_format: must be unix, unix_ms, or a format such as"}
- change:
    {mode: incremental, cursor: {column: at, as: instant}, graphql: "{a(s: $s)}", variables: {s: "{since}"},
     numbers: [since]}
  says: "numbers: needs time_format: unix or unix_ms for times"
- change: {mode: incremental, cursor: {column: n, as: integer}, params: {a: "{since}"}, numbers: [since]}
  says: 'numbers: body and variables have no member "{since}"'
- {change: {first: "1"}, says: "first: needs cursor or windows"}
- {change: {mode: incremental, windows: {size: 1d}, params: {a: "{start}", b: "{end}"}}, says: "windows: needs first"}
- change: {mode: incremental, windows: {size: 1d}, first: "2024-01-01", params: {a: "{start}", b: "{end}"}}
  says: "first: must be a time with an offset"
- change:
    {mode: incremental, windows: {size: 1d}, first: "0001-01-01T00:00:00+14:00", params: {a: "{start}", b: "{end}"}}
  says: "first: must be a time with an offset, such as"
- change: {mode: incremental, windows: {size: 1 day}, first: "2024-01-01T00:00:00Z", params: {a: "{start}", b: "{end}"}}
  says: "windows.size: must be a duration"
- change:
    {mode: incremental, windows: {size: 1d}, first: "2024-01-01T00:00:00Z", params: {a: "{start}", b: "{end}"},
     reread: {every: 7d, finds_gone: true}}
  says: "reread.finds_gone: cannot be used with first: the list begins there; name a list of all records in existing"
"""
WRONG_CONNECTION = """
- {change: {pagination: null}, says: "streams.items.pagination: says how the API splits the list into pages"}
- {change: {base_url: "http://shop.example"}, says: "base_url: must be https"}
- {change: {headers: {Authorization: Bearer abc}}, says: "headers: Authorization: a secret is never written here"}
- {change: {headers: {X-Api-Key: abc}}, says: "headers: X-Api-Key: a secret is never written here"}
- {change: {auth: {kind: bearer, token: abc}}, says: "auth.token: a secret is never written here"}
- {change: {auth: {kind: login, login_url: "https://a.example", credentials: {password: abc}}}, says: "password"}
- {change: {auth: {kind: oauth}}, says: "auth"}
- change: {auth: {kind: client_credentials, token_url: "https://a.example", client_id: a}}
  says: "auth.client_secret: name client_secret or client_assertion, and not both"
- change: {auth: {kind: authorization_code, token_url: "https://a.example", client_id: a}}
  says: "auth.authorize_url: name authorize_url or device_url"
- change: {auth: {kind: authorization_code, authorize_url: "http://a.example", token_url: "https://a.co", client_id: a}}
  says: "must be https"
- {change: {rate: {per_second: 2}}, says: "rate.per_second: unknown key"}
"""


def load(folder: Path, *, stream: dict[str, Any] | None = None, connection: dict[str, Any] | None = None) -> Any:
    """The config with changes of its stream and its connection."""
    data = yaml.safe_load(CONFIG)
    shop = data["connections"]["shop"]
    shop["streams"]["items"] |= stream or {}
    shop |= connection or {}
    path = folder / "c.yaml"
    path.write_bytes(exact_json.dumps(data))
    return project.load(path)


@pytest.mark.parametrize("wrong", yaml.safe_load(WRONG), ids=lambda wrong: wrong["says"])
def test_a_wrong_stream_is_refused_in_its_place(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """The finding has the path of the key and says what to do."""
    with pytest.raises(FindingsError) as refused:
        load(tmp_path, stream=wrong["change"])
    assert wrong["says"] in str(refused.value)
    assert "connections.shop.streams.items" in str(refused.value)


@pytest.mark.parametrize("wrong", yaml.safe_load(WRONG_CONNECTION), ids=lambda wrong: wrong["says"])
def test_a_wrong_connection_is_refused_in_its_place(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """The finding has the path of the key, and never a literal secret."""
    with pytest.raises(FindingsError) as refused:
        load(tmp_path, connection=wrong["change"])
    assert wrong["says"] in str(refused.value)
    assert "abc" not in str(refused.value)


def test_a_pagination_of_the_connection_is_refused_there(tmp_path: Path) -> None:
    """With the stream whose request has no place for it."""
    with pytest.raises(FindingsError) as refused:
        load(
            tmp_path,
            stream={"body": {"params": [0]}},
            connection={"pagination": {"kind": "offset", "in": "body", "param": "params.1"}},
        )
    assert "connections.shop.pagination.param: has no place in body: what is around it is a list without 1" in str(
        refused.value
    )
    assert str(refused.value).endswith("(for the stream items)")


def version(**changes: Any) -> str:
    shop = yaml.safe_load(CONFIG)["connections"]["shop"]
    shop["streams"]["items"] |= changes
    (stream,) = CONNECTOR.streams(HttpJsonSettings.model_validate(shop))
    return stream.version


INCREMENTAL: dict[str, Any] = {"mode": "incremental", "params": {"since": "{since}"}, "cursor": {"column": "id"}}


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/others"},
        {"params": {"since": "{since}", "status": "any"}},
        {"records": "data"},
        {"explode": "variants"},
        {"first": "1"},
        {"cursor": {"column": "updated_at"}},
    ],
    ids=str,
)
def test_a_stream_that_reads_something_else_begins_anew(change: dict[str, Any]) -> None:
    """A cursor is not used for another list, and a change of what is asked for reads everything again."""
    assert version(**INCREMENTAL) != version(**INCREMENTAL | change)


@pytest.mark.parametrize(
    "change",
    [
        {"pagination": {"kind": "page_number", "size": 9}},
        {"cursor": {"column": "id", "sorted": True}},
        {"fetch": {"path": "/items/{id}"}},
    ],
    ids=str,
)
def test_how_a_list_is_read_may_change(change: dict[str, Any]) -> None:
    """Another page size reads nothing again, nor does a request for one record."""
    assert version(**INCREMENTAL) == version(**INCREMENTAL | change)


def test_the_version_of_a_stream_stays() -> None:
    """A state knows which version read its records: another hash for the same section would read everything again."""
    assert version() == "f692da989e8e330be7728d9f63eb5237"
    assert version(**INCREMENTAL) == "49afc65d7aaf2239c1ca2bda4facdf0b"


def test_the_schema_accepts_what_loads(tmp_path: Path) -> None:
    """An editor shows no error in a valid section, and one in a section with an unknown kind of pagination."""
    schema = config_schema(
        {
            name: connections_and_bound_streams.load_connector(name).settings
            for name in connections_and_bound_streams.installed_connectors()
        }
    )
    data = yaml.safe_load(CONFIG)
    shop = data["connections"]["shop"]
    shop |= {"auth": {"kind": "basic", "user": "env:T"}, "headers": {"X-Token": "env:T"}, "rate": {"burst": 2}}
    shop["streams"]["items"] |= {**INCREMENTAL, "pagination": {"kind": "offset", "total": "meta.total"}}
    load(tmp_path, connection=shop)
    check = jsonschema_rs.validator_for(schema)
    assert check.is_valid(data)
    shop["pagination"] = {"kind": "links"}
    assert not check.is_valid(data)
