"""Recordings of streams: no secret and no personal value is in a file, and a replay gives the same records."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, quote_plus

import httpx
import pytest

from crossdock import Connector, Context, CustomerDraft, RawBatch, Record, RefusedError, SecretRef, Settings, Stream
from crossdock.errors import ConfigError
from crossdock.sources import Api, CursorInBody, LoginAuth
from crossdock.testing import context, read, record, recording, replay
from crossdock.testing.recording import Recording

SECRETS = {
    "SHOP_USER": "canary-user", "SHOP_PASSWORD": "canary&pass/word+1", "granted": "canary.granted.token",
    "cookie": "canary-cookie-value", "key": "canary-key-in-the-query",
}  # fmt: skip
PEOPLE = [
    {"display": f"Canary{letter * 4} Person{letter * 4}", "email": f"canary.{letter * 4}@people{letter}.example.org",
     "phone": f"+49 40 55512{number}34"}
    for number, letter in enumerate("abcdef")
]  # fmt: skip


class ShopSettings(Settings):
    kind: Literal["shop"]
    base_url: str
    user: SecretRef
    password: SecretRef


class Customers(Stream[ShopSettings]):
    name, resource, key, mode = "customers", "customer", ("id",), "snapshot"

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        paginator = CursorInBody("/next_page_token", "page_token")
        for page in ctx.api.pages("/customers", {"limit": "2", "key": SECRETS["key"]}, paginator=paginator):
            yield RawBatch.json(page.items("/data"), source=page.address, key=["id"])
            for item in page.items("/data"):
                ctx.api.get(f"/tags/{quote(item['mail'], safe='')}", {"email": item["mail"]})

    def to_resource(self, record: Record) -> CustomerDraft:
        return CustomerDraft(
            name=record.at("/display", str), email=record.at("/mail", str), currency=record.at("/currency", str)
        )


def login(settings: ShopSettings) -> Api:
    credentials = {"user": settings.user, "password": settings.password}
    return Api(settings.base_url, LoginAuth(f"{settings.base_url}/login", credentials))


SHOP = Connector(name="shop", title="A shop", settings=ShopSettings, streams=lambda _: (Customers(),), api=login)
SETTINGS = {"base_url": "https://shop.example", "user": "env:SHOP_USER", "password": "env:SHOP_PASSWORD"}
WITH_OTHER_HOST = SETTINGS | {"base_url": "https://replayed.example"}


def shop(request: httpx.Request) -> httpx.Response:
    """Three pages of two customers; each answer repeats the credentials and the person in odd places."""
    if request.url.path == "/login":
        return httpx.Response(200, json={"token": SECRETS["granted"], "expires_in": 3600})
    if request.headers.get("authorization") != f"Bearer {SECRETS['granted']}":
        return httpx.Response(401)
    page = int(request.url.params.get("page_token", "token-0").removeprefix("token-"))
    pair = b64encode(f"{SECRETS['SHOP_USER']}:{SECRETS['SHOP_PASSWORD']}".encode()).decode()
    items = []
    for number, person in enumerate(PEOPLE[2 * page : 2 * page + 2], 2 * page):
        reference = PEOPLE[(number + 1) % 6]["email"]
        items.append({
            "id": number, "display": person["display"], "mail": person["email"], "currency": "EUR", "total": "19.90",
            "referred_by": reference, "address": {"phone": person["phone"], "lines": [person["display"]]},
            "history": [f"written to {person['email']} and {person['display']}", json.dumps(person)],
            "escaped": json.dumps({"who": person["display"].replace("a", "\u00e4")}),
            "link": f"https://shop.example/?q={quote_plus(person['display'])}&mail={quote(person['email'], safe='')}",
            "encoded": b64encode(json.dumps(person).encode()).decode(),
            "echo": f"Bearer {SECRETS['granted']}, {pair}, {quote(SECRETS['SHOP_PASSWORD'])}",
        })  # fmt: skip
    body = {"data": items, "next_page_token": f"token-{page + 1}" if page < 2 else None}
    headers = {"set-cookie": f"sid={SECRETS['cookie']}; Path=/", "x-for": PEOPLE[page]["email"], "x-auth": pair}
    return httpx.Response(200, json=body, headers=headers)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHOP_USER", "SHOP_PASSWORD"):
        monkeypatch.setenv(name, SECRETS[name])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording of the stream."""
    secrets = [SECRETS["SHOP_USER"], SECRETS["SHOP_PASSWORD"]]
    with record(tmp_path / "rec", httpx.MockTransport(shop), personal=["display"], secrets=secrets) as transport:
        trial = read(SHOP, context(SHOP, SETTINGS, transport=transport), "customers")
    assert trial.error is None
    assert len(trial.records) == 6
    return tmp_path / "rec"


