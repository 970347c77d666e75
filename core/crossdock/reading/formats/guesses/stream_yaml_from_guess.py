"""Writes a guess as YAML: a stream to edit, in which each line says what it rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossdock.printable import printable
from crossdock.reading.formats.guesses.file_guess import FileGuess
from crossdock.reading.formats.guesses.format_guess_and_file_sample import Setting

_PLAIN = re.compile(r"[A-Za-z_/][\w./\-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_SHORT = 60
_FORMAT = "        "


def yaml_of(guess: FileGuess) -> str:
    """Return connections with one stream, which is a valid part of a config."""
    return "\n".join(map(printable, [*_head_comments(guess), *_stream_lines(guess)])) + "\n"


def _head_comments(guess: FileGuess) -> Iterator[str]:
    yield f"# Guessed from {guess.seen} of {guess.name}: compare it with what the sender says."
    for remark in [*guess.guess.remarks, *guess.remarks]:
        yield f"# {remark}"


def _stream_lines(guess: FileGuess) -> Iterator[str]:
    yield "connections:"
    yield "  source:"
    yield "    kind: folder_warehouse   # or sftp_warehouse, with host, user and host_key"
    yield f"    path: {_scalar(guess.folder)}"
    yield "    streams:"
    yield "      records:"
    yield f"        files: {_scalar(guess.files)}"
    yield "        format:"
    for setting in guess.guess.settings:
        yield from _setting_lines(setting)
    yield "        mode: append   # or snapshot, if each file lists everything; incremental, if it has changes"
    yield from _with_comment(f"{_FORMAT}key: [{_scalar(guess.key)}]", guess.key_basis)
    yield "        resource: product   # or another one: crossdock schema lists them with their members"
    yield "        map:   # each member of the resource from a column; how the columns are written:"
    for name, form in guess.columns.items():
        keys = {"from": name, **form.keys}
        shown = _flow_style(keys) if form.keys else _scalar(name)
        unsure = f"; unsure: {form.unsure}" if form.unsure else ""
        yield f"          # {shown}   # {form.basis}{unsure}"
    yield f"          sku: {_scalar(guess.key)}"
    yield f"          name: {_scalar(guess.key)}"


def _setting_lines(setting: Setting) -> Iterator[str]:
    value = setting.value
    if isinstance(value, Mapping) and len(_flow_style(value)) > _SHORT:
        yield from _with_comment(f"          {setting.key}:", setting.basis)
        for name, member in value.items():
            yield from _with_comment(
                f"            {_scalar(name)}: {_flow_style(member)}", setting.members.get(name, "")
            )
    else:
        yield from _with_comment(f"          {setting.key}: {_flow_style(value)}", setting.basis)
    for note in setting.notes:
        yield f"          # {note}"


def _with_comment(line: str, comment: str) -> Iterator[str]:
    yield f"{line}   # {comment}" if comment else line


def _flow_style(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(name)}: {_flow_style(each)}" for name, each in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow_style, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
