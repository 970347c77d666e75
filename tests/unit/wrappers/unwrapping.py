"""Files taken out of their wrappers, as a function and as a program that tells what it found."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from crossdock.errors import CrossdockError, RefusedError
from crossdock.reading.wrappers.wrapper import WrapperSettings
from crossdock.reading.wrappers.wrapping_and_unwrapping import Wrapped, WrappedIn, unwrap_file

_READ, _WRITTEN = TypeAdapter[Any](Wrapped), TypeAdapter[Any](WrappedIn)


def reading(*layers: Any) -> tuple[WrapperSettings, ...]:
    found: tuple[WrapperSettings, ...] = _READ.validate_python(layers, context={"folder": Path()})
    return found


def writing(*layers: Any) -> tuple[WrapperSettings, ...]:
    found: tuple[WrapperSettings, ...] = _WRITTEN.validate_python(layers, context={"folder": Path()})
    return found


def contents(data: bytes, *layers: Any, name: str = "out/F", **options: Any) -> dict[str, bytes]:
    """What is in a file, by the names that its parts have."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file = folder / "spooled"
        file.write_bytes(data)
        try:
            parts = unwrap_file(file, reading(*layers), name=name, folder=folder, **options)
        except CrossdockError:
            assert [path.name for path in folder.iterdir()] == ["spooled"], "nothing is left of what was refused"
            raise
        found: dict[str, bytes] = {}
        for part in parts:
            with part.content.open("rb") as opened:
                found[part.name] = opened.read()
        return found


def refusal(data: bytes, *layers: Any, **options: Any) -> str:
    """Why a file is refused, with its place; the empty text if it is not."""
    try:
        contents(data, *layers, **options)
    except RefusedError as refused:
        return str(refused) if refused.hint else "no hint"
    return ""


def main() -> None:
    """Unwrap the files of the JSON in the first argument; print what each brings, and the most memory of gpg in MB."""
    for path, layers in json.loads(sys.argv[1]):
        with tempfile.TemporaryDirectory() as folder:
            try:
                parts = unwrap_file(Path(path), reading(*layers), name=Path(path).name, folder=Path(folder))
                told = str(sum(Path(str(part.content)).stat().st_size for part in parts))
            except RefusedError as refused:
                told = str(refused)
            print(f"{Path(path).name}: {told}")
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)


if __name__ == "__main__":
    main()
