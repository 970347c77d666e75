"""Names, patterns and the judgement whether a file is whole."""

from __future__ import annotations

import pytest

from crossdock.errors import ConfigError
from crossdock.reading.transport.file_store import (
    WHILE_READ,
    RemoteFile,
    any_case,
    is_safe_name,
    matches_pattern,
    reason_if_file_changed_since_listed,
    split_pattern,
)


@pytest.mark.parametrize(
    ("files", "folder", "pattern"),
    [
        ("out/INV_*.txt", "out", "INV_*.txt"),
        ("*.csv", "", "*.csv"),
        ("/out/a/b?.csv", "/out/a", "b?.csv"),
        ("/b[12].csv", "/", "b[12].csv"),
    ],
)
def test_a_pattern_is_split_at_its_last_slash(files: str, folder: str, pattern: str) -> None:
    """What stands before the last slash is the folder, none is the login folder."""
    assert split_pattern(files) == (folder, pattern)


@pytest.mark.parametrize("files", ["", "out/", "/", "o*t/a.txt", "o[u]t/a", "a\0b", "out/a\n"])
def test_what_can_match_nothing_is_a_config_error(files: str) -> None:
    """Patterns without a name, with wildcards in the folder or with control characters are refused."""
    with pytest.raises(ConfigError):
        split_pattern(files)


@pytest.mark.parametrize(
    ("files", "folder", "pattern"),
    [
        ("out/*/INV_*.txt", "out", "*/INV_*.txt"),
        ("20??/*/a.csv", "", "20??/*/a.csv"),
        ("/*/in/a.csv", "/", "*/in/a.csv"),
        ("out/INV_*.txt", "out", "INV_*.txt"),
    ],
)
def test_folders_with_wildcards_belong_to_the_pattern(files: str, folder: str, pattern: str) -> None:
    """From the first of them on; an empty one among them is refused."""
    assert split_pattern(files, folders=True) == (folder, pattern)
    with pytest.raises(ConfigError, match="a folder without a name"):
        split_pattern("out/*//a.csv", folders=True)


@pytest.mark.parametrize("pattern", ["Stock_*.csv", "[s]tock_?[!a-f].c[s-v]v", "[]s]tock_*.CSV", "straße*", "*"])
def test_a_pattern_of_any_case_matches_both(pattern: str) -> None:
    """And nothing that the pattern matches in neither case."""
    assert matches_pattern("stock_1x.csv", any_case(pattern)) == matches_pattern("STOCK_1X.CSV", any_case(pattern))
    assert matches_pattern("stock_1x.csv", any_case(pattern)) == (pattern != "straße*")
    assert not matches_pattern("STOCK_1A.CSV", any_case("stock_1[!a].csv"))


@pytest.mark.parametrize("name", ["a.txt", "Bestände 2026 (1).txt", "名前", "a..b", "~", "-rf", "CON"])
def test_ordinary_names_are_safe(name: str) -> None:
    """Blanks, other scripts and odd but harmless names are taken."""
    assert is_safe_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "a\0", "a\n", "\x1b[0m", "a\x7f", "a\u0085", "\udcfc", "a\u2029"]
)
def test_harmful_names_are_not_safe(name: str) -> None:
    """What leads elsewhere, or cannot be shown or stored as text, is not taken."""
    assert not is_safe_name(name)


@pytest.mark.parametrize(
    ("size", "mtime", "read", "expected"),
    [
        (10, 1, 10, None),
        (10, 1, 9, "ended after 9 of 10 bytes"),
        (10, 1, 11, "grew past its 10 bytes while it was read"),
        (12, 1, 10, "grew from 10 to 12 bytes while it was read"),
        (3, 1, 3, "shrank from 10 to 3 bytes while it was read"),
        (10, 2, 10, "was written or replaced while it was read"),
    ],
)
def test_a_file_is_whole_when_everything_agrees(size: int, mtime: int, read: int, expected: str | None) -> None:
    """Size before, bytes read, size after and the time of the last change must agree."""
    assert (
        reason_if_file_changed_since_listed(RemoteFile("a", 10, 1), RemoteFile("a", size, mtime), WHILE_READ, read=read)
        == expected
    )
