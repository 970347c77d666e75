"""What answers and failures mean: by exact class, none left out."""

from __future__ import annotations

import inspect
import json
import time
import traceback
import zlib
from decimal import Decimal
from typing import Any, get_args
from urllib.parse import quote

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.mapping.stream_declaration import Filter
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, Answer, NotSentError
from crossdock.reading.transport.httpcore_client import HttpClient
from crossdock.state import Intent, RecordIdentity, Scope
from crossdock.values import exact_json
from crossdock.writing.delivery.operations_and_intents import PersonalDataMasks
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome, RecordShape

NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError"}
FAMILIES = {"NetworkError", "ProtocolError", "TimeoutException"}  # raised only as one of their members
RETRIED_INSIDE = {"ConnectionNotAvailable"}


class Network(httpcore.MockBackend):
    """A wire of *answer*; *error* is raised instead of its end."""

    def __init__(self, *answer: bytes, error: Exception | None = None) -> None:
        super().__init__(list(answer))
        self._error = error
        self._streams: list[httpcore.NetworkStream] = []

    def unread(self) -> int:
        """How many pieces of the answer nobody has asked for."""
        return sum(len(stream._buffer) for stream in self._streams)  # type: ignore[attr-defined,misc]  # of the mock

    def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        stream = super().connect_tcp(*args, **options)
        read = stream.read

        def fails(max_bytes: int, timeout: float | None = None) -> bytes:
            if self._error and not stream._buffer:  # type: ignore[attr-defined]  # of the mock
                raise self._error
            return read(max_bytes, timeout)

        stream.read = fails  # type: ignore[method-assign]  # a mock's stream
        self._streams.append(stream)
        return stream


def client(network: Network, **limits: float) -> HttpClient:
    return HttpClient("http://127.0.0.1", headers={}, network=network, **limits)  # type: ignore[arg-type]  # only floats are given


def answer(status: int, body: bytes = b"{}", **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer_outcomes.outcome_of_write(Answer(status, named, body), ExpectedRecord())


def exceptions() -> list[type[Exception]]:
    found = [kind for _, kind in inspect.getmembers(httpcore, inspect.isclass) if issubclass(kind, Exception)]
    return [kind for kind in found if kind.__name__ not in FAMILIES | RETRIED_INSIDE]


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_library_is_classified(kind: type[Exception]) -> None:
    """An exception is either surely not sent or ambiguous; none escapes as itself."""
    http = client(Network(error=kind("x")))
    wanted: type[NotSentError | AmbiguousError] = NotSentError if kind.__name__ in NOT_SENT else AmbiguousError
    with pytest.raises(wanted) as told:
        http.send("POST", "/x", body=b"{}")
    assert isinstance(told.value, NotSentError | AmbiguousError)
    assert answer_outcomes.outcome_without_answer(told.value).kind == (
        "unavailable" if wanted is NotSentError else "in_doubt"
    )
    http.close()


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind"),
    [
        pytest.param(201, b'{"id":"inv_1"}', {}, "delivered", id="created"),
        pytest.param(204, b"", {"location": "/p/inv_1"}, "delivered", id="no body but a location"),
        pytest.param(201, b'{"id":', {}, "in_doubt", id="success with a broken body"),
        pytest.param(400, b"{}", {}, "rejected", id="400"),
        pytest.param(403, b"{}", {}, "rejected", id="403"),
        pytest.param(404, b"{}", {}, "rejected", id="404"),
        pytest.param(409, b"{}", {}, "rejected", id="conflict"),
        pytest.param(409, b'{"type":"urn:idempotency-key-in-use"}', {}, "in_doubt", id="first attempt still runs"),
        pytest.param(422, b"<html>", {}, "rejected", id="422 without a document"),
        pytest.param(422, b'{"title":"Invalid"}', {}, "rejected", id="422 about the record"),
        pytest.param(422, b'{"title":"This Idempotency-Key was used"}', {}, "in_doubt", id="422 about the key"),
        pytest.param(422, b'{"type":"https://x.example/idempotency"}', {}, "in_doubt", id="the same by its type"),
        pytest.param(401, b"{}", {}, "unauthorized", id="401"),
        pytest.param(408, b"{}", {}, "in_doubt", id="408"),
        pytest.param(429, b"{}", {"retry_after": "7"}, "throttled", id="429"),
        pytest.param(500, b"{}", {}, "in_doubt", id="500"),
        pytest.param(502, b"<html>", {}, "in_doubt", id="502"),
        pytest.param(503, b"{}", {}, "in_doubt", id="503 that says nothing"),
        pytest.param(503, b"{}", {"retry_after": "1"}, "unavailable", id="503 that says when"),
        pytest.param(504, b"{}", {}, "in_doubt", id="504"),
        pytest.param(302, b"", {"location": "/elsewhere"}, "in_doubt", id="a redirect is never followed"),
        pytest.param(303, b"", {"location": "/elsewhere"}, "in_doubt", id="as forms answer after a success"),
        pytest.param(301, b"", {"location": "/elsewhere"}, "rejected", id="moved, so not carried out"),
        pytest.param(307, b"", {"location": "/elsewhere"}, "rejected", id="to be sent elsewhere for now"),
        pytest.param(308, b"", {}, "rejected", id="to be sent elsewhere from now on"),
    ],
)
def test_every_answer_has_one_meaning(status: int, body: bytes, headers: dict[str, str], kind: str) -> None:
    """Only an answer that says "not done" counts as not done."""
    assert answer(status, body, **headers).kind == kind


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://a.example/v2/things", " to https://a.example/v2/things, which is /things below https://a.example/v2"),
        ("https://u:pw@api.example.com:8443/things/?token=x#y", " to https://api.example.com:8443/things/"),
        ("/v2/things", " to /v2/things"),
        ("//other.example/v2\x1b[2J", " to https://other.example/v2\\x1b[2J"),
        ("https://api.example.com", " to https://api.example.com"),
        ("https://[::1/", " to an address that cannot be read"),
        ("?page=1", ", and does not say where to"),
        ("", ", and does not say where to"),
    ],
)  # fmt: skip
def test_a_redirect_says_where_it_leads(location: str, shown: str, status: int) -> None:
    """Without what may be secret, and with what would be the base address; a look-up shows nothing by it."""
    told, thing = Answer(status, {"location": location}, b"<html>"), ExpectedRecord("/things?dry=false")
    assert answer_outcomes.outcome_of_write(told, thing).message == f"redirects{shown}"
    assert answer_outcomes.outcome_of_look_up(told, thing).kind == "unavailable"


