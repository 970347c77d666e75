"""A bare client, beside which delivery is measured: threads with a connection each, one POST a product, no state.

Run as a process of its own, which imports httpcore and nothing of crossdock. It prints how many products were created.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from typing import Any

import httpcore

THREADS = 100  # as many requests are in flight as a profile permits


def product(number: int) -> dict[str, Any]:
    """The body of a request."""
    return {"externalId": f"bench:{number}", "sku": f"S{number}", "name": f"Product {number}", "active": True}


def deliver(port: int, count: int) -> int:
    """How many of *count* products were created."""
    bodies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    statuses: queue.SimpleQueue[int] = queue.SimpleQueue()

    def send() -> None:
        with httpcore.ConnectionPool(max_connections=1) as client:
            while (body := bodies.get()) is not None:
                headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(body))]
                answer = client.request("POST", f"http://127.0.0.1:{port}/products", headers=headers, content=body)
                statuses.put(answer.status)

    threads = [threading.Thread(target=send) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for number in range(count):
        bodies.put(json.dumps(product(number)).encode())
    for _ in threads:
        bodies.put(None)
    for thread in threads:
        thread.join()
    return sum(statuses.get() == 201 for _ in range(count))


if __name__ == "__main__":
    print(deliver(int(sys.argv[1]), int(sys.argv[2])))
