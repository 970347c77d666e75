"""What a config changes about the streams of a connector in code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from jsonschema_rs import Draft202012Validator
from tests.chaos.mappings import Bench, open_bench
from tests.conftest import PIN

from crossdock import Connector, Context, Filter, GoneLimits, ProductDraft, RawBatch, Record, Repair, Settings, Stream
from crossdock.config.project import connections_and_bound_streams
from crossdock.config.project.config_schema import config_schema
from crossdock.config.project.masked_effective_config import effective_config
from crossdock.config.project.project import load
from crossdock.config.stream_configuration import StreamOverrides, settings_model_with_streams_key
from crossdock.errors import ConfigError
from crossdock.mapping.stream_declaration import AdoptBy, Mode
from crossdock.resources import ResourceModel, ResourceName
from crossdock.state import parse_database_url

Load = Callable[..., Stream[Any]]
VERSION = "7bdc328a8706fa7e14ab2b35e0643f20"


class ShopSettings(Settings):
    """One shop."""

    kind: Literal["shop"]
    page_size: int = 10
    """Records per page."""


class Products(Stream[ShopSettings]):
    name, key = "products", ("id",)
    resource: ResourceName = "product"
    mode: Mode = "snapshot"
    columns = {"id": Repair(strip="both")}
    skip = {"drafts": Filter(field="status", equals="draft")}
    personal: Sequence[str] = ("sku",)
    gone = GoneLimits(at_most=7)
    items: Sequence[Mapping[str, Any]] = ()

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for number, item in enumerate(self.items, 1):
            yield RawBatch.json([item], source=f"page {number}", key=["id"])

    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:
        return ProductDraft(sku=record.at("/sku", str), name=record.at("/title", str), barcode="of the code")


class Orders(Products):
    name, resource, mode, personal = "orders", "order", "incremental", ()


@pytest.fixture
def load_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a config with overrides of a shop's streams, and returns its first stream."""

    def load_config(overrides: str, *streams: Stream[Any]) -> Stream[Any]:
        listed = streams or (Products(), Orders())
        connector = Connector("shop", "A shop", ShopSettings, lambda _settings: listed)
        monkeypatch.setattr(connections_and_bound_streams, "load_connector", lambda _kind: connector)
        platform = f"{{base_url: {PIN.base_url}, tenant: acme, auth: {{kind: api_key, token: env:NOBODY}}}}"
        text = f"platform: {platform}\nconnections:\n  shop:\n    kind: shop\n    streams: {overrides}\n"
        (tmp_path / "c.yaml").write_text(text)
        return load(tmp_path / "c.yaml").connections[0].streams[0]

    return load_config


def record(**members: Any) -> Record:
    return Record("1", ({"_json": json.dumps({"sku": "A", "title": "Lamp", **members})},), "page", (1,))


def test_given_facts_replace_or_add_to_the_declared_ones(load_with: Load) -> None:
    """Filters, repairs and personal members are added; limits that are not given stay; the rest is replaced."""
    stream = load_with(
        "{products: {skip: {old: {field: status, equals: old}}, columns: {sku: {strip: left}}, personal: [barcode],"
        " adopt: external_id, on_gone: archive, gone: {at_most_percent: 50}, fewer_rows_percent: 5,"
        " changes: {at_most: 3}, mapping_failed: {at_most: 1}}}"
    )
    assert [*stream.skip, *stream.columns, *stream.personal] == ["drafts", "old", "id", "sku", "sku", "barcode"]
    assert (stream.adopt, stream.on_gone, stream.fewer_rows_percent) == ("external_id", "archive", 5)
    assert (stream.gone.at_most, stream.gone.at_most_percent) == (7, 50)
    assert (stream.changes.at_most, stream.changes.at_most_percent, stream.mapping_failed.at_most) == (3, 30, 1)
    assert (stream.key, stream.mode, type(stream)) == (("id",), "snapshot", Products)


def test_records_are_matched_by_a_member_that_a_config_names(load_with: Load) -> None:
    """It must be one of the resource, and a text."""
    assert load_with("{products: {adopt: {by: barcode}}}").adopt == AdoptBy(by="barcode")
    with pytest.raises(ConfigError, match=r"products\.adopt: unknown member; did you mean 'sku'\?"):
        load_with("{products: {adopt: {by: skus}}}")
    with pytest.raises(ConfigError, match=r"products\.adopt: must be never, external_id, or a section"):
        load_with("{products: {adopt: sku}}")


