"""A fake of Xero's Accounting API for one organisation: contacts, items, accounts and invoices.

Made of the public pages "Requests and responses", "OAuth 2.0 API limits", "Token types", "Invoices", "Contacts",
"Items" and "Accounts" of developer.xero.com/documentation, and of the examples in Xero's published OpenAPI document:

- OAuth 2.0: access tokens of 30 minutes, refresh tokens that are used once; every request names its organisation in
  ``xero-tenant-id``, without which it is refused with 403.
- ``If-Modified-Since`` is a time in UTC without a zone; what changed since then is listed, to the second.
- Times are ``/Date(1518685950940+0000)/``; documents also have their dates as ISO 8601 (``DateString``).
- Invoices and contacts have pages, with ``pagination`` beside them; items and accounts are whole lists.
- ``LineAmount`` is without the tax (``TaxAmount``) if ``LineAmountTypes`` is Exclusive, and with it if it is Inclusive;
  ``Total`` is ``SubTotal`` and ``TotalTax``. A line without ``ItemCode`` has an amount, or is a text alone.
- Archived contacts are listed only on request.
- 429 has ``Retry-After`` and ``X-Rate-Limit-Problem``, and no body; other answers tell what is left of the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.token_vendor import TokenVendor

from crossdock.testing import ManualClock

ORGANISATION = "45e4708e-d862-4111-ab3a-dd8cd03913e1"
RETRY_AFTER_S = 37
_BELOW = "/api.xro/2.0/"
_IDS = {"Contacts": "ContactID", "Items": "ItemID", "Accounts": "AccountID", "Invoices": "InvoiceID"}
_PAGED = {"Contacts", "Invoices"}


class Xero(TokenVendor):
    """A `Partner`, of which everything is only read.

    Attributes:
        lists: By resource and id, as the API shows the records.
    """

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(grace=True)
        self.clock, self.life_s = clock, 1800
        self.lists: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _IDS}

    def connected(self) -> Mapping[str, Any]:
        """The tokens of an owner who has given access."""
        granted: Mapping[str, Any] = self._granted().body
        return granted

    def put(self, resource: str, record_id: str, **members: Any) -> None:
        """Create or change a record now."""
        milliseconds = int(self.clock.now().timestamp() * 1000)
        about = {_IDS[resource]: record_id, "UpdatedDateUTC": f"/Date({milliseconds}+0000)/"}
        self.lists[resource][record_id] = self.lists[resource].get(record_id, {}) | members | about

    def invoice(self, number: int, contact: str, lines: list[dict[str, Any]], **members: Any) -> None:
        about: dict[str, Any] = {
            "Type": "ACCREC",
            "Status": "AUTHORISED",
            "LineAmountTypes": "Exclusive",
            "CurrencyCode": "NZD",
        }
        dates = {"Date": "/Date(1539993600000+0000)/", "DateString": "2018-10-20T00:00:00"}
        net, tax = (sum(Decimal(str(line.get(name, 0))) for line in lines) for name in ("LineAmount", "TaxAmount"))
        is_inclusive = (about | members)["LineAmountTypes"] == "Inclusive"
        sums = {"SubTotal": net - tax if is_inclusive else net, "TotalTax": tax}
        about |= sums | {"Total": sum(sums.values())}
        shown = {"InvoiceNumber": f"INV-{number:04}", "Contact": {"ContactID": contact}, "LineItems": lines}
        self.put("Invoices", f"invoice-{number}", **(about | dates | shown | members))

    def throttled(self) -> PartnerAnswer:
        headers = {"retry-after": str(RETRY_AFTER_S), "x-rate-limit-problem": "minute", "x-minlimit-remaining": "0"}
        return PartnerAnswer(429, None, headers)

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if not request.path.startswith(_BELOW):
            return super().answer(request)
        if not self._access or request.headers.get("authorization") != f"Bearer {self._access}":
            refusal = {"Type": None, "Title": "Unauthorized", "Status": 401, "Detail": "TokenExpired: token expired"}
            return PartnerAnswer(401, refusal)
        if request.headers.get("xero-tenant-id") != ORGANISATION:
            return PartnerAnswer(403, {"Title": "Forbidden", "Status": 403, "Detail": "AuthenticationUnsuccessful"})
        resource = request.path.removeprefix(_BELOW)
        if resource not in _IDS or request.method != "GET":
            return PartnerAnswer(404)
        return self._listed(resource, request)

    def _listed(self, resource: str, request: PartnerRequest) -> PartnerAnswer:
        since = request.headers.get("if-modified-since")
        after = 0.0 if since is None else datetime.strptime(since, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()
        archived = request.param("includeArchived") == "true"
        found = [
            each
            for each in self.lists[resource].values()
            if int(each["UpdatedDateUTC"][6:19]) // 1000 >= after
            and (archived or each.get("ContactStatus") != "ARCHIVED")
            and (request.param("where") != 'Type=="ACCREC"' or each["Type"] == "ACCREC")
        ]
        now = f"/Date({int(self.clock.now().timestamp() * 1000)})/"
        body = {"Id": "5cfd1b2e-01a3-4b9a-a0b4-7e3b3d2a3a7e", "Status": "OK", "DateTimeUTC": now}
        left = {"x-minlimit-remaining": "59", "x-daylimit-remaining": "4999", "x-appminlimit-remaining": "9999"}
        if resource not in _PAGED:
            return PartnerAnswer(200, body | {resource: found}, left)
        page, size = int(request.param("page", "1")), min(int(request.param("pageSize", "100")), 1000)
        pages = {"page": page, "pageSize": size, "pageCount": -(-len(found) // size), "itemCount": len(found)}
        shown = found[size * (page - 1) : size * page]
        return PartnerAnswer(200, body | {"pagination": pages, resource: shown}, left)
