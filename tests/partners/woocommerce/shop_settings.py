"""How one fake WooCommerce shop is set up, and how it writes money and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from zoneinfo import ZoneInfo

STATUSES = ("pending", "processing", "on-hold", "completed", "cancelled", "refunded", "failed")
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}(:\d{2})?)?"
)  # WordPress: rest_parse_date
PROVIDERS = MappingProxyType({"USPS": "https://tools.usps.com/tracking/%1$s", "DHL": "https://dhl.example/?id=%1$s"})


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """The options that a merchant sets in WordPress, WooCommerce and its extensions."""

    zone: str = "Europe/Berlin"
    """IANA time zone of the site."""
    currency: str = "EUR"
    decimals: int = 2
    """Decimals of amounts in orders."""
    prices_include_tax: bool = False
    """Whether the prices of products contain the tax. The amounts of lines never do."""
    tax_percent: Decimal = Decimal(19)
    custom_statuses: tuple[str, ...] = ()
    """Statuses of orders that an extension registers, without ``wc-``."""
    coupons: Mapping[str, Decimal] = field(default_factory=dict)
    """Coupons by code: the percentage that they take off."""
    query_keys: bool = False
    """Whether keys in the query are accepted over HTTPS, as WooCommerce does for servers that lose the header
    Authorization. Not by default: they would stand in every log."""
    filters_by_change: bool = True
    """False: an old shop, before WooCommerce 5.8, which ignores ``modified_after`` and ``modified_before``."""
    lists_refunds: bool = True
    """False: a shop before WooCommerce 9.0, which has no list of all refunds."""
    tracking: Mapping[str, str] | None = field(default_factory=lambda: PROVIDERS)
    """The carriers that the extension Shipment Tracking knows, with the form of their links; None without it."""

    @property
    def statuses(self) -> tuple[str, ...]:
        return (*STATUSES, *self.custom_statuses)

    def rounded(self, value: Decimal, decimals: int | None = None) -> Decimal:
        """*value* with the shop's *decimals*, or others; half a unit is rounded away from zero, as PHP does."""
        places = self.decimals if decimals is None else decimals
        return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)

    def amount(self, value: Decimal, decimals: int | None = None) -> str:
        """*value* as orders show it, such as "9.50"; never "-0.00"."""
        return f"{self.rounded(value, decimals) + 0:f}"

    # ---- times

    def local(self, at: datetime) -> datetime:
        """*at* on the site's clocks, without a zone."""
        return at.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None)

    def times(self, name: str, at: datetime | None) -> dict[str, str | None]:
        """A time as two members: on the site's clocks and in UTC, both without an offset; null for None."""
        return {
            name: self.local(at).isoformat() if at else None,
            f"{name}_gmt": gmt(at).isoformat() if at else None,
        }

    def bound(self, text: str, *, are_gmt: bool, kept_in_gmt: bool) -> tuple[Callable[[datetime], datetime], datetime]:
        """What of a record's time is compared with a time in a request, and with which value; both without a zone.

        Sources: ``WP_Date_Query::build_mysql_datetime`` and, for orders, ``OrdersTableQuery`` of WooCommerce since 8.2.
        A time without an offset is on the site's clocks, the first of the two in autumn's repeated hour. With
        ``dates_are_gmt`` it is compared with the time in UTC, but WordPress reads it as a local time nevertheless: a
        time with an offset is converted to the site's clocks first, and one in spring's missing hour is moved by it.

        Args:
            are_gmt: ``dates_are_gmt``.
            kept_in_gmt: Whether only the time in UTC is stored, as for orders. Products have a column for each.

        Raises:
            ValueError: If *text* is no time as WordPress's REST API defines it.
        """
        if not _TIME.fullmatch(text):
            raise ValueError("Invalid date.")
        asked = datetime.fromisoformat(text.upper()).replace(microsecond=0)
        instant = (asked if asked.tzinfo else asked.replace(tzinfo=ZoneInfo(self.zone))).astimezone(UTC)
        if are_gmt:
            return gmt, self.local(instant)
        return (gmt, gmt(instant)) if kept_in_gmt else (self.local, self.local(instant))


def gmt(at: datetime) -> datetime:
    """*at* in UTC, without a zone."""
    return at.astimezone(UTC).replace(tzinfo=None)
