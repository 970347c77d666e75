"""X12 interchanges: the envelope around sets, and the characters that their elements may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.edi_segments_and_sets import REPETITION_SINCE
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.writing.files.cell_declarations import NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts
from crossdock.writing.files.edi_content import EdiContent, Separator
from crossdock.writing.files.number_and_time_texts import formatted_time_text
from crossdock.writing.files.text_encoder import TextEncoder, line_end_text

_GROUPS = {
    "810": "IN", "832": "SC", "846": "IB", "850": "PO", "855": "PR", "856": "SH", "860": "PC", "888": "QG", "940": "OW",
    "943": "AR", "944": "RE", "945": "SW", "947": "AW",
}  # fmt: skip
"""The functional identifier codes of sets (data element 479)."""
_MOST = 999_999_999
_BASIC = r"A-Z0-9!\"&'()*+,./:;?= \-"
_CHARACTERS = {"basic": re.compile(f"[^{_BASIC}]"), "extended": re.compile(f"[^{_BASIC}a-z%@\\[\\]_{{}}\\\\|<>~#$]")}

InterchangeId = Annotated[str, Field(min_length=1, max_length=15, pattern=r"^\S(.*\S)?$")]
Qualifier = Annotated[str, Field(pattern="^[A-Z0-9]{2}$")]


class X12Content(EdiContent):
    """A file with one X12 interchange, which has one functional group with a transaction set for each record."""

    kind: Literal["x12"]
    set_: Annotated[str, Field(alias="set", pattern="^[0-9]{3}$")]
    """The transaction set, such as ``"940"``."""
    group: Annotated[str, Field(pattern="^[A-Z]{2}$")] | None = None
    """The functional identifier code, GS01; that of common sets is known, such as ``OW`` of 940."""
    sender: InterchangeId
    """Our identifier, ISA06."""
    sender_qualifier: Qualifier = "ZZ"
    """What kind of identifier it is, ISA05: ``01`` DUNS, ``12`` telephone, ``ZZ`` mutually defined."""
    receiver: InterchangeId
    """The partner's identifier, ISA08."""
    receiver_qualifier: Qualifier = "ZZ"
    """What kind of identifier it is, ISA07."""
    group_sender: InterchangeId | None = None
    """The application sender's code, GS02; by default the sender."""
    group_receiver: InterchangeId | None = None
    """The application receiver's code, GS03; by default the receiver."""
    version: Annotated[str, Field(pattern="^[0-9]{6}$")] = "004010"
    """The version and release, GS08, whose first five digits are ISA12."""
    test: bool = False
    """Whether ISA15 says that the interchange is a test, T, and no production data, P."""
    acknowledgment: bool = False
    """Whether ISA14 asks for an interchange acknowledgment, TA1."""
    element: Separator = "*"
    """The element separator."""
    component: Separator = ">"
    """The component separator, ISA16."""
    repetition: Separator = "^"
    """The repetition separator, ISA11, since version 00402."""
    segment: Separator = "~"
    """The segment terminator."""
    line_end: Literal["none", "lf", "crlf"] = "none"
    """What follows each segment terminator."""
    characters: Literal["basic", "extended", "any"] = "extended"
    """The character set of X12 that elements may use: ``basic`` has no lower-case letters, ``extended`` has those of
    English, and with ``any``, agreed with the partner, all that the encoding has."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names."""

    @model_validator(mode="after")
    def _raise_if_options_conflict(self) -> Self:
        if self.group is None and self.set_ not in _GROUPS:
            raise make_pydantic_error_at_key(("group",), f"give the functional identifier code of {self.set_}, GS01")
        separators = self._separators
        if len(set(separators)) < len(separators):
            raise ValueError("the separators element, component, repetition and segment must differ")
        self.raise_if_envelope_texts_unfit("sender", "receiver", "group_sender", "group_receiver")
        return self

    @cached_property
    def _find_separator(self) -> Callable[[str], object]:
        return re.compile(f"[{re.escape(self._separators)}]").search

    @property
    def _separators(self) -> str:
        return (
            f"{self.element}{self.component}{self.segment}{self.repetition if self._has_repetition_separator else ''}"
        )

    @property
    def _has_repetition_separator(self) -> bool:
        return self.version[:5] >= REPETITION_SINCE

    def escaped(self, text: str, place: str) -> str:
        if self._find_separator(text):
            raise invalid_value_error("holds a separator of the interchange, which X12 cannot escape", place)
        odd = _CHARACTERS[self.characters].search(text) if self.characters != "any" else None
        if odd is not None:
            character = f"U+{ord(odd[0]):04X}"
            raise invalid_value_error(
                f"has the character {character}, which the {self.characters} set of X12 has not", place
            )
        return TextEncoder(self.encoding).text_or_raise_if_unfit(text, place)

    def control_numbers_of_records(self, records: Sequence[FileRecord]) -> Sequence[str]:
        """Return the control number of each record's part, by which an acknowledgement names it."""
        return [f"{number:04}" for number in range(1, len(records) + 1)]

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        if facts.number > _MOST:
            raise invalid_value_error(f"is above {_MOST:,}, the highest control number of X12", "file_number")
        controls = self.control_numbers_of_records(records)
        lines = [self._isa_elements(facts), self._gs_elements(facts)]
        for control, segments in zip(controls, self.segments(records, facts, NumberDefaults()), strict=True):
            lines.append(["ST", self.set_, control])
            lines += [[self.component.join(element) for element in each] for each in segments]
            lines.append(["SE", str(len(segments) + 2), control])
        lines += [["GE", str(len(records)), str(facts.number)], ["IEA", "1", f"{facts.number:09}"]]
        end = self.segment + line_end_text(self.line_end)
        return TextEncoder(self.encoding).encode("".join(self.element.join(each) + end for each in lines))

    def _isa_elements(self, facts: WrittenFileFacts) -> list[str]:
        ids = [self.sender_qualifier, self.sender.ljust(15), self.receiver_qualifier, self.receiver.ljust(15)]
        times = [formatted_time_text(facts.at, form) for form in ("%y%m%d", "%H%M")]
        repetition = self.repetition if self._has_repetition_separator else "U"
        flags = [f"{facts.number:09}", str(int(self.acknowledgment)), "T" if self.test else "P", self.component]
        return ["ISA", "00", " " * 10, "00", " " * 10, *ids, *times, repetition, self.version[:5], *flags]

    def _gs_elements(self, facts: WrittenFileFacts) -> list[str]:
        ids = [self.group or _GROUPS[self.set_], self.group_sender or self.sender, self.group_receiver or self.receiver]
        times = [formatted_time_text(facts.at, form) for form in ("%Y%m%d", "%H%M")]
        return ["GS", *ids, *times, str(facts.number), "X", self.version]
