"""Files that may be gzip without being declared so, read as a stream with limits on the unpacked size.

What else files are wrapped in is declared, and is unwrapped before they are read (`reading.wrappers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.reading.wrappers.packed_streams import GZIP, GzipSettings, UnpackedStream
from crossdock.reading.wrappers.unpacking_limits import UnpackingMeter
from crossdock.reading.wrappers.wrapper import Openable, Readable

_LIMITS = GzipSettings(kind="gzip")


@contextmanager
def open_stream(path: Openable, *, name: str, limits: GzipSettings = _LIMITS) -> Iterator[Readable]:
    """Open *path*, and unpack it if it begins with the magic number of gzip. Consecutive gzip members are one file.

    A file that was cut exactly between two members looks whole. The time is not limited, as it is also the reader's.
    """
    with path.open("rb") as file:
        is_gzip = GZIP.magic(file.read(2))
        file.seek(0)
        if not is_gzip:
            yield file
            return
        meter = UnpackingMeter(limits, name=name, what="bytes of gzip")
        yield UnpackedStream(file, GZIP, meter, name=name, max_members=limits.max_members)
