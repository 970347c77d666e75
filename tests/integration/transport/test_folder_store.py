"""A folder as a file store: what others do to it meanwhile, where it ends, and what the system says of it."""

from __future__ import annotations

import errno
import io
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import (
    ConfigError,
    RefusedError,
    RemoteError,
    UnauthorizedError,
    UnavailableError,
)
from crossdock.reading.transport import folder_store
from crossdock.reading.transport.file_store import RemoteFile
from crossdock.reading.transport.folder_store import FolderStore

pytestmark = pytest.mark.usefixtures("nothing_left")
OLD = 1_700_000_000


class Meddling(io.BytesIO):
    """A sink at whose first byte *meddle* is done."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._meddle = [meddle]

    def write(self, data: object) -> int:
        while self._meddle:
            self._meddle.pop()()
        return super().write(data)  # type: ignore[arg-type]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one file of 300,000 bytes, and a secret beside it."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a.txt").write_bytes(b"secret")
    made = tmp_path / "exports"
    (made / "out").mkdir(parents=True)
    put(made / "out" / "a.txt", b"x" * 300_000)
    return made


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_store, "_BLOCK", 100_000)


def put(path: Path, content: bytes) -> Path:
    """Write a file that is old."""
    path.write_bytes(content)
    os.utime(path, (OLD, OLD))
    return path


def exported(root: Path) -> RemoteFile:
    """The file of `root`, as it is listed now."""
    (file,) = FolderStore(root).list("out", "a.txt")
    return file


def replace(path: Path, content: bytes) -> None:
    """Put another file in the place of *path*, which looks as old."""
    put(path.with_name("new"), content).replace(path)


def grow(path: Path, more: bytes) -> None:
    with path.open("ab") as file:
        file.write(more)


def write_within(path: Path, content: bytes, later_ns: int | None = None) -> None:
    """Write into the file that is there, now or so long after it was put there."""
    with path.open("r+b") as file:
        file.write(content)
    if later_ns is not None:
        os.utime(path, ns=(0, OLD * 10**9 + later_ns))


# ---- what others do


touched = pytest.mark.parametrize(
    ("meddle", "reason"),
    [
        pytest.param(lambda path: replace(path, b"y" * 300_000), "was written or replaced", id="replaced by its like"),
        pytest.param(lambda path: replace(path, b"y" * 400_000), "grew from 300000 to 400000", id="replaced"),
        pytest.param(lambda path: write_within(path, b"y" * 300_000), "was written or replaced", id="rewritten"),
        pytest.param(
            lambda path: write_within(path, b"y" * 300_000, later_ns=1), "was written", id="rewritten within a second"
        ),
        pytest.param(lambda path: grow(path, b"y"), "grew from 300000 to 300001", id="grew"),
        pytest.param(lambda path: os.truncate(path, 150_000), "shrank from 300000 to 150000", id="shrank"),
        pytest.param(lambda path: path.rename(path.with_name("done")), "was removed or renamed", id="renamed"),
        pytest.param(lambda path: path.parent.rename(path.parents[1] / "o"), "was removed or renamed", id="folder"),
        pytest.param(
            lambda path: (path.rename(path.with_name("b.txt")), path.symlink_to("b.txt")),
            "is not a regular file",
            id="now a link to itself",
        ),
    ],
)


@pytest.mark.usefixtures("small_blocks")
@touched
def test_a_file_that_others_touch_is_refused(root: Path, meddle: Callable[[Path], object], reason: str) -> None:
    """What happens after the first block is seen, even where name, size and time stay the same."""
    path = root / "out" / "a.txt"
    with pytest.raises(RefusedError, match=reason) as refused:
        FolderStore(root).fetch(exported(root), Meddling(lambda: meddle(path)))
    assert "'out/a.txt'" in refused.value.message
    assert refused.value.where == str(root)


@touched
def test_a_file_that_others_touch_while_it_is_read_in_place_is_refused(
    root: Path, meddle: Callable[[Path], object], reason: str
) -> None:
    """It is seen when the reading ends, and by every reading after that before its first byte."""
    store = FolderStore(root)
    (listed,) = store.list("out", "a.txt")
    lying = store.in_place(listed)
    with pytest.raises(RefusedError, match=reason), lying.open("rb") as file:
        assert file.read(10) == b"x" * 10
        meddle(root / "out" / "a.txt")
    with pytest.raises((RefusedError, RemoteError)), lying.open("rb") as file:
        raise AssertionError(file.read())


def test_whatever_goes_wrong_with_a_file_that_changes_is_that_it_changed(root: Path) -> None:
    """What was read of it says nothing; of a file that stays as it is, an error is told as it came."""
    store = FolderStore(root)
    (listed,) = store.list("out", "a.txt")
    with pytest.raises(ZeroDivisionError), store.in_place(listed).open("rb"):
        raise ZeroDivisionError
    with pytest.raises(RefusedError, match="grew from 300000 to 300001"), store.in_place(listed).open("rb"):
        grow(root / "out" / "a.txt", b"y")
        raise ZeroDivisionError


def test_a_file_is_read_in_place_as_often_as_one_likes(root: Path) -> None:
    """Each reading begins at its first byte, also while another one is under way and after the store is closed."""
    with FolderStore(root) as store:
        (listed,) = store.list("out", "a.txt")
        lying = store.in_place(listed)
    with lying.open("rb") as one, lying.open("rb") as other:
        assert one.read(200_000) + one.read() == other.read() == b"x" * 300_000
    with lying.open("rb") as again:
        again.seek(-1, os.SEEK_END)
        assert again.read() == b"x"


def test_a_share_that_goes_away_while_a_file_is_read_in_place_is_told(root: Path) -> None:
    """What the system says in the middle is an error that names the file, as where it is fetched."""
    store = FolderStore(root)
    (listed,) = store.list("out", "a.txt")
    with pytest.raises(UnavailableError, match="reading 'out/a.txt'"), store.in_place(listed).open("rb") as file:
        file.read(10)
        raise OSError(errno.ESTALE, "Stale file handle")


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_grows_as_fast_as_it_is_read_ends(root: Path) -> None:
    """Nobody reads after a writer for ever: one block past the announced size is enough."""
    path = root / "out" / "a.txt"
    read: list[int] = []

    def follow(length: int) -> None:
        read.append(length)
        if len(read) < 10:
            grow(path, b"y" * 100_000)

    with pytest.raises(RefusedError, match="grew from 300000"):
        FolderStore(root).fetch(exported(root), io.BytesIO(), follow)
    assert read == [100_000] * 4


_DEEDS = st.one_of(
    st.tuples(st.just("grow"), st.binary(min_size=1, max_size=20)),
    st.tuples(st.just("replace"), st.binary(max_size=60)),
    st.tuples(st.just("write"), st.binary(min_size=1, max_size=60)),
    st.tuples(st.just("truncate"), st.integers(0, 40)),
    st.tuples(st.just("away"), st.none()),
    st.tuples(st.just("back"), st.none()),
)


def _do(path: Path, deed: tuple[str, object]) -> None:
    kind, what = deed
    aside = path.with_name("aside")
    match what:
        case bytes() if kind == "replace":
            replace(path, what)
        case bytes() if kind == "grow" and path.exists():
            grow(path, what)
        case bytes() if kind == "write" and path.exists():
            write_within(path, what)
        case int() if path.exists():
            os.truncate(path, what)
        case None if kind == "away" and path.exists():
            path.rename(aside)
        case None if kind == "back" and aside.exists():
            aside.rename(path)


@given(content=st.binary(max_size=40), deeds=st.dictionaries(st.integers(0, 4), st.lists(_DEEDS, max_size=3)))
def test_what_is_taken_for_whole_is_whole(content: bytes, deeds: dict[int, list[tuple[str, object]]]) -> None:
    """Whatever is done to a file at whatever block: it is refused, or what came is what was there and still is."""
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_store, "_BLOCK", 10)
        path = put(Path(made, "a.txt"), content)
        sink, blocks, store = io.BytesIO(), iter(range(100)), FolderStore(Path(made))
        (file,) = store.list("", "a.txt")

        def meddle(_: int) -> None:
            for deed in deeds.get(next(blocks), ()):
                _do(path, deed)

        try:
            store.fetch(file, sink, meddle)
        except RefusedError:
            return
        assert sink.getvalue() == content == path.read_bytes()


def test_an_untouched_file_is_taken(root: Path) -> None:
    """To read a file, or to put another one beside it, is no change of it."""
    sink = Meddling(lambda: (put(root / "out" / "b.txt", b"y"), (root / "out" / "a.txt").read_bytes()))
    FolderStore(root).fetch(exported(root), sink)
    assert sink.getvalue() == b"x" * 300_000


def test_a_file_that_is_replaced_by_its_like_looks_different(root: Path) -> None:
    """Who looks twice to see whether a file rests sees another file of the same name, size and second."""
    store = FolderStore(root)
    before = store.list("out", "*")
    assert store.list("out", "*") == before
    replace(root / "out" / "a.txt", b"y" * 300_000)
    (after,) = store.list("out", "*")
    assert [after] != before
    assert (after.size, after.mtime) == (before[0].size, before[0].mtime)


def test_times_are_whole_seconds_as_servers_tell_them(root: Path) -> None:
    """A fraction is cut off and not rounded, so that a file is known again when it comes by SFTP."""
    os.utime(root / "out" / "a.txt", ns=(0, OLD * 10**9 + 999_999_999))
    assert [file.mtime for file in FolderStore(root).list("out", "*")] == [OLD]


# ---- where it ends


@pytest.mark.parametrize("out", ["../secrets", "out/../../secrets", "..", "out/..", "/", "/etc", "//secrets"])
def test_no_folder_leads_out_by_its_name(root: Path, out: str) -> None:
    """Parents and absolute folders are an error of the configuration, for listing and for fetching."""
    store = FolderStore(root)
    with pytest.raises(ConfigError, match="leads outside it"):
        store.list(out, "*")
    with pytest.raises(ConfigError, match="leads outside it"):
        store.fetch(RemoteFile("a.txt", 6, OLD, out), io.BytesIO())


def test_no_link_leads_out(root: Path) -> None:
    """A folder that is a link to elsewhere, or is reached through one, is refused."""
    (root / "in").symlink_to("../secrets")
    (root / "up").symlink_to("..")
    store = FolderStore(root)
    for out in ("in", "up", "up/secrets", "./in"):
        with pytest.raises(RefusedError, match="leads outside it through a link"):
            store.list(out, "*")
        with pytest.raises(RefusedError, match="leads outside it through a link"):
            store.fetch(RemoteFile("a.txt", 6, OLD, out), io.BytesIO())


def test_a_folder_whose_name_begins_like_the_root_is_outside(root: Path) -> None:
    """``exports-old`` beside ``exports`` is no part of it."""
    put_aside = root.with_name("exports-old")
    put_aside.mkdir()
    (root / "old").symlink_to(put_aside)
    with pytest.raises(RefusedError, match="leads out"):
        FolderStore(root).list("old", "*")


def test_links_that_stay_inside_are_followed(root: Path, tmp_path: Path) -> None:
    """Folders may be links within the root, and the root itself may be one; a file never."""
    (root / "today").symlink_to("out")
    (tmp_path / "mount").symlink_to("exports")
    store = FolderStore(tmp_path / "mount")
    (file,) = store.list("today", "*.txt")
    assert file.path == "today/a.txt"
    store.fetch(file, io.BytesIO())


@pytest.mark.parametrize("target", ["../secrets", "kept"])
def test_a_folder_that_becomes_a_link_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Whoever swaps a folder between the look at where it leads and its opening gains nothing."""
    store, look = FolderStore(root), os.path.realpath

    def swap(path: str) -> str:
        found = look(path)
        (root / "out").rename(root / "kept")
        (root / "out").symlink_to(target)
        return found

    with monkeypatch.context() as patch, pytest.raises(ConfigError, match="'out' does not exist"):
        patch.setattr(os.path, "realpath", swap)
        store.list("out", "*")
    assert (root / "out" / "a.txt").is_file()