@pytest.mark.parametrize(("status", "wait_s"), [(429, 1.5), (503, None), (200, None)])
def test_the_rest_of_a_window_is_a_wait_only_where_the_rate_is_limited(status: int, wait_s: float | None) -> None:
    """BigCommerce states it with every answer."""
    assert answer(status, b'{"id":"1"}', x_rate_limit_time_reset_ms="1500").retry_after_s == wait_s


def test_the_body_of_an_answer_is_read_exactly() -> None:
    """What is no JSON is none, such as the page of a server in front of the target."""
    assert answer_outcomes.body_of(Answer(200, {}, b'{"total": 0.10}')) == {"total": Decimal("0.10")}
    assert answer_outcomes.body_of(Answer(502, {}, b"<html>")) is None
    assert answer_outcomes.body_of(Answer(204, {}, b"")) is None


def test_a_problem_document_names_the_place() -> None:
    """The dead letter gets the pointer and the details, not the whole body."""
    body = b'{"title":"Invalid","status":7,"errors":[{"pointer":"#/items/0/quantity","detail":"too small"},5]}'
    told = answer(422, body)
    assert (told.reason, told.pointer, told.message) == ("rejected", "/items/0/quantity", "too small")


def test_a_problem_document_is_read_within_bounds() -> None:
    """A pointer, a detail and the number of errors are cut, so that a refusal cannot fill the state."""
    errors = [{"pointer": "/a" * 1_000_000, "detail": "x" * 1_000_000}, *[{"pointer": "/b", "detail": "y"}] * 100_000]
    body = exact_json.dumps({"type": "t" * 1_000_000, "errors": errors})
    problem = http_answers_and_errors.parse_error_answer(422, body)
    assert problem.pointers[0] == ("/a" * 150)
    assert (len(problem.pointers), len(problem.message), len(problem.kind)) == (100, 10_000, 10_000)
    assert answer_outcomes.outcome_of_write(Answer(422, {}, body), ExpectedRecord()).pointer == "/a" * 150


def test_a_mask_does_not_lengthen_a_pointer() -> None:
    """Each masked word grows, and the pointer stays within its bound."""
    intent = Intent(
        identity=RecordIdentity("s", "k", 1, 5, None, "f", 1), scope=Scope("platform", "customer", "n"),
        operation="create", step="whole", counter=1, idempotency_key="i", method="POST", path="/",
        body=exact_json.dumps({"name": "bob"}), before=None, after=None, if_match=None, raw={},
    )  # fmt: skip
    given = Outcome("rejected", "", 422, pointer="/bob" * 75)
    masks = PersonalDataMasks(resources={("platform", "customer"): frozenset({"name"})})
    masked = masks.masked_outcome([intent], given).pointer
    assert masked is not None
    assert (len(masked), "bob" in masked) == (http_answers_and_errors.MAX_POINTER, False)


@pytest.mark.parametrize("body", [b"null", b"[]", b'{"title":5,"errors":"x","detail":null}', b"\xff", b"x" * 9000])
def test_an_answer_that_is_no_problem_document_is_read_all_the_same(body: bytes) -> None:
    """Gateways answer what they like."""
    assert answer(400, body).message == "HTTP 400"


def test_an_entity_tag_has_a_bound() -> None:
    """A tag of more than 512 characters is as if it were not there, since the state keeps one with each record."""
    assert answer(201, b'{"id":"x"}', etag='"' + "x" * 510 + '"').etag == '"' + "x" * 510 + '"'
    assert answer(201, b'{"id":"x"}', etag='"' + "x" * 511 + '"').etag is None
    found = answer_outcomes.outcome_of_look_up(
        Answer(200, {"etag": "x" * 513}, b'{"id":"x"}'), ExpectedRecord(target_id="x")
    )
    assert (found.target_id, found.etag) == ("x", None)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n"


def packed(body: bytes) -> bytes:
    gzip = zlib.compressobj(wbits=31)
    return gzip.compress(body) + gzip.flush()


GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"  # of deflate (RFC 1951 section 3.2.4): stored, not the last, no bytes