def test_an_entry_of_the_same_name_replaces_the_declared_one(load_with: Load) -> None:
    """So that a filter of the connector can be narrowed."""
    stream = load_with("{products: {skip: {drafts: {field: status, equals: never}}}}")
    assert stream.skip["drafts"].equals == "never"


def test_streams_that_are_not_named_stay_as_declared(load_with: Load) -> None:
    """Also the object itself: a connector may return the same streams for each of its connections."""
    declared = Products()
    assert load_with("{}", declared) is declared
    assert load_with("{products: {on_gone: archive}}", declared) is not declared
    assert (declared.on_gone, load_with("{orders: {adopt: external_id}}").adopt) == ("nothing", "never")


@pytest.mark.nightly(but=["off-left2", "{}-left0"])
@pytest.mark.parametrize(
    ("overrides", "left"),
    [("{}", {"products", "orders"}), ("{orders: {enabled: false}}", {"products"}), ("off", set()), ('"off"', set())],
)
def test_streams_are_switched_off(overrides: str, left: set[str], load_with: Load, tmp_path: Path) -> None:
    """One, or all of a connection that is only a target: no run selects them, and the config can be shown."""
    load_with(overrides)
    project = load(tmp_path / "c.yaml")
    assert project.selected_streams([]) == {f"shop.{name}" for name in left}
    off = {stream.name for stream in project.connections[0].streams if not stream.enabled}
    assert off == {"products", "orders"} - left
    for name in off:
        with pytest.raises(ConfigError, match=rf"the stream 'shop\.{name}' is switched off"):
            project.selected_streams([f"shop.{name}"])
        assert effective_config(tmp_path / "c.yaml")["connections"]["shop"]["streams"][name]["enabled"] is False
    schema = config_schema({"shop": ShopSettings})
    assert Draft202012Validator(schema).is_valid(yaml.safe_load((tmp_path / "c.yaml").read_text()))


@pytest.mark.parametrize("overrides", ["{}", "{products: {}}", "{products: {skip: {}, map: {}}}"])
def test_the_version_stays_without_overrides(overrides: str, load_with: Load) -> None:
    """A state knows which version read its records: another hash would map all of them again."""
    assert load_with(overrides).version == VERSION


@pytest.mark.parametrize(
    "overrides",
    ["adopt: external_id", "personal: [name]", "on_gone: archive", "gone: {at_most: 1}", "fewer_rows_percent: 1"],
)
def test_the_version_stays_when_records_and_drafts_do(overrides: str, load_with: Load) -> None:
    """Limits and rules of removal change no record."""
    assert load_with(f"{{products: {{{overrides}}}}}").version == VERSION


def test_the_version_changes_with_records_and_drafts(load_with: Load) -> None:
    """Each of these overrides maps all records again, and so does a change of it."""
    given_ones = ["skip: {a: {field: b, equals: c}}", "columns: {a: {strip: both}}", "map: {barcode: a}"]
    given_ones += ["map: {barcode: {from: a}}", "map: {barcode: b}"]
    versions = [load_with(f"{{products: {{{each}}}}}").version for each in given_ones]
    assert len({*versions, VERSION}) == len(versions) + 1


def test_mapped_members_replace_those_of_the_code(load_with: Load) -> None:
    """They are read by dotted path; a member without a value is left out, whatever the code has set."""
    stream = load_with("{products: {map: {barcode: {from: variants.0.barcode}, name: {const: Shelf}}}}")
    members = {"sku": "A", "name": "Shelf", "active": True}
    assert stream.draft(record(variants=[{"barcode": "0017"}])).payload() == {**members, "barcode": "0017"}
    assert stream.draft(record(variants=[])).payload() == members
    assert "variants.0.barcode" in stream.used_columns


def test_a_mapped_member_may_be_one_that_the_code_does_not_set(load_with: Load) -> None:
    """Also a required one, where the code returns members instead of a draft; both spellings of a member are one."""

    class Partial(Products):
        def to_resource(self, record: Record) -> Mapping[str, Any]:
            return {"sku": "A", "unit_price": "not a price", "unitOfMeasure": "piece"}

    stream = load_with("{products: {map: {name: title, unitPrice: {from: price, as: decimal}}}}", Partial())
    draft = stream.draft(record(price="1.50")).payload()
    assert (draft["name"], str(draft["unitPrice"]), draft["unitOfMeasure"]) == ("Lamp", "1.50", "piece")


