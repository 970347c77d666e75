"""Parquet files with another footer: Thrift's compact protocol, read and written as pairs of a type and a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STRUCT, LIST, BYTES, INTEGERS, TRUTH = 12, 9, 8, {4, 5, 6}, {1, 2}


def with_footer(data: bytes, change: Callable[[dict[int, Any]], object]) -> bytes:
    """*data* with a footer that *change* has changed: fields by number, each a type and a value."""
    length = int.from_bytes(data[-8:-4], "little")
    (_, footer), _ = _read(data[-8 - length : -8], 0, STRUCT)
    change(footer)
    written = _written(STRUCT, footer)
    return data[: -8 - length] + written + len(written).to_bytes(4, "little") + data[-4:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _number(data, at)
    return value >> 1 ^ -(value & 1), at


def _read(data: bytes, at: int, kind: int) -> tuple[tuple[int, Any], int]:
    value: Any
    if kind == STRUCT:
        value, number = {}, 0
        while head := data[at]:
            number, at = (number + (head >> 4), at + 1) if head >> 4 else _signed(data, at + 1)
            value[number], at = ((head & 15, None), at) if head & 15 in TRUTH else _read(data, at, head & 15)
        return (kind, value), at + 1
    if kind == LIST:
        inner, (size, at) = data[at] & 15, (data[at] >> 4, at + 1) if data[at] >> 4 < 15 else _number(data, at + 1)
        value = []
        for _ in range(size):
            (_, each), at = ((inner, data[at]), at + 1) if inner in TRUTH else _read(data, at, inner)
            value.append(each)
        return (kind, (inner, value)), at
    if kind == BYTES:
        size, at = _number(data, at)
        return (kind, data[at : at + size]), at + size
    if kind in INTEGERS:
        value, at = _signed(data, at)
        return (kind, value), at
    assert kind == 3, kind
    return (kind, data[at]), at + 1


def _varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + _varint(value >> 7) if value > 127 else bytes([value])


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 ^ value >> 63)


def _written(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        fields, before = b"", 0
        for number, (inner, each) in sorted(value.items()):
            fields += (
                bytes([inner]) + _zigzag(number) if number - before > 15 else bytes([number - before << 4 | inner])
            )
            fields += b"" if inner in TRUTH else _written(inner, each)
            before = number
        return fields + b"\0"
    if kind == LIST:
        inner, values = value
        head = bytes([0xF0 | inner]) + _varint(len(values))
        return head + b"".join(bytes([each]) if inner in TRUTH else _written(inner, each) for each in values)
    if kind == BYTES:
        text: bytes = value
        return _varint(len(text)) + text
    return _zigzag(value) if kind in INTEGERS else bytes([value])
