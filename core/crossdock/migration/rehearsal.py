"""Rehearsal files: what a migration read and needed when it was rehearsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from crossdock.runs.plan_documents import PlanDocument
from crossdock.values.config_file import ConfigModel

_Count = Annotated[int, Field(ge=0)]


class RehearsedStream(ConfigModel):
    """What one stream read.

    Attributes:
        source: SHA-256 over the records and the version of the mapping, whatever the order of the records; see
            `crossdock.runs.plan_results.Planned.sources`.
        records: How many it read.
        operations: How many of them are created or updated.
    """

    source: str
    records: _Count
    operations: _Count


class RehearsedWave(ConfigModel):
    """What one wave needs.

    Attributes:
        streams: By name.
        requests: To all targets; a record in two steps needs two.
    """

    streams: Mapping[str, RehearsedStream]
    requests: _Count


class Rehearsal(PlanDocument):
    """A rehearsal as hashes and counts, without data of records.

    Attributes:
        waves: By name; the config says in which order they are loaded.
    """

    noun: ClassVar[str] = "rehearsal"
    hint: ClassVar[str] = "'crossdock migrate rehearse -o FILE' writes one"

    base_url: str
    tenant: str
    waves: Mapping[str, RehearsedWave]
