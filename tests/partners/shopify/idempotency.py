"""Idempotency keys of mutations, given by the directive ``@idempotent``.

Source: shopify.dev/docs/api/usage/implementing-idempotency and the descriptions in the published schema. Keys are kept
for 24 hours and are required for changes of stock as of version 2026-04. A mutation that ended with user errors makes
its key useless, as the code ``IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED`` says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from graphql import GraphQLError
from graphql.execution.values import get_directive_values
from tests.partners.shopify.execution import Info

LIFE = timedelta(hours=24)
Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Attempt:
    at: datetime
    arguments: str
    payload: Payload


class IdempotencyKeys:
    """What was done under each key.

    Attributes:
        in_progress: Keys of requests that another process still carries out; a test fills it.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._attempts: dict[str, _Attempt] = {}
        self.in_progress: set[str] = set()

    def once(self, info: Info, arguments: Any, carry_out: Callable[[], Payload]) -> Payload:
        """The payload of *carry_out*, which runs once for a key.

        Raises:
            GraphQLError: If the mutation has no key.
        """
        key = _key(info)
        canonical = json.dumps([info.field_name, arguments], sort_keys=True)
        earlier = self._attempts.get(key)
        if key in self.in_progress:
            return _refused("CONCURRENT_REQUEST", "This request is currently in progress, please try again.")
        if earlier is None or self._now() >= earlier.at + LIFE:
            payload = carry_out()
            self._attempts[key] = _Attempt(self._now(), canonical, payload)
            return payload
        if earlier.arguments != canonical:
            message = "The same idempotency key cannot be used with different operation parameters."
            return _refused("KEY_PARAMETER_MISMATCH", message)
        if earlier.payload["userErrors"]:
            message = "A previous request with this idempotency key failed. Retry with a new idempotency key."
            return _refused("PREVIOUS_ATTEMPT_FAILED", message)
        return earlier.payload


def _key(info: Info) -> str:
    directive = info.schema.get_directive("idempotent")
    assert directive is not None
    given = get_directive_values(directive, info.field_nodes[0], info.variable_values)
    if given is None:
        message = "The @idempotent directive is required for this mutation but was not provided."
        raise GraphQLError(message, extensions={"code": "BAD_REQUEST"})
    key = str(given["key"])
    if not key.strip():
        raise GraphQLError("The idempotency key cannot be blank.", extensions={"code": "BAD_REQUEST"})
    return key


def _refused(code: str, message: str) -> Payload:
    error = {"field": None, "message": message, "code": f"IDEMPOTENCY_{code}"}
    return {"inventoryAdjustmentGroup": None, "userErrors": [error]}