@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        pytest.param(b"identity", b"x" * 1000, "more than 100 bytes", id="long"),
        pytest.param(b"gzip", packed(b"x" * 10_000_000), "more than 100 bytes", id="bomb"),
        pytest.param(b"gzip", packed(b"x" * 99)[:-9], "response is incomplete", id="packed and cut"),
        pytest.param(b"gzip", b"no gzip at all", "the compressed response is damaged", id="not packed"),
        pytest.param(b"gzip", packed(b"x") + b"y", "data follows the compressed response", id="a byte more"),
        pytest.param(b"gzip", packed(b"x") * 2, "data follows the compressed response", id="packed twice"),
        pytest.param(b"gzip", GZIP_HEAD + EMPTY_BLOCK * 30, "more than 100 bytes", id="packed nothing without end"),
        pytest.param(b"br", b"x", "content encoding is not supported", id="another packing"),
    ],
)
def test_an_answer_that_cannot_be_taken_whole_is_ambiguous(encoding: bytes, body: bytes, told: str) -> None:
    """What is too long, cut or in no form that was asked for says nothing about what was done; memory stays bounded."""
    http = client(Network(HEAD % (encoding, len(body)), body), max_response_bytes=100)
    with pytest.raises(AmbiguousError, match=told):
        http.send("GET", "/")
    http.close()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
@pytest.mark.parametrize(
    ("method", "head"),
    [
        pytest.param("POST", "201 Created\r\nlocation: /p/1\r\ncontent-length: 0", id="created"),
        pytest.param("POST", "200 OK\r\ntransfer-encoding: chunked\r\n\r\n0", id="no chunk"),
        pytest.param("PATCH", "204 No Content", id="no content"),
        pytest.param("GET", "304 Not Modified", id="not modified"),
        pytest.param("HEAD", "200 OK\r\ncontent-length: 99", id="head"),
    ],
)
def test_an_answer_without_a_body_has_no_encoding(method: str, head: str, encoding: str) -> None:
    """Servers name the encoding that they would have used: it says nothing of an answer in which nothing is encoded."""
    status, _, rest = head.partition("\r\n")
    http = client(Network(f"HTTP/1.1 {status}\r\ncontent-encoding: {encoding}\r\n{rest}\r\n\r\n".encode()))
    told = http.send(method, "/")
    http.close()
    assert (told.status, told.body) == (int(status[:3]), b"")


