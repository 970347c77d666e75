"""Commands over a connection of kind ``platform``."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.platform_source.reading import COPIES, Reading
from tests.unit.cli.conftest import CommandLine

CUSTOMERS = {
    "read": "customer",
    "resource": "product",
    "map": {"sku": "externalId", "name": "name", "unitOfMeasure": "currency"},
}


def findings(erp: Reading) -> list[tuple[str, bool, str]]:
    document = json.loads(CommandLine(erp.folder).run("check", "--json").out)
    return [(each["subject"], each["ok"], each["text"]) for each in document["findings"]]


def with_scopes(erp: Reading, *scopes: str) -> None:
    (erp.folder / "platform-key").write_text(erp.server.sandbox.new_key(erp.server.tenant, *scopes))


def test_check_lists_what_is_read_and_names_all_scopes(erp: Reading) -> None:
    """Reading needs scopes as writing does; a resource that is written needs no other scope to be read."""
    erp.configure({"customers": CUSTOMERS, "lots": COPIES | {"read": "inventory_lot", "expand": ["binId"]}})
    found = findings(erp)
    assert all(ok for _, ok, _ in found)
    (scopes,) = [text for subject, _, text in found if subject == "scopes"]
    assert "need the scopes customers:read products:write bins:read lots:read;" in scopes
    listed = [text.partition(":")[0] for subject, _, text in found if subject == "erp"]
    assert listed == ["customer", "inventory_lot", "warehouse_bin", "customers", "lots"]  # resources, then streams


def test_check_fails_where_the_credential_may_not_read(erp: Reading) -> None:
    """The finding names the resource, what is refused and the scope."""
    with_scopes(erp, "products:write")
    erp.configure({"customers": CUSTOMERS})
    (found,) = [each for each in findings(erp) if each[0] == "erp"]
    assert not found[1]
    assert found[2].startswith("customer: ")
    assert "needs the scope customers:read" in found[2]


def test_try_masks_what_is_personal_on_the_platform(erp: Reading) -> None:
    """The name of a customer is personal, also as the name of a product, which is not."""
    erp.order(erp.products(1), "Ada Lovelace")
    erp.configure({"customers": CUSTOMERS})
    command = CommandLine(erp.folder)
    tried = command.run("try", "erp.customers")
    assert (tried.code, "Ada" in tried.out, "name: (personal)" in tried.out) == (0, False, True)
    assert "Ada Lovelace" in command.run("try", "erp.customers", "--raw").out


def test_a_recording_has_no_credential(erp: Reading) -> None:
    """The key of the section ``platform`` is in no file of the recording."""
    erp.products(2)
    erp.configure({"products": COPIES})
    assert CommandLine(erp.folder).run("try", "erp.products", "--record", str(erp.folder / "recorded")).code == 0
    files = [path.read_text() for path in (erp.folder / "recorded").rglob("*") if path.is_file()]
    assert files
    assert not any(erp.server.api_key in text for text in files)


def test_a_plan_and_the_sync_after_it_agree(erp: Reading) -> None:
    """A plan reads the platform as its source, and writes nothing."""
    ids = erp.products(12)
    erp.configure({"products": COPIES})
    command = CommandLine(erp.folder)
    planned: dict[str, Any] = json.loads(command.run("plan", "--json").out)
    assert planned["streams"]["erp.products"]["records"]["created"] == len(ids)
    assert erp.copies() == {}
    erp.sync()
    assert len(erp.copies()) == len(ids)
