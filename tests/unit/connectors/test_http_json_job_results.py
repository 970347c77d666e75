"""Results of jobs: which record each is about, and what became of it."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from crossdock.errors import RefusedError
from crossdock.targets import ExpectedRecord
from crossdock_connectors.http_json.bulk_write_jobs import JobOutcomes, job_results_in_body
from crossdock_connectors.http_json.target_settings import JobResults


def results(**settings: Any) -> JobResults:
    return JobResults.model_validate({"path": "/results", "format": "csv", "record": "ID"} | settings)


@pytest.mark.parametrize(
    ("settings", "content", "found"),
    [
        ({}, "ID,sf__Id\n a1,003\n", [(" a1", False, "")]),
        ({}, '\ufeffID,NOTE\r\n"a,1","x\ny"\r\n', [("a,1", False, "")]),
        ({"refused": True, "reason": ["WHY"]}, "WHY,ID\nbad: x,a1\n,a2\n", [("a1", True, "bad: x"), ("a2", True, "")]),
        ({"format": "json", "record": "sku", "records": "items"}, '{"items": [{"sku": "a1"}]}', [("a1", False, "")]),
        (
            {"format": "json_lines", "record": None, "number": "__lineNumber", "first_number": 0, "reason": ["errors"]},
            '{"__lineNumber": 1, "errors": []}\n{"__lineNumber": 0, "errors": [{"m": "no"}]}\n',
            [("1", False, ""), ("0", True, '[{"m":"no"}]')],
        ),
        (
            {"format": "json", "record": None, "number": "id", "when": {"field": "severity", "equals": "ERROR"}},
            '[{"id": 2, "severity": "WARNING"}, {"id": "3", "severity": "ERROR"}]',
            [("2", False, "")],
        ),
        ({"format": "json", "record": "sku"}, "[]", []),
        ({"reason": ["WHY"]}, "ID,WHY\n,no quota\n", [(None, True, "no quota")]),
        (
            {"reason": ["WHY"]},
            "ID,WHY\na1,false\na2,FALSE\na3,0\na4, \na5,\na6,[]\na7,10\n",
            [*((f"a{number}", False, "") for number in range(1, 7)), ("a7", True, "10")],
        ),
        (
            {"format": "json_lines", "reason": ["why"]},
            "".join(
                f'{{"ID": "{number}", "why": {why}}}\n'
                for number, why in enumerate(["false", "0", "0.0", "null", '" "', "[]", "{}", "true", "7", '{"m": 0}'])
            ),
            [
                *((str(number), False, "") for number in range(7)),
                ("7", True, "true"),
                ("8", True, "7"),
                ("9", True, '{"m":0}'),
            ],
        ),
        ({}, f'ID\n"{"x" * 9_000}"\n', [("x" * 9_000, False, "")]),
        ({"format": "json", "record": None, "number": "n"}, '[{"n": 2.0}]', [("1", False, "")]),
        ({"record": None, "number": "N"}, "N\n0\n-1\n1.5\nx\n", [(None, False, "")] * 4),
    ],
)
def test_each_format_is_read(settings: dict[str, Any], content: str, found: list[tuple[str, bool, str]]) -> None:
    """A result names its record by its external id, or by its number in the file, and may have a reason."""
    assert list(job_results_in_body(content.encode(), results(**settings), 10_000)) == found


def test_all_members_of_a_compressed_file_are_read() -> None:
    """One that ends early in another has its refusals in the next."""
    content = gzip.compress(b"ID\na1\n") + gzip.compress(b"a2\n")
    assert [key for key, _, _ in job_results_in_body(content, results(), 10_000)] == ["a1", "a2"]


@pytest.mark.parametrize(
    ("settings", "content", "message"),
    [
        ({}, b"ID\n\xff\n", "the results are not csv: 'utf-8'"),
        ({}, b'ID\n"a\n', "the results are not csv: unexpected end of data"),
        ({}, b"", "the results have no column ID"),
        ({}, b"<html>busy</html>", "the results have no column ID"),
        ({"format": "json"}, b" ", "the results are not json: Expecting value"),
        ({"format": "json"}, b'{"items": []}', "the results have no list at the top"),
        ({"format": "json"}, b'{"a": 1, "a": 2}', "the results are not json: an object repeats a member name"),
        (
            {},
            gzip.compress(b"ID\na1\n", mtime=0)[:-4],
            "the results are damaged: the gzip data ends before its end marker",
        ),
        (
            {},
            gzip.compress(b"ID\n" + b"a" * 10_000, mtime=0),
            "the results have more than 10,000 bytes: raise max_answer_bytes",
        ),
        ({}, b"\x1f\x8b" + b"x" * 30, "the results are damaged"),
    ],
)
def test_what_is_no_list_of_results_is_refused(settings: dict[str, Any], content: bytes, message: str) -> None:
    """It says nothing about any record."""
    with pytest.raises(RefusedError, match=message):
        list(job_results_in_body(content, results(**settings), 10_000))


def told(*, by_name: list[Any] = [], by_place: list[Any] = [], accepts_others: bool = False) -> list[tuple[str, str]]:  # noqa: B006  never changed
    body = {
        "by_name": by_name,
        "by_place": by_place,
        "accepts_others": accepts_others,
        "message": "not named",
        "failure": "",
    }
    made = JobOutcomes(body).outcomes([ExpectedRecord(name="a"), ExpectedRecord(target_id="b", name="x")])
    return [(each.kind, each.message) for each in made]


def test_a_record_has_what_its_results_say() -> None:
    """One that is not named is in doubt, unless the API lists refusals only, and so is one with results that differ."""
    yes, no = ("delivered", ""), ("rejected", "too long")
    assert told(by_name=[["a", False, ""], ["b", True, "too long"]]) == [yes, no]
    assert told(by_place=[["1", True, "too long"]], accepts_others=True) == [yes, no]
    assert told(by_name=[["b", False, ""]]) == [("undecided", "not named"), yes]
    assert told(by_name=[["a", False, ""], ["a", True, "x"]], by_place=[["1", False, ""]]) == [
        ("undecided", "the results of the job both accept and refuse it"), yes,
    ]  # fmt: skip
    other = "not named, and some name no record of the file"
    assert told(by_name=[["A", True, "x"]], accepts_others=True) == [("undecided", other)] * 2
    assert told(by_place=[["2", True, "x"]], accepts_others=True) == [("undecided", other)] * 2
    refused = [["a", True, "too long"], ["a", True, "no mail"], ["a", True, "too long"], ["b", True, ""]]
    assert told(by_name=refused) == [
        ("rejected", "too long; no mail"), ("rejected", "the job refused it without a reason"),
    ]  # fmt: skip
