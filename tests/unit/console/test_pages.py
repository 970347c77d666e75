"""What all pages have in common: texts are shown as text, and a file is replaced as a whole, if it is a regular one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossdock.console import page_rendering
from crossdock.errors import ConfigError


def test_a_text_is_printable_and_not_too_long() -> None:
    """Invisible characters are shown as escapes, and what is cut off is marked."""
    assert "<code>a\\x1b&lt;b&gt;</code>" in page_rendering.render("seal.html", digest="a\x1b<b>")
    assert f"<code>{'x' * page_rendering.MAX_TEXT}…</code>" in page_rendering.render("seal.html", digest="x" * 501)
    assert f"<code>{'x' * page_rendering.MAX_TEXT}</code>" in page_rendering.render("seal.html", digest="x" * 500)


def test_a_page_that_is_not_written_needs_no_templates() -> None:
    """Commands that can write a page are as quick as others while they write none."""
    code = "import sys\nimport crossdock.console.page_rendering\nsys.exit('jinja2' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_report_replaces_an_older_one_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file cannot be replaced, the older one is unchanged and no temporary file is left."""
    path = tmp_path / "report.html"
    page_rendering.write_page_file(path, "first")
    page_rendering.write_page_file(path, "second é")
    assert path.read_text(encoding="utf-8") == "second é"

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ConfigError, match=r"report.html: the report cannot be written: No space left on device"):
        page_rendering.write_page_file(path, "third")
    assert path.read_text(encoding="utf-8") == "second é"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A report is not written through a link: neither the link nor its target changes."""
    (tmp_path / "7.html").write_text("theirs")
    (tmp_path / "latest.html").symlink_to("7.html")
    with pytest.raises(ConfigError, match="the report cannot be written: it is a link"):
        page_rendering.write_page_file(tmp_path / "latest.html", "page")
    assert (tmp_path / "latest.html").is_symlink()
    assert (tmp_path / "7.html").read_text() == "theirs"


def test_only_a_file_is_written(tmp_path: Path) -> None:
    """A folder, a pipe, a missing folder and a name that is too long are refused and unchanged."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for name in (".", "pipe", "nowhere/report.html", "file/report.html", "x" * 300):
        with pytest.raises(ConfigError, match="the report cannot be written: "):
            page_rendering.write_page_file(tmp_path / name, "page")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]
    assert (tmp_path / "pipe").is_fifo()
