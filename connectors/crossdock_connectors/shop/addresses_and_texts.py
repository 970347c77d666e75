"""Addresses and other texts of people in a shop's records. What is changed, assumed or left out is counted."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from crossdock import Address, Record, RecordError
from crossdock.printable import without_invisible_characters
from crossdock.resources import ShippingAddress
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.shop.record_values_and_keys import text_or_none
from crossdock_connectors.shop.settings import ShopSettings

LONGEST = 500
"""Characters of a text on the platform; a description has more, a code fewer."""
LONGEST_CODE = 100
LONGEST_DESCRIPTION = 10_000
_REQUIRED = {"line1": "street", "city": "city", "country": "country"}
_ADVICE = "complete it in the shop, or set incomplete_addresses: leave_out"


class AddressFields(Struct, frozen=True):
    """The members of a shop's addresses. Of several regions, the first that is there counts."""

    line1: str
    line2: str
    city: str
    regions: tuple[str, ...]
    postal_code: str
    country: str
    company: str = "/company"


class TextReader:
    """Reads texts that people see from one *record*."""

    def __init__(self, record: Record, settings: ShopSettings, fields: AddressFields) -> None:
        self._record, self._settings, self._fields = record, settings, fields

    def read_cut_text(self, part: JsonAccess, pointer: str, longest: int = LONGEST) -> str | None:
        found = self._read_text_without_invisible_characters(part, pointer)
        return None if found is None else self.cut_if_too_long(found, longest)

    def cut_if_too_long(self, found: str, longest: int = LONGEST) -> str:
        if len(found) <= longest or not self._settings.clean:
            return found
        self._record.count("text cut")
        return found[:longest].rstrip()

    def read_text_unless_too_long(self, part: JsonAccess, pointer: str, longest: int = LONGEST) -> str | None:
        """Return a text that is of no use in part, such as an e-mail address: one that is too long is left out."""
        found = self._read_text_without_invisible_characters(part, pointer)
        if found is not None and len(found) > longest and self._settings.clean:
            self._record.count("text left out")
            return None
        return found

    def _read_text_without_invisible_characters(self, part: JsonAccess, pointer: str) -> str | None:
        found = text_or_none(part, pointer)
        if found is None or not self._settings.clean:
            return found
        seen = without_invisible_characters(found)
        if seen != found:
            self._record.count("text cleaned")
        return seen or None

    # ---- addresses

    def customer_address(self, pointer: str) -> Address | None:
        """Return the address of a customer, for whom orders and invoices must not wait because of it."""
        members = self._valid_address_members_or_none(
            pointer, none_if_invalid=self._settings.incomplete_addresses != "reject"
        )
        return None if members is None else Address.model_validate(members)

    def order_address(self, pointer: str, name: str | None, phone: str | None) -> ShippingAddress | None:
        """Return the address that an order goes to, or raise RecordError."""
        members = self._valid_address_members_or_none(
            pointer, none_if_invalid=self._settings.incomplete_addresses == "leave_out", name=name
        )
        if members is None:
            return None
        if name is None:
            self._record.count("address without a name")
        return ShippingAddress.model_validate({**members, "name": name, "phone": phone})

    def _valid_address_members_or_none(
        self, pointer: str, *, none_if_invalid: bool, name: str | None = None
    ) -> dict[str, Any] | None:
        found = self._read_address_members(pointer, name)
        if found is None:
            return None
        try:
            self._raise_if_address_invalid(found, pointer)
        except RecordError:
            if not none_if_invalid:
                raise
            self._record.count("address left out")
            return None
        return found

    def _read_address_members(self, pointer: str, name: str | None) -> dict[str, Any] | None:
        """Return the members of an address; None if it is empty but for a region, which shops fill in by themselves.

        The company begins the second line, unless it is the *name* or is there already.
        """
        if self._record.at(pointer, dict, default=None) is None:
            return None
        part, fields = self._record.part(pointer), self._fields
        regions = (self.read_cut_text(part, each) for each in fields.regions)
        members = {
            "line1": self.read_cut_text(part, fields.line1),
            "line2": self.read_cut_text(part, fields.line2),
            "city": self.read_cut_text(part, fields.city),
            "region": next(filter(None, regions), None),
            "postal_code": self.read_cut_text(part, fields.postal_code),
            "country": text_or_none(part, fields.country),
        }
        if not any(members[name] for name in ("line1", "line2", "city", "postal_code")):
            if members["region"] or members["country"]:
                self._record.count("country without an address")
            return None
        city = self._settings.city_by_country.get(members["country"] or "")
        if members["city"] is None and city is not None:
            self._record.count("city assumed")
            members["city"] = city
        if members["line1"] is None and members["line2"] is not None:
            members |= {"line1": members["line2"], "line2": None}
        company = self.read_cut_text(part, fields.company)
        if company not in {None, name, members["line1"], members["line2"]}:
            members["line2"] = self.cut_if_too_long(", ".join(filter(None, (company, members["line2"]))))
        return members

    def _raise_if_address_invalid(self, members: dict[str, Any], pointer: str) -> None:
        missing = [shown for name, shown in _REQUIRED.items() if members[name] is None]
        if missing:
            raise RecordError("bad_value", f"has no {' and no '.join(missing)}; {_ADVICE}", pointer=pointer)
        try:
            Address.model_validate(members)
        except ValidationError as error:
            names = {str(each["loc"][0]) for each in error.errors(include_input=False, include_url=False)}
            message = f"has no valid {' and no valid '.join(sorted(names))}; {_ADVICE}"
            raise RecordError("bad_value", message, pointer=pointer) from None
