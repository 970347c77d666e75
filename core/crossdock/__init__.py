"""crossdock moves records from legacy warehouses, shops and 3PLs onto an enterprise platform.

A connector is written with the names of this module: `Connector`, `Stream`, `Settings`, `Context`, `RawBatch`, `Record`
and the drafts of the platform's resources; `crossdock.resources` has what is in them, such as `ShippingAddress` and
`Tracking`. `crossdock.sources` has files and paged HTTP, `crossdock.targets` what a target needs, `crossdock.testing`
servers to test with. `crossdock.run` runs a config from another program. A name is imported when it is first used, so
that commands start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.config.declared_streams import DeclaredStream, StreamConfig
    from crossdock.connector import Connector, Context, Finding, Settings, Stream
    from crossdock.errors import CrossdockError, RecordError, RefusedError
    from crossdock.mapping import convert
    from crossdock.mapping.ordering import OrderBy
    from crossdock.mapping.repairs_and_filters import Filter, Repair
    from crossdock.mapping.stream_facts import FailureLimits, GoneLimits
    from crossdock.records import RawBatch, Record
    from crossdock.resources import (
        Address,
        CustomerDraft,
        InventoryLotDraft,
        InvoiceDraft,
        LedgerAccountDraft,
        LineDraft,
        OrderDraft,
        ProductDraft,
        Reference,
        WarehouseBinDraft,
    )
    from crossdock.runs.run import run
    from crossdock.values.config_models import ConfigModel, SecretRef

_NAMES = {
    "values.config_models": "ConfigModel SecretRef",
    "connector": "Connector Context Finding Settings Stream",
    "mapping.stream_facts": "FailureLimits GoneLimits",
    "config.declared_streams": "DeclaredStream StreamConfig",
    "errors": "CrossdockError RecordError RefusedError",
    "mapping": "convert",
    "mapping.ordering": "OrderBy",
    "mapping.repairs_and_filters": "Filter Repair",
    "records": "RawBatch Record",
    "runs.run": "run",
    "resources": "Address CustomerDraft InventoryLotDraft InvoiceDraft LedgerAccountDraft LineDraft OrderDraft"
    " ProductDraft Reference WarehouseBinDraft",
}
_HOME_OF = {name: f"crossdock.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Address", "ConfigModel", "Connector", "Context", "CrossdockError", "CustomerDraft", "DeclaredStream",
    "FailureLimits", "Filter", "Finding", "GoneLimits", "InventoryLotDraft", "InvoiceDraft", "LedgerAccountDraft",
    "LineDraft", "OrderBy", "OrderDraft", "ProductDraft", "RawBatch", "Record", "RecordError", "Reference",
    "RefusedError", "Repair", "SecretRef", "Settings", "Stream", "StreamConfig",
    "WarehouseBinDraft", "convert", "run",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'crossdock' has no attribute {name!r}")
        home = _HOME_OF[name]
        return import_module(f"{home}.convert") if name == "convert" else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # also what was not used yet, for help() and completion