def test_changes_that_the_code_makes_to_a_row_do_not_reach_mapped_members(load_with: Load) -> None:
    """Both read the record as it was read."""

    class Changing(Products):
        def to_resource(self, record: Record) -> Mapping[str, Any]:
            record.row["title"] = "changed"
            return {"sku": "A"}

    assert load_with("{products: {map: {name: title}}}", Changing()).draft(record()).payload()["name"] == "Lamp"


def test_columns_of_mapped_members_count_as_used(load_with: Load) -> None:
    """A change in them makes the record changed, where the stream names the columns that do."""

    class Using(Products):
        uses = ("sku",)

    assert load_with("{products: {map: {name: title}}}", Using()).uses == ("sku", "title")
    assert load_with("{products: {map: {name: title}}}").uses is None


class Mapped(Products):
    """A stream that declares its mapping."""

    to_resource = Stream.to_resource
    map = {
        "sku": "variant.sku",
        "name": "title",
        "unitPrice": {"from": "variant.cents", "as": "decimal", "minor_units": "EUR"},
        "currency": {"const": "EUR"},
    }


def test_a_class_declares_a_map_as_a_config_does(load_with: Load) -> None:
    """A config replaces members of it, and adds others; a change of either maps all records again."""
    row = record(variant={"sku": "0017", "cents": 950}, brand="Ada")
    own, changed = load_with("{}", Mapped()), load_with("{products: {map: {name: brand, barcode: title}}}", Mapped())
    members = {"sku": "0017", "name": "Lamp", "unitPrice": Decimal("9.5"), "currency": "EUR", "active": True}
    assert own.draft(row).payload() == members
    assert changed.draft(row).payload() == {**members, "name": "Ada", "barcode": "Lamp"}
    other = type("Other", (Mapped,), {"map": {**Mapped.map, "name": "brand"}})
    assert len({own.version, changed.version, load_with("{}", other()).version}) == 3


def test_a_class_maps_some_members_in_code(load_with: Load) -> None:
    """Its map adds the others, and their columns count as used where the stream names the columns that do."""

    class Both(Mapped):
        uses = ("variant.sku",)
        map = {"name": "title"}

        def to_resource(self, record: Record) -> Mapping[str, Any]:
            return {"sku": record.at("/variant/sku", str).lower()}

    stream = load_with("{}", Both())
    assert stream.draft(record(variant={"sku": "A7"})).payload() == {"sku": "a7", "name": "Lamp", "active": True}
    assert stream.uses == ("variant.sku", "title")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{prodcts: {}}", "prodcts: unknown stream; did you mean 'products'?"),
        ("{products: {skp: {}}}", "products.skp: unknown key; did you mean 'skip'?"),
        ("{products: {key: [id]}}", "products.key: unknown key; known: adopt, "),
        ("{products: {map: {barcod: a}}}", "products.map.barcod: unknown key; did you mean 'barcode'?"),
        ("{products: {map: {name: {each: {}}}}}", "products.map.name: is not a list"),
        ("{products: {map: {active: {const: 3}}}}", "products.map.active.const: must be true or false"),
        ("{orders: {map: {items: {each: {}}}}}", "orders.map.items: makes one item of each row, which needs group_by"),
        ("{orders: {map: {shippingAddress: {object: {city: a}}}}}", "orders.map.shippingAddress.object: lacks "),
        ("{orders: {on_gone: delete}}", "orders.on_gone: needs mode: snapshot"),
        ("{orders: {on_gone: archive}}", "orders.on_gone: needs mode: snapshot"),
        ("{products: {personal: [nam]}}", "products.personal.0: unknown key; did you mean 'name'?"),
        ("{products: {gone: {at_most: -1}}}", "products.gone.at_most: "),
        ("{products: 3}", "products: "),
    ],
)
def test_wrong_overrides_are_refused_with_their_place(overrides: str, message: str, load_with: Load) -> None:
    """With the file, line and column, and the nearest name."""
    with pytest.raises(ConfigError) as caught:
        load_with(overrides)
    found = str(caught.value)
    assert f": connections.shop.streams.{message}" in found
    assert "c.yaml:5:" in found


def test_a_reserved_name_is_refused_with_its_place(load_with: Load) -> None:
    """No column of a source has it."""
    with pytest.raises(ConfigError, match=r"c\.yaml:5:.*: shop\.products: the name '_json' is reserved"):
        load_with("{products: {skip: {odd: {field: _json, empty: true}}}}")


