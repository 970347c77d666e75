"""Transaction sets and messages of EDI files, with the checks of the envelope around them.

What is wrong inside of a set refuses this set only. What is wrong with the envelope refuses the file: sets may be
missing then. Each trailer states a count and the control number of its header: IEA, GE and SE; UNZ, UNE and UNT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NoReturn

from msgspec import Struct, field

from crossdock.printable import printable
from crossdock.reading.formats.edi_segments import Segment, Segments, Separators

MAX_SEGMENTS = 100_000
"""Segments of one set, which is held in memory."""
MAX_CHARACTERS = 32 << 20
"""Characters of one set."""
_LONGEST_NAME = 35  # of a control number, in messages


class Envelope(Struct, frozen=True):
    """The segments around sets: each header with the element of its control number, and its trailer."""

    interchange: tuple[str, int, str]
    group: tuple[str, int, str]
    set: tuple[str, int, str]
    test: tuple[int, str]
    """The element of the interchange header that says that it is a test, and its text."""
    groups_are_required: bool
    kind_at: int
    """The element of the set's header that names its kind, in its first component."""


X12: Final = Envelope(
    ("ISA", 13, "IEA"), ("GS", 6, "GE"), ("ST", 2, "SE"), (15, "T"), groups_are_required=True, kind_at=1
)
EDIFACT: Final = Envelope(
    ("UNB", 5, "UNZ"), ("UNG", 5, "UNE"), ("UNH", 1, "UNT"), (11, "1"), groups_are_required=False, kind_at=2
)


class RefusedSetError(Exception):
    """One set is wrong at *segment*."""

    def __init__(self, segment: Segment, message: str) -> None:
        super().__init__(message)
        self.segment, self.message = segment, message


class EdiSet(Struct):
    """One set with its header and trailer, the headers around it, and the first error that was found in it."""

    around: tuple[Segment, ...]
    segments: list[Segment]
    separators: Separators
    count: int = 1
    characters: int = 0
    error: RefusedSetError | None = None

    @property
    def header_segment(self) -> Segment:
        return self.segments[0]

    def add_segment(self, segment: Segment) -> None:
        self.count += 1
        self.characters += sum(map(len, segment.elements))
        if segment.problem:
            self.mark_wrong(segment, segment.problem)
        elif self.count > MAX_SEGMENTS or self.characters > MAX_CHARACTERS:
            message = f"the set has more than {MAX_SEGMENTS:,} segments, or {MAX_CHARACTERS:,} characters"
            self.mark_wrong(segment, message)
        if self.error is None:
            self.segments.append(segment)

    def content_hash(self) -> int:
        """Return a hash of the set and of the headers around it, which have the control numbers."""
        return hash(tuple([tuple(each.elements) for each in (*self.around, *self.segments)]))

    def mark_wrong(self, segment: Segment, message: str) -> None:
        if self.error is None:
            self.error = RefusedSetError(segment, message)
            del self.segments[1:]

    def refusal_text(self, name: str, control: str, error: RefusedSetError) -> str:
        begins = (
            f"{name} {printable(control[:_LONGEST_NAME])!r}, which begins at {self.header_segment.place}, is refused"
        )
        return f"{begins}: {error.segment.place}: {error.message}"


class _OpenEnvelope(Struct):
    header: Segment
    count: int = 0


class _State(Struct):
    interchange: _OpenEnvelope | None = None
    group: _OpenEnvelope | None = None
    groups: int = 0
    current: EdiSet | None = None
    done: list[EdiSet] = field(default_factory=list)


