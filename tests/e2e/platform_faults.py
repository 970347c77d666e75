"""Faults of a sandbox at work, and its own account of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.warehouse import ask


def set_faults(base_url: str, faults: Sequence[Mapping[str, Any]], seed: int) -> None:
    """From now on requests meet *faults*, each with its name, probability and route."""
    body = json.dumps({"faults": faults, "seed": seed}).encode()
    assert _exchange(base_url, "POST", body)["seed"] == seed


def end_faults(base_url: str) -> Counter[str]:
    """No more faults; returns how often each struck."""
    struck = Counter[str]()
    for fault in _exchange(base_url, "GET")["faults"]:
        struck[fault["name"]] += int(fault["struck"])
    _exchange(base_url, "DELETE")
    return struck


def _exchange(base_url: str, method: str, body: bytes = b"") -> dict[str, Any]:
    answer = ask(urlsplit(base_url).netloc, method, "/_sandbox/faults", body)
    assert answer.status == 200, answer.body
    document: dict[str, Any] = json.loads(answer.body)
    return document
