"""Replay of a recording: a transport that answers the recorded requests."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from crossdock.errors import ConfigError, CrossdockError
from crossdock.printable import MASK
from crossdock.testing.readable_json import NumberText
from crossdock.testing.recorded_exchange import Pairs, RecordedExchange, body_as_file_members, body_text_from_recording
from crossdock.testing.sensitive_data import Kind, PersonalMembers, is_secret_parameter

_SHOWN = 60  # characters of a value


class NotRecordedError(CrossdockError):
    """A request is not in the recording."""

    exit_code = 3
    code = "recording_differs"


def replay(folder: Path | str, *, ignore: Collection[str] = ()) -> ReplayTransport:
    """Return a transport that answers from the recording in *folder*, for `crossdock.testing.context` or an
    `httpx.Client`.

    A request is answered if its method, path, parameters and body were recorded; the host and headers do not matter,
    and neither do the values of secrets. Equal requests get their answers in the recorded order, each one once.

    Args:
        ignore: Parameters that may differ or be missing, such as one with the time of day.

    Raises:
        ConfigError: If *folder* has no recording.
    """
    return ReplayTransport(Path(folder), ignore)


class ReplayTransport(httpx.BaseTransport):
    """The transport of `replay`. Any other request raises `NotRecordedError`, which names the nearest recorded one."""

    def __init__(self, folder: Path, ignore: Collection[str] = ()) -> None:
        self._folder, self._ignore, self._lock = folder, frozenset(ignore), threading.Lock()
        self._exchanges = [RecordedExchange.read(path) for path in sorted(folder.glob("*.json"))]
        self._used = set[str]()
        if not self._exchanges:
            hint = "record one with: crossdock try CONNECTION.STREAM --record FOLDER"
            raise ConfigError("has no recording", where=str(folder), hint=hint, code="recording_unusable")

    @property
    def unused(self) -> list[str]:
        """The names of the files whose requests were not sent."""
        return [exchange.file for exchange in self._exchanges if exchange.file not in self._used]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        found = self._take_next_exchange(request)
        if "left_out" in found.answer and found.status < 400:
            message = f"the answer in {found.file} was left out of the recording: {found.answer['left_out']}"
            raise NotRecordedError(message, where=str(self._folder))
        origin = f"{request.url.scheme}://{request.url.netloc.decode()}"
        return httpx.Response(
            found.status,
            headers=[(name, value.replace(found.origin, origin)) for name, value in found.headers],
            content=body_text_from_recording(found.answer).replace(found.origin, origin).encode(),
        )

    def _take_next_exchange(self, request: httpx.Request) -> RecordedExchange:
        asked = {each.file: list(self._differences(each, request)) for each in self._exchanges}
        matching = [each for each in self._exchanges if not asked[each.file]]
        with self._lock:
            for each in matching:
                if each.file not in self._used:
                    self._used.add(each.file)
                    return each
        shown = f"{request.method} {request.url.path}"
        if matching:
            times = "once" if len(matching) == 1 else f"{len(matching)} times"
            message = f"{shown} was recorded {times}, in {matching[-1].file}, and was sent again"
            raise NotRecordedError(message, where=str(self._folder))
        nearest = min(self._exchanges, key=lambda each: (_path_distance(each, request), len(asked[each.file])))
        message = f"{shown} is not recorded as it was sent"
        hint = f"the nearest request is that in {nearest.file}: {'; '.join(asked[nearest.file])}"
        raise NotRecordedError(message, where=str(self._folder), hint=hint)

    def _differences(self, recorded: RecordedExchange, request: httpx.Request) -> Iterator[str]:
        """Yield the differences between *request* and a recorded one."""
        if recorded.method != request.method:
            yield f"its method is {recorded.method}"
        if not _matches_masked_text(unquote(recorded.url_path), request.url.path):
            yield f"its path is {recorded.url_path}"
        yield from self._parameter_differences(recorded.params, request.url.params.multi_items())
        sent = body_as_file_members(request.read(), request.headers.get("content-type", ""))
        if "left_out" not in recorded.body:
            yield from _first_body_difference(recorded.body, sent)

    def _parameter_differences(self, recorded: Pairs, sent: Pairs) -> Iterator[str]:
        for name in dict.fromkeys(name for name, _ in [*recorded, *sent] if name not in self._ignore):
            before, after = ([value for each, value in pairs if each == name] for pairs in (recorded, sent))
            if not after:
                yield f"it has the parameter {name}"
            elif not before:
                yield f"it has no parameter {name}"
            elif len(before) != len(after) or not all(map(_matches_masked_text, before, after)):
                yield f"its parameter {name} {_shown_parameter_difference(name, before, after)}"


def _path_distance(recorded: RecordedExchange, request: httpx.Request) -> int:
    """Return 0 for the same path, more for another one."""
    if _matches_masked_text(unquote(recorded.url_path), request.url.path):
        return 0
    first, second = recorded.url_path.split("/"), request.url.path.split("/")
    return 1 + len(set(first) ^ set(second))


def _matches_masked_text(recorded: str, sent: str) -> bool:
    """Return whether *sent* matches *recorded*, in which each mask stands for any text."""
    first, *others = recorded.split(MASK)
    if not others:
        return recorded == sent
    if not sent.startswith(first) or not sent.endswith(others[-1]) or len(sent) < len(first) + len(others[-1]):
        return False
    at, end = len(first), len(sent) - len(others[-1])
    for part in others[:-1]:
        found = sent.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _shown_parameter_difference(name: str, recorded: list[str], sent: list[str]) -> str:
    if is_secret_parameter(name) or PersonalMembers().treatment_of_member((name,)) is Kind.PERSONAL:
        return "differs"
    before, after = (", ".join(repr(value[:_SHOWN]) for value in values) for values in (recorded, sent))
    return f"is {before}, and not {after}"


def _first_body_difference(recorded: Any, sent: Any, pointer: str = "") -> Iterator[str]:
    """Yield the first place where two bodies differ."""
    if isinstance(recorded, dict) and isinstance(sent, dict):
        for name in dict.fromkeys([*recorded, *sent]):
            if name not in recorded or name not in sent:
                has = "no" if name not in recorded else "a"
                yield f"its body has {has} member {pointer}/{name}"
                return
            for difference in _first_body_difference(recorded[name], sent[name], f"{pointer}/{name}"):
                yield difference
                return
    elif isinstance(recorded, list) and isinstance(sent, list) and len(recorded) == len(sent):
        for index, (before, after) in enumerate(zip(recorded, sent, strict=True)):
            for difference in _first_body_difference(before, after, f"{pointer}/{index}"):
                yield difference
                return
    elif not _is_same_body_value(recorded, sent):
        yield f"its body differs at {pointer}"


def _is_same_body_value(recorded: Any, sent: Any) -> bool:
    if isinstance(recorded, NumberText) and isinstance(sent, NumberText):
        return Decimal(recorded) == Decimal(sent)
    if isinstance(recorded, str) and isinstance(sent, str) and type(recorded) is type(sent):
        return _matches_masked_text(recorded, sent)
    return type(recorded) is type(sent) and bool(recorded == sent)