@pytest.mark.parametrize(
    ("head", "told"),
    [
        pytest.param("content-length: 9", "in the middle of the response", id="a length"),
        pytest.param("transfer-encoding: chunked", "in the middle of the response", id="chunks"),
        pytest.param("connection: close", "the compressed response is incomplete", id="until it closes"),
    ],
)
def test_a_packed_answer_that_is_cut_before_its_first_byte_is_ambiguous(head: str, told: str) -> None:
    """What announces a body and has none is cut off, however its end is told."""
    http = client(Network(f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n{head}\r\n\r\n".encode()))
    with pytest.raises(AmbiguousError, match=told):
        http.send("POST", "/", body=b"{}")
    http.close()


def test_nothing_is_read_after_the_end_of_a_packed_answer() -> None:
    """A server that goes on after its answer is left at once, with what it has still to say."""
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
    network = Network(head + packed(b"x"), *[b"y" * 1000] * 100)
    http = client(network)
    with pytest.raises(AmbiguousError, match="data follows the compressed response"):
        http.send("GET", "/")
    http.close()
    assert network.unread() == 99


@pytest.mark.parametrize("encoding", [b"GZIP", b"Gzip"])
def test_the_name_of_an_encoding_has_no_case(encoding: bytes) -> None:
    """RFC 9110 section 8.4.1 compares the names of codings without case."""
    body = packed(b"{}")
    http = client(Network(HEAD % (encoding, len(body)), body))
    assert http.send("GET", "/").body == b"{}"
    http.close()


def test_lines_of_one_name_are_joined() -> None:
    """Twenty thousand lines of one header are one text, in their order."""
    lines = b"".join(b"x:%d\r\n" % number for number in range(10_000))
    http = client(Network(b"HTTP/1.1 204 No Content\r\n" + lines + b"\r\n"))
    assert http.send("GET", "/").headers["x"] == ", ".join(map(str, range(10_000)))
    http.close()


CANARY = "canary-4711"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(f"HTTP/1.1 xx {CANARY}\r\n\r\n", "is not valid HTTP", id="status line"),
        pytest.param(f"{CANARY}\r\n\r\n", "is not valid HTTP", id="no HTTP"),
        pytest.param(f"HTTP/1.1 200 OK\r\nBearer {CANARY}\r\n\r\n", "is not valid HTTP", id="header line"),
        pytest.param(f"HTTP/1.1 200 OK\r\nx: {CANARY}\0\r\n\r\n", "is not valid HTTP", id="header value"),
        pytest.param(f"HTTP/1.1 200 OK\r\n {CANARY}\r\n\r\n", "is not valid HTTP", id="fold without a header"),
        pytest.param(
            f"HTTP/1.1 200 OK\r\ntransfer-encoding: {CANARY}\r\n\r\n", "is not valid HTTP", id="transfer coding"
        ),
        pytest.param(
            f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{CANARY}\r\n", "is not valid HTTP", id="chunk header"
        ),
        pytest.param(
            f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx{CANARY}", "is not valid HTTP", id="chunk end"
        ),
        pytest.param(f"HTTP/1.1 200 OK\r\ncontent-length: {'9' * 5000}\r\n\r\n", "is not valid HTTP", id="long length"),
        pytest.param(
            f"HTTP/1.1 200 OK\r\ncontent-encoding: {CANARY}\r\n\r\n",
            "the content encoding is not supported",
            id="encoding",
        ),
        pytest.param(f"HTTP/1.1 200 OK\r\n{CANARY}: " + "x" * 200_000, "the response header is too long", id="long"),
        pytest.param(f"HTTP/1.1 200 OK\r\nx: {CANARY}", "closed the connection without a response", id="cut head"),
        pytest.param(
            f"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{CANARY}", "in the middle of the response", id="cut body"
        ),
        pytest.param("", "closed the connection without a response", id="nothing"),
    ],
)
def test_a_failure_is_a_sentence_of_ours(said: str, told: str) -> None:
    """What a server sends stands in no error, nor in what Python prints of it with all that led to it."""
    http = client(Network(said.encode()))
    with pytest.raises(AmbiguousError, match=told) as failed:
        http.send("POST", "/", body=b"{}")
    http.close()
    assert CANARY not in "".join(traceback.format_exception(failed.value))
    assert "bytearray" not in str(failed.value)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(111, "Connection refused"), "cannot be reached: connection refused"),
        (OSError(CANARY), "cannot be reached: the connection failed"),
        (UnicodeError(CANARY), "cannot be reached: the address has no valid host"),
        (ValueError(CANARY), "cannot be reached: the address has no valid host"),
    ],
    ids=repr,
)
def test_a_connection_that_is_not_made_is_said_in_words_of_the_system(error: Exception, told: str) -> None:
    """Only the operating system's own text is shown; what is no name of a host is surely not sent."""

    class Nobody(httpcore.SyncBackend):
        def connect_tcp(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
            raise httpcore.ConnectError(error) if isinstance(error, OSError) else error

    http = HttpClient("http://127.0.0.1", headers={}, network=Nobody())
    with pytest.raises(NotSentError, match=told) as failed:
        http.send("POST", "/", body=b"{}")
    http.close()
    assert CANARY not in "".join(traceback.format_exception(failed.value))


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example", ".example"])
def test_what_is_no_name_of_a_host_is_not_sent(host: str) -> None:
    """Python's resolver refuses such names in its own way."""
    http = HttpClient(f"http://{host}", headers={})
    with pytest.raises(NotSentError, match="cannot be reached"):
        http.send("GET", "/")
    http.close()


def test_a_packed_answer_is_unpacked() -> None:
    """gzip is asked for, since pages of a shop shrink tenfold."""
    body = packed(b'{"id":"x"}')
    http = client(Network(HEAD % (b"gzip", len(body)), body))
    assert http.send("GET", "/").body == b'{"id":"x"}'
    http.close()


@pytest.mark.parametrize("address", ["http://127.0.0.1:port/", "http://[::1/"])
def test_what_is_no_address_is_not_sent(address: str) -> None:
    """Addresses of next pages come from other people's servers."""
    http = client(Network())
    with pytest.raises(NotSentError, match="the address is not valid") as failed:
        http.send("GET", address, params={"key": CANARY})
    http.close()
    assert address not in str(failed.value)
    assert CANARY not in "".join(traceback.format_exception(failed.value))


def test_a_drip_of_bytes_ends_at_the_deadline() -> None:
    """A server that sends a byte now and then, even of its headers, holds a request no longer than its total time."""

    class Drip(Network):
        def __init__(self) -> None:
            super().__init__(*[b"x"] * 1000)

        def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
            stream = super().connect_tcp(*args, **options)
            read = stream.read

            def slow(max_bytes: int, timeout: float | None = None) -> bytes:
                time.sleep(0.01)
                return read(max_bytes, timeout)

            stream.read = slow  # type: ignore[method-assign]  # a mock's stream
            return stream

    http = client(Drip(), total_timeout_s=0.1)
    with pytest.raises(AmbiguousError, match="timed out"):
        http.send("GET", "/")
    http.close()


IDS = st.text(max_size=80) | st.sampled_from(
    [".", "..", "", "a" * 64, "a" * 65, "é", "a b", "../x", "%2e%2e", "\x00", "\u202e"]
)


@given(given_id=IDS, located=st.booleans())
def test_an_id_has_a_form(given_id: str, *, located: bool) -> None:
    """What is bound is 1 to 64 printable characters that do not name another path, in the body or in Location."""
    headers = {"location": f"https://other.example/v1/things/{quote(given_id, safe='')}"} if located else {}
    body = b"{}" if located else json.dumps({"id": given_id}).encode()
    found = answer_outcomes.outcome_of_write(Answer(201, headers, body), ExpectedRecord("/v1/things"))
    is_id = given_id.isprintable() and given_id not in {".", ".."} and not answer_outcomes.is_null_like_id(given_id)
    if 1 <= len(given_id) <= 64 and is_id:
        assert (found.kind, found.target_id) == ("delivered", given_id)
    else:
        assert (found.kind, found.target_id) == ("in_doubt", None)


@pytest.mark.parametrize(
    ("location", "body"),
    [
        pytest.param("/v1/things", b"{}", id="the collection itself"),
        pytest.param("/v1/things/", b"{}", id="an empty segment"),
        pytest.param("/v1/others/x", b"{}", id="another collection"),
        pytest.param("/v1/things/x/y", b"{}", id="something below a record"),
        pytest.param("http://[::1/v1/things/x", b"{}", id="not a URL"),
        pytest.param("/v1/things/..", b"{}", id="a dot segment"),
        pytest.param("/v1/things/x", b'{"id": "y"}', id="body and Location disagree"),
        pytest.param("", b'{"id": "x", "externalId": "wms:2"}', id="the body is of another record"),
    ],
)
def test_an_answer_for_another_record_is_in_doubt(location: str, body: bytes) -> None:
    """A success that does not name the record that was sent binds nothing."""
    told = Answer(201, {"location": location}, body)
    assert answer_outcomes.outcome_of_write(told, ExpectedRecord("/v1/things", name="wms:1")).kind == "in_doubt"


ORDER = {"id": 7, "externalId": "wms:1"}
WRAPPED = answer_outcomes.RecordShape(record="/order")


def created(
    body: object,
    shape: answer_outcomes.RecordShape = answer_outcomes.STANDARD,
    status: int = 200,
    *,
    judged: bool = False,
) -> Outcome:
    told = Answer(status, {}, json.dumps(body).encode())
    return answer_outcomes.outcome_of_write(told, ExpectedRecord("/v1/things", name="wms:1"), shape, judged=judged)


FINE: list[dict[str, Any]] = [
    {"errors": [], "error": None, "warnings": ["the price was rounded"]},
    {"errors": {}, "error": False, "hasErrors": False, "ok": True},
    {"errors": None, "error": "", "errorCode": 0, "errorMessage": "", "isSuccess": True},
    {"error": 0, "error_code": "0000", "success": 1, "is_error": "false"},
    {"success": True, "message": "Created", "code": 0},
    {"success": "true", "message": "The order was created", "code": 200},
    {"status": "success", "code": 201, "message": "Order 7 created successfully", "warnings": []},
    {"status": 201, "statusCode": 201, "responseCode": "00"},
    {"status": "ok", "result": "created", "type": "order", "state": "new"},
    {"status": "pending", "code": "SO-500", "result": True},
    {"status": "on hold", "code": 10000, "timed_out": False},
    {"ack": "Success", "Status": "OK", "retcode": 0, "throttled": False},
    {"ack": "Warning", "status": "backordered", "meta": {"status": 200, "errors": []}},
    {"jsonrpc": "2.0", "error": None, "exceptions": []},
    {"_shards": {"total": 2, "successful": 1, "failed": 0}, "result": "created"},
]


@pytest.mark.parametrize("beside", FINE, ids=str)
def test_an_answer_that_reports_no_error_is_delivered(beside: dict[str, Any]) -> None:
    """Many APIs have members for errors in each answer, and words of success in places of others."""
    told = [created({"id": 7} | beside), created(ORDER | beside), created({"order": ORDER} | beside, WRAPPED)]
    assert [each.kind for each in told] == ["delivered"] * 3, told


@pytest.mark.parametrize(
    "own",
    [
        {"status": "failed"},
        {"status": "error", "partial": True},
        {"code": 500, "state": "invalid", "type": "exception"},
        {"status": 404, "total": 12, "fault": "late", "errorCode": 7},
    ],
    ids=str,
)
def test_a_written_record_may_have_any_status_of_its_own(own: dict[str, Any]) -> None:
    """Such as that of an order whose payment failed, in an answer that shows the record."""
    assert [created(ORDER | own).kind, created({"order": {"id": 7} | own}, WRAPPED).kind] == ["delivered"] * 2
    told = Answer(200, {}, json.dumps({"id": 7} | own).encode())
    assert answer_outcomes.outcome_of_write(told, ExpectedRecord(target_id="7")).kind == "delivered"


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ({"success": False, "message": "sku unknown"}, "answered success with an error: sku unknown"),
        ({"error": "sku unknown"}, "answered success with an error: sku unknown"),
        ({"message": "Created", "errors": ["sku unknown"]}, "answered success with an error: sku unknown"),
        ({"errors": {"sku": ["unknown"]}}, "answered success with an error: "),
        ({"error": True}, "answered success with an error: see "),
        ({"isSuccess": "false"}, "answered success with an error: "),
        ({"hasErrors": True}, "answered success with an error: see "),
    ],
    ids=str,
)
def test_an_error_beside_an_id_is_no_success(beside: dict[str, Any], message: str) -> None:
    """Nothing may have been made, so it is in doubt, and its reason is kept for a look-up that finds nothing."""
    inside = created({"order": ORDER | beside}, WRAPPED)
    listed = created({"results": [{"order": ORDER} | beside]}, answer_outcomes.RecordShape(record="/results/0/order"))
    for told in (created(ORDER | beside), created({"order": ORDER} | beside, WRAPPED), inside, listed):
        assert (told.kind, told.reason, told.message[: len(message)]) == ("in_doubt", "rejected", message)
    change = Answer(200, {}, json.dumps(beside).encode())
    assert answer_outcomes.outcome_of_write(change, ExpectedRecord(target_id="7")).kind == "in_doubt"
    by_name = answer_outcomes.outcome_of_write(
        change, ExpectedRecord(name="wms:1"), answer_outcomes.RecordShape(id=None)
    )
    assert by_name.kind == "in_doubt"
    assert created(ORDER | beside, judged=True).kind == "delivered", "a rule of the target decides"