def test_a_file_that_became_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    """What was a file when it was listed, and is a link now, is not followed."""
    store = FolderStore(root)
    (file,) = store.list("out", "*")
    (root / "out" / "a.txt").unlink()
    (root / "out" / "a.txt").symlink_to(tmp_path / "secrets" / "a.txt")
    sink = io.BytesIO()
    with pytest.raises(RefusedError, match=r"'out/a.txt' is not a regular file"):
        store.fetch(file, sink)
    assert sink.getvalue() == b""


def test_a_socket_is_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be opened at all is refused like a pipe."""
    monkeypatch.chdir(root)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("out/door")
        with pytest.raises(RefusedError, match="not a regular file"):
            FolderStore(root).fetch(RemoteFile("door", 0, OLD, "out"), io.BytesIO())


# ---- what the system says


def test_a_root_that_is_not_there(root: Path) -> None:
    """A folder that is missing, is a file or leads nowhere is an error of the configuration."""
    (root / "circle").symlink_to("circle")
    for name in ("none", "out/a.txt"):
        with pytest.raises(ConfigError, match="there is no such folder") as wrong:
            FolderStore(root / name)
        assert wrong.value.where == str(root / name)
        assert wrong.value.hint == "correct `path`, or mount the share"
    with pytest.raises(RemoteError, match="symbolic links"):
        FolderStore(root / "circle")


def test_a_file_is_no_folder(root: Path) -> None:
    """A pattern whose folder is a file names none."""
    with pytest.raises(ConfigError, match=r"'out/a.txt' does not exist"):
        FolderStore(root).list("out/a.txt", "*")
    with pytest.raises(RemoteError, match=r"file 'out/a.txt/b' does not exist"):
        FolderStore(root).fetch(RemoteFile("b", 0, OLD, "out/a.txt"), io.BytesIO())


def test_the_own_folder_may_be_relative(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative root means what it meant when it was opened."""
    monkeypatch.chdir(root.parent)
    store = FolderStore(Path("exports/out"))
    monkeypatch.chdir("/")
    (file,) = store.list("", "*")
    assert file.path == "a.txt"
    store.fetch(file, io.BytesIO())