def test_a_misspelled_key_of_the_connection_names_the_nearest_one(load_with: Load, tmp_path: Path) -> None:
    """The key for overrides is known like every other."""
    load_with("{}")
    path = tmp_path / "c.yaml"
    path.write_text(path.read_text().replace("streams:", "stream:"))
    with pytest.raises(ConfigError, match=r"c.yaml:5:.*connections.shop.stream: .*did you mean 'streams'"):
        load(path)


def test_a_fact_that_the_class_computes_cannot_be_overridden(load_with: Load) -> None:
    """It would be ignored without a word."""

    class Computed(Products):
        @property
        def personal(self) -> tuple[str, ...]:  # type: ignore[override]  # as authors may
            return ("name",)

    with pytest.raises(ConfigError, match=r"c.yaml:5.*products: the connector computes personal, so a config cannot"):
        load_with("{products: {personal: [barcode]}}", Computed())


def test_settings_with_streams_of_their_own_keep_them() -> None:
    """Overrides are for kinds whose streams are all declared in code."""

    class Declaring(Settings):
        streams: Mapping[str, int] = {}

    assert settings_model_with_streams_key(Declaring) is Declaring
    assert settings_model_with_streams_key(Settings) is not Settings


def test_the_json_schema_describes_overrides(load_with: Load) -> None:
    """An editor completes their keys, and marks wrong ones."""
    schema = config_schema({"shop": ShopSettings})
    assert "Records per page" in json.dumps(schema)
    assert schema["$defs"]["StreamOverrides"]["properties"].keys() == StreamOverrides.model_fields.keys()
    assert all("description" in each for each in schema["$defs"]["StreamOverrides"]["properties"].values())
    platform = {"base_url": PIN.base_url, "tenant": "acme", "auth": {"kind": "api_key", "token": "env:NOBODY"}}
    validator = Draft202012Validator(schema)
    for overrides, is_valid in (({"on_gone": "archive", "map": {"name": "title"}}, True), ({"mode": "append"}, False)):
        shop = {"kind": "shop", "streams": {"products": overrides}}
        assert validator.is_valid({"platform": platform, "connections": {"shop": shop}}) is is_valid


def test_the_effective_config_has_what_applies(load_with: Load, tmp_path: Path) -> None:
    """With what the connector declares where both count, without personal constants; loading it gives the same."""
    declared = load_with(
        "{products: {skip: {old: {field: b, equals: secret}}, gone: {at_most_percent: 50}, personal: [barcode],"
        " map: {barcode: {from: b, default: secret}}}}"
    )
    shown = effective_config(tmp_path / "c.yaml")
    products = shown["connections"]["shop"]["streams"]["products"]
    assert list(products["skip"]) == ["drafts", "old"]
    assert (products["gone"]["at_most"], products["gone"]["at_most_percent"]) == (7, 50)
    assert "on_gone" not in products
    assert "secret" not in str(shown)
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(shown, default=float))))
    again = load(tmp_path / "c.yaml").connections[0].streams[0]
    assert (again.gone, again.personal) == (declared.gone, declared.personal)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with open_bench(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as opened:
        yield opened


def test_plan_and_sync_apply_overrides(bench: Bench) -> None:
    """Rows are filtered, members are mapped, and a record that the code refuses is a dead letter as before."""
    stream = Products()
    stream.items = [
        {"id": 1, "sku": "A", "title": "Lamp", "status": "live", "ean": "0017"},
        {"id": 2, "sku": "B", "title": "Old", "status": "old", "ean": "0018"},
        {"id": 3, "sku": 3, "title": "Wrong", "status": "live", "ean": "0019"},
        {"id": 4, "sku": "D", "title": "Draft", "status": "draft", "ean": "0020"},
    ]
    bench.begin([stream], "{products: {skip: {old: {field: status, equals: old}}, map: {barcode: ean}}}")
    planned, _ = bench.plan()
    report = bench.sync()
    assert report.balanced
    assert planned.tallies["b.products"].records["created"] == report.tallies["b.products"].records["created"] == 1
    tally = report.tallies["b.products"]
    assert (dict(tally.rows_filtered), tally.records["rejected"]) == ({"drafts": 1, "old": 1}, 1)
    assert [body["barcode"] for *_, body in bench.platform.effects] == ["0017"]
