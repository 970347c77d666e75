"""The hints of a connector are those of its streams, or the connector has a defect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import pytest

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.config.project.records_named_by_webhooks import checked_webhook_hints
from crossdock.connector import Connector, Context, Settings, Stream
from crossdock.errors import ConnectorError, RecordError
from crossdock.mapping.external_ids import Ours
from crossdock.values.raw_rows_and_records import RawBatch, Record
from crossdock.webhooks import Hint, Webhook, Webhooks, WebhookScheme


class DepotSettings(Settings):
    kind: Literal["depot"] = "depot"


class _Stream(Stream[DepotSettings]):
    def pull(self, ctx: Context[DepotSettings], since: str | None) -> Iterator[RawBatch]:
        return iter(())

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {}


class Listed(_Stream):
    """A stream that fetches nothing."""

    name, resource, key = "bins", "warehouse_bin", ("code",)


class Fetched(_Stream):
    """A stream with `fetch`."""

    name, resource, key = "lots", "inventory_lot", ("item", "place")

    def fetch(self, ctx: Context[DepotSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        return iter(())


class Orders(_Stream):
    """A stream of what crossdock has sent there, by its external ids."""

    name, resource, key = "lots", "order", ("reference",)
    ours = Ours(member="reference", namespace="shop")

    def fetch(self, ctx: Context[DepotSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        return iter(())


DEPOT = Connector("depot", "A depot", DepotSettings, lambda _: [Listed(), Fetched()])
CONNECTION = Connection("depot", DEPOT, DepotSettings(), (Listed(), Fetched()))
LOT = Hint("lots", ("1", "A"))


def of(*hints: Hint) -> list[Hint]:
    return checked_webhook_hints(
        CONNECTION, Webhooks([WebhookScheme()], [], lambda _: iter(hints)), Webhook("", {}, {})
    )


def raising(error: BaseException) -> list[Hint]:
    def hints(webhook: Webhook) -> Iterable[Hint]:
        yield LOT
        raise error

    return checked_webhook_hints(
        CONNECTION, Webhooks([WebhookScheme()], [], hints), Webhook("", {}, {"name": "Jane Doe"})
    )


def test_each_record_is_named_once() -> None:
    """In the connector's order."""
    other = Hint("lots", ("2", "A"))
    assert of(other, LOT, other) == [other, LOT]


def test_hints_of_streams_that_fetch_nothing_are_left_out() -> None:
    """The next run reads them."""
    assert of(Hint("bins", ("A",)), LOT) == [LOT]


def test_hints_of_streams_that_are_switched_off_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their records are not read, and are no failure."""
    lots = next(stream for stream in CONNECTION.streams if stream.name == "lots")
    monkeypatch.setattr(lots, "enabled", False)
    assert of(LOT) == []


@pytest.mark.parametrize(
    ("hint", "says"),
    [
        (Hint("lotts", ("1", "A")), "depot: a hint names the stream 'lotts'; known: bins, lots"),
        (Hint("lots", ("1",)), "depot: a hint names a key of lots with 1 columns instead of item, place"),
        (Hint("bins", "A"), "depot: a hint names a key of bins that is a str, not a tuple"),  # type: ignore[arg-type]
        (17, "depot: a hint is a int instead of a Hint"),
        ("bins", "depot: a hint is a str instead of a Hint"),
        (Hint("bins", ()), "depot: a hint names a key of bins with 0 columns instead of code"),
    ],
)
def test_a_hint_that_fits_no_stream_is_a_defect(hint: Hint, says: str) -> None:
    """The error says what to fix."""
    with pytest.raises(ConnectorError) as defect:
        of(LOT, hint)
    assert says in str(defect.value)
    assert "fix the function hints" in str(defect.value)


def test_another_exception_is_a_defect_that_shows_no_data() -> None:
    """Its class, place and text, without the values of the webhook."""
    with pytest.raises(ConnectorError, match=r"depot: hints raised ValueError in line \d+ of .*: nobody is ") as defect:
        raising(ValueError("nobody is Jane Doe"))
    assert "Jane" not in str(defect.value)


def test_an_error_of_the_record_stays_what_it_is() -> None:
    """The caller decides about it."""
    with pytest.raises(RecordError, match="is missing"):
        raising(RecordError("bad_value", "is missing", pointer="/id"))


def test_a_webhook_about_records_of_others_names_none() -> None:
    """A stream with ``ours`` gets the keys in our external ids, and nothing of others, not even of the same key."""
    stream = Orders()
    connection = Connection("depot", DEPOT, DepotSettings(), (stream,))
    found = [Hint("lots", (name,)) for name in ("SO-1", "shop:SO%202", "erp:SO-1", "shop:\udce4")]
    webhooks = Webhooks[DepotSettings]([WebhookScheme()], [], lambda _: iter(found))
    assert checked_webhook_hints(connection, webhooks, Webhook("", {}, {})) == [Hint("lots", ("SO 2",))]


def test_a_key_that_cannot_be_stored_is_left_to_the_inbox() -> None:
    """It is no text in UTF-8, which the receiver refuses with a reason."""
    hint = Hint("lots", ("1", "\udce4"))
    assert of(hint) == [hint]
