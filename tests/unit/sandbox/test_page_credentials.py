from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.sandbox.people import Person, assert_accessible, key_in
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, Raw

from crossdock.sandbox import Sandbox

KEYS = "/page/keys"


@pytest.fixture
def person(sandbox: Sandbox) -> Person:
    return Person(sandbox)


def ids(sandbox: Sandbox) -> set[str]:
    return set(sandbox.callers_by_key_id)


def test_a_key_is_created_and_works(sandbox: Sandbox, person: Person) -> None:
    """It has the chosen tenant and scopes, and the page shows how to use it on a collection that it may read."""
    answer = person.send(KEYS, ("tenant", "acme"), ("scope", "customers:read"), ("scope", "orders:write"))
    assert answer.status_code == 201
    raw = Raw(sandbox, key=key_in(answer))
    assert f"curl http://127.0.0.1:8080{CUSTOMERS}" in answer.text
    assert raw("GET", CUSTOMERS, x_tenant_slug="acme").status_code == 200
    assert raw("GET", INVOICES, x_tenant_slug="acme").status_code == 403
    assert_accessible(answer.text)


def test_a_key_is_shown_only_once(sandbox: Sandbox, person: Person, tmp_path: Path) -> None:
    """No later page, no log and no file contains it, and no address ever does."""
    key = person.create("*:write")
    key_id = key.split("_")[1]
    raw = Raw(sandbox, key=key)
    raw.make(CUSTOMERS, '{"externalId":"c","name":"n"}')
    logs = [raw("GET", f"/_sandbox/{name}", authorization=None) for name in ("requests", "effects", "keys")]
    later = [person.get(path) for path in ("/", f"{KEYS}/{key_id}", KEYS)]
    assert all(answer.status_code == 200 and key not in answer.text for answer in (*logs, *later))
    assert not any(key.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_form_that_is_sent_twice_creates_one_key(sandbox: Sandbox, person: Person) -> None:
    """The second answer is 409, shows no key, and lists the one that exists."""
    fields = ("csrf_token", person.token()), ("tenant", "sandbox"), ("scope", "*:read")
    first = person.post(KEYS, *fields)
    before = ids(sandbox)
    second = person.post(KEYS, *fields)
    assert (first.status_code, second.status_code) == (201, 409)
    assert ids(sandbox) == before
    assert 'id="key"' not in second.text
    assert key_in(first).split("_")[1] in second.text
    assert "This form was already sent." in second.text
    assert_accessible(second.text)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ([("tenant", "sandbox")], "Choose at least one scope."),
        ([("tenant", "a/b"), ("scope", "*:read")], "Is not a tenant slug. Use 1 to 63"),
        ([("tenant", ""), ("scope", "*:read")], "Is not a tenant slug. Use 1 to 63"),
        ([("tenant", "sandbox"), ("scope", "everything")], "1 unknown scope(s). Known scopes: "),
    ],
)
def test_an_invalid_form_creates_nothing(
    sandbox: Sandbox, person: Person, fields: list[tuple[str, str]], error: str
) -> None:
    """422 with an error that is linked to its field, and the form as it was filled in."""
    before = ids(sandbox)
    answer = person.send(KEYS, *fields)
    assert answer.status_code == 422
    page = assert_accessible(answer.text)
    assert answer.text.count(error) == 2  # in the summary and beside the field
    assert any(each.get("role") == "alert" for each in page.all("div"))
    assert f'value="{dict(fields)["tenant"]}" maxlength' in answer.text
    assert ids(sandbox) == before


def test_hostile_values_are_text(person: Person) -> None:
    """Markup in a field is shown as text."""
    answer = person.send(KEYS, ("tenant", '"><script>alert(1)</script>'))
    assert "<script" not in answer.text
    assert "&#34;&gt;&lt;script&gt;" in answer.text
    assert_accessible(answer.text)


