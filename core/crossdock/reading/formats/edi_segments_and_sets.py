"""Segments of EDI files, with the separators that each interchange declares, and the sets and messages that they form.

X12: ISA declares them by its positions (X12.5, Interchange Control Structures): the element separator follows "ISA",
the component separator is ISA16 and the segment terminator follows it; ISA11 is the repetition separator since version
00402. ISA is split at its separators, because senders leave out its padding. EDIFACT: UNA, if there is one, declares
them, and "?" releases the next character (ISO 9735); repetition is part of syntax version 4.

The libraries for this lose data silently: pyx12 4.0.0 ends at an empty segment, at a last one without terminator, and
before a second interchange with other separators, and reads no version but 00401 and 00501; pydifact 0.2.3 holds the
whole file, drops empty components at the end, fails at a second UNA, and is slower.

What is wrong inside of a set refuses this set only. What is wrong with the envelope refuses the file: sets may be
missing then. Each trailer states a count and the control number of its header: IEA, GE and SE; UNZ, UNE and UNT.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, NoReturn

from msgspec import Struct, field

from crossdock.errors import RefusedError
from crossdock.printable import printable
from crossdock.reading.formats.edi_layout import SEGMENT_TAG
from crossdock.reading.formats.file_kind_and_encoding_mismatch import (
    DECLARE_UTF_8_HINT,
    HEAD,
    MisdeclaredUtf8Search,
    raise_if_head_shows_other_kind,
)
from crossdock.reading.wrappers.wrapper import Readable

MAX_SEGMENT = 256 << 10
"""Characters of one segment. A terminator that is never found makes one segment of the rest of the file."""
_CHUNK_BYTES = 256 << 10
_ISA_ELEMENTS = 16
REPETITION_SINCE = "00402"
_BLANK = "\r\n\t \x1a"
_BLANKS = re.compile(f"[{_BLANK}]+")
_HELD = 0xFDD0  # released separators are noncharacters of Unicode until elements are split
_ASK = "Fetch the file again, or ask the sender."
CHARSETS = {
    **dict.fromkeys(("UNOA", "UNOB"), "ascii"),
    **{
        f"UNO{letter}": f"iso8859-{part}" for letter, part in zip("CDEFGHIJK", (1, 2, 5, 7, 3, 4, 6, 8, 9), strict=True)
    },
    **dict.fromkeys(("UNOW", "UNOY"), "utf-8"),
}
"""Of the syntax identifiers (data element 0001), by ISO 9735; others need a declared encoding."""


class EdiSegment(NamedTuple):
    """A segment: its number in the file, the line on which it begins, its tag with its elements, and what is wrong."""

    number: int
    line: int
    elements: list[str]
    problem: str = ""

    @property
    def place(self) -> str:
        return f"segment {self.number:,}" + (f", line {self.line:,}" if self.line > 1 else "")


class EdiSeparators(Struct, frozen=True):
    element: str
    component: str
    terminator: str
    repetition: str = ""
    release: str = ""
    decimal_mark: str = "."

    @property
    def all_characters(self) -> str:
        return f"{self.element}{self.component}{self.terminator}{self.repetition}{self.release}"

    def placeholders(self) -> dict[str, str]:
        """Map each character that can be released to what stands for it."""
        return {character: chr(_HELD + number) for number, character in enumerate(self.all_characters)}

    def originals_of_placeholders(self) -> dict[int, str]:
        return {_HELD + number: character for number, character in enumerate(self.all_characters)}


def _add_tag_if_valid(tag: str, tags: set[str]) -> bool:
    """Return whether *tag* has the form of one, and add it to *tags* then."""
    is_tag = SEGMENT_TAG.fullmatch(tag) is not None
    if is_tag:
        tags.add(tag)
    return is_tag


class EdiSegmentReader:
    """The segments of one file. `separators` are those of the segment that was yielded last."""

    def __init__(self, stream: Readable, name: str, encoding: str | None, *, kind: str) -> None:
        self._stream, self._name, self._kind, self._encoding = stream, name, kind, encoding
        self._text, self._at, self._is_whole = "", 0, False
        self._number, self._line, self._bytes = 0, 1, 0
        self.separators = EdiSeparators("*", ">", "~")
        self._held = self.separators.placeholders()
        self._decoder: codecs.IncrementalDecoder | None = None

    def __iter__(self) -> Iterator[EdiSegment]:
        last = "IEA" if self._kind == "x12" else "UNZ"
        while self._read_separators_if_interchange_follows():
            for segment in self._segments_of_interchange():
                yield segment
                if segment.elements[0] == last:
                    break

    def raise_error(self, message: str, hint: str = _ASK, segment: EdiSegment | None = None) -> NoReturn:
        """Refuse the file at *segment*, or at the segment that is read now."""
        if segment is None:
            rest = self._text[self._at : self._at + HEAD]
            blank = len(rest) - len(rest.lstrip("\r\n"))
            segment = EdiSegment(self._number + 1, self._line + rest[:blank].count("\n"), [])
        raise RefusedError(message, where=f"{self._name}: {segment.place}", hint=hint, code="file_damaged")

    # ---- text

    def _ensure_characters_ahead(self, size: int) -> None:
        """Have *size* characters from the present position on, if the file has them."""
        while len(self._text) - self._at < size and not self._is_whole:
            data = self._stream.read(_CHUNK_BYTES)
            if self._decoder is None:
                while len(data) < HEAD and (more_data := self._stream.read(_CHUNK_BYTES)):
                    data += more_data
                self._decoder = codecs.getincrementaldecoder(self._detect_encoding_or_raise(data))()
                self._search = MisdeclaredUtf8Search(self._decoded_as)
            self._is_whole, self._bytes = not data, self._bytes + len(data)
            try:
                more = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                byte = self._bytes - len(error.object) + error.start + 1
                hint = "Ask the sender for the encoding and declare it, such as encoding: cp1252."
                raise RefusedError(
                    f"byte {byte:,} is not {self._decoded_as}", where=self._name, hint=hint, code="encoding_wrong"
                ) from None
            self._search.add(data, more, final=not data)
            if self._is_whole and self._search.is_found:
                message = f"the file is in UTF-8, and {self._decoded_as} is declared, by UNB or in the config"
                raise RefusedError(message, where=self._name, hint=DECLARE_UTF_8_HINT, code="encoding_wrong")
            self._text = self._text[self._at :] + more
            self._at = 0

    def _detect_encoding_or_raise(self, head: bytes) -> str:
        if not head:
            raise RefusedError(
                "the file is empty", where=self._name, hint="Fetch it again, or ask the sender.", code="file_empty"
            )
        encoding = self._encoding
        if encoding is None:
            named = re.match(rb"(?:\xef\xbb\xbf)?\s*(?:UNA.{6}\s*)?UNB.(UNO.)", head[:HEAD], re.DOTALL)
            encoding = CHARSETS.get(named[1].decode("latin-1"), "") if named else "ascii"
            if not encoding:
                self.raise_error(
                    "UNB names a character set that is not known", "Declare encoding, such as encoding: utf-8."
                )
            if named is None and not head.lstrip().startswith((b"UNA", b"UNB")):
                encoding = "utf-8"  # of a file that is refused as another kind
        raise_if_head_shows_other_kind(head[:HEAD], encoding, name=self._name)
        self._decoded_as = encoding
        return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding

    # ---- separators

    def _read_separators_if_interchange_follows(self) -> bool:
        """Read the separators of the next interchange. Return whether there is one."""
        self._ensure_characters_ahead(_CHUNK_BYTES)
        while blank := _BLANKS.match(self._text, self._at):
            self._line += blank[0].count("\n")
            self._at = blank.end()
            self._ensure_characters_ahead(1)
        self._ensure_characters_ahead(HEAD)
        head = self._text[self._at : self._at + HEAD]
        if not head and self._number:
            return False
        self.separators = (
            self._separators_of_isa(head) if self._kind == "x12" else self._separators_of_una_or_usual(head)
        )
        own = self.separators.all_characters
        if len(set(own)) < len(own) or any(each.isalnum() or each == " " for each in own):
            self.raise_error("the separators of the interchange are letters, digits, spaces or twice the same")
        allowed = "".join(map(re.escape, own))
        self._odd = re.compile(f"(?![{allowed}])[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef]")
        self._held = self.separators.placeholders()
        self._released = re.compile(f"{re.escape(self.separators.release)}(.)", re.DOTALL)
        return True

    def _separators_of_isa(self, head: str) -> EdiSeparators:
        if not head.startswith("ISA") or len(head) < len("ISA**") or head[3].isalnum():
            self._raise_start_error("ISA", "X12")
        elements = head.split(head[3], _ISA_ELEMENTS)
        if len(elements) <= _ISA_ELEMENTS or len(elements[-1]) < len(">~") or "\n" in head[: -len(elements[-1])]:
            self.raise_error("ISA has no 16 elements with a terminator: the file is cut, or its separators are unknown")
        repetition = elements[11] if elements[12] >= REPETITION_SINCE and len(elements[11]) == 1 else ""
        repetition = "" if repetition.isalnum() or repetition == " " else repetition
        return EdiSeparators(head[3], elements[16][0], elements[16][1], repetition)

    def _separators_of_una_or_usual(self, head: str) -> EdiSeparators:
        component, element, mark, release, repetition, terminator = tuple(":+.?*'")
        if head.startswith("UNA") and len(head) >= len("UNA:+.? '"):
            component, element, mark, release, repetition, terminator = tuple(head[3:9])
            after = head[9:].lstrip("\r\n")
            self._at += len(head) - len(after)
            self._line += head[9 : len(head) - len(after)].count("\n")
            head = after
        if not head.startswith(f"UNB{element}"):
            self._raise_start_error("UNB", "EDIFACT")
        version = head.partition(terminator)[0].split(element)[1].split(component)[1:2]
        if version < ["4"] or repetition == " ":
            repetition = ""
        return EdiSeparators(element, component, terminator, repetition, release.strip(" "), mark)

    def _raise_start_error(self, tag: str, kind: str) -> NoReturn:
        if self._number:
            self.raise_error(f"text that is no {tag} follows the end of an interchange")
        self.raise_error(f"the file does not begin with {tag}: it is not {kind}", "Check format.kind and the file.")

    # ---- segments

    def _segments_of_interchange(self) -> Iterator[EdiSegment]:
        terminator, element, release = self.separators.terminator, self.separators.element, self.separators.release
        odd, step, tags = self._odd, int(terminator == "\n"), set[str]()
        while True:
            end = self._find_end_of_segment(terminator, release)
            if end < 0:
                return
            raw = self._text[self._at : end]
            self._at = end + 1
            if raw[:1] in "\r\n":
                stripped = raw.lstrip("\r\n")
                self._line += raw[: len(raw) - len(stripped)].count("\n")
                raw = stripped
            self._number += 1
            problem = ""
            tag, _, _ = raw.partition(element)
            if odd.search(raw):
                problem = "has a line break or another control character in it"
            elif not raw:
                problem = "is empty"
            elif tag not in tags and not _add_tag_if_valid(tag, tags):
                problem = "begins with no tag of two or three letters and digits"
            if release and release in raw:
                raw = self._released.sub(lambda found: self._held.get(found[1], found[1]), raw)
            yield EdiSegment(self._number, self._line, raw.split(element), problem)
            self._line += raw.count("\n") + step

    def _find_end_of_segment(self, terminator: str, release: str) -> int:
        """Return where the terminator of the segment at the present position is, or -1 after the last segment."""
        start = self._at
        while True:
            end = self._text.find(terminator, start)
            if end >= 0:
                if not (release and self._is_released(end, release)):
                    return end
                start = end + 1
                continue
            searched = len(self._text) - self._at
            if searched > MAX_SEGMENT:
                self.raise_error(f"a segment of more than {MAX_SEGMENT:,} characters", "Check its terminator. " + _ASK)
            if self._is_whole:
                if self._text[self._at :].strip(_BLANK):
                    self.raise_error("the file ends inside of this segment, so it is cut")
                return -1
            self._ensure_characters_ahead(searched + 1)
            start = self._at + searched

    def _is_released(self, end: int, release: str) -> bool:
        before = end
        while before > self._at and self._text[before - 1] == release:
            before -= 1
        return (end - before) % 2 == 1


MAX_SEGMENTS = 100_000
"""Segments of one set, which is held in memory."""
MAX_CHARACTERS = 32 << 20
"""Characters of one set."""
_LONGEST_NAME = 35  # of a control number, in messages


class EdiEnvelope(Struct, frozen=True):
    """The segments around sets: each header with the element of its control number, and its trailer."""

    interchange: tuple[str, int, str]
    group: tuple[str, int, str]
    set: tuple[str, int, str]
    test: tuple[int, str]
    """The element of the interchange header that says that it is a test, and its text."""
    groups_are_required: bool
    kind_at: int
    """The element of the set's header that names its kind, in its first component."""


