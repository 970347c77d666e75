"""EDIFACT interchanges: the envelope around messages, released separators, and the character sets of syntax levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.edi_segments_and_sets import CHARSETS
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.writing.files.cell_declarations import NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts
from crossdock.writing.files.edi_content import EdiContent, Separator, without_empty_end
from crossdock.writing.files.number_and_time_texts import formatted_time_text
from crossdock.writing.files.text_encoder import TextEncoder, line_end_text

_LEVEL_A = "A-Z0-9 .,\\-()/='+:?!\"%&*;<>"
_CHARACTERS = {"UNOA": re.compile(f"[^{_LEVEL_A}]"), "UNOB": re.compile(f"[^{_LEVEL_A}a-z]")}
_REPETITION = "*"
_FOUR = "4"
"""The syntax version since which elements may be repeated, and years have four digits."""

PartnerId = Annotated[str, Field(min_length=1, max_length=35, pattern=r"^\S(.*\S)?$")]
PartnerQualifier = Annotated[str, Field(pattern="^[A-Z0-9]{1,4}$")]


class EdifactContent(EdiContent):
    """A file with one EDIFACT interchange, which has a message for each record."""

    kind: Literal["edifact"]
    message: Annotated[str, Field(pattern="^[A-Z]{6}$")]
    """The message, such as ``DESADV``."""
    version: Annotated[str, Field(pattern="^[A-Z0-9]{1,3}:[A-Z0-9]{1,3}:[A-Z0-9]{1,3}(:[A-Z0-9]{1,6})?$")] = "D:96A:UN"
    """Version, release and agency of the message, and the code of an association, such as ``D:96A:UN:EAN008``."""
    sender: PartnerId
    """Our identifier, such as a GLN."""
    sender_qualifier: PartnerQualifier | None = None
    """What kind of identifier it is: ``14`` GS1, ``1`` DUNS, ``ZZZ`` mutually defined."""
    receiver: PartnerId
    """The partner's identifier."""
    receiver_qualifier: PartnerQualifier | None = None
    """What kind of identifier it is."""
    application: Annotated[str, Field(min_length=1, max_length=14)] | None = None
    """The application reference of UNB (data element 0026)."""
    agreement: Annotated[str, Field(min_length=1, max_length=35)] | None = None
    """The identifier of the interchange agreement in UNB (data element 0032)."""
    test: bool = False
    """Whether UNB says that the interchange is a test."""
    acknowledgment: bool = False
    """Whether UNB asks for an acknowledgment, such as CONTRL."""
    syntax: Annotated[str, Field(pattern="^UNO[A-Z]$")] = "UNOC"
    """The syntax identifier, which tells the character set: ``UNOA`` has no lower-case letters, ``UNOB`` those of
    English, ``UNOC`` is Latin-1, ``UNOY`` UTF-8."""
    syntax_version: Literal["1", "2", "3", "4"] = "3"
    """The version of the syntax. In version 4, an asterisk separates repetitions, and is released in texts."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] | None = None
    """The character encoding by one of Python's names; by default the one of the syntax identifier."""
    una: bool = True
    """Whether UNA, which states the separators, precedes UNB. Without it, they are the usual ones."""
    component: Separator = ":"
    """The component separator."""
    element: Separator = "+"
    """The element separator."""
    decimal_mark: Literal[".", ","] = "."
    """The decimal mark of numbers, which UNA states."""
    release: Separator = "?"
    """The release character."""
    segment: Separator = "'"
    """The segment terminator."""
    line_end: Literal["none", "lf", "crlf"] = "none"
    """What follows each segment terminator."""

    @model_validator(mode="after")
    def _raise_if_options_conflict(self) -> Self:
        if self.encoding is None and self.syntax not in CHARSETS:
            raise make_pydantic_error_at_key(("encoding",), f"give the one of {self.syntax}")
        if len(set(self._separators)) < len(self._separators):
            raise ValueError("the separators component, element, release and segment must differ")
        usual = type(self).model_fields
        if not self.una and any(getattr(self, key) != usual[key].default for key in _IN_UNA):
            raise make_pydantic_error_at_key(("una",), "states separators that are not the usual ones, so it is needed")
        self.raise_if_envelope_texts_unfit("sender", "receiver", "application", "agreement")
        return self

    @cached_property
    def _release_table(self) -> dict[int, str]:
        return {ord(each): f"{self.release}{each}" for each in self._separators}

    @property
    def _separators(self) -> str:
        repetition = _REPETITION if self.syntax_version == _FOUR else ""
        return f"{self.component}{self.element}{self.release}{self.segment}{repetition}"

    @property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self.encoding or CHARSETS[self.syntax])

    def escaped(self, text: str, place: str) -> str:
        if self.syntax in _CHARACTERS and (odd := _CHARACTERS[self.syntax].search(text)) is not None:
            raise invalid_value_error(f"has the character U+{ord(odd[0]):04X}, which {self.syntax} has not", place)
        self._encoder.text_or_raise_if_unfit(text, place)
        return text.translate(self._release_table)

    def control_numbers_of_records(self, records: Sequence[FileRecord]) -> Sequence[str]:
        """Return the control number of each record's part, by which an acknowledgement names it."""
        return [str(number) for number in range(1, len(records) + 1)]

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        kind = f"{self.message}:{self.version}".replace(":", self.component)
        controls, control = self.control_numbers_of_records(records), str(facts.number)
        lines = [self._unb_elements(facts)]
        notation = NumberDefaults(decimal_mark=self.decimal_mark)
        for reference, segments in zip(controls, self.segments(records, facts, notation), strict=True):
            lines.append(["UNH", reference, kind])
            lines += [[self.component.join(element) for element in each] for each in segments]
            lines.append(["UNT", str(len(segments) + 2), reference])
        lines.append(["UNZ", str(len(records)), control])
        end = self.segment + line_end_text(self.line_end)
        return self._encoder.encode(self._una_text() + "".join(self.element.join(each) + end for each in lines))

    def _una_text(self) -> str:
        if not self.una:
            return ""
        repetition = _REPETITION if self.syntax_version == _FOUR else " "
        marks = f"{self.component}{self.element}{self.decimal_mark}{self.release}{repetition}{self.segment}"
        return f"UNA{marks}{line_end_text(self.line_end)}"

    def _unb_elements(self, facts: WrittenFileFacts) -> list[str]:
        day = "%Y%m%d" if self.syntax_version == _FOUR else "%y%m%d"
        header = [
            "UNB",
            self._joined_components(self.syntax, self.syntax_version),
            self._joined_components(self.escaped(self.sender, "sender"), self.sender_qualifier),
            self._joined_components(self.escaped(self.receiver, "receiver"), self.receiver_qualifier),
            self._joined_components(formatted_time_text(facts.at, day), formatted_time_text(facts.at, "%H%M")),
            str(facts.number),
            "",
            self.escaped(self.application or "", "application"),
            "",
            "1" if self.acknowledgment else "",
            self.escaped(self.agreement or "", "agreement"),
            "1" if self.test else "",
        ]
        return without_empty_end(header, "")

    def _joined_components(self, first: str, second: str | None) -> str:
        return f"{first}{self.component}{second}" if second else first


_IN_UNA = ("component", "element", "decimal_mark", "release", "segment")
