"""What templates of names read, and which templates cannot order files."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crossdock.reading.sources.file_order import parse_name_templates


@pytest.mark.parametrize(
    ("template", "older", "newer"),
    [
        ("S_{date:%Y%m%d}_{number}.csv", "S_20261125_9.csv", "S_20261125_10.csv"),
        ("S_{date:%m-%d-%Y}.csv", "S_12-31-2026.csv", "S_01-01-2027.csv"),
        ("S_{date:%d%m%Y}_{time:%I%M%p}.csv", "S_01112026_0900AM.csv", "S_01112026_0300pm.csv"),
        ("S_{date:%d%b%Y}.csv", "S_30OCT2026.csv", "S_02nov2026.csv"),
        ("S_{date:%Y-%j}{text}", "S_2026-099", "S_2026-100_X"),
        ("S_{text}_{date:%-d.%-m.%y}", "S_B_31.1.27", "S_A_1.10.27"),
    ],
)
def test_names_are_compared_by_what_they_say(template: str, older: str, newer: str) -> None:
    """Dates as dates, times as times, numbers as numbers, and texts not at all."""
    (parsed,) = parse_name_templates([template])
    first, second = parsed.rank(older, 0), parsed.rank(newer, 0)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize(
    "name", ["S_20261131_1.csv", "S_2026112_1.csv", "S_20261125_.csv", "s_20261125_1.csv", "S_20261125_1.csv.gz"]
)
def test_other_names_say_nothing(name: str) -> None:
    """A day that does not exist, a missing digit, another case or more text is another form."""
    (parsed,) = parse_name_templates(["S_{date:%Y%m%d}_{number}.csv"])
    assert parsed.rank(name, 0) is None


@pytest.mark.parametrize(
    ("templates", "says"),
    [
        (["S_{text}.csv"], "needs a field that orders the files"),
        ([], "needs a field that orders the files"),
        (["S_{date:%m%d}.csv"], "'modified' for such names"),
        (["S_{date:%Y}.csv"], "is not a date with its year and month"),
        (["S_{time:%d}.csv"], "is not a time"),
        (["S_{time:%H%M}.csv"], "does not say which day is the later one"),
        (["S_{number}_{time:%H%M}.csv"], "write {text} for the time"),
        (["S_{date:%Y%m%d%I}.csv"], "add %p, or use %H"),
        (["S_{time:%H%p}.csv"], "use %I with %p"),
        (["S_{date}.csv"], "is not a field"),
        (["S_{day:%Y}.csv"], "is not a field"),
        (["S_{date:%Y%Q}.csv"], "%Q in '%Y%Q' is not a code of a date"),
        (["S_{number.csv"], "neither a field nor part of a name"),
        (["S_{number}", "S_{date:%Y%m}"], "the same number of dates and of times"),
    ],
)
def test_what_cannot_order_files_is_refused(templates: list[str], says: str) -> None:
    """With what to write instead."""
    with pytest.raises(ValueError, match="."):
        parse_name_templates(templates)
    with pytest.raises(ValueError) as refused:
        parse_name_templates(templates)
    assert says in str(refused.value)


def test_case_and_folders_count_as_declared() -> None:
    """A template may ignore the case, and its fields do not reach over folders."""
    (parsed,) = parse_name_templates(["{date:%Y/%m/%d}/s_{text}.csv"], ignore_case=True)
    rank = parsed.rank("2026/11/25/S_x.CSV", 0)
    assert rank is not None
    assert rank[0] == (datetime(2026, 11, 25, tzinfo=UTC).replace(tzinfo=None),)
    assert parsed.rank("2026/11/25/s_x/y.csv", 0) is None
