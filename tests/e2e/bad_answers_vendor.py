"""A vendor whose lists go wrong at the second page, in every way that is known, and repeats all secrets meanwhile."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.canaries import PERSON, Asked, Parrot, answer

SECRETS = {
    "token": "tk-canary-31-mmmm",
    "header": "hd-canary-32-nnnn",
    "parameter": "pm-canary-33-oooo",
    "body": "bd-canary-34-pppp",
    "password": "lg-canary-35-qqqq",
    "granted": "gr-canary-36-rrrr",
}
PAGES = 3
SEARCH = "search"
"""A shop that refuses the search for customers, and repeats its body."""
Reply = Callable[[Asked], bytes]


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which the second page goes wrong.

    Attributes:
        reply: The answer.
        code: The exit code of a command that reads it.
        says: Part of the error; of exit code 1, the reasons of the dead letters.
        auth: How the connection authorizes: ``bearer`` or ``login``.
        retried: Whether the client sends the request again, after pauses.
        most_bytes: The limit for an answer; 0 for the default.
    """

    name: str
    reply: Reply
    code: int
    says: str
    auth: str = "bearer"
    retried: bool = False
    most_bytes: int = 0


def product(number: int, **members: Any) -> dict[str, Any]:
    return {"id": number, "sku": f"S{number}", "name": f"Part {number}", "price": "1.50"} | members


def page(number: int, items: Any = None, **members: Any) -> dict[str, Any]:
    """A good page of two products."""
    following = f"products?page={number + 1}" if number < PAGES else None
    return {"items": [product(2 * number), product(2 * number + 1)] if items is None else items, "next": following} | (
        members
    )


def echo(asked: Asked) -> str:
    """All secrets of the request, and personal data."""
    return f"{asked.path} {asked.headers} {asked.body.decode()} {PERSON['phone']} {PERSON['email']}"


def _json(document: Any, status: int = 200, **headers: str) -> Reply:
    return lambda _: answer(status, json.dumps(document), **({"content_type": "application/json"} | headers))


def _text(text: str | bytes, **headers: str) -> Reply:
    return lambda _: answer(200, text, **({"content_type": "application/json"} | headers))


def _with(member: str) -> Reply:
    """A good page with one more member, written by hand."""
    return _text(json.dumps(page(2))[:-1] + f", {member}}}")


def _items(*items: Any) -> Reply:
    return _json(page(2, list(items)))


def _refusal(status: int, **headers: str) -> Reply:
    def reply(asked: Asked) -> bytes:
        return answer(status, json.dumps({"error": "no such scope", "detail": f"not with {echo(asked)}"}), **headers)

    return reply


def _once_renewed(asked: Asked) -> bytes:
    """A good page for the second token of a command."""
    number = int(asked.headers["authorization"].rpartition("-")[2])
    return _refusal(401)(asked) if number % 2 else answer(200, json.dumps(page(2)))


def _redirect(target: str, status: int = 302) -> Reply:
    return lambda asked: answer(status, "", location=target + f"?key={SECRETS['parameter']}", set_cookie=echo(asked))


