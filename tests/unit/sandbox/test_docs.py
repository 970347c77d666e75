from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator, meta
from tests.servers import require
from tests.unit.sandbox.raw import BASE_URL, CUSTOMERS, Raw, assert_problem, exact

from crossdock.sandbox import SandboxServer, openapi_document
from crossdock.sandbox.coverage import SECTIONS

TESTS = Path(__file__).parents[2]


class Page(HTMLParser):
    """What a page consists of: tags that are closed in order, ids, and addresses that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                self.ids.append(str(value))
            if name in {"href", "src", "srcset", "action", "data"}:
                self.links.append(str(value))
        if tag not in {"meta", "br", "wbr"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.fixture
def text(raw: Raw) -> str:
    answer = raw("GET", "/docs", authorization=None, x_tenant_slug=None)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return answer.text


def test_the_page_needs_nothing_but_itself(raw: Raw, text: str) -> None:
    """It loads nothing and runs nothing, and the policy sent with it forbids both; its own style is let in by hash."""
    page = Page(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert all(each.startswith(("#", "/")) for each in page.links)
    assert "url(" not in text
    assert "@import" not in text
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = raw("GET", "/docs").headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")


def test_every_link_leads_somewhere(raw: Raw, text: str) -> None:
    """Anchors are on the page, once each, and addresses are answered."""
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    for link in set(page.links):
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert raw("GET", link, authorization=None).status_code == 200


def test_the_page_tells_the_whole_document(text: str) -> None:
    """Every operation, event, schema and status is on it, and no place of the template was left open."""
    document = openapi_document.document()
    items = document["paths"].values()
    names = [
        item[method]["operationId"] for item in items for method in item if method in {"get", "post", "patch", "delete"}
    ]
    assert len(names) == 38
    assert all(f'id="{name}"' in text for name in names)
    assert all(f"<code>{event}</code>" in text for event in document["webhooks"])
    assert all(f'id="schema-{name}"' in text for name in document["components"]["schemas"])
    assert "{{" not in text


def test_the_coverage_of_the_specification_is_told_and_true(text: str) -> None:
    """All nine sections have their row, and every test file that is named is there and holds tests."""
    assert [each.title[0] for each in SECTIONS] == list("123456789")
    for section in SECTIONS:
        assert section.documented
        assert section.part_two
        for path in section.tests:
            assert "\ndef test_" in (TESTS / path).read_text(encoding="utf-8")
            assert path.rpartition("/")[2] in text


def test_the_first_invoice_of_the_page_is_created(tmp_path: Path) -> None:
    """The page's shell lines, with the key put in, do what the page says."""
    require(shutil.which("curl") is not None, "curl")
    with SandboxServer(tmp_path) as server:
        told = subprocess.run(
            ["curl", "-sS", "--noproxy", "*", f"{server.base_url}/docs"], capture_output=True, text=True, check=True
        )
        found = re.search("<pre><code>(BASE=.*?)</code></pre>", told.stdout, re.DOTALL)
        assert found
        lines = unescape(found[1]).replace("sbx_...", server.api_key).replace("curl ", "curl --noproxy '*' ")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", lines], capture_output=True, text=True, check=True)
    invoice = json.loads(done.stdout)
    assert (invoice["total"], invoice["autoPostLedger"]) == (37.5, True)


@pytest.mark.parametrize("name", ["invoice", "Invoice", "inventory_lot", "inventory-lot", "StoredOrder", "Problem"])
def test_a_schema_stands_for_itself(raw: Raw, name: str) -> None:
    """It is valid 2020-12, has its own address as id, takes its example, and refers to nothing outside."""
    answer = raw("GET", f"/schemas/{name}.json", authorization=None)
    assert answer.headers["content-type"] == "application/schema+json"
    schema = answer.json()
    meta.validate(schema)
    Draft202012Validator(schema).validate(schema["examples"][0])
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    path = schema["$id"].removeprefix(BASE_URL)
    assert raw("GET", path, authorization=None).json() == schema
    assert all(each.startswith("#/$defs/") for each in re.findall(r'"\$ref": ?"([^"]*)"', answer.text))


def test_schemas_refuse_what_the_sandbox_refuses(raw: Raw) -> None:
    """A misspelt member, a fifth decimal, half a yen and a zero-width character do not fit."""
    schema = Draft202012Validator(raw("GET", "/schemas/invoice.json").json())
    fits = json.loads(raw.invoice(price="12"))
    fits["customerId"], fits["items"][0]["productId"] = ("cus_" + "0" * 25, "prd_" + "0" * 25)
    schema.validate(fits)
    line = fits["items"][0]
    for wrong in (
        {**fits, "customer_id": "x"},
        {**fits, "currency": "XQQ"},
        {**fits, "items": []},
        {**fits, "items": [{**line, "quantity": "2"}]},
        {**fits, "items": [{**line, "quantity": 10**15}]},
        {**fits, "currency": "JPY", "items": [{**line, "unitPrice": 0.5}]},
    ):
        assert not schema.is_valid(wrong), wrong
    customer = Draft202012Validator(raw("GET", "/schemas/customer.json").json())
    assert customer.is_valid({"externalId": "c", "name": "\u0645\u06cc\u200c\u062e\u0648"})
    assert not customer.is_valid({"externalId": "c\u200b", "name": "n"})


@pytest.mark.parametrize(
    "path", ["/docs/", "/docsx", "/openapi.json/", "/schemas/", "/schemas/nothing.json", "/schemas/x"]
)
def test_there_is_nothing_else(raw: Raw, path: str) -> None:
    """Other paths are 404 without a credential, and only GET is answered."""
    assert_problem(raw("GET", path, authorization=None), 404)
    assert_problem(raw("POST", "/docs", "", authorization=None), 405)


def test_reading_the_docs_leaves_no_trace(raw: Raw) -> None:
    """They cost no token and stand in no witness."""
    for path in ("/docs", "/openapi.json", "/schemas/invoice.json"):
        raw("GET", path, authorization=None)
    assert raw("GET", CUSTOMERS).headers["ratelimit"].startswith('"default";r=1999')
    assert exact(raw("GET", "/_sandbox/requests"))["total"] == 1
