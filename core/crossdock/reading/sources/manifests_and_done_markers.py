"""Files in which a sender states properties of other files, or that these are complete, and the checks against them."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from glob import escape
from pathlib import PurePosixPath
from typing import Annotated, Self

import polars as pl
from msgspec import Struct
from pydantic import AfterValidator, model_validator

from crossdock.errors import CrossdockError, RefusedError
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.file_formats import FileFormat, read_rows
from crossdock.reading.formats.record_types import CONTROL_NUMBER_PATTERN
from crossdock.reading.sources.file_spool import fetch_file_or_raise_if_size_differs
from crossdock.reading.sources.run_context import SourceContext, os_errors_as_state_errors
from crossdock.reading.transport.file_store import FileStore, RemoteFile, matches_pattern, split_pattern
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.raw_rows_and_records import LINE, column_expression_by_exact_name
from crossdock.values.safe_local_files import create_private_file

_BLOCK = 1 << 20
_FORMS = {"rows": "[0-9]{1,18}", "bytes": "[0-9]{1,18}", "sha256": "[0-9a-fA-F]{64}", "md5": "[0-9a-fA-F]{32}"}
_TEMPLATE = re.compile(r"(?:([^{}]*)/)?([^{}/]*)\{(name|stem)\}([^{}/]*)")


def _checked_pattern(pattern: str) -> str:
    try:
        split_pattern(pattern)
    except CrossdockError as error:
        raise ValueError(error.message) from None
    return pattern


class Manifest(ConfigModel):
    """Files that state how many rows or bytes other files have, or their checksums."""

    files: Annotated[str, AfterValidator(_checked_pattern)]
    """Folder and name pattern of the manifests, such as ``out/MANIFEST_*.csv``."""
    format: FileFormat = DelimitedFormat()
    """The layout of the manifests."""
    name: str
    """The column with the name of a file; folders before the name are ignored, also Windows ones."""
    rows: str | None = None
    """The column with its number of rows, without header and trailer."""
    bytes: str | None = None
    """The column with its size in bytes, as it is on the server."""
    sha256: str | None = None
    """The column with its SHA-256, as hexadecimal digits."""
    md5: str | None = None
    """The column with its MD5, as hexadecimal digits."""
    sums: Mapping[str, str] = {}
    """Columns with control sums, each with the column of the file that it is the sum of: ``{TOTAL: AMOUNT}``. At least
    one of ``rows``, ``bytes``, ``sha256``, ``md5`` and ``sums`` is required."""

    @model_validator(mode="after")
    def _raise_if_no_fact_or_sum(self) -> Self:
        if not self.facts and not self.sums:
            raise ValueError(f"needs the column of at least one of {', '.join(_FORMS)}, or sums")
        return self

    @property
    def facts(self) -> Mapping[str, str]:
        columns = {fact: getattr(self, fact) for fact in _FORMS}
        return {fact: column for fact, column in columns.items() if column is not None}


class ManifestEntry(Struct, frozen=True):
    """What a manifest states about a file, as texts. `where` is the manifest and the line."""

    where: str
    facts: Mapping[str, str]
    sums: Mapping[str, str]

    @property
    def states_row_count(self) -> bool:
        return "rows" in self.facts

    def raise_if_values_are_malformed(self, manifest: Manifest) -> None:
        for fact, text in self.facts.items():
            if not re.fullmatch(_FORMS[fact], text):
                what = "a whole number" if fact in {"rows", "bytes"} else f"a {fact} in hexadecimal digits"
                hint = "correct 'manifest' in the config, or ask the sender for a correct one"
                raise RefusedError(
                    f"column {manifest.facts[fact]!r} is not {what}",
                    where=self.where,
                    hint=hint,
                    code="manifest_differs",
                )

        for column, text in self.sums.items():
            if not re.fullmatch(CONTROL_NUMBER_PATTERN, text):
                hint = "correct 'manifest' in the config, or ask the sender for a correct one"
                raise RefusedError(
                    f"the sum of {column!r} is not a number", where=self.where, hint=hint, code="manifest_differs"
                )

    def raise_if_fact_differs(self, file: str, fact: str, found: int | str) -> None:
        stated = self.facts.get(fact, str(found)).lower()
        if (int(stated) if isinstance(found, int) else stated) == found:
            return
        hint = "the file or the manifest is not whole, or they are of different days: fetch them again"
        if isinstance(found, int):
            message = f"has {found:,} {fact}, but {self.where} states {int(stated):,}"
        else:
            message = f"has another {fact} than {self.where} states"
        raise RefusedError(message, where=file, hint=hint, code="manifest_differs")

    def raise_if_checksum_differs(self, file: str, content: Openable) -> None:
        for fact in self.facts.keys() & {"sha256", "md5"}:
            digest = hashlib.new(fact, usedforsecurity=False)
            with content.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
            self.raise_if_fact_differs(file, fact, digest.hexdigest())


def read_manifest_entries(
    manifest: Manifest,
    store: FileStore,
    run: SourceContext,
    files: Collection[RemoteFile],
    is_missing: Callable[[str], bool],
) -> tuple[dict[str, ManifestEntry], dict[str, str]]:
    """Return the entries of *files*, by name; the newest manifest counts. A file without an entry is refused.

    Also return the names for which *is_missing* in the manifests of these files, with the places of their entries.
    """
    entries, missing = dict[str, ManifestEntry](), dict[str, str]()
    names = {file.name for file in files}
    if not names:
        return entries, missing
    listed = store.list(*split_pattern(manifest.files))
    for found in sorted(listed, key=lambda file: (file.mtime, file.name)):
        stated = _entries_of_manifest(manifest, store, run, found, names, is_missing)
        if names.isdisjoint(stated):
            continue
        entries |= stated
        missing |= {name: entry.where for name, entry in stated.items() if name not in names}
    for file in files:
        if file.name not in entries:
            hint = f"{len(listed):,} files match {manifest.files}; ask the sender, or run again when it is listed"
            raise RefusedError("has no entry in a manifest", where=file.path, hint=hint, code="manifest_differs")
        entries[file.name].raise_if_values_are_malformed(manifest)
        entries[file.name].raise_if_fact_differs(file.path, "bytes", file.size)
    return entries, missing


def _entries_of_manifest(
    manifest: Manifest,
    store: FileStore,
    run: SourceContext,
    listed: RemoteFile,
    names: Collection[str],
    is_missing: Callable[[str], bool],
) -> dict[str, ManifestEntry]:
    def is_wanted(name: str) -> bool:
        return name in names or is_missing(name)

    copy = run.work / f"{secrets.token_hex(16)}.manifest"
    try:
        with os_errors_as_state_errors(copy.parent), create_private_file(copy) as sink:
            fetch_file_or_raise_if_size_differs(store, listed, sink, copy.parent)
        entries = dict[str, ManifestEntry]()
        for frame in read_rows(copy, manifest.format, name=listed.path):
            for row in _manifest_rows_for_files(manifest, listed, frame, is_wanted).iter_rows(named=True):
                name, where = row[manifest.name], f"{listed.path}:{row[LINE]}"
                if name in entries and name in names:
                    hint = "ask the sender for a manifest with one entry for each file"
                    raise RefusedError(
                        f"a second entry of the file in {entries[name].where}",
                        where=where,
                        hint=hint,
                        code="manifest_differs",
                    )
                facts = {fact: row[column].strip() for fact, column in manifest.facts.items()}
                sums = {of: row[column].strip() for column, of in manifest.sums.items()}
                entries[name] = ManifestEntry(where, facts, sums)
        return entries
    finally:
        copy.unlink(missing_ok=True)


def _manifest_rows_for_files(
    manifest: Manifest, listed: RemoteFile, frame: pl.DataFrame, is_wanted: Callable[[str], bool]
) -> pl.DataFrame:
    if missing := {manifest.name, *manifest.facts.values(), *manifest.sums} - set(frame.columns):
        hint = "correct 'manifest' in the config, or ask the sender"
        raise RefusedError(
            f"missing column {', '.join(map(repr, sorted(missing)))}",
            where=f"{listed.path}:1",
            hint=hint,
            code="column_missing",
        )
    named = frame.with_columns(_file_name_without_folders(column_expression_by_exact_name(manifest.name)))
    return named.filter(pl.Series([is_wanted(name) for name in named[manifest.name]], dtype=pl.Boolean))


def _file_name_without_folders(path: pl.Expr) -> pl.Expr:
    return path.str.strip_chars().str.replace(r"^.*[/\\]", "")


def _checked_template(value: str) -> str:
    found = _TEMPLATE.fullmatch(value)
    if not found or (found[1] is None and not (found[2] or found[4])):
        raise ValueError('must be the marker\'s name with {name} or {stem} once, and more than that: "{name}.done"')
    try:
        split_pattern(f"{found[1] or ''}/x")
    except CrossdockError as error:
        raise ValueError(error.message) from None
    return value


MarkerTemplate = Annotated[str, AfterValidator(_checked_template)]
"""Such as ``{name}.done``; ``{stem}`` is the name without its last extension."""


class DoneMarkers(Struct, frozen=True):
    """The markers of the files in one folder."""

    template: str
    beside: str

    @property
    def folder(self) -> str:
        return self.template.rpartition("/")[0] if "/" in self.template else self.beside

    def marker_name(self, file: str) -> str:
        name = self.template.rpartition("/")[2]
        return name.replace("{name}", file).replace("{stem}", PurePosixPath(file).stem)

    def is_marker(self, name: str) -> bool:
        return matches_pattern(name, self._pattern)

    def can_file_be_own_marker(self, pattern: str) -> bool:
        """Return whether a file that matches *pattern* is its own marker, or every file is a marker."""
        file = re.sub(r"[*?]|\[[^]]*\]", "x", pattern)
        return self.folder == self.beside and (self.marker_name(file) == file or self._pattern == "?*")

    def list_markers(self, store: FileStore) -> dict[str, RemoteFile]:
        return {file.name: file for file in store.list(self.folder, self._pattern)}

    @property
    def _pattern(self) -> str:
        before, _, after = re.split(r"\{(name|stem)\}", self.template.rpartition("/")[2])
        return f"{escape(before)}?*{escape(after)}"
