"""A request with its answer, in the form of a file of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from crossdock.errors import ConfigError
from crossdock.testing import readable_json
from crossdock.testing.readable_json import NumberText

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request with its answer.

    Attributes:
        url: The URL without the query.
        params: The parameters of the query, in their order.
        body: The body of the request; see `body_as_file_members`.
        headers: The headers of the answer.
        answer: The body of the answer; see `body_as_file_members`.
        file: The name of its file; empty before it is written.
    """

    method: str
    url: str
    params: Pairs
    body: Mapping[str, Any]
    status: int
    headers: Pairs
    answer: Mapping[str, Any]
    file: str = field(default="", compare=False)

    @property
    def url_path(self) -> str:
        return urlsplit(self.url).path

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def file_text(self) -> str:
        """Return the content of its file."""
        request = {"method": self.method, "url": self.url, "params": [*map(list, self.params)], **self.body}
        answer = {"status": NumberText(self.status), "headers": [*map(list, self.headers)], **self.answer}
        return readable_json.dumps_indented({"request": request, "answer": answer}) + "\n"

    @classmethod
    def read(cls, path: Path) -> RecordedExchange:
        """Read the exchange in a file.

        Raises:
            ConfigError: If the file cannot be read, or has another content.
        """
        try:
            document = readable_json.loads_keeping_number_texts(path.read_text(encoding="utf-8"))
            request, answer = dict(document["request"]), dict(document["answer"])
            method, url, params = request.pop("method"), request.pop("url"), _pairs(request.pop("params"))
            status, headers = int(answer.pop("status")), _pairs(answer.pop("headers"))
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), code="file_unreadable") from error
        except (KeyError, TypeError, ValueError):
            hint = "record it again with: crossdock try CONNECTION.STREAM --record FOLDER"
            raise ConfigError(
                "is not a file of a recording", where=str(path), hint=hint, code="recording_unusable"
            ) from None
        return cls(method, url, params, request, status, headers, answer, path.name)


def _pairs(items: list[list[str]]) -> Pairs:
    return [(name, value) for name, value in items]


def body_as_file_members(content: bytes, content_type: str) -> dict[str, Any]:
    """Return the body of a request or answer as members of a file.

    ``json`` is a JSON value, ``lines`` are those of JSON Lines, and ``form`` are the fields of a form. ``left_out``
    describes another body, in which personal data could not be found. An empty body has no member.
    """
    if not content:
        return {}
    try:
        text = content.decode()
        if "x-www-form-urlencoded" in content_type:
            return {"form": [[name, value] for name, value in parse_qsl(text, keep_blank_values=True)]}
        return _json_or_lines(text)
    except ValueError as error:
        described = str(error) if "json" in content_type and not isinstance(error, UnicodeDecodeError) else "not JSON"
        kind = content_type.partition(";")[0].strip() or "unknown type"
        return {"left_out": f"{len(content):,} bytes of {kind}: {described}"}


def _json_or_lines(text: str) -> dict[str, Any]:
    try:
        return {"json": readable_json.loads_keeping_number_texts(text)}
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].startswith(("{", "[")):
            raise
        return {"lines": [readable_json.loads_keeping_number_texts(line) for line in lines]}


def body_text_from_recording(body: Mapping[str, Any]) -> str:
    if "lines" in body:
        return "".join(f"{readable_json.dumps_on_one_line(line)}\n" for line in body["lines"])
    return readable_json.dumps_on_one_line(body["json"]) if "json" in body else ""
