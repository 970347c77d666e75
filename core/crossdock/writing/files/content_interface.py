"""The interface of a file's content: what goes in, and what each kind of file makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from crossdock.values.config_base_types import ConfigModel

FileOperation = Literal["create", "update", "delete"]
OPERATIONS: tuple[FileOperation, ...] = ("create", "update", "delete")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One operation of a file.

    Attributes:
        name: The external id of the record, such as the number of an order.
        payload: What the target shall hold; of a delete, what it held. JSON values: text, int, Decimal, bool, None,
            list and dict; instants are RFC 3339 texts, and dates ISO 8601 texts.
    """

    operation: FileOperation
    name: str
    payload: Mapping[str, Any]


class WrittenFileFacts(Struct, frozen=True):
    """What is known of the file itself.

    Attributes:
        number: The number of this file for this partner, from 1, without gaps and never repeated. EDI: the control
            number of the interchange.
        at: When it was made: aware, in the time zone of the partner.
        name: The name of the file.
    """

    number: int
    at: datetime
    name: str


class FileContent(ConfigModel, ABC):
    """How operations become the bytes of one file. A subclass has a `kind`."""

    @property
    @abstractmethod
    def expressible_operations(self) -> frozenset[FileOperation]:
        """The operations that the declaration can express."""

    @abstractmethod
    def check_record(self, record: FileRecord) -> None:
        """Raise RecordError if *record* cannot be written.

        The reason is ``changed_after_delivery`` for an update or a delete that the file cannot express, and
        ``invalid_draft`` otherwise: a value that is missing or does not fit, or a character that the file cannot hold.
        """

    @abstractmethod
    def names_lacking_in_record(self, record: FileRecord) -> Sequence[str]:
        """Return the names that it shows and that *record*, with every member and one element in each list, has not.

        A ready declaration may show members that a record need not have: of these only the required ones count.
        """

    @abstractmethod
    def file_bytes(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        """Return the bytes of the file: the same ones for the same arguments.

        Raises RefusedError if something that no record alone decides does not fit, such as a total in its column. Every
        record has passed `check_record`.
        """