def test_a_key_is_narrowed_but_never_widened(sandbox: Sandbox, person: Person) -> None:
    """Scopes that the key includes replace its scopes at once; others are 422 and change nothing."""
    key = person.create("customers:write", "orders:read")
    key_id = key.split("_")[1]
    raw, page = Raw(sandbox, key=key), f"{KEYS}/{key_id}"
    assert "orders:write" not in person.get(page).text.partition("<form")[2]
    wider = person.send(f"{page}/narrow", ("scope", "orders:write"), page=page)
    assert wider.status_code == 422
    assert "It does not have orders:write. Create another one for them." in wider.text
    none = person.send(f"{page}/narrow", page=page)
    assert none.status_code == 422
    assert sandbox.callers_by_key_id[key_id].scopes == "customers:write orders:read"
    narrowed = person.send(f"{page}/narrow", ("scope", "customers:read"), page=page)
    assert narrowed.status_code == 200
    assert "The scopes were narrowed." in narrowed.text
    assert [raw(method, CUSTOMERS, "{}").status_code for method in ("GET", "POST")] == [200, 403]
    for answer in (wider, none, narrowed):
        assert_accessible(answer.text)


def test_a_revoked_key_is_refused_while_it_is_in_use(sandbox: Sandbox, person: Person) -> None:
    """Requests until then are answered, every one after it is 401, and revoking again is 404."""
    key = person.create("*:write")
    key_id, raw = key.split("_")[1], Raw(sandbox, key=key)
    action = f"{KEYS}/{key_id}/revoke"
    unused = person.token(action)
    with ThreadPoolExecutor(1) as pool:
        using = pool.submit(lambda: [raw("GET", CUSTOMERS).status_code for _ in range(30)])
        revoked = person.send(action)
        statuses = using.result()
    assert statuses == sorted(statuses)
    assert raw("GET", CUSTOMERS).status_code == 401
    assert (revoked.status_code, f"Key {key_id} was revoked." in revoked.text) == (200, True)
    again = person.post(action, ("csrf_token", unused))
    assert again.status_code == 404
    assert f"There is no key {key_id}. It may have been revoked." in again.text
    assert person.get(f"{KEYS}/{key_id}").status_code == 404


Many = tuple[Sandbox, list[str]]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    """A sandbox with 150 keys, and their ids, oldest first."""
    with Sandbox(tmp_path_factory.mktemp("many")) as sandbox:
        yield sandbox, [sandbox.new_key("acme").split("_")[1] for _ in range(150)]


def test_150_keys_are_shown_on_pages(many: Many) -> None:
    """50 on a page, newest first, and each of them on exactly one page."""
    sandbox, created = many
    person, shown = Person(sandbox), list[str]()
    for number in range(1, 4):
        text = person.get(f"/?page={number}").text
        page = assert_accessible(text)
        found = [str(each["href"]) for each in page.all("a") if str(each["href"]).startswith(f"{KEYS}/")]
        assert len(found) == 50
        shown += [each.rpartition("/")[2] for each in found]
        assert ('rel="prev"' in text, 'rel="next"' in text) == (number > 1, number < 3)
    assert shown == created[::-1]


@pytest.mark.parametrize("wanted", ["0", "-1", "x", "", "²", "9" * 5_000, "1e9"])
def test_a_page_that_does_not_exist_is_the_nearest(many: Many, wanted: str) -> None:
    """No number is an error."""
    assert Person(many[0]).get(f"/?page={wanted}").status_code == 200


@pytest.mark.parametrize("path", ["/page/", "/page/x", f"{KEYS}/x/y", f"{KEYS}/0123456789ab", "/page/keys/a/b/c"])
def test_other_paths_are_404(person: Person, path: str) -> None:
    """A page that says so, with a link to the list."""
    answer = person.get(path)
    assert answer.status_code == 404
    assert 'href="/"' in answer.text
    assert_accessible(answer.text)


def test_the_page_and_the_other_endpoints_show_the_same_keys(sandbox: Sandbox, person: Person) -> None:
    """A key that was created elsewhere is listed on the page, and the reverse."""
    made = Raw(sandbox, key="none")("POST", "/_sandbox/keys", '{"tenant":"acme"}').json()
    assert made["credential"] in person.get().text
    key_id = person.create("*:read").split("_")[1]
    listed = json.loads(Raw(sandbox, key="none")("GET", "/_sandbox/keys").text)["data"]
    assert listed[-1]["id"] == key_id


