"""The types of records at a target, including those of the platform."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from pydantic import create_model
from pydantic.fields import FieldInfo

from crossdock.resources import (
    Customer,
    CustomerDraft,
    External,
    InventoryLot,
    InventoryLotDraft,
    Invoice,
    InvoiceApprovalDraft,
    InvoiceDraft,
    Item,
    LedgerAccount,
    LedgerAccountDraft,
    LotMovementDraft,
    Order,
    OrderDraft,
    Product,
    ProductDraft,
    ResourceModel,
    ResourceName,
    WarehouseBin,
    WarehouseBinDraft,
)

CHANGED = "updatedAt"
"""The member with the time when the platform last changed a record."""


def make_platform_external_id(namespace: str, key: str) -> str:
    """Return the ``externalId`` of a record. It is unique: a namespace has no colon, and a key is percent-encoded."""
    return f"{namespace}:{key}"


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A type of record at a target.

    Attributes:
        name: The name in configs and in the state.
        draft: The model that a mapping makes.
        write_once: Whether a delivered record is never changed (law 2).
        parents: The resources that a draft may refer to.
        creates: Whether records can be created; others are only completed, by streams with ``contributes``.
    """

    name: str
    draft: type[ResourceModel]
    write_once: bool = False
    parents: frozenset[str] = frozenset()
    creates: bool = field(default=True, kw_only=True)
    deletes: bool = field(default=True, kw_only=True)

    @property
    def personal(self) -> frozenset[str]:
        return personal_members(self.draft)


@dataclass(frozen=True, slots=True)
class PlatformResource(ResourceType):
    """A resource of the platform, which accepts the model *wire*."""

    wire: type[ResourceModel] = ResourceModel

    @property
    def has_external_id(self) -> bool:
        return issubclass(self.wire, External)


def _frozenset_of_resource_names(*names: ResourceName) -> frozenset[str]:
    return frozenset(names)


RESOURCES: Mapping[str, PlatformResource] = {
    "ledger_account": PlatformResource(
        "ledger_account", LedgerAccountDraft, False, _frozenset_of_resource_names("ledger_account"), LedgerAccount
    ),
    "customer": PlatformResource("customer", CustomerDraft, wire=Customer),
    "product": PlatformResource("product", ProductDraft, wire=Product),
    "warehouse_bin": PlatformResource("warehouse_bin", WarehouseBinDraft, wire=WarehouseBin),
    "inventory_lot": PlatformResource(
        "inventory_lot",
        InventoryLotDraft,
        False,
        _frozenset_of_resource_names("product", "warehouse_bin"),
        InventoryLot,
    ),
    "order": PlatformResource("order", OrderDraft, False, _frozenset_of_resource_names("customer", "product"), Order),
    "invoice": PlatformResource(
        "invoice", InvoiceDraft, True, _frozenset_of_resource_names("customer", "product"), Invoice, deletes=False
    ),
}
"""The platform's resources, parents before those that refer to them."""


@dataclass(frozen=True, slots=True)
class Action(ResourceType):
    """An operation on an existing record of the platform that is executed once. Plans call it *verb*."""

    acts_on: ResourceName = "invoice"
    verb: str = "approve"


ACTIONS: Mapping[str, Action] = {
    "lot_movement": Action(
        "lot_movement",
        LotMovementDraft,
        True,
        _frozenset_of_resource_names("inventory_lot", "warehouse_bin"),
        "inventory_lot",
        "move",
    ),
    "invoice_approval": Action(
        "invoice_approval", InvoiceApprovalDraft, True, _frozenset_of_resource_names("invoice"), "invoice", "approve"
    ),
}
WRITABLE_RESOURCE_TYPES: Mapping[str, ResourceType] = {**RESOURCES, **ACTIONS}
"""Everything that streams write to the platform."""


@cache
def subset_model_with_optional_members(model: type[ResourceModel], members: tuple[str, ...]) -> type[ResourceModel]:
    """Make a model with only these members, none of them required.

    Rules that compare members of *model* are not checked: the rest of the record is unknown.
    """
    fields: dict[str, Any] = {
        name: (field.annotation, _as_not_required(field))
        for name, field in model.model_fields.items()
        if (field.alias or name) in members
    }
    made: type[ResourceModel] = create_model(f"{model.__name__}Part", __base__=ResourceModel, **fields)
    return made


def _as_not_required(field: FieldInfo) -> FieldInfo:
    changed = copy(field)
    if changed.is_required():
        changed.default = None
    return changed


@cache
def personal_members(model: type[ResourceModel]) -> frozenset[str]:
    fields = model.model_fields.items()
    return frozenset(field.alias or name for name, field in fields if any(map(_is_personal, (field, field.annotation))))


@cache
def text_members(model: type[ResourceModel]) -> tuple[str, ...]:
    """Return the wire names of the members of *model* that hold free text. Ids and fixed values do not count."""
    return tuple(field.alias or name for name, field in model.model_fields.items() if _is_text(field.annotation))


def _is_text(annotation: Any) -> bool:
    parts = {get_args(part)[0] if hasattr(part, "__metadata__") else part for part in get_args(annotation)}
    return (parts or {annotation}) - {type(None)} == {str}


def _is_personal(part: Any) -> bool:
    if isinstance(part, type) and issubclass(part, ResourceModel):
        return bool(personal_members(part)) and not issubclass(part, Item)
    inner = part.metadata if isinstance(part, FieldInfo) else get_args(part)
    return bool((getattr(part, "json_schema_extra", None) or {}).get("x-personal")) or any(map(_is_personal, inner))
