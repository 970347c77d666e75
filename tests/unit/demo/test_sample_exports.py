from __future__ import annotations

import pytest

from crossdock.testing.demo.sample_warehouse_exports import ALTERED, LATE_CUSTOMER, MISTYPED, sample_exports_of_day


def lines(day: int, name: str) -> list[str]:
    (content,) = (content for file, content in sample_exports_of_day(day).items() if file.startswith(name))
    return content.decode("cp1252").split("\r\n")[:-1]


@pytest.mark.parametrize("day", [1, 2, 3])
def test_the_exports_are_the_same_every_time(day: int) -> None:
    """Five files, named after their day, with the same content whenever they are written."""
    assert sample_exports_of_day(day) == sample_exports_of_day(day)
    assert len(sample_exports_of_day(day)) == 5
    assert all(f"2026110{day}." in name for name in sample_exports_of_day(day))


@pytest.mark.parametrize("day", [1, 2, 3])
@pytest.mark.parametrize("name", ["ITEMS", "LOTS"])
def test_a_trailer_has_the_number_of_rows(day: int, name: str) -> None:
    """The last line is TRL and the number of rows between it and the header."""
    _, *rows, trailer = lines(day, name)
    assert trailer == f"TRL|{len(rows)}"


def test_tables_come_in_another_order_each_day() -> None:
    """The bins are the same on both days, in another order."""
    first, second = lines(1, "BINS"), lines(2, "BINS")
    assert sorted(first) == sorted(second)
    assert first != second


def test_the_exports_have_the_cases_that_the_demo_explains() -> None:
    """A mistyped price that is corrected, an altered invoice, and a customer who is exported late."""
    mistyped = [[line for line in lines(day, "INVOICES") if line.startswith(str(MISTYPED))] for day in (1, 2)]
    assert ["1O" in "".join(each) for each in mistyped] == [True, False]
    altered = [[line for line in lines(day, "INVOICES") if line.startswith(str(ALTERED))] for day in (1, 2)]
    assert altered[0] != altered[1]
    customers = ["\n".join(lines(day, "CUSTOMERS")) for day in (1, 2, 3)]
    assert [str(LATE_CUSTOMER) in each for each in customers] == [False, False, True]
