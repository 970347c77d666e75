"""The key index equals the state or is rebuilt, whatever happened to its files or to the state."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.examples import examples

from crossdock.errors import StateError
from crossdock.state import Binding, Scope, State, StateUrl, create_or_upgrade_state, parse_database_url
from crossdock.state.sidecar_files import key_index_files
from crossdock.state.sidecar_files.key_index_files import KEY_HASH, KNOWN_FP

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE, OTHER = Scope("platform", "product", "a"), Scope("platform", "product", "b")

Facts = dict[int, tuple[int, str | None]]


def binding(key_hash: int, fp: int, position: str | None = None) -> Binding:
    return Binding(key_hash, str(key_hash), f"id{key_hash}", fp, position, "whole", {}, None, 1)


def opened(url: StateUrl, folder: Path) -> State:
    return State(url, PIN, keys=folder / "keys")


def put(state: State, facts: Facts, scope: Scope = SCOPE) -> None:
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-01-01", at=AT)
        tx.bindings.put(scope, [binding(key, *fact) for key, fact in facts.items()], run_id=run, at=AT)


def bury(state: State, *key_hashes: int) -> None:
    with state.begin() as tx:
        tx.bindings.mark_deleted(SCOPE, key_hashes, at=AT)


def facts_of(frame: pl.DataFrame) -> Facts:
    return {row[0]: (row[1], row[2] if len(row) > 2 else None) for row in frame.rows()}


def from_file(state: State, monkeypatch: pytest.MonkeyPatch, scope: Scope = SCOPE) -> Facts | None:
    """What the index alone says; None if the bindings must be read."""

    def refuse(*_: object) -> pl.DataFrame:
        raise LookupError

    with monkeypatch.context() as patch:
        patch.setattr("crossdock.state.sidecar_files.key_index_files.key_index_frame_from_bindings", refuse)
        try:
            return facts_of(state.key_index_frame_of_scope(scope))
        except LookupError:
            return None


@pytest.fixture
def state(state_url: StateUrl, tmp_path: Path) -> Iterator[State]:
    create_or_upgrade_state(state_url, PIN)
    with closing(opened(state_url, tmp_path)) as state:
        yield state


def test_it_equals_the_state(state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After it is brought up to date it is read instead of the bindings, changes, burials and all. One file stays."""
    put(state, {n: (n + 1, None) for n in range(5)})
    assert from_file(state, monkeypatch) is None
    state.update_key_index(SCOPE)
    assert from_file(state, monkeypatch) == {n: (n + 1, None) for n in range(5)}
    put(state, {2: (99, None), 7: (1 << 64, "2026")})
    bury(state, 0, 1)
    assert from_file(state, monkeypatch) is None
    state.update_key_index(SCOPE)
    expected = {2: (99, None), 3: (4, None), 4: (5, None), 7: (1 << 64, "2026")}
    assert from_file(state, monkeypatch) == facts_of(state.key_index_frame_of_scope(SCOPE)) == expected
    assert len(list(tmp_path.rglob("*.arrow"))) == 1


def keys_of(state: State) -> list[int]:
    return state.key_index_frame_of_scope(SCOPE)[KEY_HASH].to_list()