class EdiSets:
    """The sets of one kind in their order."""

    def __init__(self, segments: Segments, envelope: Envelope, kind: str, *, test: bool) -> None:
        self._segments, self._envelope, self._kind, self._test = segments, envelope, kind, test
        self.other_kind_count = 0
        self._state = _State()
        self._places = dict[int, str]()  # of the sets, by the hash of each with its control numbers
        self._roles: dict[str, Callable[[Segment], None]] = {
            envelope.interchange[0]: self._begin_interchange,
            envelope.interchange[2]: self._end_interchange,
            envelope.group[0]: self._begin_group,
            envelope.group[2]: self._end_group,
            envelope.set[0]: self._begin_set,
            envelope.set[2]: self._end_set,
        }

    def __iter__(self) -> Iterator[EdiSet]:
        """Yield each set once it has ended. Raises RefusedError if the envelope is wrong."""
        state, roles = self._state, self._roles
        for segment in self._segments:
            role = roles.get(segment.elements[0])
            if role is None:
                if state.current is None:
                    self._raise_error(
                        segment, segment.problem or f"a segment outside of {self._set_header_and_trailer_tags}"
                    )
                state.current.add_segment(segment)
                continue
            if segment.problem and role != self._end_set:
                self._raise_error(segment, segment.problem)
            role(segment)
            if state.done:
                yield from (each for each in state.done if self._is_wanted_counting_others(each))
                state.done = []
        if state.interchange is not None:
            self._segments.raise_error(f"the file ends without {self._envelope.interchange[2]}: it is cut")

    @property
    def _set_header_and_trailer_tags(self) -> str:
        return f"{self._envelope.set[0]} to {self._envelope.set[2]}"

    def control_number_of(self, found: EdiSet) -> str:
        return self._element_text(found.header_segment, self._envelope.set[1])

    def _is_wanted_counting_others(self, found: EdiSet) -> bool:
        is_wanted = self._element_text(found.header_segment, self._envelope.kind_at, found.separators) == self._kind
        self.other_kind_count += not is_wanted
        return is_wanted

    def _element_text(self, segment: Segment, element: int, separators: Separators | None = None) -> str:
        text = segment.elements[element] if element < len(segment.elements) else ""
        mark = separators and separators.component
        return (text.partition(mark)[0] if mark else text).strip()

    def _raise_error(self, segment: Segment, message: str) -> NoReturn:
        self._segments.raise_error(message, segment=segment)

    # ---- headers and trailers

    def _begin_interchange(self, segment: Segment) -> None:
        if self._state.interchange is not None:
            self._raise_error(segment, f"no {self._envelope.interchange[2]} precedes this {segment.elements[0]}")
        element, text = self._envelope.test
        if self._element_text(segment, element) == text and not self._test:
            hint = "Declare test: true to read it, or remove the file."
            self._segments.raise_error("the interchange says that it is a test", hint, segment)
        self._state.interchange, self._state.groups = _OpenEnvelope(segment), 0

    def _end_interchange(self, segment: Segment) -> None:
        self._end_set_without_trailer(segment)
        if self._state.interchange is None or self._state.group is not None:
            before = self._envelope.interchange[0] if self._state.interchange is None else self._envelope.group[2]
            self._raise_error(segment, f"no {before} precedes this {segment.elements[0]}")
        found = self._state.groups or self._state.interchange.count
        if problem := self._problem_of_trailer(
            segment, self._state.interchange.header, self._envelope.interchange[1], found
        ):
            self._raise_error(segment, problem)
        self._state.interchange = None

    def _begin_group(self, segment: Segment) -> None:
        self._end_set_without_trailer(segment)
        if self._state.interchange is None or self._state.group is not None:
            before = self._envelope.interchange[0] if self._state.interchange is None else self._envelope.group[2]
            self._raise_error(segment, f"no {before} precedes this {segment.elements[0]}")
        self._state.group = _OpenEnvelope(segment)
        self._state.groups += 1

    def _end_group(self, segment: Segment) -> None:
        self._end_set_without_trailer(segment)
        if self._state.group is None:
            self._raise_error(segment, f"no {self._envelope.group[0]} precedes this {segment.elements[0]}")
        if problem := self._problem_of_trailer(
            segment, self._state.group.header, self._envelope.group[1], self._state.group.count
        ):
            self._raise_error(segment, problem)
        self._state.group = None

    def _begin_set(self, segment: Segment) -> None:
        self._end_set_without_trailer(segment)
        state = self._state
        if state.interchange is None or (state.group is None and self._envelope.groups_are_required):
            before = self._envelope.interchange[0] if state.interchange is None else self._envelope.group[0]
            self._raise_error(segment, f"no {before} precedes this {segment.elements[0]}")
        around = [state.interchange, *([state.group] if state.group else [])]
        around[-1].count += 1
        state.current = EdiSet(tuple(each.header for each in around), [segment], self._segments.separators)

    def _end_set(self, segment: Segment) -> None:
        found = self._state.current
        if found is None:
            self._raise_error(segment, f"no {self._envelope.set[0]} precedes this {segment.elements[0]}")
        found.add_segment(segment)
        if problem := self._problem_of_trailer(segment, found.header_segment, self._envelope.set[1], found.count):
            found.mark_wrong(segment, problem)
        if found.error is None:
            self._mark_repeated_set_wrong(found)
        self._state.done.append(found)
        self._state.current = None

    def _mark_repeated_set_wrong(self, found: EdiSet) -> None:
        """Mark a set that the file has twice in the same envelope: its rows would be added to those of the first."""
        place = self._places.setdefault(found.content_hash(), found.header_segment.place)
        if place != found.header_segment.place:
            found.mark_wrong(found.header_segment, f"the same set of the same interchange is at {place}")

    def _end_set_without_trailer(self, segment: Segment) -> None:
        if (found := self._state.current) is not None:
            found.mark_wrong(segment, f"no {self._envelope.set[2]} precedes this {segment.elements[0]}")
            self._state.done.append(found)
            self._state.current = None

    def _problem_of_trailer(self, trailer: Segment, header: Segment, control_at: int, count: int) -> str:
        stated, control = self._element_text(trailer, 1), self._element_text(trailer, 2)
        if not _is_same_number(stated, str(count)):
            return (
                f"{trailer.elements[0]} states the number {printable(stated[:_LONGEST_NAME])!r}, the file has {count:,}"
            )
        if not _is_same_number(control, self._element_text(header, control_at)):
            return f"the control numbers of {header.elements[0]} and {trailer.elements[0]} differ"
        return ""


def _is_same_number(text: str, other: str) -> bool:
    digits = text.isascii() and text.isdigit() and other.isascii() and other.isdigit()
    return text == other or (digits and text.lstrip("0") == other.lstrip("0"))
