"""Which of a partner's records crossdock has sent there."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.unit.delta.things import Things

from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import KEY, KEY_HASH, compute_keys
from crossdock.mapping.external_ids import (
    NOT_OURS,
    key_texts_without_foreign_records,
    keys_or_their_external_ids,
)
from crossdock.mapping.stream_declaration import Repair
from crossdock.sources import Ours
from crossdock.values.raw_rows_and_records import LINE, RawBatch
from crossdock.values.record_keys import key_text
from crossdock.values.run_states_and_tally import Tally

SHOP = Ours(member="reference", namespace="shop")
PARTS = st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=3)


@given(PARTS, st.sampled_from(["{namespace}:{key}", "{key}", "ACME-{namespace}/{key}#1"]))
def test_a_name_of_ours_has_its_key(parts: list[str], form: str) -> None:
    """Whatever the key and the form, the external id gives the key back."""
    ours, key = Ours(member="reference", namespace="shop", form=form), key_text(parts)
    assert ours.key_in(ours.name_of(key)) == key


@given(st.text(max_size=12))
def test_a_key_is_found_only_in_the_name_that_it_gives(text: str) -> None:
    """Text that begins like a name of ours is one only if crossdock would have written it so."""
    for name in (text, f"shop:{text}"):
        key = SHOP.key_in(name)
        assert key is None or SHOP.name_of(key) == name


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "SO-1",
        "shop:",
        " shop:SO-1",
        "shop:SO 1",
        "Shop:SO-1",
        "shop:SO%2D1",
        "erp:SO-1",
        "shop:ä",
        "shop:\udce4",
    ],
)
def test_names_of_others(name: str | None) -> None:
    """A key without the namespace, white space, and another spelling or encoding are names of others."""
    assert SHOP.key_in(name) is None


@pytest.mark.parametrize("form", ["", "{namespace}", "{key}{key}", "{key}-{namespace}", "{key} 1", "{name}", "é{key}"])
def test_a_form_that_gives_no_name_is_refused(form: str) -> None:
    """It needs the key once, behind the namespace if it has that."""
    with pytest.raises(ValidationError, match="must have {key} once"):
        Ours(member="reference", namespace="shop", form=form)


ORDERS = Things(mode="append", key=("reference",), ours=SHOP)


def rows(*references: str | None) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"reference": references, "NAME": ["x"] * len(references)}, schema_overrides={"reference": pl.String}
    )
    return frame.with_columns(pl.Series(LINE, range(1, frame.height + 1), pl.UInt64))


def test_records_of_others_are_counted_and_left_out(tmp_path: Path) -> None:
    """A stranger's SO-1 is not ours, which is shop:SO-1, and has the key SO-1 here."""
    scan, tally = LatestRecords(ORDERS, "s.orders", tmp_path), Tally()
    scan.find_latest_of_each_key(
        [RawBatch("page", rows("SO-1", "shop:SO-1", None, "erp:SO-1", "shop:SO%202"))], tally, lambda _: None
    )
    found = [each.record for each in scan.read_chosen_records(scan.latest)]
    assert [each.key_parts for each in found] == [("SO-1",), ("SO 2",)]
    assert [each.row["reference"] for each in found] == ["shop:SO-1", "shop:SO%202"]
    assert tally.rows_filtered == {NOT_OURS: 3}
    assert (tally.rows_read, tally.rows_in_records, tally.rows_rejected) == (5, 2, 0)


def test_records_of_others_do_not_keep_those_that_are_gone(tmp_path: Path) -> None:
    """A row of others has no key of ours, and is no sign that the list of ours is not complete."""
    orders = Things(mode="snapshot", key=("reference",), ours=SHOP)
    scan, tally = LatestRecords(orders, "s.orders", tmp_path), Tally()
    scan.find_latest_of_each_key([RawBatch("page", rows("SO-1", "shop:SO-1"))], tally, lambda _: None)
    gone = compute_keys(orders, "page", rows("shop:SO-2"))[KEY_HASH]
    filtered, without_key = scan.keys_in_filtered_rows_and_keyless_count(gone)
    assert (filtered.to_list(), without_key) == ([], 0)


@pytest.mark.parametrize("name", ["SHOP:so-2", " shop:SO-2", "shop:SO 2", "shop%3ASO-2", "shop:SO-2 "])
def test_a_name_that_the_partner_may_have_changed_is_noticed(tmp_path: Path, name: str) -> None:
    """It is counted, and shows neither that its record is there nor that it is gone."""
    orders = Things(mode="snapshot", key=("reference",), columns={"reference": Repair(strip_prefix="shop")}, ours=SHOP)
    scan, tally = LatestRecords(orders, "s.orders", tmp_path), Tally()
    scan.find_latest_of_each_key(
        [RawBatch("page", rows("SO-1", "shop:SO-1", "shopware:1", name))], tally, lambda _: None
    )
    gone = compute_keys(orders, "page", rows("shop:SO-2"))[KEY_HASH]
    assert (scan.changed_names, tally.rows_filtered) == (1, {NOT_OURS: 3})
    assert scan.keys_in_filtered_rows_and_keyless_count(gone)[1] == 1


def test_a_list_of_keys_has_null_for_records_of_others() -> None:
    """The keys of a full list are read in the same way as those of changes."""
    assert compute_keys(ORDERS, "page", rows("shop:SO-1", "SO-1"))[KEY].to_list() == ["SO-1", None]


def test_keys_are_names_at_the_source() -> None:
    """Records are fetched by their external ids, and what the source calls deleted is ours only under such a name."""
    assert keys_or_their_external_ids(SHOP, [("SO 2",), ("A", "B|C")]) == [("shop:SO%202",), ("shop:A|B%7CC",)]
    assert keys_or_their_external_ids(None, [("SO 2",)]) == [("SO 2",)]
    assert list(key_texts_without_foreign_records(SHOP, [("SO-1",), ("shop:SO-1",), (None,)])) == ["SO-1"]
    assert list(key_texts_without_foreign_records(None, [("SO 1", None)])) == ["SO%201|"]