@pytest.mark.parametrize(
    ("beside", "headers", "message"),
    [
        ({"~error": "sku unknown"}, {}, "answered success with an error: sku unknown"),
        ({"err/or": True, "error": "sku unknown"}, {}, "answered success with an error: sku unknown"),
        ({}, {"x-pagination": '{"error": "x"}'}, "answered success with an error: see x-pagination/error"),
    ],
)
def test_an_error_at_an_odd_place_has_an_outcome(beside: dict[str, Any], headers: dict[str, str], message: str) -> None:
    """Its name may have characters that pointers escape, and it may be in a header."""
    answer = Answer(201, headers, json.dumps({"order": {"id": 7}} | beside).encode())
    found = answer_outcomes.outcome_of_write(answer, ExpectedRecord("/v1/things"), WRAPPED)
    assert (found.kind, found.message) == ("in_doubt", message)


@pytest.mark.parametrize("word", [{"status": "error"}, {"code": 500}, {"result": "failed"}, {"errorCode": 17}], ids=str)
def test_a_word_of_failure_without_the_record_is_no_success(word: dict[str, Any]) -> None:
    """Where an answer does not show the record, its status and its code are those of the request."""
    assert [created({"id": 7} | word).kind, created({"order": ORDER} | word, WRAPPED).kind] == ["in_doubt"] * 2
    change = Answer(200, {}, json.dumps(word).encode())
    assert answer_outcomes.outcome_of_write(change, ExpectedRecord(target_id="7")).kind == "in_doubt"


