"""The results of a job: a row for each record that it names, and what it became."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from crossdock.errors import RefusedError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.signs_of_unread_records import collect_signs_beside_empty_list
from crossdock.reading.wrappers.stream_compression import GZIP, GzipSettings, UnpackedStream
from crossdock.reading.wrappers.wrapper import UnpackingMeter
from crossdock.targets import Answer, ExpectedRecord, Outcome, body_of
from crossdock.values import exact_json
from crossdock.values.json_paths import json_value_as_column_text, unescaped_pointer_part, value_at_pointer_or_missing
from crossdock_connectors.http_json.bulk_write_job_settings import JobResults

_MANY = 12  # digits
_NO_REASONS = frozenset({"", "0", "false", "[]", "{}"})
_HINT = "correct results in the config; the next run fetches them again"
_LIMITS = GzipSettings(kind="gzip", max_ratio=10_000_000)  # their bytes are limited
Result = tuple[str | None, bool, str]
"""The external id, or the place in the file from 0 on, of a record, or None for none; whether it was refused; why."""


def results_in(content: bytes, each: JobResults, most: int) -> Iterator[Result]:
    """Yield what *content* says, of at most *most* bytes.

    Raises:
        RefusedError: If it is not such a list.
    """
    counts = each.when.json_predicate() if each.when is not None else lambda _: True
    for row in filter(counts, _rows(_unpacked_if_gzip(content, most), each)):
        reason = next(
            filter(None, (_refusal_text(value_at_pointer_or_missing(row, place)) for place in each.reason)), ""
        )
        yield _key_of_result(row, each), each.refused or bool(reason), reason


def sign_of_next_page(answer: Answer, each: JobResults) -> str | None:
    """Return what in an *answer* with results tells of a next page of them, or None."""
    body = body_of(answer) if each.format == "json" else None
    read = ApiAnswer("", body, answer.status, answer.headers)
    return collect_signs_beside_empty_list(read, each.records).sign_of_next_page


def _key_of_result(row: Any, each: JobResults) -> str | None:
    found = value_at_pointer_or_missing(row, each.record or each.number or "")
    if not isinstance(found, str | int | Decimal) or found == "" or isinstance(found, bool):
        return None
    if each.number is None:
        return str(found)
    digits = json_value_as_column_text(found) or ""
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < _MANY and int(digits) >= each.first_number
    return str(int(digits) - each.first_number) if is_number else None


def _unpacked_if_gzip(content: bytes, most: int) -> bytes:
    if not GZIP.magic(content):
        return content
    meter = UnpackingMeter(_LIMITS, name="the results", what="bytes of gzip")
    try:
        found = UnpackedStream(io.BytesIO(content), GZIP, meter, name="the results").read(most + 1)
    except RefusedError as error:
        raise _results_error(f"the results are damaged: {error.message}") from None
    if len(found) > most:
        raise _results_error(f"the results have more than {most:,} bytes: raise max_answer_bytes of the connection")
    return found


def _rows(content: bytes, each: JobResults) -> Iterator[Any]:
    try:
        text = content.decode("utf-8-sig")
        if each.format == "csv":
            csv.field_size_limit(max(csv.field_size_limit(), len(text)))
            rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            column = unescaped_pointer_part((each.record or each.number or "/").removeprefix("/"))
            if column not in (rows.fieldnames or ()):
                raise _results_error(f"the results have no column {column}")
            yield from rows
        elif each.format == "json_lines":
            yield from (exact_json.loads(line) for line in text.split("\n") if line.strip())
        else:
            found = value_at_pointer_or_missing(exact_json.loads(text), each.records)
            if not isinstance(found, list):
                raise _results_error(f"the results have no list at {each.records or 'the top'}")
            yield from found
    except (csv.Error, ValueError) as error:
        raise _results_error(f"the results are not {each.format}: {error}") from None


def _results_error(message: str) -> RefusedError:
    return RefusedError(message, hint=_HINT, code="job_results_differ")


def _refusal_text(value: Any) -> str:
    """Return what a member says of a refusal; an empty text for what is empty, false or 0, also in a column."""
    text = json_value_as_column_text(value) or ""
    return "" if not value or text.strip().casefold() in _NO_REASONS else text


class JobOutcomes:
    """The results of a job, as the body of an answer has them."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._accepts_others, self._message, self._failure = body["accepts_others"], body["message"], body["failure"]
        self._by_name, self._by_place = (_group_by_key(body[key]) for key in ("by_name", "by_place"))

    def outcomes(self, expected: Sequence[ExpectedRecord]) -> list[Outcome]:
        """Return the outcome of each record of the file, in their order."""
        names = {_expected_id_or_name(each) for each in expected}
        others = [*(self._by_name.keys() - names), *(self._by_place.keys() - {str(n) for n in range(len(expected))})]
        if others:  # it cannot be known which record each of them is about
            self._accepts_others = False
            self._message = f"{self._message}, and some name no record of the file"
        return [self._outcome(place, each) for place, each in enumerate(expected)]

    def _outcome(self, place: int, expected: ExpectedRecord) -> Outcome:
        name = _expected_id_or_name(expected)
        found = [*self._by_name.get(name, ()), *self._by_place.get(str(place), ())]
        refused = [reason for is_refused, reason in found if is_refused]
        if refused and len(refused) == len(found):
            said = "; ".join(dict.fromkeys(filter(None, refused))) or self._failure
            return Outcome("rejected", said or "the job refused it without a reason", reason="rejected", receipt="")
        if refused:
            return Outcome("undecided", "the results of the job both accept and refuse it", 200, receipt="")
        if found or self._accepts_others:
            return Outcome("delivered", status=200, target_id=name, receipt="")
        return Outcome("undecided", self._message, 200, receipt="")


def _expected_id_or_name(expected: ExpectedRecord) -> str:
    return expected.target_id or expected.name or ""


def _group_by_key(results: Sequence[Sequence[Any]]) -> Mapping[str, Sequence[tuple[bool, str]]]:
    found = defaultdict[str, list[tuple[bool, str]]](list)
    for key, is_refused, reason in results:
        found[key or ""].append((is_refused, reason))
    return found
