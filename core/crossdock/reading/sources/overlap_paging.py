"""Paging by position through a list that changes while it is read, without losing a record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from crossdock.errors import RefusedError
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer, ApiRequest
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.reading.sources.pagination import SizedPages
from crossdock.values.json_paths import MISSING, value_at_path_or_missing

_RESTARTS = 5
_HIDDEN = (
    "what was read is delivered, nothing counts as gone, and the next run reads the list again; the others are counted"
    " and on no page: look for damaged records, or see whether a proxy or plugin changes the pages"
)

_TIME = re.compile(r"\d{4}-\d\d-\d\d")
_Place = tuple[tuple[Any, ...], str]  # the change and the id of a record


@dataclass(slots=True)
class _Progress:
    """The progress in one list, up to the last page that was joined to the one before.

    The next page must contain one of `joints`; otherwise the reading restarts `step` records further back.
    """

    offset: int = 0
    places: Sequence[_Place] = ()
    joints: frozenset[_Place] = frozenset()
    step: int = 0
    restarts: int = 0
    seen: IdSet = field(default_factory=IdSet)
    without_place: int = 0


@dataclass(frozen=True, kw_only=True)
class OverlappingPages(SizedPages):
    """Pages by position of a list that is sorted by change, oldest first, or by id.

    A record that changes moves to the end of such a list, and one that is deleted leaves it: those behind it move
    towards the front. So each page begins before the end of the last one, and has to contain a record of it that did
    not change meanwhile. If it does not, the list is read again from further before, at last from its beginning. At the
    end there must be as many different records as the API says; otherwise the list is in doubt. Records are read more
    than once, and the last reading counts.

    Records with the same change may be in any order on each page, as long as a page has other records as well.

    Args:
        records: A JSON pointer to the list of records; ``""`` if the body is the list.
        id: The path of a record's id.
        change: The path of what the list is sorted by, a text or a number; several if it may be either of them.
        total: The header with the number of all records.
        overlap: How many records before the end of a page the next one begins; at most half a page, unless more have
            the same change.
        param: The parameter for the number of records to skip.
    """

    records: str = ""
    id: str = "id"
    change: str | tuple[str, ...]
    total: str
    overlap: int = 10
    param: str = "offset"
    repeats: ClassVar[bool] = True
    _progress: list[_Progress] = field(default_factory=lambda: [_Progress()], init=False, repr=False, compare=False)

    def first(self, request: ApiRequest) -> ApiRequest:
        self._progress[0] = _Progress()
        return super().first(request).with_page(**{self.param: 0})

    def following(self, request: ApiRequest, answer: ApiAnswer) -> ApiRequest | None:
        """Return the request for the next page, or for an earlier one after a page that is not joined to the last."""
        offset, total = int(request.page_params[self.param]), self._stated_count(answer)
        before = self._progress[0]
        number, places = (
            len(answer.items(self.records)),
            self._places_refusing_unsorted_page(answer, is_first=not before.places),
        )
        has_new = before.seen.add([id_ for _, id_ in places]) > 0
        before.without_place += number - len(places)
        if offset and before.joints.isdisjoint(places):
            return request.with_page(**{self.param: self._earlier_offset_after_missed_overlap(offset, answer)})
        end, size = offset + number, request.page_params.get(self.size_param)
        is_asked_to_end = isinstance(size, int) and offset + size >= total
        if end >= total or (is_asked_to_end and (number < 2 or not has_new)):
            self._check_end(before, total, answer)
            return None
        if offset > before.offset and places == before.places:
            message = f"is the page before it once more, although {self.param} is another"
            raise RefusedError(
                message,
                where=answer.address,
                hint="an API that does not know a parameter ignores it",
                code="list_without_end",
            )
        if number < 2:
            message = f"has {number} of {total - offset:,} records: pages of fewer than two cannot overlap"
            raise RefusedError(message, where=answer.address, code="list_incomplete")
        joints, back = _places_shared_with_next_page(places, min(self.overlap, number // 2))
        self._progress[0] = replace(before, offset=offset, places=places, joints=joints, step=back)
        return request.with_page(**{self.param: end - back})

    def smaller(self, request: ApiRequest, read: int | None) -> ApiRequest | None:
        lesser = super().smaller(request, read)
        return lesser if lesser is not None and int(lesser.page_params[self.size_param]) > 1 else None

    def _earlier_offset_after_missed_overlap(self, offset: int, answer: ApiAnswer) -> int:
        progress = self._progress[0]
        progress.step *= 2
        if progress.step < offset:
            return offset - progress.step
        progress.restarts += 1
        if progress.restarts > _RESTARTS:
            message = f"changes so fast that it was begun again {_RESTARTS} times"
            raise RefusedError(
                message, where=answer.address, hint="read it again when it changes less", code="list_changed"
            )
        return 0

    @staticmethod
    def _check_end(progress: _Progress, total: int, answer: ApiAnswer) -> None:
        if (read := len(progress.seen) + progress.without_place) < total:
            message = f"the list ended after {read:,} of {total:,} records"
            raise DoubtfulListError(message, where=answer.address, hint=_HIDDEN, code="list_incomplete")

    def _places_refusing_unsorted_page(self, answer: ApiAnswer, *, is_first: bool) -> list[_Place]:
        """Return the places of the records that have one. A page that is not sorted is refused.

        A record may lack its change, as far as the list is known to have changes: a page without any id and change is
        refused.
        """
        paths = (self.change,) if isinstance(self.change, str) else self.change
        found = answer.items(self.records)
        values = [
            (tuple(value_at_path_or_missing(record, path) for path in paths), value_at_path_or_missing(record, self.id))
            for record in found
        ]
        unknown = (None,) if is_first else (None, MISSING)
        places = [
            (tuple(None if each in unknown else each for each in change), str(id_))
            for change, id_ in values
            if isinstance(id_, str | int) and all(isinstance(each, str | int) or each in unknown for each in change)
        ]
        if found and not places:
            raise RefusedError(
                f"no record has {self.id} and {' and '.join(paths)}", where=answer.address, code="answer_misplaced"
            )
        if not any(
            _is_sorted(_values_of_commonest_kind([change[index] for change, _ in places]))
            for index in range(len(paths))
        ):
            hint = "an API that does not know a parameter ignores it"
            message = f"is not sorted by {' or '.join(paths)}, lowest first"
            raise RefusedError(message, where=answer.address, hint=hint, code="list_unsorted")
        return places

    def _stated_count(self, answer: ApiAnswer) -> int:
        text = answer.headers.get(self.total.lower(), "")
        if not (text.isascii() and text.isdigit()):
            hint = "a proxy or cache may have removed it"
            message = f"has no header {self.total} with the number of records"
            raise RefusedError(message, where=answer.address, hint=hint, code="answer_misplaced")
        return int(text)


def _places_shared_with_next_page(places: Sequence[_Place], overlap: int) -> tuple[frozenset[_Place], int]:
    """Return the places of which the next page must contain one, and how far before the end of the page they begin.

    Records with the last change count only if there are hardly any others: more may precede them on the next page.
    """
    last = sum(place[0] == places[-1][0] for place in places)
    if last + 1 < len(places):
        return frozenset(places[:-last]), max(overlap, last + 1)
    return frozenset(places), overlap


def _values_of_commonest_kind(changes: Sequence[Any]) -> list[Any]:
    """Return the values of the most frequent kind: numbers, times or other texts. One wrong value ends no list."""
    kinds = Counter(_value_kind(change) for change in changes if change is not None)
    return [change for change in changes if change is not None and _value_kind(change) == kinds.most_common(1)[0][0]]


def _value_kind(change: str | int) -> str:
    return "number" if isinstance(change, int) else "time" if _TIME.match(change) else "text"


def _is_sorted(changes: Sequence[Any]) -> bool:
    return changes == sorted(changes)
