"""Reads a stream of the connector from the fake Shopify shop in this process."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

from tests.partners.partner_transport import transport
from tests.partners.shopify.site import Site

from crossdock import Context, RawBatch, Record
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.runs.stream_trial import Trial
from crossdock.testing.connector_context_and_reading import context, read
from crossdock.values.record_keys import key_text

BASE_URL = "http://localhost:9"
CONNECTOR = load_connector("shopify")


def shop_context(site: Site, **settings: Any) -> Context[Any]:
    """A new run; *settings* are those of the connection."""
    given = {"base_url": BASE_URL, "token": "env:SHOP_TOKEN", **settings}
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        return context(CONNECTOR, given, transport=transport(site.shop), clock=site.clock)


def read_stream(site: Site, stream: str, since: str | None = None, **settings: Any) -> Trial:
    """What a new run reads of a stream; pages, unless *settings* say otherwise.

    Raises:
        CrossdockError: If reading fails.
    """
    ctx = shop_context(site, **{"bulk": False, **settings})
    with mock.patch.dict(os.environ, {"SHOP_TOKEN": site.shop.token}):
        trial = read(CONNECTOR, ctx, stream, since=since)
    if trial.error:
        raise trial.error
    return trial


def drafts(site: Site, stream: str, since: str | None = None, **settings: Any) -> dict[str, dict[str, Any]]:
    """The members of each draft, by key.

    Raises:
        CrossdockError: If reading fails.
        AssertionError: If a record has no draft.
    """
    found = {}
    for tried in read_stream(site, stream, since, **settings).records:
        assert tried.problem is None, f"{tried.record.key}: {tried.problem}"
        if tried.members is not None:
            found[tried.record.key] = dict(tried.members)
    return found


def json_record(item: Any, key: str = "1") -> Record:
    """A record as a page has it."""
    [row] = RawBatch.json([item], source="page").load().drop("_line").to_dicts()
    return Record(key_text((key,)), (row,), "page", (1,))
