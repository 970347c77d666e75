"""The lists of a real sandbox, read to their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from tests.integration.platform_source.reading import COPIES, Reading

from crossdock.errors import RefusedError, UnauthorizedError
from crossdock.platform_source import live_records as module
from crossdock.platform_source.live_records import READS, live_records
from crossdock.progress import Silent
from crossdock.runs.intake_logs import NoIntake
from crossdock.sources.source_context import SourceContext

PRODUCTS = {"products": COPIES}


def _run(erp: Reading, folder: Path) -> SourceContext:
    return SourceContext(erp.clock, Silent(), NoIntake(), folder, folder, folder)


def test_all_pages_of_a_list_are_read(erp: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record comes with its id, its members and when it changed; the requests are counted."""
    monkeypatch.setattr(module, "PAGE_SIZE", 100)
    ids = erp.products(250)
    run = _run(erp, tmp_path)
    pages = list(live_records(erp.configure(PRODUCTS).platform, run, "product"))
    records = [each for page in pages for each in page]
    assert [len(page) for page in pages] == [100, 100, 50]
    assert [each.id for each in records] == ids
    assert records[7].members["sku"] == "P7"
    assert all(each.updated_at is not None and each.updated_at.tzinfo is not None for each in records)
    assert run.api_usage[READS].requests == len(erp.requested("/api/v1/catalog/products")) == 3


def test_only_what_changed_since_an_instant_is_listed(erp: Reading, tmp_path: Path) -> None:
    """Where the platform knows the parameter; and the requests of both lists are counted together."""
    ids, run = erp.products(3), _run(erp, tmp_path)
    profile = erp.configure(PRODUCTS).platform
    records = [each for page in live_records(profile, run, "product") for each in page]
    newest = max(each.updated_at for each in records if each.updated_at)
    later = live_records(profile, run, "product", newest + timedelta(microseconds=1))
    assert [each for page in later for each in page] == []
    erp.client.products.update(ids[1], {"name": "Lamp"})
    later = live_records(profile, run, "product", newest + timedelta(microseconds=1))
    assert [each.id for page in later for each in page] == [ids[1]]
    assert run.api_usage[READS].requests == 3


def test_a_refusal_names_the_scope_that_the_list_needs(erp: Reading, tmp_path: Path) -> None:
    """The credential may read orders only."""
    (erp.folder / "platform-key").write_text(erp.server.sandbox.new_key(erp.server.tenant, "orders:read"))
    with pytest.raises(UnauthorizedError) as refused:
        list(live_records(erp.configure(PRODUCTS).platform, _run(erp, tmp_path), "product"))
    assert refused.value.hint == "check platform.auth: to read products, its credential needs the scope products:read"


@pytest.mark.parametrize("item", [{"sku": "A"}, {"id": ""}, {"id": 1.5}, "p1", None])
def test_a_record_without_an_id_is_refused(erp: Reading, tmp_path: Path, item: object) -> None:
    """Such a list is not what it seems to be, so nothing of it is used."""
    page = {"data": [item], "nextCursor": None}
    run = replace(_run(erp, tmp_path), transport=httpx.MockTransport(lambda _: httpx.Response(200, json=page)))
    with pytest.raises(RefusedError, match="without a valid id"):
        list(live_records(erp.configure(PRODUCTS).platform, run, "product"))