def _head(length: str, body: str = json.dumps(page(2)), status: str = "200 OK") -> Reply:
    """An answer whose content-length is whatever it is."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    return lambda _: head.encode() + body.encode()


def _large(size: int) -> str:
    return json.dumps(page(2, note="x" * size))


_HTML = "<!doctype html><html><head><title>Log in</title></head><body>{}</body></html>"
_UMLAUT = json.dumps(page(2, [product(4, name="Müller")]), ensure_ascii=False)
_ESCAPE = chr(27)
_OF = "application/json; charset="

CASES = [
    # ---- no JSON
    Case("html", lambda a: answer(200, _HTML.format(echo(a)), content_type="text/html"), 4, "HTML page"),
    Case("html-as-json", lambda a: answer(200, _HTML.format(echo(a)), content_type="application/json"), 4, "HTML page"),
    Case("plain-text", lambda a: answer(200, echo(a), content_type="text/plain"), 4, "cannot be read as JSON"),
    Case("cut-json", _text('{"items": [{"id": 4'), 4, "cannot be read as JSON"),
    Case("two-documents", _text("{}{}"), 4, "cannot be read as JSON"),
    Case("single-quotes", lambda a: answer(200, str({"items": [echo(a)]})), 4, "cannot be read as JSON"),
    Case("xml", lambda a: answer(200, f"<?xml version='1.0'?><a>{echo(a)}</a>"), 4, "XML"),
    # ---- the charset
    Case("utf-16-declared", _text(_UMLAUT.encode("utf-16"), content_type=_OF + "utf-16"), 4, "UTF-16"),
    Case("utf-16-undeclared", _text(_UMLAUT.encode("utf-16")), 4, "UTF-16"),
    Case("utf-16-le", _text(_UMLAUT.encode("utf-16-le")), 4, "UTF-16"),
    Case("latin-1-declared", _text(_UMLAUT.encode("latin-1"), content_type=_OF + "iso-8859-1"), 4, "iso8859-1"),
    Case("latin-1-undeclared", _text(_UMLAUT.encode("latin-1")), 4, "UTF-8"),
    Case("invalid-utf-8", _text(b'{"items": [], "x": "\xc3\x28"}'), 4, "UTF-8"),
    Case("byte-order-mark", _text(b"\xef\xbb\xbf" + _UMLAUT.encode()), 0, ""),
    # ---- JSON that cannot be exact
    Case("nan", _with('"x": NaN'), 0, ""),
    Case("next-is-nan", _text(json.dumps(page(2, next=float("nan")))), 4, "/next"),
    Case("items-are-nan", _text(json.dumps(page(2) | {"items": float("nan")})), 4, "/items"),
    Case("beyond", _with('"x": 1e99999'), 0, ""),
    Case("duplicate-members", _with('"next": null'), 4, "/next"),
    Case("deep", _with(f'"x": {"[" * 100}{"]" * 100}'), 4, "nested"),
    Case("very-deep", _text("[" * 400_000), 4, "nested"),
    Case("many-values", _with(f'"x": [{"1," * 1_000_001}1]'), 4, "values"),
    Case("lone-surrogate", _with('"x": "\\ud800"'), 0, ""),
    Case("lone-surrogate-in-name", _with('"\\ud800": 1'), 4, "surrogate"),
    Case("raw-control", _with('"x": "a\tb"'), 0, ""),
    Case("raw-nul", _with('"x": "a\0b"'), 4, "NUL"),
    # ---- JSON that is no page
    Case("empty", _text(""), 4, "empty"),
    Case("no-content", lambda _: b"HTTP/1.1 204 No Content\r\n\r\n", 4, "empty"),
    Case("partial-content", _json(page(2), 206, content_range="bytes 0-99/200"), 4, "206"),
    Case("null", _text("null"), 4, "/items: the answer is empty or null"),
    Case("a-text", lambda a: answer(200, json.dumps(echo(a))), 4, "/items: the answer is text"),
    Case("a-number", _text("7"), 4, "/items: the answer is a whole number"),
    Case("a-list", _text("[]"), 4, "/items: the answer is a list"),
    Case("error-in-200", lambda a: answer(200, json.dumps({"detail": echo(a)})), 4, "/items: it is missing"),
    *(
        Case(f"items-{name}", _json(page(2) | {"items": items}), 4, "/items")
        for name, items in [("null", None), ("object", {"1": product(4)}), ("text", "none"), ("false", False), ("7", 7)]
    ),
    Case("items-absent", _json({"next": None}), 4, "/items"),
    # ---- the next page
    Case("same-page", _json(page(2, next="products?page=2")), 4, "pagination loop"),
    Case("first-page", _json(page(2, next="products?page=1")), 4, "pagination loop"),
    Case("next-on-other-host", _json(page(2, next="https://evil.example/products")), 4, "another host"),
    Case("next-is-script", _json(page(2, next="javascript:alert(1)")), 4, "another host"),
    Case("next-has-user", _json(page(2, next=f"http://{SECRETS['token']}@127.0.0.1/")), 4, "another host"),
    Case("next-is-object", _json(page(2, next={"page": 3})), 4, "/next"),
    Case("next-is-true", _json(page(2, next=True)), 4, "/next"),
    Case("next-is-no-url", _json(page(2, next="http://[::1")), 4, "not a URL"),
    Case("next-is-long", _json(page(2, next="/" + "x" * 9_000)), 4, "8,000 characters"),
    # ---- refusals
    Case("expired-token", _refusal(401), 3, "HTTP 401"),
    Case("expired-login", _refusal(401), 3, "HTTP 401", auth="login"),
    Case("renewed-login", _once_renewed, 0, "", auth="login"),
    Case("revoked-scope", _refusal(403), 3, "HTTP 403"),
    Case("not-found", _refusal(404), 3, "HTTP 404"),
    Case("not-modified", lambda _: b"HTTP/1.1 304 Not Modified\r\n\r\n", 3, "HTTP 304"),
    Case("other-host", _redirect("https://evil.example/products"), 3, "redirects to https://evil.example"),
    Case("to-http", _redirect("http://shop.example/products", 301), 3, "redirects to http://shop.example"),
    Case("same-host", _redirect("/v2/products", 307), 3, "redirects to another path of the same host"),
    Case("redirect-nowhere", lambda _: answer(302, ""), 3, "HTTP 302"),
    # ---- the body
    Case("large", _text(_large(10_000_000)), 4, "max_answer_bytes"),
    Case("large-within", _text(_large(10_000_000)), 0, "", most_bytes=16 << 20),
    Case("gzip-bomb", _text(gzip.compress(b" " * (64 << 20)), content_encoding="gzip"), 4, "max_answer_bytes"),
    Case("gzip", _text(gzip.compress(json.dumps(page(2)).encode()), content_encoding="gzip"), 0, ""),
    Case("unknown-encoding", _text(b"\x8b\x02", content_encoding="br"), 4, "content encoding"),
    Case("damaged-gzip", _text(b"\x1f\x8bnothing", content_encoding="gzip"), 3, "compressed", retried=True),
    Case("cut-body", _head("content-length: 9999"), 3, "in the middle", retried=True),
    Case("short-length", _head("content-length: 20"), 4, "cannot be read as JSON"),
    Case("two-lengths", _head("content-length: 20\r\ncontent-length: 30"), 3, "not valid HTTP", retried=True),
    Case("negative-length", _head("content-length: -1"), 3, "not valid HTTP", retried=True),
    Case("no-answer", lambda _: b"", 3, "without a response", retried=True),
    Case("no-http", lambda a: echo(a).encode(), 3, "failed 5 times", retried=True),
    Case("server-error", _refusal(500), 3, "HTTP 500", retried=True),
    # ---- records
    Case("no-objects", _items(1, "two", None, True, ["x"], product(4)), 1, "key_missing"),
    Case("no-key", _items({"sku": "S4"}, product(4)), 1, "key_missing"),
    Case("null-key", _items(product(4) | {"id": None}, product(5)), 1, "key_missing"),
    Case("empty-key", _items(product(4) | {"id": ""}, product(5)), 1, "key_missing"),
    Case("long-key", _items(product(4) | {"id": "k" * 5_000}, product(5)), 1, "key_missing"),
    Case("nul-key", _items(product(4) | {"id": "a\0b"}, product(5)), 0, ""),
    Case("control-key", _items(product(4) | {"id": f"a{_ESCAPE}[31m"}, product(5)), 0, ""),
    Case("float-key", _items(product(4) | {"id": 4.25}, product(5)), 0, ""),
    Case("true-key", _items(product(4) | {"id": True}, product(5)), 0, ""),
    Case("object-key", _items(product(4) | {"id": {"a": 1}}, product(5)), 0, ""),
    Case("missing-member", _items({"id": 4}, product(5)), 1, "bad_value"),
    Case("odd-member", _items(product(4, name=["x"]), product(5)), 1, "bad_value"),
    Case("control-member", _items(product(4) | {f"a{_ESCAPE}[31m\0": 1}, product(5)), 0, ""),
    Case("half-character", _items(product(4, name="a\ud83d"), product(5)), 1, "bad_value"),
    Case("half-character-key", _items(product(4) | {"id": "a\ud83d"}, product(5)), 1, "bad_value"),
    Case("nan-member", _items(product(4) | {"size": float("nan")}, product(5)), 1, "bad_value"),
    Case("nan-keys", _items(*[product(4) | {"id": float("nan")}] * 2, product(5)), 1, "key_missing"),
    Case("huge-integer", _text(json.dumps(page(2)).replace('"S4"', "9" * 6000)), 1, "bad_value"),
    Case("infinite-price", _items(product(4, price="1e400"), product(5)), 1, "bad_value"),
]  # fmt: skip


class Vendor(Parrot):
    """Serves each case under its name until `mended`, then good pages alone.

    Attributes:
        read: How often the second page of each case was requested.
    """

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.mended = False
        self.read: Counter[str] = Counter()
        self._logins: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._cases = {case.name: case for case in CASES}

    def _reply(self, asked: Asked) -> bytes:
        status, _, rest = self._made(asked).partition(b"\r\n")
        return status + b"\r\nconnection: close\r\n" + rest if rest else status

    def _made(self, asked: Asked) -> bytes:
        _, name, rest = asked.path.split("/", 2)
        path, _, query = rest.partition("?")
        if path == "login":
            with self._lock:
                self._logins[name] += 1
                return answer(200, json.dumps({"token": f"{SECRETS['granted']}-{self._logins[name]}"}))
        if path == "search" and name == SEARCH and not self.mended:
            return _refusal(400)(asked)
        if path == "search":
            return answer(200, json.dumps({"found": [{"id": f"{name}-1", "name": PERSON["name"]}]}))
        number = next((int(part[5:]) for part in query.split("&") if part.startswith("page=")), 1)
        if number != 2:
            return answer(200, json.dumps(page(number)))
        with self._lock:
            self.read[name] += 1
        if self.mended or name not in self._cases:
            return answer(200, json.dumps(page(2)))
        return self._cases[name].reply(asked)