@pytest.mark.parametrize(
    ("beside", "shown"),
    [
        ({"faultMessage": "sku unknown"}, "sku unknown"),
        ({"exception": {"message": "sku unknown"}}, "sku unknown"),
        ({"response": {"errorText": "sku unknown", "time": 7}}, "sku unknown"),
        ({"errorCode": 17, "detail": "sku unknown"}, "sku unknown"),
        ({"errorCode": 17}, "see /errorCode"),
        ({"errorCode": "E17", "message": "sku unknown"}, "sku unknown"),
        ({"status": "failed", "message": "sku unknown"}, "sku unknown"),
        ({"status": "failed"}, "failed"),
    ],
    ids=str,
)
def test_the_text_where_an_answer_reports_an_error_is_shown(beside: dict[str, Any], shown: str) -> None:
    """Also beside a record. A word says less than a text beside it, and without a text, its place is named."""
    assert created({"order": ORDER} | beside, WRAPPED).message == f"answered success with an error: {shown}"


@pytest.mark.parametrize(
    ("body", "deletes", "kind"),
    [
        ({"modifiedCount": 0, "matchedCount": 1}, False, "in_doubt"),
        ({"id": 7, "updated": False}, False, "in_doubt"),
        ({"id": 7, "externalId": "wms:1", "updated": False}, False, "delivered"),
        ({"id": 7, "deleted": False}, False, "delivered"),
        ({"id": 7, "deleted": False}, True, "in_doubt"),
        ({"affected_rows": 0}, True, "in_doubt"),
        ({"affected_rows": 1}, True, "delivered"),
        ({"updated": False}, True, "delivered"),
        ({"status": "open"}, True, "in_doubt"),
        ({"status": "cancelled", "deleted": False}, True, "delivered"),
    ],
)
def test_a_success_that_tells_of_nothing_done_is_in_doubt(body: dict[str, Any], *, deletes: bool, kind: str) -> None:
    """A change or delete that the answer denies is looked up; members of a record that is shown are its own."""
    shape = RecordShape(deleted=Filter(field="status", equals="cancelled"))
    written = ExpectedRecord("/v1/things/7", target_id="7", name="wms:1", deletes=deletes)
    told = Answer(200, {}, exact_json.dumps(body))
    assert answer_outcomes.outcome_of_write(told, written, shape).kind == kind


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        ({"note": "old"}, "in_doubt"),
        ({"note": "new"}, "delivered"),
        ({"note": "NEW"}, "delivered"),
        ({}, "delivered"),
        ({"place": {"city": "A"}}, "in_doubt"),
        ({"place": {"city": "A", "code": "1"}}, "delivered"),
    ],
    ids=str,
)
def test_a_success_that_shows_the_old_value_is_in_doubt(shown: dict[str, Any], kind: str) -> None:
    """A value in another form, or none, says nothing."""
    changes = {"note": ("old", "new"), "place": ({"city": "A"}, {"city": "A", "code": "1"})}
    written = ExpectedRecord("/v1/things/7", target_id="7", name="wms:1", changes=changes)
    told = Answer(200, {}, exact_json.dumps({"id": 7, "externalId": "wms:1", **shown}))
    assert answer_outcomes.outcome_of_write(told, written).kind == kind


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize(
    ("place", "body", "shown"),
    [
        ("", "null", "null"),
        ("", "false", "false"),
        ("", "[]", "[]"),
        ("/0", "[]", "[]"),
        ("/0", "[null]", "null"),
        ("/data", '{"data": null, "success": true}', "null"),
        ("/data", '{"data": []}', "[]"),
        ("/data/0", '{"data": []}', "[]"),
        ("/data/order", '{"data": {"order": null}}', "null"),
        ("/data/order", '{"data": []}', "[]"),
        ("/result/0", '{"result": false}', "false"),
        ("/result", '{"jsonrpc": "2.0", "id": 1, "result": false}', "false"),
        ("", "{}", None),
        ("", "true", None),
        ("", '{"success": true}', None),
        ("", '{"note": null}', None),
        ("/data", '{"success": true}', None),
        ("/data", '{"data": {}}', None),
        ("/data/0", '{"data": [{}]}', None),
        ("/result", '{"result": true}', None),
        ("/result", '{"result": 7}', None),
        ("/result/0", '{"result": null}', None),
    ],
)
@pytest.mark.parametrize("judged", [False, True])
def test_a_change_whose_answer_shows_nothing_in_place_of_the_record_is_in_doubt(
    place: str, body: str, shown: str | None, *, deletes: bool, judged: bool
) -> None:
    """APIs answer so if no record matched or a method failed; an answer that shows no record denies nothing."""
    written = ExpectedRecord("/v1/things/7", target_id="7", deletes=deletes)
    told = answer_outcomes.outcome_of_write(
        Answer(200, {}, body.encode()), written, RecordShape(record=place), judged=judged
    )
    message = f"answered success, but has {shown} in place of the record"
    assert (told.kind, told.message, told.reason) == (
        ("delivered", "", None) if shown is None else ("in_doubt", message, "rejected")
    )


