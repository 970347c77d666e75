"""Names of an author that are nearly those of crossdock are refused, and all others are the author's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from tests.unit.testing.target_connector import OrderTarget

from crossdock import Context, Filter, RawBatch, Record, Stream
from crossdock.config.stream_configuration import check_and_complete_declaration
from crossdock.errors import ConfigError
from crossdock.values.author_code_errors import misspelt_attribute_class_and_message
from crossdock.webhooks import Webhooks
from crossdock.writing.targets.target_code_guard import defect_of_target_class


class Things(Stream[Any]):
    name, resource, key, mode = "things", "product", ("K",), "snapshot"

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        raise AssertionError("the tests read nothing")

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise AssertionError("the tests map nothing")


class WithOwnNames(Things):
    """Names that are near to ours, and cannot be meant for them."""

    keys = 7
    names = ("a", "b")
    model = dict
    code = "snapshot"
    columns_of: Mapping[str, Any] = {}
    skips = None
    _on_gon = "delete"
    __fetchs = ()

    def _existin(self, ctx: Context[Any]) -> None: ...

    def fetched(self) -> None: ...

    def fetch_all(self, ctx: Context[Any], keys: Sequence[tuple[str, ...]]) -> None: ...

    def to_resources(self, record: Record) -> None: ...

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise AssertionError("the tests map nothing")

    @property
    def versions(self) -> str:
        return "1"


class Mixin:
    order_bye = ("T",)


class FromMixin(Mixin, Things):
    """Inherits the mistake."""


class InMethod(Things):
    def exsisting(self, ctx: Context[Any]) -> None: ...


class InClass(Things):
    on_gon = "delete"


class Computed(Things):
    @property
    def delete(self) -> Filter:
        return Filter(field="gone", equals="true")


class InInstance(Things):
    def __init__(self) -> None:
        self.yield_deleted = True


class InFetch(Things):
    def fetchs(self, ctx: Context[Any], keys: Sequence[tuple[str, ...]]) -> None: ...


@pytest.mark.parametrize(
    ("kind", "owner", "told"),
    [
        (InClass, InClass, "on_gon: did you mean 'on_gone'?"),
        (InInstance, InInstance, "yield_deleted: did you mean 'yields_deleted'?"),
        (InMethod, InMethod, "exsisting: did you mean 'existing'?"),
        (InFetch, InFetch, "fetchs: did you mean 'fetch'?"),
        (Computed, Computed, "delete: did you mean 'deleted'?"),
        (FromMixin, Mixin, "order_bye: did you mean 'order_by'?"),
    ],
)
def test_a_misspelt_name_of_a_stream_is_refused(kind: type[Things], owner: type, told: str) -> None:
    """With the class that has it, its line and file; it would have no effect."""
    with pytest.raises(ConfigError) as refused:
        check_and_complete_declaration("w.things", kind(), {})
    assert refused.value.message == f"w.things: {told}"
    place = rf"fix class {owner.__name__}, line [0-9]+ of .*{__file__.rpartition('/')[2]}"
    assert re.fullmatch(place, refused.value.hint or "")


def test_other_names_are_the_authors_own() -> None:
    """Private names, helpers with other parameters, and values that ours cannot have."""
    check_and_complete_declaration("w.things", WithOwnNames(), {})


class Slow(OrderTarget):
    setle_s = 5.0


class Hurried(OrderTarget):
    in_flight: Any = "8"


class Received(Webhooks[Any]):
    topic_header = ("X-Topic",)


def test_a_target_and_webhooks_are_checked_too() -> None:
    """A name that is nearly one of ours, and a value of another type."""
    assert (defect_of_target_class(Slow()) or "").startswith("setle_s: did you mean 'settle_s'?; see class Slow, line ")
    assert (defect_of_target_class(Hurried()) or "").startswith(
        "in_flight is str instead of int; see class Hurried, line "
    )
    made = Received([], [], lambda _: ())
    assert misspelt_attribute_class_and_message(made, lambda *_: True) == (
        Received,
        "topic_header: did you mean 'topic_headers'?",
    )
