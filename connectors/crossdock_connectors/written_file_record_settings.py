"""The members of records that a config writes in files, and what the files contain."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from crossdock import ConfigModel
from crossdock.sources import NameForm
from crossdock.targets import BatchProfile, EndpointProfile, FileContentConfig, FileRecord, RecordShape, TargetResource
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.field_types import MAX_ID_LENGTH
from crossdock_connectors.draft_models_declared_in_config import MemberName, Members, draft_model, full_example


class FileRecordConfig(ConfigModel):
    """A type of record that is written in files."""

    members: Members
    """The members of a record, which streams map, by names of your choice."""
    name: Annotated[str, Field(min_length=1)]
    """The member that has the external id of the record, such as the number of the order, which the file shows."""
    name_max_length: Annotated[int, Field(ge=1, le=MAX_ID_LENGTH)] = MAX_ID_LENGTH
    """The most characters of a name; a record with a longer one is a dead letter."""
    content: FileContentConfig
    """What the file contains."""
    bytes_per_file: Annotated[int, Field(ge=1_000)] | None = None
    """The most bytes of a file before it is wrapped, such as 100000000; any number by default. Each record counts as
    many as a file with this record alone has."""
    by: MemberName | None = None
    """The member whose value all records of a file have in common, such as the warehouse; none if files mix them."""

    @model_validator(mode="after")
    def _check_members(self) -> Self:
        if self.name in self.members:
            raise make_pydantic_error_at_key(("name",), "holds the external id of the record: leave it out of members")
        if self.by is not None and self.by not in self.members:
            raise make_pydantic_error_at_key(("by",), "is none of members")
        if "create" not in self.content.expressible_operations:
            raise make_pydantic_error_at_key(("content",), "cannot express a new record")
        example = FileRecord("create", "", {**full_example(self.members), self.name: ""})
        if unknown := self.content.names_lacking_in_record(example):
            raise make_pydantic_error_at_key(
                ("content",), f"shows {', '.join(unknown)}, and members has no such member"
            )
        return self


def file_target_resource(
    name: str, config: FileRecordConfig, name_form: NameForm, records_per_file: int, **profile: Any
) -> TargetResource:
    """Return the resource of these records, whose id is their name. *profile* is the rest of its `BatchProfile`."""
    operations = config.content.expressible_operations
    return TargetResource(
        name,
        draft_model(name, config.members),
        write_once="update" not in operations,
        deletes="delete" in operations,
        endpoint=EndpointProfile(reads=False, rules=dict.fromkeys(("create", "update", "delete"), "resend")),
        shape=RecordShape(id=None),
        name_member=config.name,
        name_form=name_form,
        name_limit=config.name_max_length,
        batch=BatchProfile(
            records_per_file,
            operations,
            stored=True,
            mixed=True,
            by=config.by,
            most_bytes=config.bytes_per_file,
            **profile,
        ),
    )
