"""A reader of delimited text for tests: one character at a time, from RFC 4180, knowing nothing of the engine's."""

from __future__ import annotations


class OracleRefusalError(Exception):
    """The text is not what it should be."""


def parse(
    data: bytes, *, delimiter: str = ",", quote: str | None = '"', encoding: str = "utf-8"
) -> list[tuple[int, list[str]]]:
    """All records, the header too, each with its first line."""
    try:
        text = data.decode(encoding).removesuffix("\x1a")
    except UnicodeDecodeError as error:
        raise OracleRefusalError("encoding") from error
    if encoding != "utf-16":  # that codec takes the mark away
        text = text.removeprefix("\ufeff")
    records: list[tuple[int, list[str]]] = []
    cells: list[str] = []
    cell, state, line, first_line, ends, at = "", "start", 1, 1, set(), 0
    while at < len(text):
        step = 1
        here = text[at]
        if text.startswith("\r\n", at):
            here, step = "\r\n", 2
        elif here not in {"\n", "\t", delimiter} and (ord(here) < 32 or 127 <= ord(here) < 160 or here == "\ufeff"):
            raise OracleRefusalError("character")
        if state == "quoted":
            if here != quote:
                cell += here
            elif text.startswith(quote, at + 1):
                cell, step = cell + quote, 2
            else:
                state = "closed"
        elif here in {"\n", "\r\n"}:
            ends.add(here)
            if state == "start" and not cells:
                raise OracleRefusalError("blank")
            records.append((first_line, [*cells, cell]))
            cells, cell, state, first_line = [], "", "start", line + 1
        elif text.startswith(delimiter, at):
            cells.append(cell)
            cell, state, step = "", "start", len(delimiter)
        elif here == quote:
            if state != "start":
                raise OracleRefusalError("quote")
            state = "quoted"
        elif state == "closed":
            raise OracleRefusalError("after quote")
        else:
            cell, state = cell + here, "plain"
        line += here.endswith("\n")
        at += step
    if state == "quoted" or len(ends) > 1:
        raise OracleRefusalError("unclosed or mixed")
    if cells or state != "start":
        records.append((first_line, [*cells, cell]))
    return records


def table(
    data: bytes, *, delimiter: str = ",", quote: str | None = '"', encoding: str = "utf-8"
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Header and rows with their lines, as a frame would show them."""
    records = parse(data, delimiter=delimiter, quote=quote, encoding=encoding)
    if not records:
        raise OracleRefusalError("empty")
    _, header = records[0]
    reserved = {"_line", "_json", "_element"}
    odd = any(not name.strip() or name in reserved or name[0] == "\x1d" for name in header)
    if odd or len(set(header)) < len(header):
        raise OracleRefusalError("header")
    for _, cells in records[1:]:
        if len(cells) != len(header) or cells == header:
            raise OracleRefusalError("width, or header again")
    return header, [(*cells, line) for line, cells in records[1:]]