def encodings(text: str) -> Iterator[str]:
    """*text* as it could be found in a file."""
    encodes: list[Callable[[str], str]] = [
        str, quote, quote_plus, lambda each: quote(each, safe=""), lambda each: json.dumps(each)[1:-1],
    ]  # fmt: skip
    yield from (encode(text).lower() for encode in encodes)
    for shift in range(3):  # Base64 of a text depends on what is before it
        encoded = b64encode(b" " * shift + text.encode()).decode()
        yield encoded[4 if shift else 0 : -4].lower()


def test_no_secret_and_no_personal_value_is_in_a_file(folder: Path) -> None:
    """In headers, queries, paths, bodies, nested members, lists, and in every encoding."""
    content = "\n".join(f"{path.name}\n{path.read_text(encoding='utf-8')}" for path in folder.iterdir()).lower()
    values = [*SECRETS.values(), *(value for person in PEOPLE for value in person.values())]
    values += [word for person in PEOPLE for word in person["display"].split()]
    assert [value for value in values for each in encodings(value) if each in content] == []
    assert "canary" not in content
    assert "(secret)" in content


def test_a_replay_gives_the_same_records(folder: Path) -> None:
    """The same keys and counts on another host, with other credentials; drafts differ in personal members only."""
    original = read(SHOP, context(SHOP, SETTINGS, transport=httpx.MockTransport(shop)), "customers").records
    transport = replay(folder)
    trial = read(SHOP, context(SHOP, WITH_OTHER_HOST, transport=transport), "customers")
    assert trial.error is None
    assert transport.unused == []
    assert [each.record.key for each in trial.records] == [each.record.key for each in original]
    for before, after in zip(original, trial.records, strict=True):
        assert before.members is not None
        assert after.members is not None
        assert after.members.keys() == before.members.keys()
        changed = {name for name in before.members if before.members[name] != after.members[name]}
        assert changed == {"name", "email"}
        assert before.record.json()["total"] == after.record.json()["total"]
        assert len(str(before.members["name"])) == len(str(after.members["name"]))


def test_references_that_were_equal_stay_equal(folder: Path) -> None:
    """A customer is referred to by mail address; the substitutes join as the addresses did."""
    trial = read(SHOP, context(SHOP, WITH_OTHER_HOST, transport=replay(folder)), "customers")
    items = [each.record.json() for each in trial.records]
    assert [item["referred_by"] for item in items] == [items[(number + 1) % 6]["mail"] for number in range(6)]
    assert len({item["mail"] for item in items}) == 6


