"""The lists of a real sandbox, read to their end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.platform_source.reading import COPIES, Reading

from crossdock.errors import UnauthorizedError
from crossdock.reading.sources.run_context import PLATFORM_READS_NAME, SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.platform_source import live_records_for_comparisons
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.values.run_progress_and_messages import SilentProgress

PRODUCTS = {"products": COPIES}


@pytest.fixture
def run(erp: Reading, tmp_path: Path) -> SourceContext:
    return SourceContext(erp.clock, SilentProgress(), EmptyIntakeLog(), tmp_path, tmp_path, tmp_path)


def test_all_pages_of_a_list_are_read(erp: Reading, run: SourceContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record comes with its members; the requests are counted, those of a second reading too."""
    monkeypatch.setattr(live_records_for_comparisons, "PAGE_SIZE", 100)
    ids, profile = erp.products(250), erp.configure(PRODUCTS).platform
    with LiveRecords(profile, run) as live:
        pages = list(live.pages("product"))
        assert live.request_count == 3
    assert [len(page) for page in pages] == [100, 100, 50]
    assert [each["id"] for page in pages for each in page] == ids
    assert pages[0][7]["sku"] == "P7"
    with LiveRecords(profile, run) as live:
        assert len(next(live.pages("product"))) == 100
    assert run.api_usage[PLATFORM_READS_NAME].requests == len(erp.requested("/api/v1/catalog/products")) == 4


def test_only_what_changed_since_an_instant_is_listed(erp: Reading, run: SourceContext) -> None:
    """Where the platform knows the parameter."""
    ids, profile = erp.products(3), erp.configure(PRODUCTS).platform
    newest = max(each.updated_at for each in erp.client.products.list())
    erp.client.products.update(ids[0], {"name": "Lamp"})
    with LiveRecords(profile, run) as live:
        assert [each["id"] for page in live.pages("product", newest) for each in page] == [ids[2], ids[0]]
        assert list(live.pages("product", datetime(2999, 1, 1, tzinfo=UTC))) == [[]]


def test_a_record_is_read_by_its_id(erp: Reading, run: SourceContext) -> None:
    """None if there is none of this id, or can be none."""
    (name,), profile = erp.products(1), erp.configure(PRODUCTS).platform
    with LiveRecords(profile, run) as live:
        found = live.record("product", name)
        assert found is not None
        assert found["sku"] == "P0"
        assert [live.record("product", each) for each in ("prd_none", "", "\n")] == [None, None, None]


def test_a_version_is_read_by_the_id(erp: Reading, run: SourceContext) -> None:
    """Each change gives another one; a record that does not exist has none."""
    (name, other), profile = erp.products(2), erp.configure(PRODUCTS).platform
    with LiveRecords(profile, run) as live:
        first, another = live.entity_tag("product", name), live.entity_tag("product", other)
        assert first is not None
        assert live.entity_tag("product", name) == first
        erp.client.products.update(name, {"barcode": "4711"})
        assert live.entity_tag("product", name) not in {first, None}
        assert live.entity_tag("product", other) == another
        assert [live.entity_tag("product", each) for each in ("prd_none", "", "\n")] == [None, None, None]


def test_a_refusal_names_the_scope_that_the_list_needs(erp: Reading, run: SourceContext) -> None:
    """The credential may read orders only."""
    (erp.folder / "platform-key").write_text(erp.server.sandbox.new_key(erp.server.tenant, "orders:read"))
    with LiveRecords(erp.configure(PRODUCTS).platform, run) as live, pytest.raises(UnauthorizedError) as refused:
        list(live.pages("product"))
    assert refused.value.hint == "check platform.auth: to read products, its credential needs the scope products:read"
