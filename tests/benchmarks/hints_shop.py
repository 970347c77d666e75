"""A shop of products: its lists in pages, single products, and signed webhooks about those that change."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from crossdock.sandbox import webhook_subscriptions

PAGE = 250  # products


class Shop:
    """Lists of products by name; ``/LIST?page=1`` and ``/LIST/ID``.

    Attributes:
        secret: With which webhooks are signed.
        changed_at: When each product got its new title, by that title; Unix seconds.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self._lists = {name: {str(n): f"{name} {n}" for n in range(size)} for name, size in sizes.items()}
        self.secret, self.changed_at = webhook_subscriptions.new_signing_secret(), dict[str, float]()

    def change(self, name: str, key: str) -> None:
        """Give a product a new title."""
        title = f"{name} {key} changed"
        self._lists[name][key] = title
        self.changed_at[title] = time.time()

    def announce(self, address: str, name: str, key: str) -> None:
        """Change a product, and send the webhook about it."""
        self.change(name, key)
        body = json.dumps({"id": key}).encode()
        headers = webhook_subscriptions.signed_headers(f"{name}-{key}", int(time.time()), body, [self.secret])
        request = urllib.request.Request(address, body, headers | {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def answer(self, path: str) -> tuple[object, str | None]:
        """The document at *path*, and the path of the next page."""
        parts = urlsplit(path)
        name, _, key = parts.path.strip("/").partition("/")
        products = self._lists[name]
        if key:
            return _product(key, products[key]), None
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        shown = list(products.items())[(page - 1) * PAGE : page * PAGE]
        following = f"/{name}?page={page + 1}" if page * PAGE < len(products) else None
        return {"products": [_product(*each) for each in shown]}, following

    @contextmanager
    def served(self) -> Iterator[int]:
        """Serve it in this process; the port."""

        class Handler(_Handler):
            shop = self

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield server.server_address[1]
            finally:
                server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    shop: Shop

    def do_GET(self) -> None:
        document, following = self.shop.answer(self.path)
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if following is not None:
            self.send_header("Link", f'<http://{self.headers["Host"]}{following}>; rel="next"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


def _product(key: str, title: str) -> dict[str, str]:
    return {"id": key, "title": title}