def test_what_a_stream_read_before_it_failed_is_recorded(tmp_path: Path) -> None:
    """Failures are what tests need most; the answers of a refused login are kept too."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"error": "scope"}) if "page_token" in request.url.params else shop(request)

    with record(tmp_path / "rec", httpx.MockTransport(answer), secrets=[SECRETS["SHOP_USER"]]) as transport:
        assert read(SHOP, context(SHOP, SETTINGS, transport=transport), "customers").error is not None
    trial = read(SHOP, context(SHOP, SETTINGS, transport=replay(tmp_path / "rec")), "customers")
    assert len(trial.records) == 2
    assert "HTTP 403" in str(trial.error)


def test_values_that_were_named_are_masked(tmp_path: Path) -> None:
    """A secret of the config that no header or name tells."""
    answers = httpx.MockTransport(lambda _: httpx.Response(200, json={"note_to_self": "x-hidden-value-x"}))
    with record(tmp_path / "rec", answers, secrets=["hidden-value"]) as transport:
        httpx.Client(transport=transport).get("https://shop.example/hidden-value/x?p=hidden-value")
    (file,) = (tmp_path / "rec").iterdir()
    assert "hidden" not in file.name + file.read_text(encoding="utf-8")


def test_a_body_in_which_personal_data_cannot_be_found_is_left_out(tmp_path: Path) -> None:
    """The file says so, and a failure keeps its status."""
    answers = httpx.MockTransport(lambda request: httpx.Response(int(request.url.path[1:]), html="<b>Ada</b>"))
    with record(tmp_path / "rec", answers) as transport:
        client = httpx.Client(transport=transport, base_url="https://shop.example")
        assert client.get("/200").text == client.get("/500").text == "<b>Ada</b>"
    assert "Ada" not in "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "rec").iterdir())
    client = httpx.Client(transport=replay(tmp_path / "rec"), base_url="https://shop.example")
    assert client.get("/500").status_code == 500
    with pytest.raises(Exception, match="left out of the recording: 10 bytes of text/html: not JSON"):
        client.get("/200")


def test_a_download_is_recorded(tmp_path: Path) -> None:
    """A file that is streamed to disk, as JSON Lines."""
    lines = '{"id": 1, "email": "ada@example.org"}\n{"id": 2, "email": "bo@example.org"}\n'
    answers = httpx.MockTransport(
        lambda request: shop(request) if request.url.path == "/login" else httpx.Response(200, text=lines)
    )
    with record(tmp_path / "rec", answers) as transport:
        context(SHOP, SETTINGS, transport=transport, folder=tmp_path).api.download("/export", tmp_path / "export.jsonl")
    assert (tmp_path / "export.jsonl").read_text(encoding="utf-8") == lines
    context(SHOP, SETTINGS, transport=replay(tmp_path / "rec")).api.download("/export", tmp_path / "again.jsonl")
    again = [json.loads(line) for line in (tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [item["id"] for item in again] == [1, 2]
    assert "ada@" not in str(again)


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    """Not even before the first request; nothing is written if there was none."""
    with record(tmp_path / "rec", httpx.MockTransport(shop)):
        pass
    assert not (tmp_path / "rec").exists()
    (tmp_path / "rec").mkdir()
    Recording(tmp_path / "rec")
    (tmp_path / "rec" / "x").touch()
    with pytest.raises(ConfigError, match="rec: exists already"):
        Recording(tmp_path / "rec")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        Recording(tmp_path / "rec" / "x")


def test_a_recording_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is held in memory; what was recorded before is written."""
    monkeypatch.setattr(recording, "MAX_BYTES", 1 << 20)
    answers = httpx.MockTransport(lambda _: httpx.Response(200, json=["x" * 600_000]))
    with pytest.raises(RefusedError, match="exceeds 1 MiB"), record(tmp_path / "rec", answers) as transport:
        client = httpx.Client(transport=transport, base_url="https://shop.example")
        client.get("/")
        client.get("/")
    assert [path.name for path in (tmp_path / "rec").iterdir()] == ["0001-get-root.json"]


def test_files_are_named_by_their_requests(folder: Path) -> None:
    """In the order of the requests."""
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == ["0001-post-login.json", "0002-get-customers.json"]
    assert len(names) == 1 + 3 + 6


def test_the_personal_members_of_drafts_are_learned(tmp_path: Path) -> None:
    """A member of any name, if a mapping makes a personal member of it."""
    made = Recording(tmp_path / "rec")
    item: dict[str, Any] = {"x1": "Canarya", "x2": "Canaryb"}
    made.learn_personal_paths(item, {"name": "Canarya"})
    answers = httpx.MockTransport(lambda _: httpx.Response(200, json={"data": [item, {"x1": "Canaryc"}]}))
    httpx.Client(transport=made.recording_transport(answers)).get("https://shop.example/")
    made.clean_and_write()
    (file,) = (tmp_path / "rec").iterdir()
    content = file.read_text(encoding="utf-8")
    assert "Canaryb" in content
    assert "Canarya" not in content
    assert "Canaryc" not in content
    assert (made.request_count, made.replaced) == (1, 2)
