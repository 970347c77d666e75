"""crossdock moves records from legacy warehouses, shops and 3PLs onto an enterprise platform.

This is what connector authors import; each name is loaded when it is first used, so that commands start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.config_file import ConfigModel, SecretRef
    from crossdock.connector import Connector, Context, Finding, Settings, Stream
    from crossdock.declared import DeclaredStream, StreamConfig
    from crossdock.errors import CrossdockError, RecordError, RefusedError
    from crossdock.mapping import convert
    from crossdock.mapping.repairs_and_filters import Filter, Repair
    from crossdock.records import RawBatch, Record
    from crossdock.resources import (
        CustomerDraft,
        InventoryLotDraft,
        InvoiceDraft,
        LedgerAccountDraft,
        OrderDraft,
        ProductDraft,
        Reference,
        WarehouseBinDraft,
    )

_HOMES = {
    "crossdock.config_file": ("ConfigModel", "SecretRef"),
    "crossdock.connector": ("Connector", "Context", "Finding", "Settings", "Stream"),
    "crossdock.declared": ("DeclaredStream", "StreamConfig"),
    "crossdock.errors": ("CrossdockError", "RecordError", "RefusedError"),
    "crossdock.mapping.convert": ("convert",),
    "crossdock.mapping.repairs_and_filters": ("Filter", "Repair"),
    "crossdock.records": ("RawBatch", "Record"),
    "crossdock.resources": (
        "CustomerDraft",
        "InventoryLotDraft",
        "InvoiceDraft",
        "LedgerAccountDraft",
        "OrderDraft",
        "ProductDraft",
        "Reference",
        "WarehouseBinDraft",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ConfigModel",
    "Connector",
    "Context",
    "CrossdockError",
    "CustomerDraft",
    "DeclaredStream",
    "Filter",
    "Finding",
    "InventoryLotDraft",
    "InvoiceDraft",
    "LedgerAccountDraft",
    "OrderDraft",
    "ProductDraft",
    "RawBatch",
    "Record",
    "RecordError",
    "Reference",
    "RefusedError",
    "Repair",
    "SecretRef",
    "Settings",
    "Stream",
    "StreamConfig",
    "WarehouseBinDraft",
    "convert",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'crossdock' has no attribute {name!r}")
    home = import_module(_HOME_OF[name])
    return home if name == "convert" else getattr(home, name)