CLIENTS = "/page/clients"


def test_a_client_is_created_and_gets_tokens(sandbox: Sandbox, person: Person) -> None:
    """Its secret is shown once, on the page for clients, and works at the token endpoint."""
    answer = person.send(CLIENTS, ("tenant", "acme"), ("scope", "customers:read"), page=CLIENTS)
    assert answer.status_code == 201
    assert_accessible(answer.text)
    (client,) = sandbox.clients.list_credentials()
    assert (client["tenant"], client["scopes"]) == ("acme", ["customers:read"])
    assert sandbox.clients.authenticate(client["id"], key_in(answer))
    for path in (CLIENTS, f"{CLIENTS}/{client['id']}"):
        shown = person.get(path)
        assert client["id"] in shown.text
        assert key_in(answer) not in shown.text
        assert_accessible(shown.text)
    assert client["id"] not in person.get("/").text


def test_a_client_is_narrowed_and_revoked(sandbox: Sandbox, person: Person) -> None:
    """Narrowing revokes its tokens; a revoked client has no page."""
    client, secret = sandbox.clients.create_credential(scopes=["customers:write"])
    raw, page = Raw(sandbox, key="none"), f"{CLIENTS}/{client.id}"
    body = f"grant_type=client_credentials&client_id={client.id}&client_secret={secret}"
    form = "application/x-www-form-urlencoded"
    token = raw("POST", "/oauth/token", body, authorization=None, content_type=form).json()["access_token"]
    user = Raw(sandbox, key=token)
    assert user("GET", CUSTOMERS).status_code == 200
    assert person.send(f"{page}/narrow", ("scope", "orders:read"), page=page).status_code == 422
    assert user("GET", CUSTOMERS).status_code == 200
    assert person.send(f"{page}/narrow", ("scope", "customers:read"), page=page).status_code == 200
    assert sandbox.clients.list_credentials()[0]["scopes"] == ["customers:read"]
    assert user("GET", CUSTOMERS).status_code == 401
    assert person.send(f"{page}/revoke", page=page).status_code == 200
    assert person.get(page).status_code == 404
    assert sandbox.clients.list_credentials() == []


def test_scopes_are_narrowed_to_single_records(sandbox: Sandbox, person: Person) -> None:
    """The ticks of accounts and bins apply to the named records only, and the rest of the form as before."""
    scopes = [("scope", each) for each in ("accounts:read", "accounts:write", "bins:read", "orders:read")]
    answer = person.send(KEYS, ("tenant", "sandbox"), *scopes, ("accounts", "4000  4010"), ("bins", "wms:A-01"))
    key_id = key_in(answer).split("_")[1]
    narrowed = "accounts:4000:read accounts:4000:write accounts:4010:read accounts:4010:write bins:wms:A-01:read"
    assert sandbox.callers_by_key_id[key_id].scopes == f"{narrowed} orders:read"
    page = f"{KEYS}/{key_id}"
    assert person.send(f"{page}/narrow", ("scope", "accounts:read"), page=page).status_code == 422
    one = person.send(f"{page}/narrow", ("scope", "accounts:read"), ("accounts", "4000"), page=page)
    assert one.status_code == 200
    assert sandbox.callers_by_key_id[key_id].scopes == "accounts:4000:read"


@pytest.mark.parametrize("scopes", [["orders:read"], ["*:write", "accounts:read"]])
def test_records_without_their_scope_are_refused(sandbox: Sandbox, person: Person, scopes: list[str]) -> None:
    """A record that is named would otherwise not narrow anything."""
    before = ids(sandbox)
    answer = person.send(KEYS, ("tenant", "sandbox"), *(("scope", each) for each in scopes), ("accounts", "4000"))
    assert answer.status_code == 422
    assert '<a href="#accounts">' in answer.text
    assert 'value="4000"' in answer.text
    assert_accessible(answer.text)
    assert ids(sandbox) == before
