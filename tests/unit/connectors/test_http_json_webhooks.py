"""Webhooks of an API that a config declares: hints by pointers, and what is refused when the config is loaded."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.connectors.test_http_json_settings import CONFIG
from tests.unit.connectors.webhook_judge import bodies, declared, judge

from crossdock.config.project import project
from crossdock.config.project.masked_effective_config import effective_config
from crossdock.errors import FindingsError, RecordError
from crossdock.values import exact_json
from crossdock.webhooks import Webhook, WebhookVerifier
from crossdock_connectors.http_json import CONNECTOR
from crossdock_connectors.http_json.settings import HttpJsonSettings

LIST = {
    "path": "/items",
    "records": "items",
    "mode": "snapshot",
    "resource": "product",
    "map": {"sku": "sku", "name": "sku"},
}
BASE: dict[str, Any] = {
    "kind": "http_json",
    "base_url": "https://shop.example/api",
    "pagination": {"kind": "link_header"},
    "streams": {
        "items": {**LIST, "key": ["id"], "fetch": {"path": "/items/{id}"}},
        "places": {
            **LIST,
            "key": ["item", "shelf.code"],
            "namespace": "places",
            "fetch": {"path": "/places/{item}/{shelf.code}"},
        },
        "bins": {**LIST, "key": ["id"], "namespace": "bins"},
    },
}
HINTS = [
    {"stream": "items", "key": "/item/id", "topics": ["item.changed", "item.created"]},
    {"stream": "places", "key": ["/item", "/shelf/code"], "each": "/places", "topics": ["item.moved"]},
    {"stream": "items", "key": "", "each": "/ids", "topics": ["items.changed"]},
]
SECTION = {"secrets": ["env:OLD", "env:NEW"], "topic_member": "/event", "hints": HINTS}
WRONG = """
- {change: {secrets: []}, says: "webhooks.secrets: name at least one"}
- {change: {secrets: [hush]}, says: "webhooks.secrets.0: a secret is never written here"}
- {change: {secrets: ["env:A", "env:B", "env:C"]}, says: "webhooks.secrets"}
- {change: {hints: [{stream: bins, key: /id}]}, says: "webhooks.hints.0.stream: the stream bins needs fetch"}
- {change: {hints: []}, says: "webhooks.hints: name at least one"}
- {change: {hints: [{stream: itms, key: /id}]}, says: "hints.0.stream: no stream of this connection is called 'itms'; did you mean 'items'?"}
- {change: {hints: [{stream: xyz, key: /id}]}, says: "is called 'xyz'; known: bins, items, places"}
- {change: {hints: [{stream: items, key: [/id, /x]}]}, says: "hints.0.key: needs a pointer for each column of the key: id"}
- {change: {hints: [{stream: items, key: id}]}, says: "must be a JSON pointer such as /order/id"}
- {change: {hints: [{stream: items, key: /id, each: items}]}, says: "hints.0.each: must be a JSON pointer"}
- {change: {hints: [{stream: items, key: /id, topics: [a]}]}, says: "hints.0.topics: needs topic_header or topic_member"}
- {change: {topic_member: event}, says: "topic_member: must be a JSON pointer"}
- {change: {topic_header: "a b"}, says: "webhooks.topic_header"}
- {change: {scheme: {id_header: null}}, says: "webhooks.scheme: signed_content: contains {id}, but id_header is null"}
- {change: {scheme: {algoritm: sha1}}, says: "unknown key; did you mean 'algorithm'?"}
"""  # noqa: E501  a line for each


def settings(**section: Any) -> HttpJsonSettings:
    return HttpJsonSettings.model_validate({**BASE, "webhooks": SECTION | section})


def of(topic: str, body: Any, **section: Any) -> list[tuple[str, ...]]:
    read = exact_json.loads(exact_json.dumps(body))
    found = declared(CONNECTOR, settings(**section)).hints(Webhook(topic, {}, read))
    return [(hint.stream, *hint.key) for hint in found]


def loaded(folder: Path, section: dict[str, Any]) -> project.Project:
    document = yaml.safe_load(CONFIG)
    document["connections"]["shop"] |= {"webhooks": section, "streams": BASE["streams"]}
    (folder / "c.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return project.load(folder / "c.yaml")


def test_a_pointer_names_the_key() -> None:
    """Of webhooks with one of the topics; whole numbers are text, as in the records."""
    assert of("item.changed", {"item": {"id": 17}}) == [("items", "17")]
    assert of("item.created", {"item": {"id": "0017"}}) == [("items", "0017")]
    assert of("item.deleted", {"item": {"id": 17}}) == []


def test_a_list_names_several_records() -> None:
    """Each by several columns, or by the element itself."""
    places = [{"item": 1, "shelf": {"code": "A"}}, {"item": 2, "shelf": {"code": "B"}}]
    assert of("item.moved", {"places": places}) == [("places", "1", "A"), ("places", "2", "B")]
    assert of("items.changed", {"ids": [7, "8"]}) == [("items", "7"), ("items", "8")]


def test_a_rule_without_topics_takes_all() -> None:
    """Also of webhooks whose topic is not known."""
    assert of("", {"id": 5}, hints=[{"stream": "items", "key": "/id"}], topic_member=None) == [("items", "5")]


@pytest.mark.parametrize("value", [None, True, Decimal("1.5"), "", [], {}], ids=repr)
def test_other_values_are_no_keys(value: Any) -> None:
    """The error names the place."""
    with pytest.raises(RecordError, match=r"^/ids/0: "):
        of("items.changed", {"ids": [value]})


@given(bodies(("item", "id", "ids", "places", "shelf", "code")), st.sampled_from([*HINTS]))
def test_any_body_gives_hints_or_a_record_error(body: Any, rule: dict[str, Any]) -> None:
    """Hints name streams of the connection, by whole keys."""
    judge(CONNECTOR, settings(), rule["topics"][0], body)


def test_the_scheme_is_that_of_the_config() -> None:
    """Such as GitHub's, whose published example is verified.

    Source: docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries.
    """
    scheme = {
        "signature_header": "X-Hub-Signature-256", "id_header": None, "timestamp_header": None, "encoding": "hex",
        "signed_content": "{body}", "prefix": "sha256=", "secret_encoding": "text",
    }  # fmt: skip
    found = declared(CONNECTOR, settings(scheme=scheme))
    mac = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    verifier = WebhookVerifier(found.schemes[0], ["It's a Secret to Everybody"])
    verifier.verify(b"Hello, World!", {"X-Hub-Signature-256": f"sha256={mac}"})


def test_the_declaration_is_that_of_the_config() -> None:
    """Topics are those of the rules, each once; without the section nothing is accepted."""
    found = declared(CONNECTOR, settings(topic_header="X-Event"))
    assert (found.topic_headers, found.topic_member) == (("X-Event",), "/event")
    assert found.topics == ("item.changed", "item.created", "item.moved", "items.changed")
    assert [secret.reference for secret in found.secrets] == ["env:OLD", "env:NEW"]
    assert CONNECTOR.webhooks is not None
    assert CONNECTOR.webhooks(HttpJsonSettings.model_validate(BASE)) is None


@pytest.mark.parametrize("case", yaml.safe_load(WRONG), ids=lambda case: str(case["change"])[:60])
def test_a_wrong_section_is_refused_with_its_place(tmp_path: Path, case: dict[str, Any]) -> None:
    """When the config is loaded."""
    whole = {"secrets": ["env:A"], "hints": [{"stream": "items", "key": "/id"}]}
    with pytest.raises(FindingsError) as refused:
        loaded(tmp_path, whole | case["change"])
    assert case["says"] in str(refused.value)


def test_the_effective_config_shows_no_secret(tmp_path: Path) -> None:
    """References, and the scheme with all defaults."""
    loaded(tmp_path, {"secrets": ["env:A"], "hints": [{"stream": "items", "key": "/id"}]})
    shown = effective_config(tmp_path / "c.yaml")["connections"]["shop"]["webhooks"]
    assert shown["secrets"] == ["env:A"]
    assert shown["scheme"]["signature_header"] == "webhook-signature"
