"""The section ``target`` of a warehouse: the records that it takes in files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel
from crossdock.pacing.rate_limit_and_retry_settings import Retry
from crossdock.reading.sources.expected_and_late_files import Interval
from crossdock.sources import NameForm, WrappedIn, WritableStore
from crossdock.targets import (
    ACKNOWLEDGEMENTS,
    FileResource,
    FileTarget,
    HandOver,
    IfMissing,
)
from crossdock.values.config_base_types import make_pydantic_error_at_key, parse_duration
from crossdock.values.time_formats_and_zones import check_zone_name
from crossdock_connectors.declared_target_records import FileRecordConfig, ResourceKey, file_target_resource

_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_.,+=-]|\{number(?::[1-9])?\}|\{at:(?:%[YymdHMSj]|[A-Za-z0-9_.-])+\})+")
MAX_FILE_NAME = 150  # characters; temporary names and markers are longer, and common file systems end at 255
_BESIDE = re.compile(r"(?:[A-Za-z0-9_.+=-]|\{name\}|\{stem\})+")


def _checked_file_name(text: str) -> str:
    if _FILE_NAME.fullmatch(text) is None or text.startswith(".") or "{number" not in text:
        raise ValueError(
            "must be a file name with {number} or {number:6}, so that no name comes twice, and else only {at:%Y%m%d},"
            " letters, digits and . _ , + = -, such as ord_{at:%Y%m%d}_{number:6}.csv"
        )
    return text


def _checked_marker_name(text: str) -> str:
    if _BESIDE.fullmatch(text) is None or "{name}" not in text.replace("{stem}", "{name}"):
        raise ValueError("must be a file name with {name} or {stem}, such as {name}.ok")
    return text


def _checked_temporary_name(text: str) -> str:
    if _BESIDE.fullmatch(text) is None or "{name}" not in text or "{stem}" in text or text == "{name}":
        raise ValueError("must be a file name with {name} and more, such as .{name}.part")
    return text


class AcknowledgementConfig(ConfigModel):
    """How the partner acknowledges what it has taken: a stream ``to: CONNECTION.acknowledgements`` reads it."""

    within: Interval
    """The time in which it does, such as ``4h``; after that its records are overdue, and the run is degraded."""


class FileResourceConfig(FileRecordConfig):
    """A type of record that is handed over in files."""

    name_form: NameForm = "{key}"
    """How it is made of ``{namespace}`` and ``{key}``."""
    folder: str = ""
    """The folder in which the partner expects the files, relative to the login folder or ``path``."""
    file: Annotated[str, Field(max_length=MAX_FILE_NAME), AfterValidator(_checked_file_name)]
    """The name of a file: ``{number}`` is its number, ``{number:6}`` with at least six digits, and ``{at:%Y%m%d}`` the
    time at which it is made. The numbers of one connection have no gaps, and no number comes twice."""
    wrapped: WrappedIn | None = None
    """What a file is wrapped in, the outermost first, such as ``[pgp, gzip]`` with the keys of these. Its name gets
    their endings, such as ``.gz.pgp``."""
    records_per_file: Annotated[int, Field(ge=1, le=20_000)] = 1_000
    """The most records of one file, which are in memory together; 1 for a file for each record."""
    temporary: Annotated[str, AfterValidator(_checked_temporary_name)] = ".{name}.part"
    """The name under which a file is written, in the same folder, before it is renamed. Nobody else may remove it."""
    marker: Annotated[str, AfterValidator(_checked_marker_name)] | None = None
    """The name of an empty file that follows the file, such as ``{name}.ok`` or ``{stem}.done``; none without it."""
    taken: tuple[str, ...] = ()
    """The folders to which the partner moves files that it has taken, under the same name."""
    if_missing: IfMissing = "in_doubt"
    """What it means if an answer was lost, and neither the file nor the temporary one is found: ``in_doubt``, and a
    person or an acknowledgement decides; ``handed_over``, for a partner that deletes what it takes and removes nothing
    else; ``resend`` under the same name, for a partner that ignores a name that it knows."""
    copies: bool = False
    """Whether the server renames by a copy and a removal, as one over an object store does: then a temporary file that
    is left after a lost answer does not show that the partner has not taken the file, and the file is in doubt."""
    acknowledged: AcknowledgementConfig | None = None
    """How the partner acknowledges records; without it, a record that was handed over is delivered."""

    @model_validator(mode="after")
    def _check_marker_and_folder_names(self) -> Self:
        path = PurePosixPath(self.file)
        if self.marker is not None and self.marker.format(name=path.name, stem=path.stem) == path.name:
            raise make_pydantic_error_at_key(
                ("marker",), "must be another name than that of the file, such as {name}.ok"
            )
        if self.marker == self.temporary:
            raise make_pydantic_error_at_key(("marker",), "must be another name than the temporary one")
        for place, folders in (("folder", (self.folder,)), ("taken", self.taken)):
            if any(".." in folder.split("/") for folder in folders):
                raise make_pydantic_error_at_key((place,), "must not lead upwards")
        return self


class FileTargetConfig(ConfigModel):
    """What makes a warehouse a target of streams, ``to: CONNECTION.RESOURCE``."""

    resources: Annotated[Mapping[ResourceKey, FileResourceConfig], Field(min_length=1)]
    """The types of records by name, those that others depend on first."""
    timezone: Annotated[str, AfterValidator(check_zone_name)] = "UTC"
    """The IANA time zone of the partner, for dates in names and contents of files."""
    first_number: Annotated[int, Field(ge=1, le=999_999_999)] = 1
    """The number of the first file, such as the one after the last file of another system; later ones count on."""
    retry: Retry = Retry()
    """Retries of hand-overs that failed for now."""

    @model_validator(mode="after")
    def _refuse_resource_named_acknowledgements(self) -> Self:
        if ACKNOWLEDGEMENTS in self.resources:
            raise make_pydantic_error_at_key(
                ("resources", ACKNOWLEDGEMENTS), "is the name for what the partner acknowledges"
            )
        return self


def target(config: FileTargetConfig, open_store: Callable[[], WritableStore], address: str) -> FileTarget:
    """Return the target of a warehouse with these settings."""
    resources = {name: _file_resource(name, each) for name, each in config.resources.items()}
    return FileTarget(resources, open_store, address, ZoneInfo(config.timezone), config.retry, config.first_number)


def _file_resource(name: str, config: FileResourceConfig) -> FileResource:
    within = config.acknowledged and parse_duration(config.acknowledged.within)
    within_s = within.total_seconds() if within else None
    kind = file_target_resource(name, config, config.name_form, config.records_per_file, acknowledged_within_s=within_s)
    hand_over = HandOver(config.folder, config.temporary, config.marker, config.taken, config.if_missing, config.copies)
    return FileResource(kind, config.file, config.content, config.wrapped or (), hand_over=hand_over)
