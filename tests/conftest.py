"""For every kind of test: how tests are collected, states on both databases, compiled modules for processes."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from tests.examples import ALL, FEW, SHARE
from tests.forked_commands import forked_commands
from tests.new_databases import new_databases
from tests.quick_configs import quick_configs
from tests.quick_disk import quick_disk
from tests.quick_entry_points import quick_entry_points
from tests.quick_states import quick_states
from tests.quick_tls import quick_tls
from tests.servers import require

from crossdock.state import PinnedTenant, State, StateUrl, create_or_upgrade_state, parse_database_url
from crossdock.testing.postgres_server import PostgresServer

# Making text strategies costs a second the first time; that is no fault of a test.
_all = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(ALL, _all)
settings.register_profile(FEW, _all, max_examples=round(_all.max_examples * SHARE))
settings.load_profile(FEW)

if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and not sys.pycache_prefix:
    # The variable keeps the source tree clean, but makes each process of a test compile all of crossdock. So they share
    # a folder of compiled modules. The workers of pytest-xdist inherit it.
    _compiled = TemporaryDirectory(prefix="crossdock-compiled-")
    os.environ["PYTHONPYCACHEPREFIX"] = _compiled.name

PIN = PinnedTenant("http://127.0.0.1:9", "acme")


TESTS = Path(__file__).parent
BOTH_DATABASES = TESTS / "unit" / "state", TESTS / "nightly", TESTS / "long"  # other tests use PostgreSQL nightly


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nightly", action="store_true", help="also run tests/nightly, marked tests, and states on both databases"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """tests/nightly is collected by its name, or with ``--nightly``."""
    return True if collection_path == TESTS / "nightly" and not config.getoption("nightly") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``--nightly``, marked tests are left out, and states are on SQLite where that makes no difference."""
    if config.getoption("nightly"):
        return
    left = [item for item in items if _is_second_database(item) or _is_nightly(item)]
    config.hook.pytest_deselected(items=left)
    left_out = set(left)
    items[:] = [item for item in items if item not in left_out]


def _is_nightly(item: pytest.Item) -> bool:
    case = item.name.partition("[")[2].removesuffix("]")
    return any(
        not any(
            case == text or case.startswith(f"{text}-") or case.endswith(f"-{text}")
            for text in mark.kwargs.get("but", ())
        )
        for mark in item.iter_markers("nightly")  # of its file too
    )


def _is_second_database(item: pytest.Item) -> bool:
    of_test = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return of_test.get("state_url") == "postgresql" and not any(map(item.path.is_relative_to, BOTH_DATABASES))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is collected becomes garbage: not looking for it halves the time of the collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def commands_are_quick() -> Iterator[None]:
    """Those in this process, which are many; a process of its own works as users' do."""
    with quick_disk(), quick_states(), quick_entry_points(), quick_configs(), quick_tls():
        yield


@pytest.fixture(scope="session", autouse=True)
def a_home_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What crossdock keeps in a user's folder is not kept in that of the user who runs the tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture
def commands_are_forked() -> Iterator[None]:
    """Those of acceptances, which are dozens of processes."""
    with forked_commands():
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    require(PostgresServer.available(), "PostgreSQL")
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def new_database(postgres: PostgresServer) -> Iterator[Callable[..., StateUrl]]:
    with new_databases(postgres) as new:
        yield new


@pytest.fixture(scope="session")
def empty_database(new_database: Callable[..., StateUrl]) -> StateUrl:
    """The database of an empty state, to be copied: making its tables takes five times as long."""
    url = new_database()
    create_or_upgrade_state(url, PIN)
    return url


@pytest.fixture(scope="session")
def empty_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty state, to be copied: that takes a thirtieth of the time that making it takes."""
    url = parse_database_url("sqlite:///state.db", tmp_path_factory.mktemp("empty"))
    create_or_upgrade_state(url, PIN)
    return Path(url.database or "")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> StateUrl:
    """The address of a state, once on each database; none exists there yet, unless `state` is asked for as well."""
    if request.param == "sqlite":
        return parse_database_url("sqlite:///state.db", tmp_path)
    new: Callable[..., StateUrl] = request.getfixturevalue("new_database")
    return new(request.getfixturevalue("empty_database") if "state" in request.fixturenames else None)


@pytest.fixture
def state(state_url: StateUrl, empty_state: Path) -> Iterator[State]:
    """An empty state, once on each database."""
    if state_url.drivername == "sqlite":
        shutil.copy(empty_state, state_url.database or "")
    opened = State(state_url, PIN)
    yield opened
    opened.close()
