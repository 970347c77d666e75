"""Parameters of requests to the fake WooCommerce shop, and its numbered pages.

Sources: the collection parameters of ``WC_REST_CRUD_Controller``, and how PHP and WordPress's REST server read queries.
Unknown parameters are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.woocommerce.shop_errors import invalid_parameter
from tests.partners.woocommerce.shop_settings import ShopSettings

Row = TypeVar("Row")
MOST_ON_A_PAGE = 100
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": False}


def php_parameters(params: Mapping[str, list[str]]) -> dict[str, str]:
    """Parameters as PHP has them: of a name's values the last counts, and lists ``a[]`` have indexes."""
    found: dict[str, str] = {}
    for name, values in params.items():
        if name.endswith("[]"):
            found |= {f"{name[:-2]}[{index}]": value for index, value in enumerate(values)}
        else:
            found[name] = values[-1]
    return found


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of one request. Each method raises `RefusedError` if a value is not what it reads."""

    asked: Mapping[str, str]
    settings: ShopSettings

    @classmethod
    def of(cls, request: PartnerRequest, settings: ShopSettings) -> Query:
        return cls(php_parameters(request.params), settings)

    def text(self, name: str, default: str = "") -> str:
        return self.asked.get(name, default)

    def texts(self, name: str) -> list[str]:
        """A list: separated by commas, or as ``name[]`` or ``name[0]``."""
        indexed = [value for key, value in self.asked.items() if re.fullmatch(rf"{re.escape(name)}\[\d+\]", key)]
        return indexed or [value for value in re.split(r"[\s,]+", self.text(name)) if value]

    def number(self, name: str, default: int, least: int = 0, most: int | None = None) -> int:
        text = self.text(name, str(default))
        if not re.fullmatch(r"-?\d+", text):
            raise invalid_parameter(name, f"{name} is not of type integer.")
        if most is not None and not least <= int(text) <= most:
            raise invalid_parameter(name, f"{name} must be between {least} (inclusive) and {most} (inclusive)")
        if int(text) < least:
            raise invalid_parameter(name, f"{name} must be greater than or equal to {least}")
        return int(text)

    def ids(self, name: str) -> frozenset[int]:
        return frozenset(int(text) for text in self.texts(name) if text.isdecimal())

    def boolean(self, name: str) -> bool:
        try:
            return _BOOLEANS[self.text(name).lower()]
        except KeyError:
            raise invalid_parameter(name, f"{name} is not of type boolean.") from None

    def choice(self, name: str, *allowed: str) -> str:
        """One of *allowed*, the first without the parameter."""
        value = self.text(name, allowed[0])
        if value not in allowed:
            raise invalid_parameter(name, f"{name} is not one of {', '.join(allowed[:-1])}, and {allowed[-1]}.")
        return value

    def chosen(self, record_id: int) -> bool:
        """Whether ``include`` and ``exclude`` allow the record."""
        included = self.ids("include")
        return (not included or record_id in included) and record_id not in self.ids("exclude")

    def within(self, *, kept_in_gmt: bool) -> Callable[[datetime, datetime], bool]:
        """Whether a record with these times of creation and change is between those asked for; ends are excluded."""
        names = ["after", "before"]
        if self.settings.filters_by_change:
            names += ["modified_after", "modified_before"]
        are_gmt = self.boolean("dates_are_gmt")
        bounds = {}
        for name in names:
            if name in self.asked:
                try:
                    bounds[name] = self.settings.bound(self.asked[name], are_gmt=are_gmt, kept_in_gmt=kept_in_gmt)
                except ValueError as error:
                    raise invalid_parameter(name, str(error)) from None

        def allowed(created: datetime, modified: datetime) -> bool:
            for name, (kept, bound) in bounds.items():
                at = kept(modified if name.startswith("modified") else created)
                if not (at > bound if name.endswith("after") else at < bound):
                    return False
            return True

        return allowed


def paged(query: Query, rows: Sequence[Row], url: str, view: Callable[[Row], dict[str, Any]]) -> PartnerAnswer:
    """A page of *rows* as a bare list, with the headers ``X-WP-Total``, ``X-WP-TotalPages`` and ``Link``.

    Pages are cut off by position, so rows move between them when others change. The links repeat all parameters of the
    request, also those of OAuth, which cannot be used again. A page beyond the last is empty.
    """
    size = query.number("per_page", 10, 1, MOST_ON_A_PAGE)
    number = query.number("page", 1, 1)
    start = query.number("offset", (number - 1) * size)
    pages = -(-len(rows) // size)
    links = []
    if number > 1:
        links.append((min(number - 1, pages), "prev"))
    if number < pages:
        links.append((number + 1, "next"))
    headers = {"x-wp-total": str(len(rows)), "x-wp-totalpages": str(pages)}
    if links:
        addresses = ((f"{url}?{urlencode({**query.asked, 'page': page})}", name) for page, name in links)
        headers["link"] = ", ".join(f'<{address}>; rel="{name}"' for address, name in addresses)
    return PartnerAnswer(200, [narrowed(view(row), query) for row in rows[start : start + size]], headers)


def narrowed(record: dict[str, Any], query: Query) -> dict[str, Any]:
    """The members of *record* that ``_fields`` names; ``billing.email`` is one of an inner object."""
    fields = query.texts("_fields")
    return _narrowed(record, [name.split(".") for name in fields]) if fields else record


def _narrowed(record: dict[str, Any], paths: Iterable[list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, *rest in paths:
        value = record.get(name)
        if not rest and name in record:
            found[name] = value
        elif rest and isinstance(value, dict):
            inner = _narrowed(value, [rest])
            found[name] = {**found[name], **inner} if isinstance(found.get(name), dict) else inner
    return found
