"""Rehearsal files: what a migration read and needed at its rehearsal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from crossdock.runs.saved_plan_and_input_hashes import DigestFile
from crossdock.values.config_base_types import ConfigModel

_Count = Annotated[int, Field(ge=0)]


class RehearsedStream(ConfigModel):
    """The reading of one stream.

    Attributes:
        source: SHA-256 over the records, independent of their order, and the version of the mapping; see
            `crossdock.runs.plan_result.PlanResult.sources`.
        operations: The number of creates and updates.
    """

    source: str
    records: _Count
    operations: _Count


class RehearsedWave(ConfigModel):
    """The needs of one wave.

    Attributes:
        requests: The requests to all targets. A record in two steps needs two.
    """

    streams: Mapping[str, RehearsedStream]
    requests: _Count


class Rehearsal(DigestFile):
    """A rehearsal as hashes and counts, without data of records.

    Attributes:
        waves: The waves by name. The config has their order.
    """

    noun: ClassVar[str] = "rehearsal"
    hint: ClassVar[str] = "'crossdock migrate rehearse -o FILE' writes one"

    base_url: str
    tenant: str
    waves: Mapping[str, RehearsedWave]
