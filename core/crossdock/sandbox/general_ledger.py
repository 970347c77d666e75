"""The general ledger: an invoice with ``autoPostLedger`` is posted in the transaction that stores it.

All but the flag is assumed. A tenant has two accounts from its beginning, 1100 "Accounts receivable" and 4000
"Revenue"; no request made them, so no effect tells of them. Posting debits the first and credits the second with the
invoice's exact total. A negative total, which a credit note has, is posted with the sides exchanged, so that no
amount is ever negative. Each of the two entries is an effect of its own: operation ``post`` on the account, with the
entry as its body.

A posted or approved invoice is neither changed nor deleted (409), nor are the two accounts. A draft that was not
posted is posted by the update that sets its flag: it says ``autoPostLedger`` if and only if it has its entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from crossdock.sandbox import json_codec
from crossdock.sandbox.collections import COLLECTIONS, Collection, instant_text
from crossdock.sandbox.problem_answers import ProblemError
from crossdock.sandbox.write_requests import Call, holder, new_id, witness

_DIGITS = 4  # after the point, in a quantity and in a price
_COLLECTION = COLLECTIONS["/api/v1/finance/ledger-accounts"]
_OWN: Sequence[Mapping[str, str]] = (
    {"externalId": "sandbox:1100", "code": "1100", "name": "Accounts receivable", "type": "asset"},
    {"externalId": "sandbox:4000", "code": "4000", "name": "Revenue", "type": "revenue"},
)


def total(items: Iterable[Mapping[str, Any]]) -> Decimal:
    """The sum of quantity x unitPrice with all its digits, added up as integers, which nothing ever rounds."""
    units = sum(_units(item["quantity"]) * _units(item["unitPrice"]) for item in items)
    return Decimal(f"{units}E-{2 * _DIGITS}")


def _units(number: int | Decimal) -> int:
    return int(f"{Decimal(number):.{_DIGITS}f}".replace(".", ""))


def own_accounts(connection: sqlite3.Connection, tenant: str, now: float) -> list[str]:
    """The ids of *tenant*'s receivable and revenue account, which are made if they are not there."""
    return [
        holder(connection, tenant, _COLLECTION, account["externalId"]) or _open(connection, tenant, now, number)
        for number, account in enumerate(_OWN)
    ]


def _open(connection: sqlite3.Connection, tenant: str, now: float, number: int) -> str:
    own_id, at = new_id(_COLLECTION.prefix, now), instant_text(datetime.fromtimestamp(now, UTC))
    text = json_codec.write({**_OWN[number], "id": own_id, "createdAt": at, "updatedAt": at})
    # It is numbered below all effects, one of which every other change is: the order of a list needs a number.
    values = (own_id, tenant, _COLLECTION.kind.name, _OWN[number]["externalId"], at, number - len(_OWN), text)
    connection.execute("INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    return own_id


def post(connection: sqlite3.Connection, call: Call, invoice: Mapping[str, Any]) -> None:
    """Write both entries of *invoice*, each with its witness."""
    amount: Decimal = invoice["total"]
    sides = ("credit", "debit") if amount < 0 else ("debit", "credit")
    accounts = own_accounts(connection, call.caller.tenant, call.now)
    for account, side in zip(accounts, sides, strict=True):
        entry = {
            "id": new_id("ent", call.now),
            "accountId": account,
            "invoiceId": invoice["id"],
            "side": side,
            "amount": amount.copy_abs(),
            "currency": invoice["currency"],
            "at": call.at,
        }
        text = json_codec.write(entry)
        seq = witness(connection, call, "post", _COLLECTION.kind.name, account, text)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (seq, account, text))


def refuse_change(collection: Collection, before: Mapping[str, Any]) -> None:
    """Refuse to change or delete what the books stand on; 409."""
    name = collection.kind.name
    if name == "ledger_account" and before["externalId"] in {account["externalId"] for account in _OWN}:
        raise ProblemError(409, "The platform posts to this account: it is neither changed nor deleted.")
    if name == "invoice" and before.get("status") == "approved":
        raise ProblemError(409, "The invoice is approved: it is neither changed nor deleted.")
    if name == "invoice" and before.get("autoPostLedger"):
        raise ProblemError(409, "The invoice is posted to the ledger: it is neither changed nor deleted.")
