"""Keys of records that are fetched by name, and the shop's ids in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crossdock_connectors.shop.record_values import GUEST

GUEST_OF = "order-"
"""The prefix of a name for the guest of an order, before the order's key. The guest's own key may not contain the
order.
"""
_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


def shop_ids_in_keys(keys: Sequence[str], beginning: str = "") -> list[str]:
    """Return the ids that follow *beginning* in *keys*, each once. Other keys are left out."""
    rests = (key.removeprefix(beginning) for key in keys if key.startswith(beginning))
    return list(dict.fromkeys(rest for rest in rests if _ID.fullmatch(rest)))


def order_ids_in_guest_keys(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*shop_ids_in_keys(keys, GUEST_OF), *shop_ids_in_keys(keys, f"{GUEST}-{GUEST_OF}")]))
