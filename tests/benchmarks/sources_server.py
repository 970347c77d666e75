"""A vendor on loopback that limits its one reader, and counts what it accepted and refused.

``rest``: a bucket of requests, told by Shopify's header, and the next page by ``Link``. ``silent``: the same without
the header. ``graphql``: a bucket of cost, told as Shopify does; a query that is too expensive is throttled in a 200.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LATENCY_S = 0.005
COST = 10  # of a query


class Vendor:
    """A full bucket, which begins to count when the first request arrives."""

    def __init__(self, kind: str, rate: float, burst: int, pages: int) -> None:
        self.kind, self.rate, self.burst, self.pages = kind, rate, burst, pages
        self.cost = COST if kind == "graphql" else 1
        self._lock = threading.Lock()
        self._level, self._at = float(burst), time.monotonic()
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self._accepted = self._refused = 0
        self._first = self._last = 0.0

    def accepts(self) -> bool:
        with self._lock:
            now = time.monotonic()
            self._level = min(self.burst, self._level + (now - self._at) * self.rate)
            self._at = self._last = now
            self._first = self._first or now
            accepted = self._level >= self.cost
            self._level -= self.cost * accepted
            self._accepted, self._refused = self._accepted + accepted, self._refused + (not accepted)
            return accepted

    @property
    def left(self) -> int:
        return int(self._level)

    def seen(self) -> dict[str, Any]:
        """Counts, and the share used of what the bucket permits until the last request."""
        seconds = self._last - self._first
        most = (self.burst + seconds * self.rate) / self.cost
        return {"accepted": self._accepted, "refused": self._refused, "used": self._accepted / most, "seconds": seconds}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    vendor: Vendor

    def do_GET(self) -> None:
        if self.path == "/seen":
            self._answer(200, self.vendor.seen())
            self.vendor.forget()
            return
        page = int(parse_qs(urlsplit(self.path).query).get("page", ["1"])[0])
        time.sleep(LATENCY_S)
        accepted = self.vendor.accepts()
        headers = {}
        if self.vendor.kind == "rest":
            headers["X-Shopify-Shop-Api-Call-Limit"] = f"{self.vendor.burst - self.vendor.left}/{self.vendor.burst}"
        if not accepted:
            self._answer(429, {"errors": "too many requests"}, headers | {"Retry-After": "2.0"})
            return
        if page < self.vendor.pages:
            headers["Link"] = f'<http://{self.headers["Host"]}/orders?page={page + 1}>; rel="next"'
        self._answer(200, {"orders": [{"id": page}]}, headers)

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        page = int(query["variables"].get("after") or 0) + 1
        time.sleep(LATENCY_S)
        accepted = self.vendor.accepts()
        status = {
            "maximumAvailable": self.vendor.burst,
            "currentlyAvailable": self.vendor.left,
            "restoreRate": self.vendor.rate,
        }
        cost = {"cost": {"requestedQueryCost": COST, "throttleStatus": status}}
        if not accepted:
            error = {"message": "Throttled", "extensions": {"code": "THROTTLED"}}
            self._answer(200, {"errors": [error], "extensions": cost})
            return
        more = {"hasNextPage": page < self.vendor.pages, "endCursor": str(page) if page < self.vendor.pages else None}
        self._answer(200, {"data": {"orders": {"nodes": [{"id": page}], "pageInfo": more}}, "extensions": cost})

    def _answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are counted, not logged."""


if __name__ == "__main__":
    kind, rate, burst, pages = sys.argv[1:]
    Handler.vendor = Vendor(kind, float(rate), int(burst), int(pages))
    Handler.disable_nagle_algorithm = True
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