@pytest.mark.parametrize(("body", "kind"), [(b"false", "in_doubt"), (b"null", "delivered"), (b"", "delivered")])
def test_a_create_that_is_known_by_its_name_is_denied_by_false(body: bytes, kind: str) -> None:
    """An action may have nothing to show, and false is what key-value stores say of what they did not write."""
    told = answer_outcomes.outcome_of_write(Answer(200, {}, body), ExpectedRecord(name="wms:1"), RecordShape(id=None))
    assert told.kind == kind


def test_what_is_only_accepted_has_nothing_to_show_yet() -> None:
    """A record that is changed later is looked up until it is, and is no dead letter meanwhile."""
    told = answer_outcomes.outcome_of_write(Answer(202, {}, b"null"), ExpectedRecord(target_id="7"))
    assert answer_outcomes.outcome_or_pending_if_accepted(told, 202).kind == "pending"


def test_several_results_are_no_success_of_one() -> None:
    """One of them may be an error (RFC 4918, section 11.1)."""
    assert (created(ORDER, status=207).kind, created(ORDER, status=207, judged=True).kind) == ("in_doubt", "delivered")


@pytest.mark.parametrize("no_id", [0, -1, "0", "00000000-0000-0000-0000-000000000000", "error", "null"], ids=repr)
def test_a_word_in_place_of_an_id_is_none(no_id: object) -> None:
    """APIs answer so where nothing was made. A record that is already known by it is changed all the same."""
    assert created({"id": no_id}).kind == "in_doubt"
    change = Answer(200, {}, json.dumps({"id": no_id}).encode())
    assert answer_outcomes.outcome_of_write(change, ExpectedRecord(target_id="7")).kind == "in_doubt"
    assert answer_outcomes.outcome_of_write(change, ExpectedRecord(target_id=str(no_id))).kind == "delivered"


OURS = {"id": "x", "externalId": "wms:1"}
FOREIGN = {"id": "y", "externalId": "wms:2"}


@pytest.mark.parametrize(
    ("by_id", "body", "kind"),
    [
        pytest.param(False, {"data": [OURS]}, "found", id="by name: ours"),
        pytest.param(False, {"data": []}, "absent", id="by name: nothing"),
        pytest.param(False, {"data": [], "errors": [], "error": {"code": 0}}, "absent", id="by name: no error"),
        pytest.param(False, {"data": [], "errors": [{"code": "BUSY"}]}, "unavailable", id="by name: an error"),
        pytest.param(False, {"data": [FOREIGN]}, "unavailable", id="by name: a foreign record"),
        pytest.param(False, {"data": [OURS, FOREIGN]}, "unavailable", id="by name: several"),
        pytest.param(False, {"data": [{"id": "x"}]}, "unavailable", id="by name: without a name"),
        pytest.param(False, {"data": [OURS | {"id": ".."}]}, "unavailable", id="by name: an id that is a path"),
        pytest.param(False, {"data": None}, "unavailable", id="by name: no list"),
        pytest.param(False, OURS, "unavailable", id="by name: a record in place of a list"),
        pytest.param(False, [], "unavailable", id="by name: not an object"),
        pytest.param(True, OURS, "found", id="by id: ours"),
        pytest.param(True, OURS | {"externalId": "wms:2"}, "unavailable", id="by id: under another name"),
        pytest.param(True, FOREIGN, "unavailable", id="by id: another record"),
        pytest.param(True, {"data": [OURS]}, "unavailable", id="by id: a list"),
        pytest.param(True, {}, "unavailable", id="by id: nothing"),
    ],
)
def test_a_look_up_accepts_only_the_record_asked_for(by_id: bool, body: object, kind: str) -> None:
    """Whatever else is answered is neither our record nor a proof that there is none."""
    subject = ExpectedRecord(target_id="x" if by_id else None, name="wms:1")
    found = answer_outcomes.outcome_of_look_up(Answer(200, {}, json.dumps(body).encode()), subject)
    assert (found.kind, found.target_id) == (kind, "x" if kind == "found" else None)