def test_it_keeps_the_order_it_is_given(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed in another order is put in that order; changes stay in place, and new keys come last."""
    put(state, {n: (n + 1, None) for n in range(5)})
    state.update_key_index(SCOPE)
    state.update_key_index(SCOPE, pl.Series([3, 8, 1, 0], dtype=key_index_files.HASH))
    assert keys_of(state) == [3, 1, 0, 2, 4]
    put(state, {1: (99, None), 7: (7, None), 3: (5, None)})
    bury(state, 0)
    state.update_key_index(SCOPE)
    assert keys_of(state) == [3, 1, 2, 4, 7]
    expected = {3: (5, None), 1: (99, None), 2: (3, None), 4: (5, None), 7: (7, None)}
    assert from_file(state, monkeypatch) == expected
    put(state, {2: (4, "2026")})
    state.update_key_index(SCOPE, pl.Series([7, 4], dtype=key_index_files.HASH))
    assert keys_of(state) == [7, 4, 3, 1, 2]
    assert from_file(state, monkeypatch) == {**expected, 2: (4, "2026")}


def test_a_rollback_leaves_no_trace(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not committed is in no index, and does not make one old."""
    put(state, {1: (1, None)})
    state.update_key_index(SCOPE)
    with pytest.raises(ZeroDivisionError), state.begin() as tx:
        tx.bindings.mark_deleted(SCOPE, [1], at=AT)
        raise ZeroDivisionError
    assert from_file(state, monkeypatch) == {1: (1, None)}
    put(state, {2: (2, None)})
    state.update_key_index(SCOPE)
    assert from_file(state, monkeypatch) == {1: (1, None), 2: (2, None)}


def test_scopes_are_apart(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in one scope makes no other index old."""
    put(state, {1: (1, None)})
    state.update_key_index(SCOPE)
    put(state, {1: (5, None)}, OTHER)
    assert from_file(state, monkeypatch) == {1: (1, None)}
    assert from_file(state, monkeypatch, OTHER) is None


def test_too_many_keys_are_not_loaded_for_their_order(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of more keys than are put in order is read when it is compared, and not before."""
    put(state, {1: (1, None), 2: (2, None)})
    state.update_key_index(SCOPE)
    in_order = state.key_index_frame_unless_too_many(SCOPE)
    assert in_order is not None
    assert facts_of(in_order) == {1: (1, None), 2: (2, None)}
    monkeypatch.setattr("crossdock.state.sidecar_files.key_index_files.ORDERED", 1)
    assert state.key_index_frame_unless_too_many(SCOPE) is None
    assert facts_of(state.key_index_frame_of_scope(SCOPE)) == {1: (1, None), 2: (2, None)}
    put(state, {3: (3, None)})  # now the index is outdated, and the bindings count
    assert state.key_index_frame_unless_too_many(SCOPE) is None


def _damage_data(folder: Path) -> None:
    (data,) = folder.glob("*.arrow")
    raw = bytearray(data.read_bytes())
    raw[len(raw) // 2] ^= 1
    data.write_bytes(raw)


def _cut_data(folder: Path) -> None:
    (data,) = folder.glob("*.arrow")
    data.write_bytes(data.read_bytes()[:-40])


def _no_data(folder: Path) -> None:
    for data in folder.glob("*.arrow"):
        data.unlink()


def _no_note(folder: Path) -> None:
    for note in folder.glob("*.json"):
        note.unlink()


def _odd_note(folder: Path) -> None:
    for note in folder.glob("*.json"):
        note.write_text('{"format": []}')


def _newer_format(folder: Path) -> None:
    for note in folder.glob("*.json"):
        note.write_text(json.dumps({**json.loads(note.read_text()), "format": 99}))


@pytest.mark.parametrize(
    "damage", [_damage_data, _cut_data, _no_data, _no_note, _odd_note, _newer_format, shutil.rmtree]
)
def test_damage_costs_time_and_nothing_else(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    """An index that is damaged, cut, missing or of a newer crossdock is made anew from the bindings."""
    put(state, {1: (1, None), 2: (2, None)})
    state.update_key_index(SCOPE)
    damage(tmp_path / "keys")
    assert from_file(state, monkeypatch) is None
    assert facts_of(state.key_index_frame_of_scope(SCOPE)) == {1: (1, None), 2: (2, None)}
    put(state, {3: (3, None)})
    state.update_key_index(SCOPE)
    assert from_file(state, monkeypatch) == {n: (n, None) for n in (1, 2, 3)}


def test_an_index_of_another_state_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two states with the same number of changes: the index of one says nothing about the other."""
    for name, fp in (("one", 1), ("two", 2)):
        url = parse_database_url(f"sqlite:///{name}.db", tmp_path)
        create_or_upgrade_state(url, PIN)
        with closing(opened(url, tmp_path / name)) as state:
            put(state, {1: (fp, None)})
            state.update_key_index(SCOPE)
    shutil.rmtree(tmp_path / "two" / "keys")
    shutil.copytree(tmp_path / "one" / "keys", tmp_path / "two" / "keys")
    with closing(opened(parse_database_url("sqlite:///two.db", tmp_path), tmp_path / "two")) as state:
        assert from_file(state, monkeypatch) is None
        assert facts_of(state.key_index_frame_of_scope(SCOPE)) == {1: (2, None)}


def test_a_restored_state_is_not_taken_for_the_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a backup came back, and as many changes as before, the index of the lost days is not believed."""
    url, database = parse_database_url("sqlite:///state.db", tmp_path), tmp_path / "state.db"
    create_or_upgrade_state(url, PIN)
    with closing(opened(url, tmp_path)) as state:
        put(state, {1: (1, None)})
    backup = database.read_bytes()
    with closing(opened(url, tmp_path)) as state:
        put(state, {1: (2, None)})
        state.update_key_index(SCOPE)
    database.write_bytes(backup)
    with closing(opened(url, tmp_path)) as state:
        assert facts_of(state.key_index_frame_of_scope(SCOPE)) == {1: (1, None)}
        put(state, {1: (3, None)})
        assert facts_of(state.key_index_frame_of_scope(SCOPE)) == {1: (3, None)}
        state.update_key_index(SCOPE)
        assert from_file(state, monkeypatch) == {1: (3, None)}


def test_another_process_in_between_is_noticed(
    state: State, state_url: StateUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes that this process did not make are in the index that it writes."""
    put(state, {1: (1, None)})
    state.update_key_index(SCOPE)
    put(state, {2: (2, None)})
    with closing(opened(state_url, tmp_path)) as other:
        put(other, {3: (3, None)})
    put(state, {4: (4, None)})
    state.update_key_index(SCOPE)
    assert from_file(state, monkeypatch) == {n: (n, None) for n in (1, 2, 3, 4)}


def test_more_changes_than_are_remembered(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large load is not held in memory: the index is made from the bindings."""
    monkeypatch.setattr(key_index_files, "JOURNAL", 10)
    put(state, {1: (1, None)})
    state.update_key_index(SCOPE)
    for start in range(2, 40, 4):
        put(state, {n: (n, None) for n in range(start, start + 4)})
    state.update_key_index(SCOPE)
    assert from_file(state, monkeypatch) == {n: (n, None) for n in range(1, 42)}


FPS = st.sampled_from([1, 2, 2**64 - 1, 2**64, 2**128 - 1])


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.dictionaries(st.integers(0, 9), FPS, min_size=1)),
            st.tuples(st.just("bury"), st.lists(st.integers(0, 9), min_size=1, unique=True)),
            st.tuples(st.just("publish"), st.none()),
            st.tuples(st.just("reopen"), st.none()),  # as after a kill: what was remembered is gone
        ),
        max_size=25,
    )
)
def test_it_is_always_the_state(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]]) -> None:
    """Whatever is written, buried and published, and wherever the process ends, what is known equals a plain dict."""
    folder = tmp_path_factory.mktemp("index")
    url, model = parse_database_url("sqlite:///state.db", folder), Facts()
    create_or_upgrade_state(url, PIN)
    state = opened(url, folder)
    for step, what in steps:
        match step, what:
            case "put", dict():
                facts: Facts = {key: (fp, None) for key, fp in what.items()}
                put(state, facts)
                model |= facts
            case "bury", list():
                bury(state, *what)
                model = {key: fact for key, fact in model.items() if key not in what}
            case "publish", _:
                state.update_key_index(SCOPE)
            case _:
                state.close()
                state = opened(url, folder)
        assert facts_of(state.key_index_frame_of_scope(SCOPE)) == model
    state.close()


def test_it_cannot_hide_a_failing_database(tmp_path: Path) -> None:
    """Without its state an index is worth nothing."""
    with pytest.raises(StateError, match="no state"):
        opened(parse_database_url("sqlite:///none.db", tmp_path), tmp_path)


def test_columns(state: State) -> None:
    """Hashes of 128 bits, from a file of 64 where that is enough; positions only where a stream has them."""
    put(state, {1: (2**64 - 1, None)})
    assert state.key_index_frame_of_scope(SCOPE).schema == {KEY_HASH: pl.UInt128, KNOWN_FP: pl.UInt128}
    state.update_key_index(SCOPE)
    assert state.key_index_frame_of_scope(SCOPE).schema == {KEY_HASH: pl.UInt128, KNOWN_FP: pl.UInt64}
