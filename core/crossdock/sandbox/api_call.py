"""One request to the platform's API, and its body."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from crossdock.sandbox import strict_json
from crossdock.sandbox.access_control import NOBODY, Caller
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.rfc3339 import instant_text


@dataclass(slots=True)
class ApiCall:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    now: float  # seconds since the epoch at which it arrived
    rate_limit_headers: Mapping[str, str]
    max_items: int  # in a list of its body
    caller: Caller = NOBODY
    key: str | None = None  # its idempotency key, once that is reserved
    id: str = field(default_factory=partial(secrets.token_hex, 8))  # X-Request-Id, and the id in both logs
    at: str = field(init=False)  # *now* as text

    def __post_init__(self) -> None:
        self.at = instant_text(self.now)

    def read_json_body(self) -> Any:
        try:
            body = strict_json.read(self.body)
        except ValueError as error:
            raise ProblemError(400, f"The body is not acceptable JSON: {error}.") from None
        items = body.get("items") if isinstance(body, dict) else None
        if isinstance(items, list) and len(items) > self.max_items:
            findings = [("#/items", f"must have at most {self.max_items} items")]
            raise ProblemError(422, "The body has too many items.", findings=findings)
        return body
