"""Refusals of the fake WooCommerce shop: ``{"code": ..., "message": ..., "data": {"status": ...}}``.

Codes and messages are those of WooCommerce's controllers (``includes/rest-api`` in github.com/woocommerce/woocommerce)
and, where they begin with ``rest_``, of WordPress's REST server.
"""

from __future__ import annotations

from typing import Any

from tests.partners.partner_server import PartnerAnswer


class RefusedError(Exception):
    """A request that the shop refuses; *data* are members of ``data`` besides the status."""

    def __init__(self, status: int, code: str, message: str, **data: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.data = status, code, message, data

    def body(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "data": {"status": self.status, **self.data}}

    def answer(self) -> PartnerAnswer:
        return PartnerAnswer(self.status, self.body())


def no_route() -> RefusedError:
    return RefusedError(404, "rest_no_route", "No route was found matching the URL and request method.")


def invalid_parameter(name: str, message: str) -> RefusedError:
    return RefusedError(400, "rest_invalid_param", f"Invalid parameter(s): {name}", params={name: message})


def invalid_id(kind: str, status: int = 404) -> RefusedError:
    """*kind* is WordPress's name, such as ``shop_order``. Reads and deletions get 404, updates 400."""
    return RefusedError(status, f"woocommerce_rest_{kind}_invalid_id", "Invalid ID.")


def trash_not_supported(what: str) -> RefusedError:
    return RefusedError(501, "woocommerce_rest_trash_not_supported", f"{what} do not support trashing.")


def already_trashed(kind: str) -> RefusedError:
    return RefusedError(410, "woocommerce_rest_already_trashed", f"The {kind} has already been deleted.")
