"""A state older than the last run that sent something is refused until it is declared a restored backup."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import update
from tests.conftest import PIN

from crossdock.errors import RefusedError, StateError
from crossdock.state import State, StateUrl, create_or_upgrade_state, open_state, parse_database_url
from crossdock.state.db.database_opening_and_errors import open_engine_of_state
from crossdock.state.db.schema import meta
from crossdock.state.sidecar_files.folder_owner_and_fence import FenceAndSentMark, FenceFiles, fence_file_in_user_folder

IS_MARK = meta.c.name == "sent_mark"


@contextmanager
def opened(url: StateUrl, keys: Path, *, restored: bool = False) -> Iterator[State]:
    with closing(State(url, PIN, keys=keys)) as state, state.hold_run_lease("test", restored=restored):
        yield state


def test_a_run_that_sends_leaves_a_mark(state_url: StateUrl, tmp_path: Path) -> None:
    """A state without such a run is refused every time; once declared, it is used with a higher fence."""
    create_or_upgrade_state(state_url, PIN)
    keys = tmp_path / "keys"
    for _ in range(3):
        with opened(state_url, keys):
            pass
    assert not (keys / "fence.json").exists(), "nothing was sent"
    with opened(state_url, keys) as state:
        state.run_transaction_before_sending(lambda _: None)
    identity = json.loads((keys / "fence.json").read_bytes())["state"]
    FenceFiles([keys / "fence.json"], identity).write(FenceAndSentMark(50))  # by runs that this state does not know
    for _ in range(3):
        with pytest.raises(RefusedError, match="older than the last run here") as refused, opened(state_url, keys):
            pass
        assert "crossdock state restored" in str(refused.value)
    with opened(state_url, keys, restored=True) as state:
        assert state.fence_number == 51
    with opened(state_url, keys) as state:
        assert state.fence_number == 52


def test_a_copy_that_was_made_during_a_run_is_refused(state_url: StateUrl, tmp_path: Path) -> None:
    """What was sent after it is unknown to it, whether the run ends or fails; once declared, it is used."""
    create_or_upgrade_state(state_url, PIN)
    keys, marks = tmp_path / "keys", list[int]()
    for error in (None, RuntimeError("failed")):
        with suppress(RuntimeError), opened(state_url, keys) as state:
            state.run_transaction_before_sending(lambda _: None)
            marks.append(json.loads((keys / "fence.json").read_bytes())["mark"])
            state.run_transaction_before_sending(lambda _: None)
            assert json.loads((keys / "fence.json").read_bytes())["mark"] == marks[-1], "written every few seconds"
            if error:
                raise error
    assert marks == [1, 3]
    engine = open_engine_of_state(state_url, PIN, read_only=False)
    with engine.begin() as connection:  # as the copy has it
        connection.execute(update(meta).where(IS_MARK).values(value=str(marks[-1])))
    engine.dispose()
    with pytest.raises(RefusedError, match="older than the last run here"), opened(state_url, keys):
        pass
    with opened(state_url, keys, restored=True):
        pass
    with opened(state_url, keys):
        pass


def test_a_database_that_loses_commits_is_noticed_before_the_next_request(
    state_url: StateUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failover to a standby that lags, or with a backup that is restored below a running service."""
    monkeypatch.setattr(open_state, "MARK_EVERY_S", 0)
    create_or_upgrade_state(state_url, PIN)
    keys, sent = tmp_path / "keys", list[str]()
    with opened(state_url, keys) as state:
        for _ in range(3):
            state.run_transaction_before_sending(lambda _: sent.append("sent"))
        state.run_transaction(lambda tx: tx.connection.execute(update(meta).where(IS_MARK).values(value="1")))
        with pytest.raises(StateError, match="it lacks what this run has written") as lost:
            state.run_transaction_before_sending(lambda _: sent.append("sent on"))
        assert "crossdock state restored" in str(lost.value)
    assert sent == ["sent"] * 3
    with pytest.raises(RefusedError, match="older than the last run here"), opened(state_url, keys):
        pass
    with opened(state_url, keys, restored=True):
        pass
    with opened(state_url, keys) as state:
        state.run_transaction_before_sending(lambda _: None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"state": "a"}', b'{"state": "a", "fence": "x"}', b"\xff"])
def test_a_damaged_mark_is_ignored(tmp_path: Path, content: bytes) -> None:
    """It is an extra check, and stops nothing if it cannot be read."""
    (tmp_path / "fence.json").write_bytes(content)
    mark = FenceFiles([tmp_path / "fence.json"], "a")
    mark.raise_if_state_outdated(FenceAndSentMark(), "here")
    mark.write(FenceAndSentMark(7))
    assert mark.highest() == FenceAndSentMark(7)
    assert (tmp_path / "fence.json").stat().st_mode & 0o777 == 0o600


def test_the_mark_of_another_state_is_ignored(tmp_path: Path) -> None:
    """A state that was created again at the same place starts over."""
    FenceFiles([tmp_path / "fence.json"], "a").write(FenceAndSentMark(7))
    FenceFiles([tmp_path / "fence.json"], "b").raise_if_state_outdated(FenceAndSentMark(1), "here")
    with pytest.raises(RefusedError):
        FenceFiles([tmp_path / "fence.json"], "a").raise_if_state_outdated(FenceAndSentMark(1), "here")


def test_a_mark_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """A file in place of its folder, as any other obstacle, only disables the check."""
    (tmp_path / "keys").write_text("")
    FenceFiles([tmp_path / "keys" / "fence.json"], "a").write(FenceAndSentMark(7))


def test_a_copy_of_the_whole_folder_is_refused(state_url: StateUrl, tmp_path: Path) -> None:
    """A backup of everything beside the state restores the mark there; the one in the user's folder is newer."""
    create_or_upgrade_state(state_url, PIN)
    for _ in range(2):
        with opened(state_url, tmp_path / "keys") as state:
            state.run_transaction_before_sending(lambda _: None)
    identity = json.loads((tmp_path / "keys" / "fence.json").read_bytes())["state"]
    (mine,) = fence_file_in_user_folder(identity)
    FenceFiles([mine], identity).write(FenceAndSentMark(50))
    with pytest.raises(RefusedError, match="older than the last run here"), opened(state_url, tmp_path / "keys"):
        pass


def test_a_copy_of_the_whole_folder_is_refused_by_another_path_too(tmp_path: Path) -> None:
    """Cron names the folder by a link, and who restores it does not: it is the same state, with the same mark."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    url, by_link = (parse_database_url("sqlite:///state.db", tmp_path / name) for name in ("disk", "link"))
    create_or_upgrade_state(url, PIN)
    shutil.copytree(tmp_path / "disk", tmp_path / "backup")
    with opened(by_link, tmp_path / "link" / "keys") as state:
        state.run_transaction_before_sending(lambda _: None)
    shutil.rmtree(tmp_path / "disk")
    shutil.copytree(tmp_path / "backup", tmp_path / "disk")
    with pytest.raises(RefusedError, match="older than the last run here"), opened(url, tmp_path / "disk" / "keys"):
        pass


def test_a_user_without_a_home_has_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: a state is used there, with the mark beside it alone."""
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", _no_home)
    assert fence_file_in_user_folder("a") == ()


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
