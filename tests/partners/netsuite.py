"""A fake of NetSuite's REST web services: SuiteQL over a small database, and records with external ids.

Made of the public pages "Executing SuiteQL Queries Through REST Web Services", "Collection Paging", "Using the
Upsert Operation", "Error Handling in REST Web Services", "POST Request to the Token Endpoint and the Access Token
Response" and "The Request Token Structure" of docs.oracle.com (NetSuite Applications Suite):

- A token is granted for a JWT that the client signs with PS256 or ES256: ``iss`` is the client, ``aud`` the address of
  the token endpoint, ``kid`` the certificate, ``scope`` the services, and ``exp`` less than an hour after ``iat``.
- SuiteQL is a POST with ``q`` and ``Prefer: transient``. Values are texts, null is left out, and ``links`` have the
  next page; times have the form that the query gives them, in the user's time zone.
- ``PUT /record/v1/customer/eid:KEY`` creates or changes, and answers with 204 and the ``Location`` of the record.
- Errors have ``o:errorDetails``; too many requests at once are 429 without a wait.
"""

from __future__ import annotations

import json
import re
import sqlite3
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, unquote
from zoneinfo import ZoneInfo

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock

CLIENT, CERTIFICATE = "netsuite-client", "certificate-1"
BELOW = "/services/rest"
_CLOCKS_DIFFER_S = 120
_PACIFIC = ZoneInfo("America/Los_Angeles")
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TABLES = """
CREATE TABLE item (id INTEGER PRIMARY KEY, itemid, displayname, itemtype, isinactive, lastmodifieddate);
CREATE TABLE customer (id INTEGER PRIMARY KEY, altname, email, lastmodifieddate);
CREATE TABLE currency (id INTEGER PRIMARY KEY, symbol);
CREATE TABLE "transaction" (
    id INTEGER PRIMARY KEY, type, entity, currency, createddate, foreigntotal, lastmodifieddate);
CREATE TABLE transactionline (
    id INTEGER PRIMARY KEY, "transaction", mainline, taxline, item, itemtype, quantity, rate, foreignamount);
INSERT INTO currency VALUES (1, 'USD');
"""


