"""An endpoint takes what its vendor signed, and says which records it is about, or why it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.inbox.depot import DepotSettings, endpoint, new_secret, raw, signed

from crossdock import Connector
from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.errors import (
    ConfigError,
    CrossdockError,
    RefusedError,
    RemoteError,
    UnauthorizedError,
    UnavailableError,
)
from crossdock.services.inbox.webhook_verification_and_parsing import MOST_HINTS, endpoints_by_connection
from crossdock.state import ReceivedWebhook
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock
from crossdock.webhooks import Hint, Webhook, WebhookError, Webhooks, WebhookScheme, signed_headers

BODY = b'{"keys": [["1"], ["2"], ["1"]]}'


def test_a_webhook_names_its_records_once(tmp_path: Path) -> None:
    """The records of a signed body are named with the full name of their stream, each once."""
    secret = new_secret()
    received = endpoint(tmp_path, secret).verify_and_read(BODY, raw(signed(secret, BODY, name="msg_1")))
    assert received is not None
    assert (received.connection, received.delivery, received.topic) == ("depot", "msg_1", "order.changed")
    assert [(record.stream, record.key) for record in received.records] == [
        ("depot.orders", "1"),
        ("depot.orders", "2"),
    ]
    assert received.problem is None


def test_two_secrets_are_valid_while_one_is_replaced(tmp_path: Path) -> None:
    """Webhooks of the old and of the new secret are taken; of a third, none."""
    old, new = new_secret(), new_secret()
    both = endpoint(tmp_path, new, old)
    for secret in (old, new):
        assert both.verify_and_read(BODY, raw(signed(secret, BODY))) is not None
    with pytest.raises(WebhookError) as refused:
        both.verify_and_read(BODY, raw(signed(new_secret(), BODY)))
    assert (refused.value.reason, refused.value.status) == ("wrong_signature", 401)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"not json", "the body is not JSON, or goes beyond its limits"),
        (b"\xff\xfe", "the body is not JSON, or goes beyond its limits"),
        (b"[" * 100_000, "the body is not JSON, or goes beyond its limits"),
        (b'{"keys": 7}', "/keys: is a whole number, and should be a list"),
        (b'{"stream": "order", "keys": [["1"]]}', "a hint names the stream 'order'; known: orders"),
        (b'{"keys": [["1", "2"]]}', "a hint names a key of orders with 2 columns instead of id"),
        (b'{"keys": [[""]]}', "a key of orders is empty, too long or not storable"),
        (b'{"keys": [["a\\u0000b"]]}', "a key of orders is empty, too long or not storable"),
        (b'{"keys": [[7]]}', "a hint names a key of orders that is not text"),
        (exact_json.dumps({"keys": [["x" * 1_001]]}), "a key of orders is empty, too long or not storable"),
        (exact_json.dumps({"keys": [[str(n)] for n in range(MOST_HINTS + 1)]}), "it is about more than 1,000 records"),
    ],
)
def test_what_cannot_be_read_is_said_and_kept(tmp_path: Path, body: bytes, problem: str) -> None:
    """A signed body that is of no use is no error of the sender: its problem is told, without its data."""
    secret = new_secret()
    received = endpoint(tmp_path, secret).verify_and_read(body, raw(signed(secret, body)))
    assert received is not None
    assert received.records == ()
    assert problem in (received.problem or "")


def test_an_exception_of_the_connector_shows_no_data(tmp_path: Path) -> None:
    """The class, place and text of the exception are told, without the values of the webhook."""

    def broken(webhook: Webhook) -> Iterator[Hint]:
        raise KeyError(webhook.at("/name", str))

    secret, body = new_secret(), b'{"name": "Ada"}'
    received = endpoint(tmp_path, secret, hints=broken).verify_and_read(body, raw(signed(secret, body)))
    assert received is not None
    problem = received.problem or ""
    assert problem.startswith("hints raised KeyError in line ")
    assert problem.endswith("test_webhook_endpoints.py: '(data)'")


@pytest.mark.parametrize("kind", [ConfigError, RefusedError, RemoteError, UnauthorizedError, UnavailableError])
def test_an_error_that_a_connector_raises_on_purpose_is_kept(tmp_path: Path, kind: type[CrossdockError]) -> None:
    """A webhook whose hints raise an error of crossdock is unreadable, with its message; the server has not failed."""

    def raises(webhook: Webhook) -> Iterator[Hint]:
        raise kind("this shop is not ours")

    secret = new_secret()
    received = endpoint(tmp_path, secret, hints=raises).verify_and_read(BODY, raw(signed(secret, BODY)))
    assert received is not None
    assert (received.problem, received.records) == ("this shop is not ours", ())


def test_a_topic_may_be_a_member_of_the_body(tmp_path: Path) -> None:
    """A vendor that names the topic in the body has it there."""
    secret, body = new_secret(), b'{"type": "order.created", "keys": []}'
    made = endpoint(tmp_path, secret, topic_headers=(), topic_member="/type")
    received = made.verify_and_read(body, raw(signed(secret, body)))
    assert received == ReceivedWebhook("depot", received.delivery if received else "", "order.created")


def test_an_id_that_is_not_signed_is_only_a_part_of_the_name(tmp_path: Path) -> None:
    """Somebody who changes the id, or sends another body under it, gets no delivery taken for a copy of another."""
    text = {"signed_content": "{body}", "timestamp_header": None, "id_header": "x-id", "secret_encoding": "text"}
    unsigned = WebhookScheme.model_validate({**text, "prefix": "", "signature_header": "x-signature"})
    without = unsigned.model_copy(update={"id_header": None})
    names = []
    for scheme, ids in ((unsigned, ("a", "a", "b")), (without, ("", "", ""))):
        made = endpoint(tmp_path, "s", schemes=[scheme])
        for name in ids:
            received = made.verify_and_read(BODY, raw([*_signed_with(scheme, BODY, name)]))
            assert received is not None
            names.append(received.delivery)
    assert names[0] == names[1] != names[2]
    assert len({*names[2:]}) == 4, "without an id each is new"


def _signed_with(scheme: WebhookScheme, body: bytes, name: str) -> Iterator[tuple[str, str]]:
    yield from signed_headers(scheme, "s", body, delivery_id=name or None).items()


def test_a_ping_needs_no_signature(tmp_path: Path) -> None:
    """What a vendor sends to test an address is answered, and nothing is stored."""
    made = endpoint(tmp_path, new_secret(), ping=re.compile(rb"webhook_id=\d+"))
    assert made.verify_and_read(b"webhook_id=17", []) is None
    with pytest.raises(WebhookError):
        made.verify_and_read(b"webhook_id=17&more", [])


def test_a_secret_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    """A secret in another encoding is told with its place in the config, and not shown."""
    with pytest.raises(ConfigError, match=r"connections\.depot\.webhooks\.secrets") as refused:
        endpoint(tmp_path, "whsec_not!base64")
    assert "not!base64" not in str(refused.value)


HEADERS = st.lists(
    st.tuples(st.sampled_from([b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"x-topic"]), st.binary())
)


@given(body=st.binary(), headers=HEADERS)
def test_no_forged_webhook_is_taken(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    """Whatever somebody without the secret sends is refused with a status, and raises nothing else."""
    with pytest.raises(WebhookError) as refused:
        endpoint(tmp_path_factory.mktemp("secrets"), new_secret()).verify_and_read(body, headers)
    assert refused.value.status in {400, 401, 413}


@pytest.mark.parametrize("error", [RemoteError("the vault is away"), ConfigError("no secret"), ValueError("no")])
def test_webhooks_that_cannot_be_declared_stop_no_run(error: Exception) -> None:
    """A connector whose declaration of webhooks fails is an error of what receives them; runs know of no webhooks."""

    def declared(_settings: DepotSettings) -> None:
        raise error

    connector = Connector("depot", "Depot", DepotSettings, lambda _: (), webhooks=declared)
    assert not Connection("depot", connector, DepotSettings(), ())._receives_webhooks


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"schemes": None}, "webhooks raised TypeError in line .* of WebhookScheme"),
        ({"secrets": ["s"]}, "webhooks raised TypeError in line .* a list of secrets"),
        ({"topics": "order"}, "topics of Webhooks must be lists of texts"),
        ({"ping": re.compile("x")}, "must be a compiled pattern of bytes"),
        ({}, "connections.depot.webhooks: .* without a signature scheme"),
        (None, "webhooks returned str instead of Webhooks; see line "),
    ],
)
def test_webhooks_that_are_declared_wrongly_are_refused(facts: dict[str, Any] | None, told: str) -> None:
    """With the place in the connector's code: no webhook could be received."""

    def declared(_: DepotSettings) -> Any:
        usual: dict[str, Any] = {"schemes": [], "secrets": [], "hints": lambda _: ()}
        return "hooks" if facts is None else Webhooks(**usual | facts)

    connector = Connector("depot", "A depot", DepotSettings, lambda _: (), webhooks=declared)
    with pytest.raises(CrossdockError, match=told):
        endpoints_by_connection([Connection("depot", connector, DepotSettings(kind="depot"), ())], SystemClock())
