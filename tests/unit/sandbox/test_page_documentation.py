from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from tests.unit.sandbox.people import Outline, assert_accessible
from tests.unit.sandbox.raw import METHODS, Raw

from crossdock.sandbox import documentation_page, openapi_document


@pytest.fixture
def text(raw: Raw) -> str:
    return raw("GET", "/docs", authorization=None).text


def test_the_page_is_accessible(text: str) -> None:
    """Headings in order, columns with headers, and every link within the page leads somewhere."""
    assert len(assert_accessible(text).all("table")) > 100


def test_the_page_shows_the_whole_document(text: str) -> None:
    """Every operation with its scope and statuses, every webhook, and every schema with its members."""
    document, plain = openapi_document.build_openapi_document(), unescape(text)
    for path, item in document["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            operation: Any = item[method]
            section = plain.partition(f'<h3 id="{operation["operationId"]}">')[2].partition("</section>")[0]
            assert f"<code>{method.upper()} {path}</code>" in section
            assert all(f"<code>{scope}</code>" in section for scope in operation["security"][0]["bearer"])
            assert all(f'data-name="Status">{status}<' in section for status in operation["responses"])
            assert (">assumed</span>" in section) == operation.get("x-assumption", False)
    for event in document["webhooks"]:
        assert f"<code>POST {event}</code>" in plain
    for name, schema in document["components"]["schemas"].items():
        section = plain.partition(f'<h3 id="schema-{name}">')[2].partition("</section>")[0]
        assert all(f"<code>{member}</code>" in section for member in schema.get("properties", {}))


def test_types_and_rules_are_in_words(text: str) -> None:
    """References are links, lists and null are named, long lists of values are counted."""
    section = unescape(text).partition('<h3 id="schema-Order">')[2].partition("</section>")[0]
    assert 'list of <a href="#schema-Line">Line</a>' in section
    assert '<a href="#schema-ShippingAddress">ShippingAddress</a> or null' in section
    assert "string or null" in section
    currency = unescape(text).partition('<h3 id="schema-Currency">')[2].partition("</section>")[0]
    assert " values, for example AED" in currency


def test_backticks_are_code_and_text_is_escaped() -> None:
    """No markup of the document reaches the page as markup."""
    page = Outline(documentation_page.documentation_html())
    assert not page.all("script", "img")
    assert "`" not in documentation_page.documentation_html()
