"""Files of hashes and counts that one command saves and a later one compares: plans and rehearsals."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import ValidationError

from crossdock.errors import ConfigError
from crossdock.values import exact_json
from crossdock.values.config_file import ConfigModel
from crossdock.values.local_files import read_regular, replace_file

MAX_BYTES = 1 << 20
"""The limit for a file, which has a few hashes for each stream."""


class PlanDocument(ConfigModel):
    """What was planned, as hashes and counts, without data of records.

    Attributes:
        noun: The word for it in messages.
        hint: The command that writes such a file.
    """

    noun: ClassVar[str]
    hint: ClassVar[str]

    def save(self, path: Path) -> None:
        """Write the file atomically. Raises ConfigError if the file cannot be written."""
        try:
            replace_file(path, exact_json.dumps(self.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise ConfigError(f"the {self.noun} cannot be written: {error.strerror}", where=str(path)) from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. Raises ConfigError if it cannot be read or has another content."""
        try:
            return cls.model_validate(exact_json.loads(read_regular(path, MAX_BYTES)))
        except OSError as error:
            message = f"the {cls.noun} cannot be read: {error.strerror}"
            raise ConfigError(message, where=str(path), hint=cls.hint) from error
        except (ValueError, ValidationError):
            raise ConfigError(f"is not a {cls.noun} file", where=str(path), hint=cls.hint) from None
