"""``crossdock try``: what it shows of the first records, and what it leaves alone."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.cli.conftest import CONFIG, CommandLine

from crossdock.cli.try_stream import _dotted_path, _side_by_side
from crossdock.runs.stream_trial import leaf_values
from crossdock.testing import context, read, replay
from crossdock.values import author_code_errors
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.values.raw_rows_and_records import RESERVED, is_reserved_column

CUSTOMERS = """\
      customers:
        mode: append
        files: "c/*.csv"
        key: [CNO]
        group_by: [CNO]
        resource: customer
        personal: [currency]
        skip: {test_data: {field: CNO, starts_with: T}}
        map: {name: NAME, currency: CUR}
"""


def export(folder: Path, name: str, text: str) -> None:
    path = folder / "exports" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def two_streams(command_line: CommandLine) -> CommandLine:
    command_line.config.write_text(CONFIG + CUSTOMERS, encoding="utf-8")
    export(command_line.folder, "items.csv", "SKU,NAME,PRICE,NOTE\n0017,Lamp,1.50,hunter22\n,Shelf,2,\n0019,Vase,1x,\n")
    export(command_line.folder, "c/c.csv", "CNO,NAME,CUR\nT1,x,EUR\nC1,Ada,EUR\nC2,Bo,EUR\nC1,Ada,EUR\n,Cy,EUR\n")
    return command_line


def test_records_are_shown_beside_their_drafts_and_problems(two_streams: CommandLine) -> None:
    """A mapped record has its draft, a rejected one its reason; the command ends with 1."""
    tried = two_streams.run("try", "wms.products")
    assert tried.code == 1
    lines = tried.out.splitlines()
    assert lines[0] == "1  0017  items.csv:2"
    assert lines[1:3] == ["  record                 draft", "  SKU: 0017              sku: 0017"]
    assert "2  (no key)  items.csv:3" in lines
    assert any(line.endswith("   problem: key_missing") for line in lines)
    assert any(line.endswith("   problem: bad_value (line 4)") for line in lines)
    assert lines[-1] == "wms.products: 3 records read, 2 rejected"


def test_data_that_the_draft_does_not_show_needs_raw(two_streams: CommandLine) -> None:
    """A value that may be personal is given by its length; ``--raw`` shows all."""
    masked = two_streams.run("try", "wms.products", "-n", "1").out + two_streams.run("try", "wms.customers").out
    assert "NOTE: (8 characters)" in masked
    assert "currency: (personal)" in masked
    assert "name: (personal)" in masked
    assert "hunter22" not in masked
    assert "Ada" not in masked
    assert "NOTE: hunter22" in two_streams.run("try", "wms.products", "-n", "1", "--raw").out
    assert "name: Ada" in two_streams.run("try", "wms.customers", "--raw").out


def test_rows_of_a_group_are_one_record_wherever_they_are(two_streams: CommandLine) -> None:
    """Filtered rows are counted, and a record has its rows even after the last one that is shown."""
    tried = two_streams.run("try", "wms.customers", "-n", "1", "--json")
    assert tried.code == 0
    assert [(each["key"], each["lines"]) for each in tried.json["records"]] == [("C1", [3, 5])]
    assert tried.json["filtered"] == {"test_data": 1}
    assert [each["key"] for each in two_streams.run("try", "wms.customers", "--json").json["records"]] == [
        "C1", "C2", "",
    ]  # fmt: skip


def test_it_needs_no_state_and_writes_nothing(two_streams: CommandLine) -> None:
    """No file is created, changed or moved, and the same records are read again."""
    (two_streams.folder / "state.db").unlink()
    before = sorted(two_streams.folder.rglob("*"))
    first = two_streams.run("try", "wms.customers").out
    assert two_streams.run("try", "wms.customers").out == first
    assert sorted(two_streams.folder.rglob("*")) == before


def test_one_stream_has_to_be_named(two_streams: CommandLine) -> None:
    """A connection with several streams, and a name that does not exist, are refused with the names to choose from."""
    several = two_streams.run("try", "wms")
    assert several.code == 2
    assert "name one of them: wms.customers, wms.products" in several.err
    assert "did you mean 'wms.products'" in two_streams.run("try", "wms.product").err


def test_what_was_read_before_a_failure_is_shown(two_streams: CommandLine) -> None:
    """The records of a file that is damaged later are shown, and the command ends with the exit code of the error."""
    export(two_streams.folder, "items.csv", "SKU,NAME,PRICE\n0017,Lamp,1.50\n0018,Shelf\n")
    tried = two_streams.run("try", "wms.products")
    assert tried.code == 4
    assert "items.csv:3" in tried.err


FUNCTION = """\
def product(record):
    return {"sku": record.row["SKU"], "name": record.row["TITLE"]}