X12_ENVELOPE: Final = EdiEnvelope(
    ("ISA", 13, "IEA"), ("GS", 6, "GE"), ("ST", 2, "SE"), (15, "T"), groups_are_required=True, kind_at=1
)
EDIFACT_ENVELOPE: Final = EdiEnvelope(
    ("UNB", 5, "UNZ"), ("UNG", 5, "UNE"), ("UNH", 1, "UNT"), (11, "1"), groups_are_required=False, kind_at=2
)


class EdiSetError(Exception):
    """One set is wrong at *segment*."""

    def __init__(self, segment: EdiSegment, message: str) -> None:
        super().__init__(message)
        self.segment, self.message = segment, message


class EdiSet(Struct):
    """One set with its header and trailer, the headers around it, and the first error that was found in it."""

    around: tuple[EdiSegment, ...]
    segments: list[EdiSegment]
    separators: EdiSeparators
    count: int = 1
    characters: int = 0
    error: EdiSetError | None = None

    @property
    def header_segment(self) -> EdiSegment:
        return self.segments[0]

    def add_segment(self, segment: EdiSegment) -> None:
        self.count += 1
        self.characters += sum(map(len, segment.elements))
        if segment.problem:
            self.record_first_error(segment, segment.problem)
        elif self.count > MAX_SEGMENTS or self.characters > MAX_CHARACTERS:
            message = f"the set has more than {MAX_SEGMENTS:,} segments, or {MAX_CHARACTERS:,} characters"
            self.record_first_error(segment, message)
        if self.error is None:
            self.segments.append(segment)

    def content_hash(self) -> int:
        """Return a hash of the set and of the headers around it, which have the control numbers."""
        return hash(tuple([tuple(each.elements) for each in (*self.around, *self.segments)]))

    def record_first_error(self, segment: EdiSegment, message: str) -> None:
        if self.error is None:
            self.error = EdiSetError(segment, message)
            del self.segments[1:]

    def refusal_text(self, name: str, control: str, error: EdiSetError) -> str:
        begins = (
            f"{name} {printable(control[:_LONGEST_NAME])!r}, which begins at {self.header_segment.place}, is refused"
        )
        return f"{begins}: {error.segment.place}: {error.message}"


