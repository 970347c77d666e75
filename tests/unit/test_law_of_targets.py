"""No target gets special treatment (section 4 of the design)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import crossdock

CORE = Path(crossdock.__file__).parent
MODULES = sorted(
    path
    for package in ("writing/delivery", "runs/planning", "state")
    for path in (CORE / package).rglob("*.py")
    if path.name != "schema_migrations.py"  # names columns as older versions had them
)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(CORE)))
def test_delivery_planning_and_state_name_no_target(module: Path) -> None:
    """No module of these packages names the platform, a resource of it, or a partner."""
    text = module.read_text(encoding="utf-8").lower()
    named = re.findall(r"platform|sandbox|shipbob|amazon|shopify|externalid|ledger|inventory", text)
    assert named == []
