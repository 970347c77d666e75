"""What a stream's class declares is checked when the config is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from crossdock import Context, Filter, OrderBy, RawBatch, Record, Repair, Stream
from crossdock.config.stream_configuration import check_and_complete_declaration, raise_if_column_name_reserved
from crossdock.errors import ConfigError
from crossdock.mapping.row_order_and_cursors import Cursor
from crossdock.mapping.stream_declaration import AdoptBy


class InCode(Stream[Any]):
    name, key = "things", ("K",)

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        raise AssertionError("the tests read nothing")

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise AssertionError("the tests map nothing")


def declared(**facts: Any) -> InCode:
    stream = InCode()
    for name, value in ({"resource": "product"} | facts).items():
        setattr(stream, name, value)
    return stream


def test_a_full_declaration_is_accepted() -> None:
    """Sequences of any kind, and the models of a config file."""
    stream = declared(
        mode="snapshot",
        key=["K", "L"],
        group_by=("K", "L"),
        order_by=("T", OrderBy(column="U", as_="instant")),
        columns={"K": Repair(strip="both")},
        skip={"x": Filter(field="K", equals="x")},
        uses=["K", "T"],
        personal=["description"],
        on_gone="archive",
    )
    check_and_complete_declaration("w.things", stream, {})
    check_and_complete_declaration("w.things", declared(), {})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"mode": "full"}, "mode must be 'snapshot', 'incremental' or 'append'"),
        ({"adopt": "sku"}, "adopt must be never, external_id, or a section"),
        ({"adopt": {"by": "sku"}}, "adopt must be made by AdoptBy(...), not a mapping"),
        ({"adopt": AdoptBy(by="price")}, "adopt unknown member; "),
        ({"adopt": AdoptBy(by="unitPrice")}, "adopt unitPrice is not a text"),
        ({"key": "id"}, "key must be a tuple or list of texts"),
        ({"key": ()}, "key must name at least one column"),
        ({"key": (1,)}, "key.0 must be text"),
        ({"fetch_size": 0}, "fetch_size must be at least 1"),
        ({"fetch_size": "50"}, "fetch_size must be a whole number"),
        ({"fetches_unlisted": True}, "fetches_unlisted needs existing and fetch"),
        ({"resource": "produkt"}, "unknown resource 'produkt'; did you mean 'product'?"),
        ({"group_by": ("L",)}, "group_by and key must name the same columns"),
        ({"order_by": "at"}, "order_by must be a tuple or list of texts"),
        ({"skip": {"x": "T*"}}, "skip.x"),
        ({"columns": ("K",)}, "columns"),
        ({"uses": "K"}, "uses must be a tuple or list of texts"),
        ({"personal": ("nmae",)}, "personal: 'nmae' is not a member; did you mean 'name'?"),
        ({"duplicates": "first"}, "duplicates must be 'refuse' or 'last'"),
        ({"on_gone": "remove"}, "on_gone must be 'nothing', 'archive' or 'delete'"),
        ({"gone": 5}, "gone"),
        ({"mapping_version": 2}, "mapping_version must be text"),
        ({"fingerprint": "md5"}, "fingerprint must be"),
        ({"order_by": ({"column": "T"},)}, "order_by.0 must be made by OrderBy(...), not a mapping"),
        ({"order_by": (5,)}, "order_by.0 must be made by OrderBy(...)"),
        ({"skip": Filter(field="K", equals="x")}, "skip must be a dict by name"),
        ({"cursor": Cursor}, "cursor must be made by Cursor(...)"),
        ({"incomplete": "x"}, "incomplete must be made by Filter(...)"),
        ({"reads_files": "no"}, "reads_files must be True or False"),
        ({"map": {"skuu": "a"}}, "map.skuu unknown key; did you mean 'sku'?"),
        ({"map": {"sku": {"form": "a"}}}, "map.sku"),
        ({"map": {"active": {"const": 3}}}, "map.active.const must be true or false"),
        ({"map": {"sku": "a"}, "contributes": ("name",)}, "map.sku is not one of contributes: name"),
        ({"resource": Filter}, "resource must be text such as 'product', not the class Filter"),
    ],
)
def test_a_wrong_attribute_is_refused_with_its_class(facts: dict[str, Any], message: str) -> None:
    """What a section of a config file cannot say, a class cannot either."""
    with pytest.raises(ConfigError) as refused:
        check_and_complete_declaration("w.things", declared(**facts), {})
    assert f"w.things: {message}" in refused.value.message
    assert "fix class InCode, line" in (refused.value.hint or "")


def test_a_map_without_code_makes_every_required_member() -> None:
    """With `to_resource`, others may be made there."""

    class Mapped(Stream[Any]):
        name, key, resource, pull = "things", ("K",), "product", InCode.pull
        map: Mapping[str, Any] = {"sku": "sku"}

    with pytest.raises(ConfigError, match="w.things: map lacks name, which every product needs"):
        check_and_complete_declaration("w.things", Mapped(), {})
    check_and_complete_declaration("w.things", declared(map={"sku": "sku"}), {})


def test_a_missing_attribute_is_named() -> None:
    """A stream without a resource is no stream."""
    with pytest.raises(ConfigError, match="w.things: resource is missing"):
        check_and_complete_declaration("w.things", InCode(), {})


@pytest.mark.parametrize("name", ["_line", "_json", "_element", "\x1dkey"])
@pytest.mark.parametrize(
    "facts",
    [
        lambda name: {"key": (name,)},
        lambda name: {"order_by": (OrderBy(column=name, as_="integer"),)},
        lambda name: {"skip": {"x": Filter(not_=Filter(field=name, empty=True))}},
        lambda name: {"columns": {name: Repair(zfill=3)}},
        lambda name: {"mode": "incremental", "cursor": Cursor(column=name, as_="integer")},
    ],
    ids=["key", "order_by", "skip", "columns", "cursor"],
)
def test_a_reserved_name_is_refused(facts: Callable[[str], dict[str, Any]], name: str) -> None:
    """It is no column of a source; a JSON pointer names such a member, and other names that begin with _ are usual."""
    with pytest.raises(ConfigError, match=rf"^c:1: w\.things: the name '.*{name[1:]}' is reserved\n.*'/.*', a JSON"):
        raise_if_column_name_reserved("w.things", declared(**facts(name)), "c:1")
    for usual in (f"/{name}", f"_id{name}", "_key", "_deleted"):
        raise_if_column_name_reserved("w.things", declared(**facts(usual)), "c:1")


def test_a_class_may_use_the_whole_record() -> None:
    """So that each change of its JSON is a change."""
    raise_if_column_name_reserved("w.things", declared(uses=("_json", "K")), "c:1")