def test_a_listing_has_an_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many names are refused, whether they match or not."""
    monkeypatch.setattr(folder_store, "MAX_NAMES", 3)
    for number in range(2):
        put(root / "out" / f"other{number}", b"")
    assert len(FolderStore(root).list("out", "a*")) == 1
    put(root / "out" / "other2", b"")
    with pytest.raises(RefusedError, match="more than 3 names"):
        FolderStore(root).list("out", "a*")


def test_a_file_that_goes_while_it_is_listed_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its sender takes away between its name and its size is not there."""
    put(root / "out" / "b.txt", b"b")
    scandir = os.scandir

    class Going:
        """A listing after which ``a.txt`` is gone."""

        def __init__(self, where: int) -> None:
            with scandir(where) as entries:
                self._entries = list(entries)
            (root / "out" / "a.txt").unlink()

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return iter(self._entries)

        def __exit__(self, *_: object) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Going)
        found = FolderStore(root).list("out", "*.txt")
    assert [file.name for file in found] == ["b.txt"]


@contextmanager
def nobody() -> Iterator[None]:
    """Do something as somebody whom permissions bind; root may do everything."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A folder with one file, to which everybody gets."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        (root / "out").mkdir()
        put(root / "out" / "a.txt", b"x")
        root.chmod(0o755)
        yield root
        for path in (root, root / "out"):
            path.chmod(0o755)


def test_a_file_that_may_not_be_read_is_named(open_root: Path) -> None:
    """A file without permission is listed, and told with what was to be done with it, and what helps."""
    (open_root / "out" / "a.txt").chmod(0)
    with nobody():
        store = FolderStore(open_root)
        (file,) = store.list("out", "*")
        with pytest.raises(UnauthorizedError, match=r"permission denied while reading 'out/a.txt'") as denied:
            store.fetch(file, io.BytesIO())
    assert denied.value.hint == "make it readable for the user that crossdock runs as"


@pytest.mark.parametrize("closed", ["out", "."])
def test_a_folder_that_may_not_be_looked_into_is_named(open_root: Path, closed: str) -> None:
    """So is a folder, be it the root or one below it."""
    (open_root / closed).chmod(0)
    with nobody(), pytest.raises(UnauthorizedError, match=f"permission denied while opening folder '{closed}'"):
        FolderStore(open_root).list("out", "*")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.ESTALE, UnavailableError), (errno.EIO, UnavailableError), (errno.ENOMEM, RemoteError)],
)
@pytest.mark.parametrize("call", ["open", "scandir", "read"])
def test_a_failing_share_is_told_in_words(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, kind: type[RemoteError]
) -> None:
    """Whatever the system says comes with place and advice; a share that is away can be waited for."""
    store, file = FolderStore(root), exported(root)

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch, pytest.raises(RemoteError) as failed:
        patch.setattr(os, call, fail)
        if call == "read":
            store.fetch(file, io.BytesIO())
        else:
            store.list("out", "*")
    assert type(failed.value) is kind
    assert failed.value.message.startswith(os.strerror(code))
    assert failed.value.where == str(root)
    assert failed.value.hint
