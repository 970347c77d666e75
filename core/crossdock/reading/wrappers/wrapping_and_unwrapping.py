"""The wrappers of files: each is one module and one entry here. `unwrap_file` and `wrap_file` are all that others
call.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from crossdock.errors import RefusedError
from crossdock.reading.wrappers.pgp_messages import PgpWrapper
from crossdock.reading.wrappers.stream_compression import STREAM_WRAPPERS
from crossdock.reading.wrappers.wrapper import (
    InMemoryFile,
    NamedFile,
    Openable,
    UnreadArchiveMembers,
    WorkFolder,
    Wrapper,
    WrapperSettings,
    read_blocks,
)
from crossdock.reading.wrappers.zip_archives import ZipWrapper

MAX_DEPTH = 2
_HEAD = 64
WRAPPERS: Mapping[str, Wrapper[Any]] = {**STREAM_WRAPPERS, "zip": ZipWrapper(), "pgp": PgpWrapper()}


def _kind_of_layer(value: Any) -> Any:
    return value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)


def _expand_kind_shorthand(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


if TYPE_CHECKING:
    Layer = WrapperSettings
else:
    _Settings = Annotated[
        Union[tuple(Annotated[wrapper.settings, Tag(kind)] for kind, wrapper in WRAPPERS.items())],  # noqa: UP007  it is made
        Discriminator(_kind_of_layer),
    ]
    Layer = Annotated[
        _Settings, BeforeValidator(_expand_kind_shorthand, json_schema_input_type=Literal[tuple(WRAPPERS)] | _Settings)
    ]
"""The settings of one wrapper; its kind alone stands for the defaults."""


def _validate_layers_for_reading(layers: tuple[WrapperSettings, ...]) -> tuple[WrapperSettings, ...]:
    for layer in layers:
        layer.raise_unless_usable_for_reading()
    return layers


def _validate_layers_for_writing(layers: tuple[WrapperSettings, ...]) -> tuple[WrapperSettings, ...]:
    for layer in layers:
        layer.raise_unless_usable_for_writing()
    return layers


_Layers = Annotated[tuple[Layer, ...], Field(min_length=1, max_length=MAX_DEPTH)]
Wrapped = Annotated[_Layers, AfterValidator(_validate_layers_for_reading)]
"""What files that are read are wrapped in, the outermost first."""
WrappedIn = Annotated[_Layers, AfterValidator(_validate_layers_for_writing)]
"""What files that are written are wrapped in, the outermost first."""


def unwrap_file(
    content: Openable,
    layers: Sequence[WrapperSettings],
    *,
    name: str,
    folder: Path,
    clock: Callable[[], float] = time.monotonic,
    passed_over: UnreadArchiveMembers | None = None,
) -> Sequence[NamedFile]:
    """Take a file out of *layers*, the outermost first, into new private files below *folder*.

    Args:
        name: The file's name in errors and in the names of what is in it.
        clock: Seconds, for the limits of time.
        passed_over: Receives the members of archives that are not taken out.

    Returns:
        The files in it, in the order of their names; more than one only out of an archive.

    Raises:
        RefusedError: If the file is not wrapped so, is wrapped once more, is damaged, not signed by who is declared, or
            exceeds a limit. Nothing of it is then left in *folder*.
        ConfigError: If a key is missing or wrong, or a program or library that is needed is not there.
    """
    own = Path(tempfile.mkdtemp(prefix="unwrapped-", dir=folder))
    delivered, work_folder = NamedFile(name, content), WorkFolder(own, clock, passed_over or UnreadArchiveMembers())
    parts = [delivered]
    try:
        for layer in layers:
            outer, parts = parts, []
            for part in outer:
                parts += _unwrap_one_layer(part, layer, work_folder)
                if part is not delivered:
                    assert isinstance(part.content, Path)
                    part.content.unlink()
        for part in parts:
            _raise_if_undeclared_inner_gzip(part, layers)
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)  # the error above counts; the run removes its folder
        raise
    return parts


def wrap_file(content: bytes | Path, layers: Sequence[WrapperSettings], *, name: str, folder: Path) -> Path:
    """Put a file into *layers*, the outermost first: the first is put around it last.

    Args:
        content: The bytes of the file, or the path of one, which stays as it is.
        name: The name of the file, without a folder, which a zip archive keeps.

    Returns:
        A private file in *folder*, named *name* with the endings of its layers, such as ``stock.csv.gz.pgp``. It
        replaces one of that name.

    Raises:
        ConfigError: If a key is missing or wrong, or a program or library that is needed is not there.
    """
    opened, work_folder = InMemoryFile(content) if isinstance(content, bytes) else content, WorkFolder(folder)
    with opened.open("rb") as file:
        path = work_folder.write_file(read_blocks(file))
    for layer in reversed(layers):
        wrapper, inner = WRAPPERS[_kind_of_layer(layer)], path
        try:
            path = wrapper.wrap(NamedFile(name, inner), layer, work_folder)
        finally:
            inner.unlink()
        name += wrapper.file_name_ending
    return path.rename(folder / name)


def wrapped_name_ending(layers: Sequence[WrapperSettings]) -> str:
    """Return what the name of a file ends with once it is wrapped in *layers*."""
    return "".join(WRAPPERS[_kind_of_layer(layer)].file_name_ending for layer in reversed(layers))


def _unwrap_one_layer(part: NamedFile, layer: WrapperSettings, work_folder: WorkFolder) -> Iterator[NamedFile]:
    wrapper, head = WRAPPERS[_kind_of_layer(layer)], _read_first_bytes(part)
    if not wrapper.recognizes_head(head):
        found = next((other.wrapping_description for other in WRAPPERS.values() if other.recognizes_head(head)), None)
        is_what = "is empty" if not head else f"is {found}" if found else "does not begin so"
        hint = "Correct wrapped in the config, or ask the sender; the file may also be damaged."
        raise RefusedError(
            f"the file must be {wrapper.wrapping_description}, and {is_what}",
            where=part.name,
            hint=hint,
            code="format_wrong",
        )
    yield from wrapper.unwrap(part, layer, work_folder)


def _raise_if_undeclared_inner_gzip(part: NamedFile, layers: Sequence[WrapperSettings]) -> None:
    """Refuse gzip once more, which would be unpacked unasked. What else it may be is for the format to say."""
    if WRAPPERS["gzip"].recognizes_head(_read_first_bytes(part)):
        declared = ", ".join(str(_kind_of_layer(layer)) for layer in layers)
        hint = f"Declare wrapped: [{declared}, gzip], or ask the sender."
        raise RefusedError("the file in it is packed with gzip", where=part.name, hint=hint, code="format_wrong")


def _read_first_bytes(part: NamedFile) -> bytes:
    with part.content.open("rb") as file:
        return file.read(_HEAD)
