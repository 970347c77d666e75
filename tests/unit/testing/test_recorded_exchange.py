"""A file of a recording: what is in it, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.errors import ConfigError
from crossdock.testing.readable_json import NumberText
from crossdock.testing.recorded_exchange import RecordedExchange, body_as_file_members, body_text_from_recording


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Its name identifies the exchange."""
    answer = {"json": {"price": NumberText("1.50"), "name": "Größe"}}
    made = RecordedExchange("GET", "https://a.example/x", [("a", "1"), ("a", "")], {}, 200, [("etag", '"x"')], answer)
    (tmp_path / "0001.json").write_text(made.file_text(), encoding="utf-8")
    read = RecordedExchange.read(tmp_path / "0001.json")
    assert read == made
    assert (read.file, read.url_path, read.origin) == ("0001.json", "/x", "https://a.example")
    assert '"price": 1.50' in made.file_text()


@pytest.mark.parametrize(
    ("content", "kind", "body"),
    [
        (b"", "application/json", {}),
        (b'{"a": 1.0}', "", {"json": {"a": NumberText("1.0")}}),
        (b"a=1&a=&b=%20", "application/x-www-form-urlencoded", {"form": [["a", "1"], ["a", ""], ["b", " "]]}),
        (b'{"a": 1}\n{"a": 2}\n', "application/jsonl", {"lines": [{"a": NumberText("1")}, {"a": NumberText("2")}]}),
        (b"<html>", "text/html; charset=utf-8", {"left_out": "6 bytes of text/html: not JSON"}),
        (b"\xff\xfe", "", {"left_out": "2 bytes of unknown type: not JSON"}),
        (b'{"a":1,"a":2}', "a/json", {"left_out": "13 bytes of a/json: an object repeats a member name"}),
    ],
)  # fmt: skip
def test_bodies(content: bytes, kind: str, body: object) -> None:
    """JSON, JSON Lines and forms are members of the file; of other bodies, size and type are."""
    assert body_as_file_members(content, kind) == body


def test_content() -> None:
    """Bodies of answers as they are sent; one that was left out is empty."""
    assert body_text_from_recording({"json": {"a": NumberText("1.0")}}) == '{"a": 1.0}'
    assert body_text_from_recording({"lines": [NumberText("1"), None]}) == "1\nnull\n"
    assert body_text_from_recording({}) == body_text_from_recording({"left_out": "x"}) == ""


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"request": {}, "answer": {}}', '{"request": 1, "answer": 2}', "\udc80"]
)
def test_another_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    """With the command that records."""
    path = tmp_path / "0001.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match="is not a file of a recording"):
        RecordedExchange.read(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        RecordedExchange.read(tmp_path / "missing.json")