"""


def test_an_exception_of_the_mapping_names_file_and_line(two_streams: CommandLine) -> None:
    """The author finds the line that failed; the exception's text, which may quote data, is not shown."""
    (two_streams.folder / "mapping.py").write_text(FUNCTION, encoding="utf-8")
    before, _, _ = CONFIG.partition("        map:")
    two_streams.config.write_text(f"{before}        map: mapping.py:product\n", encoding="utf-8")
    tried = two_streams.run("try", "wms.products", "-n", "1")
    assert tried.code == 1
    assert "the mapping raised KeyError in line 2 of" in tried.out
    assert "mapping.py" in tried.out
    assert "hunter22" not in tried.out


RAISING = """\
def part(row):
    raise ValueError(f"no title for {row['SKU']!r} ({row['NOTE']})")

def product(record):
    try:
        part(record.row)
    except ValueError as error:
        raise RuntimeError("secret-of-the-export, half a\x07 record") from error
"""


def test_raw_shows_an_exception_whole(two_streams: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text and those before it, with each line of the author's code, but no secret and no control character."""
    (two_streams.folder / "mapping.py").write_text(RAISING, encoding="utf-8")
    before, _, _ = CONFIG.partition("        map:")
    two_streams.config.write_text(f"{before}        map: mapping.py:product\n", encoding="utf-8")
    monkeypatch.setattr(author_code_errors, "secret_values_in_settings", lambda _: iter(["secret-of-the-export"]))
    assert "hunter22" not in two_streams.run("try", "wms.products", "-n", "1").out
    tried = two_streams.run("try", "wms.products", "-n", "1", "--raw").out
    assert "  RuntimeError: (secret), half a\\x07 record" in tried
    assert "  ValueError: no title for '0017' (hunter22)" in tried
    assert f"line 6 of {two_streams.folder / 'mapping.py'}, in product: part(record.row)" in tried
    assert ", in part: raise ValueError(" in tried
    document = json.loads(two_streams.run("try", "wms.products", "-n", "1", "--raw", "--json").out)
    assert document["records"][0]["problem"]["raised"][-1].startswith("  line 2 of ")
    assert document["raised"] == []


def test_wide_records_are_shown_above_their_drafts() -> None:
    """No line is broken or cut: what does not fit beside is shown below."""
    assert list(_side_by_side(["ab", "c"], ["x"], 6)) == ["ab   x", "c    "]
    assert list(_side_by_side(["ab", "c"], ["x"], 5)) == ["ab", "c", "x"]


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_each_value_inside_json_has_one_pointer(value: object) -> None:
    """No two values have the same pointer."""
    pointers = [pointer for pointer, _ in leaf_values(value)]
    assert len(pointers) == len(set(pointers))


SHOP = """\
from crossdock import Connector, CustomerDraft, RawBatch, SecretRef, Settings, Stream
from crossdock.sources import Api, BearerAuth


class ShopSettings(Settings):
    base_url: str
    token: SecretRef


class Customers(Stream[ShopSettings]):
    name, resource, key, mode = "customers", "customer", ("id",), "snapshot"

    def pull(self, ctx, since):
        for page in ctx.api.pages("/customers"):
            yield RawBatch.json(page.items("/data"), source=page.address)

    def to_resource(self, record):
        return CustomerDraft(name=record.at("/label", str), currency=record.at("/currency", str))


CONNECTOR = Connector(
    name="recorded_shop",
    title="A shop",
    settings=ShopSettings,
    streams=lambda _: (Customers(),),
    api=lambda settings: Api(settings.base_url, BearerAuth(settings.token)),
)
"""
TOKEN = "token-of-the-recorded-shop"


class Shop(BaseHTTPRequestHandler):
    """Two customers, in an answer that repeats the token."""

    def do_GET(self) -> None:
        data = [
            {"id": 1, "label": "Ada Lovelace", "currency": "EUR", "addresses": [{"street": "Road 1", "town": "Bonn"}]},
            {"id": 2, "label": "Bo Byron", "currency": "USD"},
        ]
        body = json.dumps(
            {"data": data, "echo": self.headers["authorization"], "greeting": "Dear Ada Lovelace"}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def recorded_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """An installed connector of a shop on this machine."""
    (tmp_path / "recorded_shop.py").write_text(SHOP, encoding="utf-8")
    facts = tmp_path / "recorded_shop-0.1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: recorded-shop\nVersion: 0.1.0\n", encoding="utf-8")
    entry_point = "[crossdock.connectors]\nrecorded_shop = recorded_shop:CONNECTOR\n"
    (facts / "entry_points.txt").write_text(entry_point, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "recorded_shop", raising=False)
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key")
    with HTTPServer(("127.0.0.1", 0), Shop) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        shop = f'{{kind: recorded_shop, base_url: "http://127.0.0.1:{server.server_port}", token: env:SHOP_TOKEN}}'
        config = f"{CONFIG.partition('connections:')[0]}connections:\n  shop: {shop}\n"
        (tmp_path / "c.yaml").write_text(config, encoding="utf-8")
        try:
            yield CommandLine(tmp_path)
        finally:
            server.shutdown()
            thread.join()


def test_a_stream_is_recorded_and_replayed(recorded_shop: CommandLine) -> None:
    """The folder has no secret and no personal data, and a replay gives the same records."""
    folder = recorded_shop.folder / "rec"
    tried = recorded_shop.run("try", "shop.customers", "--record", str(folder), "--json")
    assert tried.code == 0, tried.err
    assert tried.json["recording"]["requests"] == 1
    (file,) = folder.iterdir()
    content = file.read_text(encoding="utf-8")
    assert [text for text in (TOKEN, "Ada", "Lovelace", "Byron") if text in content] == []
    module = import_module("recorded_shop")
    settings = {"base_url": "https://replayed.example", "token": "env:SHOP_TOKEN"}
    trial = read(module.CONNECTOR, context(module.CONNECTOR, settings, transport=replay(folder)), "customers")
    assert [each.record.key for each in trial.records] == ["1", "2"]
    assert [(each.members or {})["currency"] for each in trial.records] == ["EUR", "USD"]


def test_paths_that_no_record_has_are_named(recorded_shop: CommandLine) -> None:
    """A misspelled path is no error, because an API may leave out a member that is null."""
    auth = "auth: {kind: bearer, token: env:SHOP_TOKEN}, pagination: {kind: single_page}"
    address = "{of: addresses, single: true, each: {line1: street, line2: flor, city: town, country: {const: DE}}}"
    mapping = f"{{name: label, currency: curency, email: contact.email, billingAddress: {address}}}"
    stream = f"{{path: /c, records: data, mode: snapshot, key: [id], resource: customer, map: {mapping}}}"
    text = recorded_shop.config.read_text(encoding="utf-8").replace("kind: recorded_shop,", "kind: http_json,")
    text = text.replace("token: env:SHOP_TOKEN}", f"{auth}, streams: {{customers: {stream}}}}}")
    recorded_shop.config.write_text(text, encoding="utf-8")
    tried = recorded_shop.run("try", "shop.customers")
    assert tried.out.splitlines()[-2:] == [
        "shop.customers: 2 records read, 0 rejected",
        "no record has a value for addresses.*.flor, contact.email, curency: check the spelling",
    ]
    missing = ["addresses.*.flor", "contact.email", "curency"]
    assert recorded_shop.run("try", "shop.customers", "--json").json["empty_columns"] == missing


@given(st.lists(st.text(max_size=5) | st.sampled_from(RESERVED), min_size=1, max_size=4))
@example(["\x1d", "0"])
def test_a_declared_stream_shows_the_paths_that_a_config_can_use(names: list[str]) -> None:
    """Dotted paths, and JSON pointers for names with dots: what is shown finds the member."""
    value: object = 1
    for name in reversed(names):
        value = {name: value}
    ((pointer, _),) = leaf_values(value)
    shown = _dotted_path(pointer)
    assert value_at_path_or_missing(value, shown) == 1
    assert shown == pointer or shown == ".".join(names)
    assert not is_reserved_column(shown)


def test_a_recording_is_explained_and_never_overwritten(recorded_shop: CommandLine) -> None:
    """What was replaced is counted; a second recording needs another folder."""
    folder = recorded_shop.folder / "rec"
    tried = recorded_shop.run("try", "shop.customers", "--record", str(folder), "--personal", "greeting")
    assert "1 request recorded; " in tried.out
    assert "Read the files before you share them" in tried.out
    assert "Dear" not in next(folder.iterdir()).read_text(encoding="utf-8")
    again = recorded_shop.run("try", "shop.customers", "--record", str(folder))
    assert again.code == 2
    assert "exists already" in again.err
    assert recorded_shop.run("try", "shop.customers", "--personal", "x").code == 2


def test_files_are_not_recorded(two_streams: CommandLine) -> None:
    """Only the answers of an HTTP API are."""
    tried = two_streams.run("try", "wms.products", "-n", "1", "--record", str(two_streams.folder / "rec"))
    assert tried.code == 0
    assert "nothing is recorded: the stream sent no HTTP request through ctx.api" in tried.out
    assert not (two_streams.folder / "rec").exists()
