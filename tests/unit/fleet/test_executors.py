"""Executors are found by entry point."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint, entry_points

import pytest

from crossdock.errors import ConfigError
from crossdock.services.fleet import executor_kinds_by_entry_point
from crossdock.services.fleet.executor_kinds_by_entry_point import ExecutorKind, parse_executor_option

OURS = ExecutorKind(lambda _address, at_once: ThreadPoolExecutor(at_once))
NOT_ONE = "an executor"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors of other packages."""
    others = {"ours": "OURS", "wrong": "NOT_ONE", "missing": "NOWHERE"}
    points = [
        EntryPoint(name, f"{__name__}:{value}", executor_kinds_by_entry_point.GROUP) for name, value in others.items()
    ]
    points.append(EntryPoint("broken", "crossdock_no_such_module:KIND", executor_kinds_by_entry_point.GROUP))
    monkeypatch.setattr(
        executor_kinds_by_entry_point, "entry_points", lambda group: [*entry_points(group=group), *points]
    )


@pytest.mark.usefixtures("installed")
def test_an_executor_of_another_package() -> None:
    """It is opened with the number of runs at the same time."""
    found = parse_executor_option("ours")
    with found.open(3) as opened:
        assert opened.submit(int, "7").result() == 7
        assert isinstance(opened, ThreadPoolExecutor)
        assert opened._max_workers == 3


@pytest.mark.parametrize(
    ("name", "elsewhere", "address"), [("threads", False, False), ("processes", False, False), ("dask", True, True)]
)
def test_the_bundled_ones(name: str, elsewhere: bool, address: bool) -> None:
    """Only a cluster has an address and other hosts."""
    kind = parse_executor_option(f"{name}=tcp://127.0.0.1:1" if address else name).kind
    assert (kind.on_other_hosts, kind.needs_address) == (elsewhere, address)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spark", "no executor is called 'spark'"),
        ("", "no executor is called ''"),
        ("dask", "dask needs an address"),
        ("dask=", "dask needs an address"),
        ("threads=4", "threads takes no address"),
        ("wrong", "is not an ExecutorKind but a str"),
        ("missing", "the executor 'missing' cannot be loaded: AttributeError"),
        ("broken", "the executor 'broken' cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_wrong_choice_is_refused(text: str, said: str) -> None:
    """With what there is, or what to do."""
    with pytest.raises(ConfigError) as refused:
        parse_executor_option(text)
    assert said in str(refused.value)
    assert str(refused.value).startswith("--executor: ")
