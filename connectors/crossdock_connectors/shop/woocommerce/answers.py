"""Refusals of WooCommerce."""

from __future__ import annotations

from crossdock.targets import Answer, body_of
from crossdock.values.json_values import at_path


def code_of(answer: Answer) -> str:
    """Return the code of a refusal, such as ``woocommerce_rest_order_invalid_id``, or an empty text."""
    found = at_path(body_of(answer), "code")
    return found if isinstance(found, str) else ""