@pytest.mark.parametrize(
    ("beside", "kind"),
    [
        ({"total": 0, "page": 1, "pages": 1, "next": None, "previous": None}, "absent"),
        ({"success": True, "message": "No orders found", "errors": [], "code": 200}, "absent"),
        ({"status": "success", "has_more": False, "next_cursor": "", "limit": 20, "offset": 0}, "absent"),
        ({"code": 404}, "absent"),
        ({"success": False}, "unavailable"),
        ({"error": "index unavailable"}, "unavailable"),
        ({"errors": ["timeout"]}, "unavailable"),
        ({"code": 429}, "unavailable"),
        ({"status": "error"}, "unavailable"),
        ({"timed_out": True}, "unavailable"),
        ({"incomplete_results": True}, "unavailable"),
        ({"total": 1}, "unavailable"),
        ({"next_cursor": "abc"}, "unavailable"),
        ({"has_more": True}, "unavailable"),
    ],
    ids=str,
)
def test_an_empty_list_is_no_proof_beside_a_sign_of_records_or_an_error(beside: dict[str, Any], kind: str) -> None:
    """A create whose look-up failed in an answer of success would be sent a second time."""
    told = Answer(200, {}, json.dumps({"data": []} | beside).encode())
    found = answer_outcomes.outcome_of_look_up(told, ExpectedRecord(name="wms:1"))
    assert found.kind == kind
    null = Answer(200, {}, json.dumps({"order": None} | beside).encode())
    assert answer_outcomes.outcome_of_look_up(null, ExpectedRecord(target_id="7"), WRAPPED).kind == kind
    ignored = answer_outcomes.RecordShape(ignored=frozenset(f"/{name}" for name in beside))
    assert answer_outcomes.outcome_of_look_up(told, ExpectedRecord(name="wms:1"), ignored).kind == "absent"


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({"age": "600"}, "unavailable"),
        ({"x-cache": "HIT"}, "unavailable"),
        ({"age": "0", "x-cache": "MISS", "cf-cache-status": "DYNAMIC"}, "absent"),
    ],
    ids=str,
)
@pytest.mark.parametrize(("status", "body"), [(200, b'{"data": []}'), (404, b"{}")])
def test_a_cache_does_not_know_what_was_just_made(headers: dict[str, str], kind: str, status: int, body: bytes) -> None:
    """What it has found before the create is no answer to a look-up after it."""
    told = Answer(status, headers, body)
    found = answer_outcomes.outcome_of_look_up(told, ExpectedRecord(target_id=None if status == 200 else "7"))
    assert (found.kind, answer_outcomes.outcome_or_unavailable_if_cached(found, told).kind) == ("absent", kind)


BY_ADDRESS = answer_outcomes.RecordShape(id="/url", id_form="/orders/{id}/")


@pytest.mark.parametrize(
    ("address", "written", "read"),
    [
        pytest.param("https://shop.example/api/orders/5/", "delivered", "found", id="its address"),
        pytest.param("http://inner:8000/api/orders/5/", "delivered", "found", id="on the host behind a proxy"),
        pytest.param("https://shop.example/api/orders/6/", "in_doubt", "unavailable", id="another record"),
        pytest.param("https://shop.example/api/stock/5/", "in_doubt", "unavailable", id="of another kind"),
        pytest.param("https://shop.example/api/orders/5/lines/", "in_doubt", "unavailable", id="a part of it"),
        pytest.param("5", "in_doubt", "unavailable", id="no address"),
    ],
)
def test_a_record_may_be_known_by_its_address(address: str, written: str, read: str) -> None:
    """Its id is where the address of such a record has it, and any other address is no id."""
    told, expected = Answer(200, {}, json.dumps({"url": address}).encode()), ExpectedRecord(target_id="5")
    assert answer_outcomes.outcome_of_write(told, expected, BY_ADDRESS).kind == written
    found = answer_outcomes.outcome_of_look_up(told, expected, BY_ADDRESS)
    assert found.kind == read
    assert ("it has no id at /url" in found.message) == (read != "found" and "orders/6" not in address)


def test_a_missing_list_does_not_prove_that_a_record_is_missing() -> None:
    """A 404 answers a look-up by id; where a list was asked for it is an error."""
    gone = Answer(404, {}, b"{}")
    assert answer_outcomes.outcome_of_look_up(gone, ExpectedRecord(target_id="x")).kind == "absent"
    assert answer_outcomes.outcome_of_look_up(gone, ExpectedRecord(name="wms:1")).kind == "unavailable"


@pytest.mark.parametrize("tag", ['"a\x1bb"', '"a\x7f"', '"\x00"'])
def test_a_version_with_a_control_character_is_none(tag: str) -> None:
    """RFC 9110 knows no such entity tag, and PostgreSQL could not keep each of them."""
    assert answer(201, b'{"id":"x"}', etag=tag).etag is None
    found = answer_outcomes.outcome_of_look_up(Answer(200, {"etag": tag}, b'{"id":"x"}'), ExpectedRecord(target_id="x"))
    assert (found.kind, found.etag) == ("found", None)
    assert answer(201, b'{"id":"x"}', etag='W/"\xe9"').etag == 'W/"\xe9"'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"id":"x","updatedAt":"2026-03-29T01:30:00Z"}', "2026-03-29T01:30:00Z"),
        (b'{"id":"x"}', None),
        (b'{"id":"x","updatedAt":7}', None),
        (b'{"id":"x","updatedAt":""}', None),
        (b'{"id":"x","updatedAt":"a\\u0000b"}', None),
    ],
)
def test_an_answer_may_say_when_the_record_was_changed(body: bytes, expected: str | None) -> None:
    """That of a write, and that of a look-up."""
    assert answer(201, body).changed_at == expected
    found = answer_outcomes.outcome_of_look_up(Answer(200, {}, body), ExpectedRecord(target_id="x"))
    assert (found.kind, found.changed_at) == ("found", expected)


def test_help_says_what_each_kind_of_outcome_does() -> None:
    """Apart from those that only the engine makes."""
    engine = {"expired", "staged", "answered", "unmade", "undecided"}
    assert {
        kind for kind in get_args(answer_outcomes.OutcomeKind) if f"``{kind}``" not in str(Outcome.__doc__)
    } == engine
