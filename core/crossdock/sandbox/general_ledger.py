"""The general ledger: an invoice with ``autoPostLedger`` is posted in the transaction that stores it.

Everything but the flag is assumed. Each tenant has the accounts 1100 "Accounts receivable" and 4000 "Revenue" from the
beginning; they have no effect. A posting debits the first and credits the second with the exact total of the invoice,
or the reverse for a negative total. Each entry is an effect: ``post`` on the account, with the entry as the body. A
posted or approved invoice can be neither changed nor deleted (409), nor can the two accounts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from crossdock.sandbox import record_level_access, strict_json
from crossdock.sandbox.access_control import insufficient_scope_error
from crossdock.sandbox.api_call import ApiCall
from crossdock.sandbox.api_routes import COLLECTIONS, Collection
from crossdock.sandbox.effects_log import record_effect
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.resource_store import find_id_by_external_id, new_id
from crossdock.sandbox.rfc3339 import instant_text

_DECIMALS = 4  # of a quantity and of a price
_ACCOUNTS = COLLECTIONS["/api/v1/finance/ledger-accounts"]
_DEFAULT_ACCOUNTS: Sequence[Mapping[str, str]] = (
    {"externalId": "sandbox:1100", "code": "1100", "name": "Accounts receivable", "type": "asset"},
    {"externalId": "sandbox:4000", "code": "4000", "name": "Revenue", "type": "revenue"},
)


def invoice_total(items: Iterable[Mapping[str, Any]]) -> Decimal:
    units = sum(_in_ten_thousandths(item["quantity"]) * _in_ten_thousandths(item["unitPrice"]) for item in items)
    return Decimal(f"{units}E-{2 * _DECIMALS}")


def _in_ten_thousandths(number: int | Decimal) -> int:
    return int(f"{Decimal(number):.{_DECIMALS}f}".replace(".", ""))


def get_or_create_default_accounts(connection: sqlite3.Connection, tenant: str, now: float) -> list[str]:
    """Return the ids of *tenant*'s receivable and revenue account, and create them if they do not exist."""
    return [
        find_id_by_external_id(connection, tenant, _ACCOUNTS, account["externalId"])
        or _create_default_account(connection, tenant, now, number)
        for number, account in enumerate(_DEFAULT_ACCOUNTS)
    ]


def _create_default_account(connection: sqlite3.Connection, tenant: str, now: float, index: int) -> str:
    account, account_id, at = _DEFAULT_ACCOUNTS[index], new_id(_ACCOUNTS.prefix, now), instant_text(now)
    text = strict_json.write_canonical({**account, "id": account_id, "createdAt": at, "updatedAt": at})
    # Lists are ordered by the number of the last effect; accounts without one are numbered below all effects.
    changed = index - len(_DEFAULT_ACCOUNTS)
    values = (account_id, tenant, _ACCOUNTS.kind.name, account["externalId"], at, changed, text)
    connection.execute("INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    return account_id


def raise_if_caller_may_not_post(connection: sqlite3.Connection, call: ApiCall) -> None:
    """Raise 403 if the scopes of the caller are narrowed to other accounts. ``invoices:write`` alone is sufficient."""
    permitted = record_level_access.permitted_account_or_bin_ids(connection, call.caller, _ACCOUNTS.kind.name, "write")
    if permitted is not None and not permitted.issuperset(
        get_or_create_default_accounts(connection, call.caller.tenant, call.now)
    ):
        raise insufficient_scope_error(" ".join(f"accounts:{each['code']}:write" for each in _DEFAULT_ACCOUNTS))


def post_invoice(connection: sqlite3.Connection, call: ApiCall, invoice: Mapping[str, Any]) -> None:
    amount: Decimal = invoice["total"]
    sides = ("credit", "debit") if amount < 0 else ("debit", "credit")
    accounts = get_or_create_default_accounts(connection, call.caller.tenant, call.now)
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
        text = strict_json.write_canonical(entry)
        seq = record_effect(connection, call, "post", _ACCOUNTS.kind.name, account, text)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (seq, account, text))


def raise_if_invoice_or_account_unchangeable(collection: Collection, before: Mapping[str, Any]) -> None:
    name = collection.kind.name
    if name == "ledger_account" and before["externalId"] in {each["externalId"] for each in _DEFAULT_ACCOUNTS}:
        raise ProblemError(409, "The platform posts to this account: it cannot be changed or deleted.")
    if name == "invoice" and before.get("status") == "approved":
        raise ProblemError(409, "The invoice is approved: it cannot be changed or deleted.")
    if name == "invoice" and before.get("autoPostLedger"):
        raise ProblemError(409, "The invoice is posted to the ledger: it cannot be changed or deleted.")