class _OpenEnvelope(Struct):
    header: EdiSegment
    count: int = 0


class _EnvelopeState(Struct):
    interchange: _OpenEnvelope | None = None
    group: _OpenEnvelope | None = None
    groups: int = 0
    current: EdiSet | None = None
    done: list[EdiSet] = field(default_factory=list)


class EdiSetReader:
    """The sets of one kind in their order."""

    def __init__(self, segments: EdiSegmentReader, envelope: EdiEnvelope, kind: str, *, test: bool) -> None:
        self._segments, self._envelope, self._kind, self._test = segments, envelope, kind, test
        self.other_kind_count = 0
        self._state = _EnvelopeState()
        self._places = dict[int, str]()  # of the sets, by the hash of each with its control numbers
        self._roles: dict[str, Callable[[EdiSegment], None]] = {
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

    def _element_text(self, segment: EdiSegment, element: int, separators: EdiSeparators | None = None) -> str:
        text = segment.elements[element] if element < len(segment.elements) else ""
        mark = separators and separators.component
        return (text.partition(mark)[0] if mark else text).strip()

    def _raise_error(self, segment: EdiSegment, message: str) -> NoReturn:
        self._segments.raise_error(message, segment=segment)

    # ---- headers and trailers

    def _begin_interchange(self, segment: EdiSegment) -> None:
        if self._state.interchange is not None:
            self._raise_error(segment, f"no {self._envelope.interchange[2]} precedes this {segment.elements[0]}")
        element, text = self._envelope.test
        if self._element_text(segment, element) == text and not self._test:
            hint = "Declare test: true to read it, or remove the file."
            self._segments.raise_error("the interchange says that it is a test", hint, segment)
        self._state.interchange, self._state.groups = _OpenEnvelope(segment), 0

    def _end_interchange(self, segment: EdiSegment) -> None:
        self._end_set_without_trailer(segment)
        if self._state.interchange is None or self._state.group is not None:
            before = self._envelope.interchange[0] if self._state.interchange is None else self._envelope.group[2]
            self._raise_error(segment, f"no {before} precedes this {segment.elements[0]}")
        found = self._state.groups or self._state.interchange.count
        if problem := self._find_problem_of_trailer(
            segment, self._state.interchange.header, self._envelope.interchange[1], found
        ):
            self._raise_error(segment, problem)
        self._state.interchange = None

    def _begin_group(self, segment: EdiSegment) -> None:
        self._end_set_without_trailer(segment)
        if self._state.interchange is None or self._state.group is not None:
            before = self._envelope.interchange[0] if self._state.interchange is None else self._envelope.group[2]
            self._raise_error(segment, f"no {before} precedes this {segment.elements[0]}")
        self._state.group = _OpenEnvelope(segment)
        self._state.groups += 1

    def _end_group(self, segment: EdiSegment) -> None:
        self._end_set_without_trailer(segment)
        if self._state.group is None:
            self._raise_error(segment, f"no {self._envelope.group[0]} precedes this {segment.elements[0]}")
        if problem := self._find_problem_of_trailer(
            segment, self._state.group.header, self._envelope.group[1], self._state.group.count
        ):
            self._raise_error(segment, problem)
        self._state.group = None

    def _begin_set(self, segment: EdiSegment) -> None:
        self._end_set_without_trailer(segment)
        state = self._state
        if state.interchange is None or (state.group is None and self._envelope.groups_are_required):
            before = self._envelope.interchange[0] if state.interchange is None else self._envelope.group[0]
            self._raise_error(segment, f"no {before} precedes this {segment.elements[0]}")
        around = [state.interchange, *([state.group] if state.group else [])]
        around[-1].count += 1
        state.current = EdiSet(tuple(each.header for each in around), [segment], self._segments.separators)

    def _end_set(self, segment: EdiSegment) -> None:
        found = self._state.current
        if found is None:
            self._raise_error(segment, f"no {self._envelope.set[0]} precedes this {segment.elements[0]}")
        found.add_segment(segment)
        if problem := self._find_problem_of_trailer(segment, found.header_segment, self._envelope.set[1], found.count):
            found.record_first_error(segment, problem)
        if found.error is None:
            self._record_error_if_set_repeated(found)
        self._state.done.append(found)
        self._state.current = None

    def _record_error_if_set_repeated(self, found: EdiSet) -> None:
        """Mark a set that the file has twice in the same envelope: its rows would be added to those of the first."""
        place = self._places.setdefault(found.content_hash(), found.header_segment.place)
        if place != found.header_segment.place:
            found.record_first_error(found.header_segment, f"the same set of the same interchange is at {place}")

    def _end_set_without_trailer(self, segment: EdiSegment) -> None:
        if (found := self._state.current) is not None:
            found.record_first_error(segment, f"no {self._envelope.set[2]} precedes this {segment.elements[0]}")
            self._state.done.append(found)
            self._state.current = None

    def _find_problem_of_trailer(self, trailer: EdiSegment, header: EdiSegment, control_at: int, count: int) -> str:
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
