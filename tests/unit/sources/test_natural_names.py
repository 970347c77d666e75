"""How names are read without a declaration, and which templates are proposed for them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.sources.file_order import DatesAndNumbersInNames, TimedName, pairs_of_base_and_versioned_names

NOW = datetime(2026, 11, 26, tzinfo=UTC)
DAY = 86_400
AT = int(NOW.timestamp()) - DAY


@pytest.mark.parametrize(
    ("older", "newer", "template"),
    [
        ("S_20261125_9.csv", "S_20261125_10.csv", "S_{date:%Y%m%d}_{number}.csv"),
        ("S_20261125_0900AM.csv", "S_20261125_0300PM.csv", "S_{date:%Y%m%d}_{time:%I%M%p}.csv"),
        ("S_20261125_9-05 AM.csv", "S_20261125_2-10 PM.csv", "S_{date:%Y%m%d}_{time:%-I-%M %p}.csv"),
        ("S_31102026.csv", "S_01112026.csv", "S_{date:%d%m%Y}.csv"),
        ("S_11-25-2026.csv", "S_01-01-2027.csv", "S_{date:%m-%d-%Y}.csv"),
        ("S_20261125235959.csv", "S_20261126000000.csv", "S_{date:%Y%m%d%H%M%S}.csv"),
        ("S_2026_09_30.csv", "S_2026_10_01.csv", "S_{date:%Y_%m_%d}.csv"),
        ("S_30OCT2026.csv", "S_02NOV2026.csv", "S_{date:%d%b%Y}.csv"),
        ("S_301026.csv", "S_021126.csv", "S_{date:%d%m%y}.csv"),
        ("S_v1.9.csv", "S_v1.10.csv", "S_v{number}.{number}.csv"),
        ("STORE12_20261124.csv", "STORE5_20261125.csv", "STORE{number}_{date:%Y%m%d}.csv"),
    ],
)
def test_names_are_read_as_people_read_them(older: str, newer: str, template: str) -> None:
    """Where all likely readings agree; the template that is proposed orders the files alike."""
    names = DatesAndNumbersInNames([TimedName(older, AT), TimedName(newer, AT)], NOW)
    assert names.compare_in_each_reading(older, newer) == {1}
    assert names.compare_in_each_reading(newer, older) == {-1}
    assert template in names.suggested_templates(older)


def test_a_date_with_two_readings_has_both() -> None:
    """The times of the files choose one, and without them nothing does."""
    older, newer = "S_02102026.csv", "S_01112026.csv"
    alike = DatesAndNumbersInNames([TimedName(older, AT), TimedName(newer, AT)], NOW)
    assert alike.compare_in_each_reading(older, newer) == {1, -1}
    assert alike.suggested_templates(older) == ["S_{date:%d%m%Y}.csv", "S_{date:%m%d%Y}.csv"]
    apart = DatesAndNumbersInNames([TimedName(older, AT - 30 * DAY), TimedName(newer, AT)], NOW)
    assert apart.compare_in_each_reading(older, newer) == {1}


def test_numbers_that_are_no_dates_are_numbers() -> None:
    """A counter of six digits is not read as a day in the future."""
    names = DatesAndNumbersInNames([TimedName("INV_100131", AT), TimedName("INV_100201", AT)], NOW)
    assert names.compare_in_each_reading("INV_100131", "INV_100201") == {1}


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=5, unique=True), st.integers(0, 10**10))
def test_any_numbers_can_be_compared(numbers: list[int], at: int) -> None:
    """Every name has a place in every reading, whatever its time."""
    names = DatesAndNumbersInNames([TimedName(f"A{number}", at) for number in numbers], NOW)
    for one, other in pairwise(names):
        assert names.compare_in_each_reading(one, other) <= {-1, 0, 1}


def test_what_a_correction_adds_to_a_name() -> None:
    """A mark or a version, at its end or its begin; no other number, and no part of a word or number."""
    base = "X_20261125.csv"
    others = ["X_20261125-CORR.csv", "X_20261125_v2.csv", "NEW X_20261125.csv.gz", "X_20261125 (1).csv"]
    found = {other for one, other in pairs_of_base_and_versioned_names([base, *others]) if one == base}
    assert found == set(others)
    assert not list(
        pairs_of_base_and_versioned_names(
            [base, "X_202611251.csv", "X_20261125_20261126.csv", "AX_20261125.csv", "Y_20261125.csv"]
        )
    )