class NetSuite:
    """A `Partner`.

    Attributes:
        effects: ``customer_created`` and ``customer_changed``, with ``id``, ``name`` and ``body``.
        page_size: Rows of a page.
        key: With which the client signs, its public half.
        tokens: How many were granted.
    """

    def __init__(self, clock: ManualClock, key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> None:
        self.clock, self.key, self.page_size, self.tokens = clock, key, 3, 0
        self.effects: list[dict[str, Any]] = []
        self.customers: dict[str, tuple[int, dict[str, Any]]] = {}
        self._used = set[str]()
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.create_function("TO_CHAR", 2, lambda value, _: value)
        self._base.create_function("TO_DATE", 2, lambda value, _: value)
        self._base.executescript(_TABLES)

    def put(self, table: str, row_id: int, **columns: Any) -> None:
        """Create or change a row now."""
        given: dict[str, Any] = {"id": row_id, **columns}
        if table != "transactionline":
            given["lastmodifieddate"] = self.now()
        names, places = ", ".join(f'"{each}"' for each in given), ", ".join("?" * len(given))
        updates = ", ".join(f'"{each}" = excluded."{each}"' for each in given)
        statement = f'INSERT INTO "{table}" ({names}) VALUES ({places}) ON CONFLICT(id) DO UPDATE SET {updates}'
        self._base.execute(statement, list(given.values()))

    def order(
        self,
        row_id: int,
        customer: int,
        lines: Sequence[tuple[int, str, str]],
        charges: Sequence[tuple[str, int, str]] = (),
    ) -> None:
        """Create a sales order with lines of item, quantity and rate, and of charges by type of item, id and amount.

        Amounts of lines have two decimals. They are negative, as quantities are, and the total is not.
        """
        amounts = [(Decimal(quantity) * Decimal(rate)).quantize(Decimal("0.01")) for _, quantity, rate in lines]
        total = sum([*amounts, *(Decimal(amount) for *_, amount in charges)])
        about = {"type": "SalesOrd", "entity": customer, "currency": 1, "createddate": self.now()}
        self.put("transaction", row_id, **about, foreigntotal=str(total))
        main = {"transaction": row_id, "mainline": "T", "taxline": "F"}
        self.put("transactionline", row_id * 100, **main)
        for number, ((item, quantity, rate), amount) in enumerate(zip(lines, amounts, strict=True), 1):
            columns = {"item": item, "itemtype": "InvtPart", "quantity": f"-{quantity}", "rate": rate}
            columns |= {"foreignamount": f"-{amount}"}
            self.put("transactionline", row_id * 100 + number, **main | {"mainline": "F"}, **columns)
        for number, (kind, item, charge) in enumerate(charges, 50):
            columns = {"item": item, "itemtype": kind, "foreignamount": str(-Decimal(charge))}
            is_tax = {"taxline": "T" if kind.startswith("Tax") else "F"}
            self.put("transactionline", row_id * 100 + number, **main | {"mainline": "F"} | is_tax, **columns)

    def now(self) -> str:
        return self.clock.now().astimezone(_PACIFIC).strftime("%Y-%m-%d %H:%M:%S")

    # ---- its API

    def throttled(self) -> PartnerAnswer:
        return _refusal(429, "Too Many Requests", "Request limit exceeded.", "CONCURRENCY_LIMIT_EXCEEDED")

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        path = request.path.removeprefix(BELOW)
        if path == "/auth/oauth2/v1/token":
            return self._token(request)
        if request.headers.get("authorization") != f"Bearer token-{self.tokens}":
            return _refusal(401, "Unauthorized", "Invalid login attempt.", "INVALID_LOGIN")
        if request.method == "POST" and path == "/query/v1/suiteql":
            return self._query(request)
        match = re.fullmatch(r"/record/v1/customer(?:/(eid:)?([^/]+))?", path)
        if match is None:
            return _refusal(404, "Not Found", "Record type does not exist.", "NONEXISTENT_RECORD")
        return self._record(request, bool(match[1]), unquote(match[2] or ""))

    def _token(self, request: PartnerRequest) -> PartnerAnswer:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        expected = ("client_credentials", _ASSERTION)
        if (
            form.get("grant_type"),
            form.get("client_assertion_type"),
        ) != expected or "authorization" in request.headers:
            return PartnerAnswer(400, {"error": "invalid_request"})
        host = request.headers["host"]
        if not self._is_signed(form["client_assertion"], f"http://{host}{request.path}"):
            return PartnerAnswer(400, {"error": "invalid_client"})
        self.tokens += 1
        return PartnerAnswer(
            200, {"access_token": f"token-{self.tokens}", "expires_in": "3600", "token_type": "bearer"}
        )

    def _is_signed(self, assertion: str, audience: str) -> bool:
        parts = assertion.split(".")
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
        content, signature = ".".join(parts[:2]).encode(), _decoded(parts[2])
        digest = hashes.SHA256()
        try:
            if isinstance(self.key, rsa.RSAPublicKey):
                self.key.verify(signature, content, padding.PSS(padding.MGF1(digest), 32), digest)
            else:
                numbers = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
                self.key.verify(utils.encode_dss_signature(*numbers), content, ec.ECDSA(digest))
        except InvalidSignature:
            return False
        now, is_new = self.clock.now().timestamp(), claims["jti"] not in self._used
        self._used.add(claims["jti"])
        stated = (header["typ"], header["kid"], claims["iss"], claims["aud"], claims["scope"])
        is_rsa = isinstance(self.key, rsa.RSAPublicKey)
        is_stated = stated == ("JWT", CERTIFICATE, CLIENT, audience, "rest_webservices")
        is_alive = claims["iat"] <= now + _CLOCKS_DIFFER_S and now < claims["exp"] < claims["iat"] + 3600
        return is_new and is_stated and is_alive and header["alg"] == ("PS256" if is_rsa else "ES256")

    def _query(self, request: PartnerRequest) -> PartnerAnswer:
        if request.headers.get("prefer") != "transient":
            return _refusal(400, "Bad Request", "The required request header 'Prefer' is missing.", "INVALID_HEADER")
        query = re.sub(r"(FROM|JOIN) transaction\b", r'\1 "transaction"', request.json()["q"])
        query = query.replace("l.transaction", 'l."transaction"')
        try:
            found = self._base.execute(query)
        except sqlite3.Error:
            return _refusal(400, "Bad Request", "Invalid search query.", "INVALID_PARAMETER")
        names = [each[0].lower() for each in found.description]
        rows: list[dict[str, Any]] = [
            {"links": []} | {name: str(value) for name, value in zip(names, row, strict=True) if value is not None}
            for row in found.fetchall()
        ]
        size, start = min(int(request.param("limit", "1000")), self.page_size), int(request.param("offset", "0"))
        items, has_more = rows[start : start + size], start + size < len(rows)
        address = f"http://{request.headers['host']}{request.path}?limit={size}&offset="
        links = [{"rel": "next", "href": f"{address}{start + size}"}] if has_more else []
        links.append({"rel": "self", "href": f"{address}{start}"})
        about = {"count": len(items), "hasMore": has_more, "offset": start, "totalResults": len(rows)}
        return PartnerAnswer(200, {"links": links, "items": items, **about})

    def _record(self, request: PartnerRequest, is_external: bool, name: str) -> PartnerAnswer:
        if request.method == "PUT" and is_external:
            return self._upserted(request, name)
        known = next((each for each, (number, _) in self.customers.items() if str(number) == name), None)
        if known is None:
            return _refusal(404, "Not Found", "The record instance does not exist.", "NONEXISTENT_ID")
        number, body = self.customers[known]
        if request.method == "GET":
            return PartnerAnswer(200, {"links": [], "id": str(number), "externalId": known, **body})
        assert request.method == "PATCH"
        body |= request.json()
        self.effects.append({"kind": "customer_changed", "id": number, "name": known, "body": request.json()})
        return self._located(request, number)

    def _upserted(self, request: PartnerRequest, name: str) -> PartnerAnswer:
        body = request.json()
        if not body.get("companyName"):
            message = "Error while accessing a resource. Please enter value(s) for: Company Name."
            return _refusal(400, "Bad Request", message, "USER_ERROR")
        kind = "customer_changed" if name in self.customers else "customer_created"
        number = self.customers.get(name, (1000 + len(self.customers), {}))[0]
        self.customers[name] = number, body
        self.effects.append({"kind": kind, "id": number, "name": name, "body": body})
        return self._located(request, number)

    def _located(self, request: PartnerRequest, number: int) -> PartnerAnswer:
        address = f"http://{request.headers['host']}{BELOW}/record/v1/customer/{number}"
        return PartnerAnswer(204, None, {"location": address})


def _refusal(status: int, title: str, detail: str, code: str) -> PartnerAnswer:
    details = [{"detail": detail, "o:errorCode": code}]
    return PartnerAnswer(status, {"type": "about:blank", "title": title, "status": status, "o:errorDetails": details})


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
